/* cuda_row_chain.cu: the steps of a chain of nodes by row, and the kernel that executes them. */
#include "backend/cuda/cuda_row_chain.h"

#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

#define TWO_PI 6.283185307179586476925

enum { THREADS = 256, WIDE_THREADS = 1024, WARPS = WIDE_THREADS / 32 };
enum { MOST_EACH = 4 };       /* vectors of a lane */
enum { MOST_STAGED = 49152 }; /* bytes of shared memory of a reflection */

/* Blocks of a chain that sums over rows. Constant, so that results do not depend on the device. */
#ifdef LP_CUDA_EMULATED
enum { SUM_BLOCKS = 3 };
#else
enum { SUM_BLOCKS = 1056 };
#endif

/* A row has lanes of a warp or all threads of a block. */
enum row_kind { NARROW, WIDE };

typedef struct row_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols, count;
    int passes; /* over the columns: one, but for single steps of very wide rows */
    lp_row_sums sums;
    row_step steps[LP_ROW_CHAIN_STEPS];
} row_task;

/* The lanes that share a row: threadIdx.x of `lanes`. */
typedef struct row_team {
    int row, lane, lanes, cols;
    int first;   /* column of the pass */
    bool exists; /* the row */
    const lp_cuda_shard *shard;
} row_team;

/* A lane's columns of a row: vector m begins at first + n * (lane + lanes * m). Zeros beyond the last column. */
template <int n, int each> struct row_part {
    lp_vector<n> at[each];
};

template <int n> __device__ inline int column_of(const row_team &me, int m)
{
    return me.first + n * (me.lane + me.lanes * m);
}

/* A row of floats, or of a copy in bf16. */
typedef struct row_source {
    const float *floats;
    const uint16_t *copy; /* NULL: none */

    template <int n> __device__ lp_vector<n> at(int c) const
    {
        return copy ? lp_vector_load_bf16<n>(copy + c) : lp_vector_load<n>(floats + c);
    }
} row_source;

/* A row of input i of a step, with `cols` columns: main, or one of the others. */
__device__ inline row_source source_of(int row, const row_step &step, int i, int cols)
{
    const lp_cuda_copy &copy = step.from[i];
    return {(i ? step.other[i - 1] : step.main) + (size_t)row * cols,
            copy.data ? copy.data + (size_t)row * copy.stride : NULL};
}

template <int n, int each> __device__ inline void load(const row_team &me, row_part<n, each> &x, row_source from)
{
#pragma unroll
    for (int m = 0; m < each; m++) {
        int c = column_of<n>(me, m);
        x.at[m] = {};
        if (me.exists && c < me.cols)
            x.at[m] = from.at<n>(c);
    }
}

template <int n, int each, typename function>
__device__ inline void each_column(const row_team &me, row_part<n, each> &x, const function &change)
{
#pragma unroll
    for (int m = 0; m < each; m++)
#pragma unroll
        for (int i = 0; i < n; i++)
            if (column_of<n>(me, m) < me.cols)
                x.at[m].at[i] = change(m, i);
}

/* Stores x as n numbers of result[0] of a step, or the sum of both, from column c of the row on. x becomes what is stored.
 * gaps: zeros before the column in the copy. */
template <int n>
__device__ inline void store_result(int row, int cols, const row_step &step, int c, lp_vector<n> &x, int gaps = 0)
{
    float *to = step.result[0] + (size_t)row * cols + c;
    if (step.result[0] && step.flags & LP_ROW_ADDS) {
        lp_vector<n> old = lp_vector_load<n>(to);
#pragma unroll
        for (int i = 0; i < n; i++)
            x.at[i] = old.at[i] + x.at[i];
    }
    if (step.result[0])
        *(lp_vector<n> *)to = x;
    if (!step.copy.data)
        return;
    uint16_t *packed = step.copy.data + (size_t)row * step.copy.stride + c + gaps;
    if constexpr (n == 1) {
        tile_store_two<false>(packed, x.at[0], 0, false);
    } else {
        lp_vector<n / 2> both;
#pragma unroll
        for (int i = 0; i < n / 2; i++)
            both.at[i] = tile_pack_bf16(x.at[2 * i], x.at[2 * i + 1]);
        *(lp_vector<n / 2> *)packed = both;
    }
}

template <row_kind kind> __device__ inline void team_sync(void)
{
    if (kind == WIDE)
        __syncthreads();
    else
        __syncwarp();
}

/* Two sums over the lanes of a team, in all of them. */
template <row_kind kind> __device__ inline float2 team_sum(const row_team &me, float2 mine)
{
    for (int lanes = kind == WIDE ? 16 : me.lanes / 2; lanes > 0; lanes >>= 1) {
        mine.x += __shfl_xor_sync(0xFFFFFFFFu, mine.x, lanes);
        mine.y += __shfl_xor_sync(0xFFFFFFFFu, mine.y, lanes);
    }
    if constexpr (kind == WIDE) {
        __shared__ float2 sums[WARPS];
        __syncthreads();
        if (me.lane % 32 == 0)
            sums[me.lane / 32] = mine;
        __syncthreads();
        mine = sums[0];
        for (int i = 1; i < me.lanes / 32; i++)
            mine = make_float2(mine.x + sums[i].x, mine.y + sums[i].y);
    }
    return mine;
}

/* ---- steps --------------------------------------------------------------------------------------------------- */

template <int n, int each> __device__ inline void drop(const row_team &me, const row_step &step, row_part<n, each> &x)
{
    const lp_cuda_shard *shard = me.shard;
#pragma unroll
    for (int m = 0; m < each; m++) {
        int c = column_of<n>(me, m);
        if (c >= me.cols)
            continue;
        lp_random_block block = lp_philox(shard->seed, step.purpose, shard->step,
                                          (shard->first_token + (uint64_t)me.row) * 65536 + (uint64_t)(c / 8));
        /* Of the four words, those of columns c and c + 2: selected without an index, which would need memory. */
        uint32_t low = c & 4 ? block.word[2] : block.word[0], high = c & 4 ? block.word[3] : block.word[1];
        uint32_t words[2] = {n < 4 && c & 2 ? high : low, high};
#pragma unroll
        for (int i = 0; i < n; i++) {
            uint32_t bits = words[i / 2] >> (16 * ((n == 1 ? c : i) & 1)) & 0xFFFFu;
            x.at[m].at[i] = bits >= step.threshold ? x.at[m].at[i] * step.scale : 0;
        }
    }
}

/* x = f(x, y) */
template <int n, int each>
__device__ inline void apply(const row_team &me, const row_step &step, row_part<n, each> &x, row_part<n, each> &y)
{
    float scale = step.scale, shift = step.shift;
    switch (step.op) {
    case LP_OP_ADD:
        if (!step.other[0])
            return;
        return each_column<n, each>(me, x, [&](int m, int i) { return x.at[m].at[i] + y.at[m].at[i]; });
    case LP_OP_MULTIPLY:
        return each_column<n, each>(me, x, [&](int m, int i) { return x.at[m].at[i] * y.at[m].at[i]; });
    case LP_OP_RELU:
        return each_column<n, each>(me, x, [&](int m, int i) { return x.at[m].at[i] > 0 ? x.at[m].at[i] : 0; });
    case LP_OP_RELU_GRADIENT:
        return each_column<n, each>(me, x, [&](int m, int i) { return y.at[m].at[i] > 0 ? x.at[m].at[i] : 0; });
    case LP_OP_AFFINE:
        return each_column<n, each>(me, x, [&](int m, int i) { return scale * x.at[m].at[i] + shift; });
    case LP_OP_SCALE_COLUMNS:
        load<n, each>(me, y, {(const float *)step.factors, NULL});
        return each_column<n, each>(me, x, [&](int m, int i) { return x.at[m].at[i] * y.at[m].at[i]; });
    case LP_OP_DROPOUT:
        return drop<n, each>(me, step, x);
    }
}

template <int n, int each, row_kind kind>
__device__ inline void layer_norm(const row_team &me, const row_step &step, row_part<n, each> &x)
{
    float inverse_cols = 1.0f / (float)me.cols;
    float2 sum = {0, 0}, square = {0, 0};
    row_part<n, each> gain, shift;
    load<n, each>(me, gain, {(const float *)step.factors, NULL});
    load<n, each>(me, shift, {step.shifts, NULL});
#pragma unroll
    for (int k = 0; k < n * each; k++)
        sum.x += x.at[k / n].at[k % n];
    float mean = team_sum<kind>(me, sum).x * inverse_cols;
    each_column<n, each>(me, x, [&](int m, int i) {
        float apart = x.at[m].at[i] - mean;
        square.x += apart * apart;
        return apart;
    });
    float inverse = rsqrtf(team_sum<kind>(me, square).x * inverse_cols + step.shift);
    each_column<n, each>(me, x,
                         [&](int m, int i) { return x.at[m].at[i] * inverse * gain.at[m].at[i] + shift.at[m].at[i]; });
    if (step.result[1] && me.exists && me.lane == 0)
        *(float2 *)(step.result[1] + 2 * (size_t)me.row) = make_float2(mean, inverse);
}

/* With z = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - z * mean(g z)). Adds z dy and dy to sums, unless it is
 * NULL. */
template <int n, int each, row_kind kind>
__device__ inline void layer_norm_gradient(const row_team &me, const row_step &step, row_part<n, each> &dy,
                                           row_part<n, each> &x, row_part<n, each> *sums)
{
    float inverse_cols = 1.0f / (float)me.cols;
    row_part<n, each> gain;
    load<n, each>(me, gain, {(const float *)step.factors, NULL});
    float2 moments = {0, 0}, sum = {0, 0};
    if (me.exists)
        moments = *(const float2 *)(step.other[1] + 2 * (size_t)me.row);
    each_column<n, each>(me, dy, [&](int m, int i) {
        x.at[m].at[i] = (x.at[m].at[i] - moments.x) * moments.y;
        if (sums && step.flags & LP_ROW_SUMS && me.exists) {
            sums[0].at[m].at[i] += x.at[m].at[i] * dy.at[m].at[i];
            sums[1].at[m].at[i] += dy.at[m].at[i];
        }
        float g = dy.at[m].at[i] * gain.at[m].at[i];
        sum.x += g;
        sum.y += g * x.at[m].at[i];
        return g;
    });
    sum = team_sum<kind>(me, sum);
    each_column<n, each>(me, dy, [&](int m, int i) {
        return moments.y * (dy.at[m].at[i] - sum.x * inverse_cols - x.at[m].at[i] * (sum.y * inverse_cols));
    });
}

template <int n> __device__ inline void basis(int row, int f, const row_step &step)
{
    const double *frequency = (const double *)step.factors;
    int count = step.frequencies;
    double at = step.time[row];
    lp_vector<n> sine, cosine;
#pragma unroll
    for (int i = 0; i < n; i++) {
        double cycles = at * frequency[f + i] * (1 / TWO_PI);
        float half_cycles = (float)(2 * (cycles - rint(cycles)));
        sincospif(half_cycles, &sine.at[i], &cosine.at[i]);
    }
    store_result<n>(row, 2 * count, step, f, cosine);
    store_result<n>(row, 2 * count, step, count + f, sine);
}

/* Cosines and sines of a thread, and their gradient so far. Where it is the same matrix as dx, it is not loaded but added to when dx has
 * been stored. */
template <int n> struct pair_angles {
    lp_vector<n> cosine, sine, old[2];
    bool early; /* old has been loaded */
};

template <int n> __device__ inline pair_angles<n> load_angles(int row, int f, const row_step &step)
{
    const size_t angle = (size_t)row * 2 * step.frequencies + f;
    pair_angles<n> mine = {lp_vector_load<n>(step.other[0] + angle),
                           lp_vector_load<n>(step.other[0] + angle + step.frequencies),
                           {},
                           step.flags & LP_ROW_ADDS_SECOND && step.result[1] && step.result[1] != step.result[0]};
    for (int i = 0; mine.early && i < 2; i++)
        mine.old[i] = lp_vector_load<n>(step.result[1] + angle + i * step.frequencies);
    return mine;
}

/* Multiplies the pairs (c, s) of dy by [cosine, sine; sine, -cosine]: reflect has its input as dy and its output as dx. The gradient also
 * has that of cosines and sines.
 * copied: dy and x are copies, whose loads need no branches: those of several heads are under way at once. */
template <int n, bool copied>
__device__ inline void reflect(int row, int f, int cols, const row_step &step, const pair_angles<n> &angles)
{
    constexpr int together = n == 4 ? 2 : 4;
    int count = step.frequencies, heads = cols / (2 * count);
    const size_t angle = (size_t)row * 2 * count + f;
    bool both = step.result[1];
    row_source dy = source_of(row, step, 0, cols), x = source_of(row, step, 2, cols);
    auto load_pairs = [&](const row_source &from, int h, int gap, int c) {
        c += f + h * 2 * count;
        if constexpr (copied)
            return lp_vector_load_bf16<n>(from.copy + c + h * gap);
        else
            return from.copy ? lp_vector_load_bf16<n>(from.copy + c + h * gap) : lp_vector_load<n>(from.floats + c);
    };
    lp_vector<n> cosine = angles.cosine, sine = angles.sine, dcosine = {}, dsine = {};
#pragma unroll 1
    for (int first = 0; first < heads; first += together) {
        lp_vector<n> dc[together], ds[together], xc[together], xs[together];
#pragma unroll
        for (int k = 0; k < together; k++) {
            int h = min(first + k, heads - 1);
            dc[k] = load_pairs(dy, h, step.from[0].gap, 0);
            ds[k] = load_pairs(dy, h, step.from[0].gap, count);
            if (both) {
                xc[k] = load_pairs(x, h, step.from[2].gap, 0);
                xs[k] = load_pairs(x, h, step.from[2].gap, count);
            }
        }
#pragma unroll
        for (int k = 0; k < together; k++) {
            int h = first + k, c = h * 2 * count + f;
            if (h >= heads)
                continue;
            lp_vector<n> dxc, dxs;
#pragma unroll
            for (int i = 0; i < n; i++) {
                if (both) {
                    dcosine.at[i] += xc[k].at[i] * dc[k].at[i] - xs[k].at[i] * ds[k].at[i];
                    dsine.at[i] += xs[k].at[i] * dc[k].at[i] + xc[k].at[i] * ds[k].at[i];
                }
                dxc.at[i] = dc[k].at[i] * cosine.at[i] + ds[k].at[i] * sine.at[i];
                dxs.at[i] = dc[k].at[i] * sine.at[i] - ds[k].at[i] * cosine.at[i];
            }
            store_result<n>(row, cols, step, c, dxc, h * step.copy.gap);
            store_result<n>(row, cols, step, c + count, dxs, h * step.copy.gap);
        }
    }
    for (int i = 0; both && i < 2; i++) {
        lp_vector<n> sum = i ? dsine : dcosine;
#pragma unroll
        for (int k = 0; angles.early && k < n; k++)
            sum.at[k] = angles.old[i].at[k] + sum.at[k];
        lp_vector_store<n>(step.result[1] + angle + i * count, sum, !angles.early && step.flags & LP_ROW_ADDS_SECOND);
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

template <int n, int each> __device__ inline void store(const row_team &me, const row_step &step, row_part<n, each> &x)
{
    if (!step.result[0] && !step.copy.data)
        return;
#pragma unroll
    for (int m = 0; m < each; m++)
        if (me.exists && column_of<n>(me, m) < me.cols)
            store_result<n>(me.row, me.cols, step, column_of<n>(me, m), x.at[m]);
}

/* A step whose result is in the registers. y: its second input, if that was loaded ahead. */
template <int n, int each, row_kind kind>
__device__ inline void run_step(const row_team &me, const row_step &step, row_part<n, each> &x, row_part<n, each> &y,
                                row_part<n, each> *sums)
{
    if (step.ids)
        load<n, each>(me, x, {step.main + (me.exists ? (size_t)step.ids[me.row] * me.cols : 0), NULL});
    else if (step.flags & LP_ROW_MAIN)
        load<n, each>(me, x, source_of(me.row, step, 0, me.cols));
    if (step.other[0] && !(step.flags & LP_ROW_EARLY))
        load<n, each>(me, y, source_of(me.row, step, 1, me.cols));
    if (step.op == LP_OP_LAYER_NORM)
        layer_norm<n, each, kind>(me, step, x);
    else if (step.op == LP_OP_LAYER_NORM_GRADIENT)
        layer_norm_gradient<n, each, kind>(me, step, x, y, sums);
    else
        apply<n, each>(me, step, x, y);
    store<n, each>(me, step, x);
}

/* Adds the sums of all teams of the block in their order, and stores them. */
template <int n, int each, row_kind kind>
__device__ inline void store_sums(const row_team &me, const lp_row_sums &to, row_part<n, each> (&sums)[2])
{
    __shared__ float2 shared[kind == WIDE ? 1 : 32 * n * each];
    int teams = (int)blockDim.y;
#pragma unroll 1
    for (int team = 0; team < teams; team++) {
#pragma unroll
        for (int k = 0; k < n * each; k++) {
            int m = k / n, i = k % n, c = column_of<n>(me, m) + i;
            if ((int)threadIdx.y != team || c >= me.cols)
                continue;
            float2 sum = make_float2(sums[0].at[m].at[i], sums[1].at[m].at[i]);
            if (kind == NARROW && team > 0)
                sum = make_float2(shared[c].x + sum.x, shared[c].y + sum.y);
            if (kind == NARROW)
                shared[c] = sum;
            if (team == teams - 1) {
                to.of[0][(size_t)blockIdx.x * me.cols + c] = sum.x;
                to.of[1][(size_t)blockIdx.x * me.cols + c] = sum.y;
            }
        }
        __syncthreads();
    }
}

/* The second input of a step is loaded during the step before it, where that is possible. sums: the blocks divide the rows, and store
 * task.sums. */
template <int n, int each, row_kind kind, bool sums>
__global__ void __launch_bounds__(kind == WIDE ? WIDE_THREADS : THREADS)
    row_chain_kernel(const __grid_constant__ row_task task)
{
    int rows = lp_rows_now(task.rows, task.shard), first = (int)(blockIdx.x * blockDim.y);
    row_team me = {0, (int)threadIdx.x, (int)blockDim.x, task.cols, 0, false, task.shard};
    row_part<n, each> sum[2] = {};
#pragma unroll 1
    for (; first < rows; first += sums ? (int)(gridDim.x * blockDim.y) : rows) {
        me.row = first + (int)threadIdx.y;
        me.exists = me.row < rows;
        row_part<n, each> x = {}, y = {}, ahead = {};
#pragma unroll 1
        for (int i = -1; i < task.count; i++) {
            if (i + 1 < task.count && task.steps[i + 1].flags & LP_ROW_EARLY)
                load<n, each>(me, ahead, source_of(me.row, task.steps[i + 1], 1, me.cols));
            if (i > 0)
                team_sync<kind>();
            if (i >= 0)
                run_step<n, each, kind>(me, task.steps[i], x, y, sums ? sum : NULL);
            y = ahead;
        }
        for (int pass = 1; !sums && kind == WIDE && pass < task.passes; pass++) {
            me.first += n * each * me.lanes;
            if (task.steps[0].other[0])
                load<n, each>(me, y, source_of(me.row, task.steps[0], 1, me.cols));
            run_step<n, each, kind>(me, task.steps[0], x, y, NULL);
        }
    }
    if constexpr (sums)
        store_sums<n, each, kind>(me, task.sums, sum);
}

/* Steps of cosines and sines: a thread has n neighbouring pairs of each head of a row. */
template <int n> __global__ void __launch_bounds__(THREADS) pair_chain_kernel(const __grid_constant__ row_task task)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, vectors = (uint32_t)task.steps[0].frequencies / n;
    int row = (int)(i / vectors), f = n * (int)(i % vectors);
    if (row >= lp_rows_now(task.rows, task.shard))
        return;
#pragma unroll 1
    for (int k = 0; k < task.count; k++)
        if (task.steps[k].op == LP_OP_BASIS)
            basis<n>(row, f, task.steps[k]);
        else if (task.steps[k].from[0].data && (task.steps[k].from[2].data || !task.steps[k].result[1]))
            reflect<n, true>(row, f, task.cols, task.steps[k], load_angles<n>(row, f, task.steps[k]));
        else
            reflect<n, false>(row, f, task.cols, task.steps[k], load_angles<n>(row, f, task.steps[k]));
}

/* One reflection of copies of an odd number of pairs, which are no whole words: a block reads and writes its rows 16 bytes at a time, and
 * keeps them in shared memory. A thread has a pair of each head. */
__global__ void __launch_bounds__(THREADS) staged_reflect_kernel(const __grid_constant__ row_task task)
{
    LP_SHARED(float, memory);
    row_step step = task.steps[0];
    int count = step.frequencies, stride = step.copy.stride / 2, each = THREADS / count, first = (int)blockIdx.x * each;
    int rows = min(lp_rows_now(task.rows, task.shard) - first, each);
    int row = (int)threadIdx.x / count, f = (int)threadIdx.x % count;
    size_t begin = (size_t)first * stride;
    float *to = (float *)step.copy.data + begin;
    for (int i = 4 * (int)threadIdx.x; i < rows * stride; i += 4 * THREADS) {
        tile_cp_async<4>(memory + i, (const float *)step.from[0].data + begin + i);
        if (step.result[1])
            tile_cp_async<4>(memory + each * stride + i, (const float *)step.from[2].data + begin + i);
    }
    step.other[0] += (size_t)first * 2 * count;
    step.result[1] += step.result[1] ? (size_t)first * 2 * count : 0;
    pair_angles<1> angles = {};
    if (row < rows)
        angles = load_angles<1>(row, f, step);
    step.from[0].data = step.copy.data = (uint16_t *)memory;
    step.from[2].data = (uint16_t *)(memory + each * stride);
    tile_cp_async_wait();
    __syncthreads();
    if (row < rows)
        reflect<1, true>(row, f, task.cols, step, angles);
    __syncthreads();
    for (int i = 4 * (int)threadIdx.x; i < rows * stride; i += 4 * THREADS)
        *(float4 *)(to + i) = *(const float4 *)(memory + i);
}

/* ---- steps of a stage ---------------------------------------------------------------------------------------- */

const lp_fused_rule *rule_of(const lp_node *node)
{
    return &lp_cuda_rule_of(node)->fused;
}

/* Steps of cosines and sines read and write pairs of columns, which are not in the registers. */
bool is_pair_step(const lp_fused_rule *rule)
{
    return rule->time >= 0 || (rule->main < 0 && rule->wide >= 0);
}

int frequencies_of(const lp_node *node, const lp_fused_rule *rule)
{
    return !is_pair_step(rule) ? 0
           : rule->time >= 0   ? node->inputs[rule->factors]->cols
                               : node->inputs[rule->other[0]]->cols / 2;
}

const lp_value *shape_of(const lp_node *node)
{
    return node->outputs[0] ? node->outputs[0] : node->inputs[0];
}

typedef struct chain_state {
    const lp_stage_part *parts;
    int count;
    const int *uses;                                    /* by value; NULL: everything is stored */
    const lp_value *held;                               /* in the registers; NULL: none */
    bool in_memory[LP_ROW_CHAIN_STEPS][LP_NODE_INPUTS]; /* by part: reads the input from memory */
    bool done[LP_ROW_CHAIN_STEPS];
} chain_state;

bool writes(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->output_count; i++)
        found = found || (part->node->outputs[i] == value && lp_part_computes(part, i));
    return found;
}

bool reads(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->input_count; i++)
        found = found || part->node->inputs[i] == value;
    return found;
}

bool depends(const lp_stage_part *later, const lp_stage_part *earlier)
{
    bool found = false;
    for (int i = 0; i < earlier->node->op->output_count; i++)
        if (lp_part_computes(earlier, i))
            found = found || reads(later, earlier->node->outputs[i]) || writes(later, earlier->node->outputs[i]);
    for (int i = 0; i < later->node->op->output_count; i++)
        if (lp_part_computes(later, i))
            found = found || reads(earlier, later->node->outputs[i]);
    return found;
}

/* The main input: the one in the registers, if the inputs may be exchanged. */
int main_of(const chain_state *state, const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    if (rule->flags & LP_FUSED_COMMUTES && state->held && node->inputs[rule->other[0]] == state->held)
        return rule->other[0];
    return rule->main;
}

/* The next part whose dependencies are done: one that continues with the registers, if there is any. */
int next_part(const chain_state *state)
{
    int first = -1;
    for (int p = 0; p < state->count; p++) {
        bool ready = !state->done[p];
        for (int k = 0; ready && k < p; k++)
            ready = state->done[k] || !depends(&state->parts[p], &state->parts[k]);
        if (!ready)
            continue;
        const lp_node *node = state->parts[p].node;
        int main = main_of(state, node);
        if (state->held && main >= 0 && node->inputs[main] == state->held)
            return p;
        first = first < 0 ? p : first;
    }
    return first;
}

/* Orders the parts, and finds which inputs they read from memory. */
void order_parts(chain_state *state, int *order)
{
    for (int i = 0; i < state->count; i++) {
        int p = order[i] = next_part(state), main = main_of(state, state->parts[p].node);
        const lp_node *node = state->parts[p].node;
        for (int k = 0; k < node->op->input_count; k++)
            state->in_memory[p][k] = k != main || node->inputs[k] != state->held;
        state->done[p] = true;
        state->held = is_pair_step(rule_of(node)) ? NULL : node->outputs[0];
    }
}

/* Whether a result is read by another kernel, or from memory. */
bool must_store(const chain_state *state, const lp_stage_part *part, const lp_value *value, const lp_cuda_run *run)
{
    if (!lp_cuda_stores_floats(run, value))
        return false;
    if (!state->uses || value->storage != LP_STORAGE_WORK || value->retained || is_pair_step(rule_of(part->node)))
        return true;
    int inside = 0;
    for (int p = 0; p < state->count; p++) {
        const lp_node *node = state->parts[p].node;
        inside += reads(&state->parts[p], value) || writes(&state->parts[p], value);
        for (int k = 0; k < node->op->input_count; k++)
            if (node->inputs[k] == value && state->in_memory[p][k])
                return true;
        if (node->accumulate && writes(&state->parts[p], value))
            return true;
    }
    return inside != state->uses[value->id];
}

bool written_before(const chain_state *state, const int *order, int at, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < at; i++)
        found = found || writes(&state->parts[order[i]], value);
    return found;
}

const void *data_of(const lp_cuda_run *run, const lp_node *node, int i)
{
    return i >= 0 && node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL;
}

row_step step_of(const chain_state *state, const int *order, int at, const lp_cuda_run *run)
{
    const lp_stage_part *part = &state->parts[order[at]];
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    int main = rule->ids >= 0 ? 0 : rule->main < 0 ? rule->wide : rule->main, other = rule->other[0];
    if (rule->flags & LP_FUSED_COMMUTES && !state->in_memory[order[at]][other]) {
        main = other;
        other = rule->main;
    }
    row_step step = {};
    step.frequencies = frequencies_of(node, rule);
    int heads = step.frequencies ? shape_of(node)->cols / (2 * step.frequencies) : 1;
    step.op = (int)node->op->id;
    if (main >= 0 && state->in_memory[order[at]][main])
        step.flags |= LP_ROW_MAIN;
    if (node->accumulate & 1)
        step.flags |= LP_ROW_ADDS;
    if (node->accumulate & 2)
        step.flags |= LP_ROW_ADDS_SECOND;
    step.main = (const float *)data_of(run, node, main);
    step.other[0] = (const float *)data_of(run, node, other);
    step.other[1] = (const float *)data_of(run, node, rule->other[1]);
    int inputs[] = {main, other, rule->other[1]};
    for (int i = 0; i < 3; i++)
        if (inputs[i] >= 0 && node->inputs[inputs[i]])
            step.from[i] = lp_cuda_copy_from(run, node, inputs[i]);
    if (step.other[0] && !is_pair_step(rule) && !written_before(state, order, at, node->inputs[other]))
        step.flags |= LP_ROW_EARLY;
    for (int i = 0; i < 2; i++)
        if (node->outputs[i] && lp_part_computes(part, i) && must_store(state, part, node->outputs[i], run))
            step.result[i] = (float *)lp_run_data(run->run, node->outputs[i]);
    if (node->outputs[0] && lp_part_computes(part, 0))
        step.copy = lp_cuda_copy_to(run, node->outputs[0], heads);
    step.factors = data_of(run, node, rule->factors);
    step.shifts = (const float *)data_of(run, node, rule->shifts);
    step.time = (const double *)data_of(run, node, rule->time);
    step.ids = (const int32_t *)data_of(run, node, rule->ids);
    step.scale = (float)node->attributes.scale;
    step.shift = (float)(rule->shifts >= 0 ? node->attributes.epsilon : node->attributes.shift);
    if (rule->flags & LP_FUSED_DROPS) {
        step.threshold = lp_dropout_threshold(node->attributes.rate);
        step.purpose = lp_dropout_purpose(node->attributes.stream);
        step.scale = (float)(65536.0 / (65536.0 - step.threshold));
    }
    return step;
}

/* Floats of a vector: all rows and halves of rows must begin at whole ones. */
int width_of(const row_task &task)
{
    uintptr_t all = 4 * (uintptr_t)task.cols;
    for (int i = 0; i < task.count; i++) {
        const row_step &step = task.steps[i];
        bool norm = step.op == LP_OP_LAYER_NORM_GRADIENT || step.op == LP_OP_LAYER_NORM, basis = step.time != NULL;
        all |= (uintptr_t)step.main | (uintptr_t)step.other[0] | (uintptr_t)step.result[0] | (uintptr_t)step.shifts;
        all |=
            (norm ? 0 : (uintptr_t)step.other[1] | (uintptr_t)step.result[1]) | (basis ? 0 : (uintptr_t)step.factors);
        all |= 4 * (uintptr_t)step.frequencies;
    }
    return lp_vector_width(all, 0);
}

template <int n, int each, row_kind kind>
void launch_kind(const lp_cuda_run *run, const row_task &task, int lanes, int largest)
{
    dim3 block((unsigned)lanes, kind == WIDE ? 1 : (unsigned)(THREADS / lanes));
    unsigned blocks = lp_blocks(largest, block.y), most = (unsigned)task.sums.count;
    if (task.sums.of[0])
        LP_LAUNCH(run, (row_chain_kernel<n, each, kind, true>), blocks < most ? blocks : most, block, 0, task);
    else
        LP_LAUNCH(run, (row_chain_kernel<n, each, kind, false>), blocks, block, 0, task);
}

/* Bytes of shared memory of staged_reflect_kernel, if it can run the task: all matrices are copies with the same layout. Otherwise 0. */
size_t staged_size(const row_task &task)
{
    const row_step &step = task.steps[0];
    auto like = [&](const lp_cuda_copy &copy) {
        return copy.data && copy.stride == step.copy.stride && copy.gap == step.copy.gap;
    };
    bool able = task.count == 1 && !step.time && !step.result[0] && like(step.copy) && like(step.from[0]) &&
                (!step.result[1] || like(step.from[2]));
    size_t size = sizeof(uint16_t) * 2 * (size_t)(THREADS / step.frequencies) * (size_t)step.copy.stride;
    return able && size <= MOST_STAGED ? size : 0;
}

template <int n> void launch_pairs(const lp_cuda_run *run, const row_task &task, int largest)
{
    int frequencies = task.steps[0].frequencies;
    if (size_t size = n == 1 ? staged_size(task) : 0)
        LP_LAUNCH(run, staged_reflect_kernel, lp_blocks(largest, THREADS / frequencies), THREADS, size, task);
    else
        LP_LAUNCH(run, pair_chain_kernel<n>, lp_blocks((int64_t)largest * frequencies / n, THREADS), THREADS, 0, task);
}

template <int n> void launch(const lp_cuda_run *run, row_task task, int largest)
{
    int vectors = (int)lp_blocks(task.cols, n), lanes = 8;
    if (task.steps[0].frequencies)
        return launch_pairs<n>(run, task, largest);
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    if (vectors <= lanes)
        return launch_kind<n, 1, NARROW>(run, task, lanes, largest);
    if (vectors <= 2 * lanes)
        return launch_kind<n, 2, NARROW>(run, task, lanes, largest);
    if (vectors <= MOST_EACH * lanes)
        return launch_kind<n, MOST_EACH, NARROW>(run, task, lanes, largest);
    while (lanes < WIDE_THREADS && lanes * MOST_EACH < vectors)
        lanes *= 2;
    task.passes = (int)lp_blocks(vectors, lanes * MOST_EACH);
    launch_kind<n, MOST_EACH, WIDE>(run, task, lanes, largest);
}

void launch_parts(const lp_stage_part *parts, int count, const int *uses, const lp_cuda_run *run)
{
    int order[LP_ROW_CHAIN_STEPS];
    chain_state state = {};
    state.parts = parts;
    state.count = count;
    state.uses = uses;
    order_parts(&state, order);
    const lp_value *like = shape_of(parts[0].node);
    row_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(like);
    task.cols = like->cols;
    task.count = count;
    for (int i = 0; i < count; i++) {
        task.steps[i] = step_of(&state, order, i, run);
        lp_row_sums sums = lp_cuda_row_sums(parts[order[i]].node, run, uses && !task.sums.of[0]);
        if (!uses || task.sums.of[0] || !sums.of[0])
            continue;
        task.sums = sums;
        task.steps[i].flags |= LP_ROW_SUMS;
    }
    int largest = lp_cuda_largest(run, like);
    lp_with_vector_width(width_of(task), [&](auto by) { launch<decltype(by)::value>(run, task, largest); });
}

} // namespace

int lp_cuda_row_chain_frequencies(const lp_node *node)
{
    return frequencies_of(node, rule_of(node));
}

unsigned lp_cuda_row_chain_supports(const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    bool fits = rule->weight < 0 && rule->outputs && shape_of(node)->rows_of != LP_ROWS_FIXED &&
                shape_of(node)->cols <= WIDE_THREADS * MOST_EACH;
    return fits ? rule->outputs : 0;
}

lp_row_sums lp_cuda_row_sums(const lp_node *node, const lp_cuda_run *run, bool make)
{
    const lp_reduction_rule *rule = &lp_cuda_rule_of(node)->reduction;
    lp_row_sums sums = {};
    if (rule->type != LP_REDUCTION_NORM || !(node->outputs[1] || node->outputs[2]))
        return sums;
    int rows = lp_cuda_largest(run, node->inputs[0]);
    sums.count = rows < SUM_BLOCKS ? rows : (int)SUM_BLOCKS;
    size_t each = ((size_t)sums.count * (size_t)node->inputs[0]->cols + 3) / 4 * 4;
    sums.of[0] = (float *)lp_cuda_side_buffer(run, node->inputs[rule->extra], make ? 2 * each * sizeof(float) : 0);
    sums.of[1] = sums.of[0] ? sums.of[0] + each : NULL;
    return sums;
}

void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    launch_parts(stage->parts, stage->count, stages->uses, run);
}

void lp_cuda_row_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, ~lp_cuda_rule_of(node)->reduction.outputs};
    bool any = false;
    for (int i = 0; i < node->op->output_count; i++)
        any = any || lp_part_computes(&part, i);
    if (any)
        launch_parts(&part, 1, NULL, run);
    lp_cuda_reduce_node(node, run);
}
