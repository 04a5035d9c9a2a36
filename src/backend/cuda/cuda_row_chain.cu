/* cuda_row_chain.cu: nodes that work row by row, of any width and in every precision, as one launch.
 *
 * The kernel interprets a short list of steps (cuda_steps.h). A team of lanes takes a row through all of them: part of a warp, a
 * warp, or for wide rows a block. Every lane has the same columns of all values, so that the result of a step stays in its
 * registers for the next one. The team synchronizes between steps, so a step may read any column of the row that an earlier one
 * stored. Nodes of cosines and sines take a thread for some pairs of a row, which is the same in all steps: a chain has only nodes
 * with the same number of them (lp_step_frequencies).
 *
 * Sums over the columns have the same order in every launch.
 */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_steps.h"
#include "backend/cuda/cuda_tile.h"

#include <initializer_list>

namespace
{

enum { THREADS = 256, WIDE_THREADS = 1024, WARPS = WIDE_THREADS / 32 };
enum { MOST_EACH = 4 }; /* vectors of a lane */

/* A row has lanes of a warp or all threads of a block. */
enum row_kind { NARROW, WIDE };

typedef struct row_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols, count;
    int passes; /* over the columns: one, but for single steps of very wide rows */
    lp_step steps[LP_ROW_CHAIN_STEPS];
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

/* A row of an input of a step, with `cols` columns. */
__device__ inline row_source source_of(int row, const lp_step &step, int which, int cols)
{
    const lp_step_rows &rows = step.rows[which];
    return {rows.data + (size_t)row * cols, rows.copy ? rows.copy + (size_t)row * rows.copy_stride : NULL};
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

/* Stores x, or the sum of old values and x, as n numbers of the result of a step, from column c of the row on. x becomes what is
 * stored. gaps: zeros before the column in the copy. */
template <int n>
__device__ inline void store_result(int row, int cols, const lp_step &step, int c, lp_vector<n> &x, int gaps = 0)
{
    const lp_step_rows &to = step.rows[LP_STEP_RESULT];
    float *floats = to.data + (size_t)row * cols + c;
    if (step.rows[LP_STEP_OLD].data) {
        lp_vector<n> old = lp_vector_load<n>(floats);
#pragma unroll
        for (int i = 0; i < n; i++)
            x.at[i] = old.at[i] + x.at[i];
    }
    if (to.data)
        *(lp_vector<n> *)floats = x;
    if (!to.copy)
        return;
    uint16_t *packed = to.copy + (size_t)row * to.copy_stride + c + gaps;
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

template <int n, int each> __device__ inline void drop(const row_team &me, const lp_step &step, row_part<n, each> &x)
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
__device__ inline void apply(const row_team &me, const lp_step &step, row_part<n, each> &x, row_part<n, each> &y)
{
    if (step.head.op == LP_OP_DROPOUT)
        return drop<n, each>(me, step, x);
    if (step.head.op == LP_OP_ADD && !(step.head.has & 1u << LP_STEP_OTHER))
        return;
    if (step.head.op == LP_OP_SCALE_COLUMNS)
        load<n, each>(me, y, {(const float *)step.factors, NULL});
    lp_step_elementwise(step.head.op, step.scale, step.shift, [&](auto f) {
        each_column<n, each>(me, x, [&](int m, int i) { return f(x.at[m].at[i], y.at[m].at[i]); });
    });
}

template <int n, int each, row_kind kind>
__device__ inline void layer_norm(const row_team &me, const lp_step &step, row_part<n, each> &x)
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
    float *moments = step.rows[LP_STEP_RESULT_SECOND].data;
    if (moments && me.exists && me.lane == 0)
        *(float2 *)(moments + 2 * (size_t)me.row) = make_float2(mean, inverse);
}

/* With z = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - z * mean(g z)) */
template <int n, int each, row_kind kind>
__device__ inline void layer_norm_gradient(const row_team &me, const lp_step &step, row_part<n, each> &dy,
                                           row_part<n, each> &x)
{
    float inverse_cols = 1.0f / (float)me.cols;
    row_part<n, each> gain;
    load<n, each>(me, gain, {(const float *)step.factors, NULL});
    float2 moments = {0, 0}, sum = {0, 0};
    if (me.exists)
        moments = *(const float2 *)(step.rows[LP_STEP_MORE].data + 2 * (size_t)me.row);
    each_column<n, each>(me, dy, [&](int m, int i) {
        x.at[m].at[i] = (x.at[m].at[i] - moments.x) * moments.y;
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

template <int n> __device__ inline void basis(int row, int f, const lp_step &step)
{
    int count = step.frequencies;
    lp_vector<n> sine, cosine;
#pragma unroll
    for (int i = 0; i < n; i++)
        lp_time_sincos(step.time[row], ((const double *)step.factors)[f + i], &sine.at[i], &cosine.at[i]);
    store_result<n>(row, 2 * count, step, f, cosine);
    store_result<n>(row, 2 * count, step, count + f, sine);
}

/* Multiplies the pairs (c, s) of dy by [cosine, sine; sine, -cosine]: reflect has its input as dy and its output as dx. The gradient also
 * has that of cosines and sines; what it is added to is loaded early, unless it is in the same matrix as dx.
 * copied: dy and x are copies, whose loads need no branches. */
template <int n, bool copied> __device__ inline void reflect(int row, int f, int cols, const lp_step &step)
{
    int count = step.frequencies, heads = cols / (2 * count);
    const size_t angle = (size_t)row * 2 * count + f;
    bool both = step.rows[LP_STEP_RESULT_SECOND].data, adds = both && step.rows[LP_STEP_OLD_SECOND].data;
    bool early = adds && step.rows[LP_STEP_RESULT_SECOND].data != step.rows[LP_STEP_RESULT].data;
    lp_vector<n> cosine = lp_vector_load<n>(step.rows[LP_STEP_OTHER].data + angle), dcosine = {};
    lp_vector<n> sine = lp_vector_load<n>(step.rows[LP_STEP_OTHER].data + angle + count), dsine = {};
    if (early) {
        dcosine = lp_vector_load<n>(step.rows[LP_STEP_RESULT_SECOND].data + angle);
        dsine = lp_vector_load<n>(step.rows[LP_STEP_RESULT_SECOND].data + angle + count);
    }
    row_source dy = source_of(row, step, LP_STEP_MAIN, cols), x = source_of(row, step, LP_STEP_MORE, cols);
    auto load_pairs = [&](const row_source &from, int h, int gap, int c) {
        c += f + h * 2 * count;
        if constexpr (copied)
            return lp_vector_load_bf16<n>(from.copy + c + h * gap);
        else
            return from.copy ? lp_vector_load_bf16<n>(from.copy + c + h * gap) : lp_vector_load<n>(from.floats + c);
    };
#pragma unroll 1
    for (int h = 0; h < heads; h++) {
        int c = h * 2 * count + f;
        lp_vector<n> dc = load_pairs(dy, h, step.gap[LP_STEP_MAIN], 0),
                     ds = load_pairs(dy, h, step.gap[LP_STEP_MAIN], count), dxc, dxs;
        if (both) {
            lp_vector<n> xc = load_pairs(x, h, step.gap[LP_STEP_MORE], 0),
                         xs = load_pairs(x, h, step.gap[LP_STEP_MORE], count);
#pragma unroll
            for (int i = 0; i < n; i++) {
                dcosine.at[i] += xc.at[i] * dc.at[i] - xs.at[i] * ds.at[i];
                dsine.at[i] += xs.at[i] * dc.at[i] + xc.at[i] * ds.at[i];
            }
        }
#pragma unroll
        for (int i = 0; i < n; i++) {
            dxc.at[i] = dc.at[i] * cosine.at[i] + ds.at[i] * sine.at[i];
            dxs.at[i] = dc.at[i] * sine.at[i] - ds.at[i] * cosine.at[i];
        }
        store_result<n>(row, cols, step, c, dxc, h * step.gap[LP_STEP_RESULT]);
        store_result<n>(row, cols, step, c + count, dxs, h * step.gap[LP_STEP_RESULT]);
    }
    if (both) {
        lp_vector_store<n>(step.rows[LP_STEP_RESULT_SECOND].data + angle, dcosine, adds && !early);
        lp_vector_store<n>(step.rows[LP_STEP_RESULT_SECOND].data + angle + count, dsine, adds && !early);
    }
}

/* ---- the kernels --------------------------------------------------------------------------------------------- */

/* Blocks of a multiprocessor: as many as have registers. A launch waits for memory. */
constexpr int row_blocks(int n, int each, row_kind kind)
{
    return kind == WIDE ? 1 : each == 1 ? 7 : each == 2 ? 5 : n < 4 ? 4 : 3;
}

template <int n, int each> __device__ inline void store(const row_team &me, const lp_step &step, row_part<n, each> &x)
{
    if (!(step.head.has & 1u << LP_STEP_RESULT))
        return;
#pragma unroll
    for (int m = 0; m < each; m++)
        if (me.exists && column_of<n>(me, m) < me.cols)
            store_result<n>(me.row, me.cols, step, column_of<n>(me, m), x.at[m]);
}

/* A step whose result is in the registers. y: its second input, if that was loaded ahead. */
template <int n, int each, row_kind kind>
__device__ inline void run_step(const row_team &me, const lp_step &step, row_part<n, each> &x, row_part<n, each> &y)
{
    if (step.ids)
        load<n, each>(me, x,
                      {step.rows[LP_STEP_MAIN].data + (me.exists ? (size_t)step.ids[me.row] * me.cols : 0), NULL});
    else if (step.head.has & 1u << LP_STEP_MAIN)
        load<n, each>(me, x, source_of(me.row, step, LP_STEP_MAIN, me.cols));
    if (step.head.has & 1u << LP_STEP_OTHER && !(step.head.has & LP_STEP_EARLY))
        load<n, each>(me, y, source_of(me.row, step, LP_STEP_OTHER, me.cols));
    if (step.head.op == LP_OP_LAYER_NORM)
        layer_norm<n, each, kind>(me, step, x);
    else if (step.head.op == LP_OP_LAYER_NORM_GRADIENT)
        layer_norm_gradient<n, each, kind>(me, step, x, y);
    else
        apply<n, each>(me, step, x, y);
    store<n, each>(me, step, x);
}

/* The second input of a step is loaded during the step before it, where that is possible. */
template <int n, int each, row_kind kind>
__global__ void __launch_bounds__(kind == WIDE ? WIDE_THREADS : THREADS, row_blocks(n, each, kind))
    row_chain_kernel(const __grid_constant__ row_task task)
{
    int rows = lp_rows_now(task.rows, task.shard), row = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    row_team me = {row, (int)threadIdx.x, (int)blockDim.x, task.cols, 0, row < rows, task.shard};
    lp_pdl_wait();
    lp_pdl_trigger();
    if ((int)(blockIdx.x * blockDim.y) >= rows)
        return;
    row_part<n, each> x = {}, y = {}, ahead = {};
#pragma unroll 1
    for (int i = -1; i < task.count; i++) {
        if (i + 1 < task.count && task.steps[i + 1].head.has & LP_STEP_EARLY)
            load<n, each>(me, ahead, source_of(me.row, task.steps[i + 1], LP_STEP_OTHER, me.cols));
        if (i > 0 && kind == WIDE)
            __syncthreads();
        else if (i > 0)
            __syncwarp();
        if (i >= 0)
            run_step<n, each, kind>(me, task.steps[i], x, y);
        y = ahead;
    }
    for (int pass = 1; kind == WIDE && pass < task.passes; pass++) {
        me.first += n * each * me.lanes;
        if (task.steps[0].head.has & LP_STEP_EARLY)
            load<n, each>(me, y, source_of(me.row, task.steps[0], LP_STEP_OTHER, me.cols));
        run_step<n, each, kind>(me, task.steps[0], x, y);
    }
}

/* Steps of cosines and sines: a thread has n neighbouring pairs of each head of a row. */
template <int n>
__global__ void __launch_bounds__(THREADS, n == 1 ? 6 : 4) pair_chain_kernel(const __grid_constant__ row_task task)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, vectors = (uint32_t)task.steps[0].frequencies / n;
    int row = (int)(i / vectors), f = n * (int)(i % vectors);
    lp_pdl_wait();
    lp_pdl_trigger();
    if (row >= lp_rows_now(task.rows, task.shard))
        return;
#pragma unroll 1
    for (int k = 0; k < task.count; k++) {
        const lp_step &step = task.steps[k];
        if (n < 4 && step.time)
            basis<n>(row, f, step);
        else if (step.rows[LP_STEP_MAIN].copy &&
                 (step.rows[LP_STEP_MORE].copy || !step.rows[LP_STEP_RESULT_SECOND].data))
            reflect<n, true>(row, f, task.cols, step);
        else
            reflect<n, false>(row, f, task.cols, step);
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Floats of a vector: all rows and halves of rows must begin at whole ones. */
int width_of(const row_task &task)
{
    uintptr_t all = 4 * (uintptr_t)task.cols;
    for (int i = 0; i < task.count; i++) {
        const lp_step &step = task.steps[i];
        for (int which : {LP_STEP_MAIN, LP_STEP_OTHER, LP_STEP_OLD, LP_STEP_RESULT})
            all |= (uintptr_t)step.rows[which].data;
        if (step.frequencies) /* those of a layer norm are two numbers a row */
            all |= (uintptr_t)step.rows[LP_STEP_MORE].data | (uintptr_t)step.rows[LP_STEP_RESULT_SECOND].data;
        all |= (uintptr_t)step.factors | (uintptr_t)step.shifts | 4 * (uintptr_t)step.frequencies;
        all |= step.time ? 8 : 0; /* four pairs of a basis would need too many registers */
    }
    return lp_vector_width(all, 0);
}

template <int n, int each, row_kind kind>
void launch_kind(const lp_cuda_run *run, const row_task &task, int lanes, int largest)
{
    dim3 block((unsigned)lanes, kind == WIDE ? 1 : (unsigned)(THREADS / lanes));
    LP_LAUNCH_PDL(run, (row_chain_kernel<n, each, kind>), lp_blocks(largest, block.y), block, 0, task);
}

/* Lanes of a warp for a row of this many vectors. */
int lanes_of(int vectors)
{
    int lanes = 8;
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    return lanes;
}

template <int n> void launch(const lp_cuda_run *run, row_task task, int largest)
{
    int vectors = (int)lp_blocks(task.cols, n), lanes = lanes_of(vectors);
    if (int frequencies = task.steps[0].frequencies) {
        LP_LAUNCH_PDL(run, pair_chain_kernel<n>, lp_blocks((int64_t)largest * frequencies / n, THREADS), THREADS, 0,
                      task);
        return;
    }
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

void launch_parts(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    const lp_value *shape = lp_step_shape(parts[0].node);
    int largest = lp_cuda_largest(run, shape);
    row_task task = {run->shard, lp_cuda_rows_of(shape), shape->cols, count, 1, {}};
    lp_cuda_steps_build(stages, parts, count, false, run, task.steps);
    lp_with_vector_width(width_of(task), [&](auto by) { launch<decltype(by)::value>(run, task, largest); });
}

} // namespace

unsigned lp_cuda_row_chain_supports(const lp_node *node)
{
    const lp_value *shape = lp_step_shape(node);
    bool fits = !lp_step_input(node, LP_ROLE_WEIGHT) && shape->rows_of != LP_ROWS_FIXED &&
                shape->cols <= WIDE_THREADS * MOST_EACH;
    return fits ? lp_cuda_rule_of(node)->step.outputs : 0;
}

void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    launch_parts(stages, stage->parts, stage->count, run);
}

void lp_cuda_row_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, ~lp_cuda_rule_of(node)->reduction.outputs};
    bool any = false;
    for (int i = 0; i < node->op->output_count; i++)
        any = any || lp_part_computes(&part, i);
    if (any)
        launch_parts(NULL, &part, 1, run);
    lp_cuda_reduce_node(node, run);
}
