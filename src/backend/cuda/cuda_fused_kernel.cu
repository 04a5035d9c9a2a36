/* cuda_fused_kernel.cu: executes the steps of a fused kernel (cuda_fused.h), 64 rows to a block of eight warps (cuda_fused_buffers.h).
 *
 * The block synchronizes between steps, so a step may read what any warp wrote in an earlier one. Random numbers and sums are those
 * of the kernels of single nodes, up to the order of the terms.
 */
#include "backend/cuda/cuda_fused_buffers.h"

namespace
{

/* ---- products: y = x W + bias + addend + old value ------------------------------------------------------------ */

/* Row stride of half an x, in floats: 4 modulo 8, so that tile_ldmatrix has no bank conflicts. */
__host__ __device__ inline int x_stride(int cols)
{
    return (cols + 3) / 8 * 8 + 4;
}

/* Tiles of 8 terms in a block of weights: only whether there is a last one is not a compile-time constant. */
__host__ __device__ inline int term_tiles(int cols)
{
    return cols > 8 * (LP_FUSED_TILES - 1) ? LP_FUSED_TILES : LP_FUSED_TILES - 1;
}

/* Copies x, half by half, into rows of stride x_stride: from global memory, or from the buffer `write` if it is a wide result. */
__device__ inline void load_x(const fused_lane &me, const lp_step &step, bool follows)
{
    const float *from = global(rows_of(me, step, LP_STEP_MAIN).data);
    int stride = x_stride(me.cols), width = me.now.in_halves * me.cols;
    each_pair<4>(me, width, [&](int row, int column) {
        int half = column >= me.cols;
        float *to = me.x + (half * ROWS + row) * stride + column - half * me.cols;
        if (follows)
            *(float2 *)to = *(const float2 *)(me.write + row * width + column);
        else
            tile_cp_async<2>(to, from + row * width + column);
    });
}

__device__ inline void load_weights(const fused_lane &me, float *buffer, const float *block)
{
    if (!block)
        return;
    int count = term_tiles(me.cols) * LP_FUSED_TILES * 64;
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
        tile_cp_async<4>(buffer + i, global(block) + i);
}

/* sum += x W for half an x and a block of weights. The tensor core truncates x to tf32: rounding it would cost more instructions than the
 * rest. */
__device__ inline void multiply(const fused_lane &me, strip &sum, const float *x, const float *weights)
{
    const float4 *right = (const float4 *)weights + me.side * (TILES / 2) * 32 + ((int)threadIdx.x & 31);
    tile_address from = tile_a_address(x, x_stride(me.cols));
    bool all = term_tiles(me.cols) == LP_FUSED_TILES;
#pragma unroll
    for (int j = 0; j < LP_FUSED_TILES; j++) {
        if (j == LP_FUSED_TILES - 1 && !all)
            continue;
        float left[4];
        tile_ldmatrix(left, from, 8 * j);
#pragma unroll
        for (int i = 0; i < TILES / 2; i++) {
            float4 two = right[(j * (LP_FUSED_TILES / 2) + i) * 32];
            tile_mma_tf32(sum.at[2 * i], left, two.x, two.y);
            tile_mma_tf32(sum.at[2 * i + 1], left, two.z, two.w);
        }
    }
}

/* The packed weight is loaded block by block into the two buffers for weights. */
__device__ inline void linear(fused_lane &me, const lp_step &step, strip &registers)
{
    int halves = me.now.halves, in_halves = me.now.in_halves, stride = x_stride(me.cols), last = halves * in_halves - 1;
    const float *x = me.x + (int)threadIdx.x / (32 * SIDES) * 16 * stride;
    bool follows = me.now.has & LP_STEP_FOLLOWS;
    if (follows && in_halves == 1)
        write_strip(me, registers, me.x, stride);
    else if (follows || has_rows(me, LP_STEP_MAIN))
        load_x(me, step, follows);
#pragma unroll 1
    for (int to = 0; to < halves; to++) {
        strip sum = {};
        strip_factors bias = {};
        if (me.now.has & LP_STEP_ADDS_REGISTERS)
            sum = registers;
        if (me.now.has & LP_STEP_FACTORS)
            bias = read_factors(me, (const float *)step.factors + to * me.cols);
#pragma unroll 1
        for (int from = 0; from < in_halves; from++) {
            int block = to * in_halves + from;
            float *weights = me.weights[0], *next = me.weights[1];
            wait_rows(); /* x and weights are loaded; no lane reads the previous weights any more */
            load_weights(me, next, block < last ? step.weight + (block + 1) * LP_PACK_BLOCK : step.next_weight);
            if (block == 0)
                load_rows(me, step, LP_STEP_OTHER);
            multiply(me, sum, x + from * ROWS * stride, weights);
            me.weights[0] = next;
            me.weights[1] = weights;
        }
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            sum.at[k / 4][k % 4] += factor_of(bias, k / 4, k % 4);
        if (to == 0 && (has_rows(me, LP_STEP_OTHER) || has_rows(me, LP_STEP_OLD)))
            wait_rows();
        if (has_rows(me, LP_STEP_OTHER))
            read_strip<true>(me, sum, buffer_of(me, LP_STEP_OTHER), to, halves);
        if (has_rows(me, LP_STEP_OLD))
            read_strip<true>(me, sum, me.write, to, halves);
        if (has_rows(me, LP_STEP_RESULT) || halves > 1)
            write_strip(me, sum, me.write + to * me.cols, halves * me.cols);
        if (halves == 1)
            registers = sum;
    }
}

/* ---- elementwise ops ----------------------------------------------------------------------------------------- */

/* Random words of a lane's rows, in a part of `read` that dropout does not use. The four lanes of a row generate them in turn, a block for
 * each tile, and each finds the words of its columns among those of the others. */
__device__ inline uint32_t *random_words(const fused_lane &me)
{
    return (uint32_t *)read_second(me) + ((int)threadIdx.x >> 2) * LANE_BLOCKS * 4;
}

__device__ inline void generate_random(const fused_lane &me, const lp_step &step)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t first = shard->first_token + (uint64_t)(me.first + me.row);
    uint4 *words = (uint4 *)random_words(me);
#pragma unroll
    for (int k = 0; k < LANE_BLOCKS / 4; k++) {
        int i = 4 * k + me.member, lower = i / TILES, tile = i % TILES + me.side * TILES;
        lp_random_block block =
            lp_philox(shard->seed, step.purpose, shard->step, (first + (lower ? 8 : 0)) * 65536 + (uint64_t)tile);
        words[i] = make_uint4(block.word[0], block.word[1], block.word[2], block.word[3]);
    }
    __syncwarp();
}

/* x = f(x) by element: f(x, j, i). */
template <typename function> __device__ inline void map(strip &x, const function &f)
{
#pragma unroll
    for (int k = 0; k < 4 * TILES; k++)
        x.at[k / 4][k % 4] = f(x.at[k / 4][k % 4], k / 4, k % 4);
}

/* x = f(x, y), where y is the other input; 0 where an addend is missing. */
__device__ inline void apply(const fused_lane &me, const lp_step &step, strip &x)
{
    const uint32_t *words = random_words(me) + me.member;
    uint32_t threshold = step.threshold;
    float scale = step.scale;
    strip y = {};
    if (me.now.op == LP_OP_DROPOUT)
        return map(x, [&](float one, int j, int i) {
            uint32_t word = words[4 * (j + i / 2 * TILES)];
            return (i % 2 ? word >> 16 : word & 0xFFFFu) >= threshold ? one * scale : 0;
        });
    if (has_rows(me, LP_STEP_OTHER))
        read_strip<true>(me, y, read_second(me));
    if (me.now.op == LP_OP_SCALE_COLUMNS) {
        strip_factors factors = read_factors(me, (const float *)step.factors);
        map(y, [&](float, int j, int i) { return factor_of(factors, j, i); });
    }
    lp_step_elementwise(me.now.op, scale, step.shift,
                        [&](auto f) { map(x, [&](float one, int j, int i) { return f(one, y.at[j][i]); }); });
}

__device__ inline void read_table(const fused_lane &me, const lp_step &step, strip &x)
{
    const int32_t *ids = step.ids + me.first + me.row;
    const lp_step_rows &rows = step.rows[LP_STEP_MAIN];
    const float *table = global(rows.data) + me.column;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float *row = table + (row_valid(me, half) ? (int64_t)ids[8 * half] * rows.stride : 0);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float2 two = {0, 0};
            if (valid(me, j, half))
                two = *(const float2 *)(row + 8 * j);
            x.at[j][2 * half] = two.x;
            x.at[j][2 * half + 1] = two.y;
        }
    }
}

__device__ inline void each_element(const fused_lane &me, const lp_step &step, strip &registers)
{
    if (me.now.op == LP_OP_DROPOUT)
        generate_random(me, step);
    if (me.now.op == LP_OP_EMBED)
        read_table(me, step, registers);
    wait_rows();
    if (has_rows(me, LP_STEP_MAIN))
        read_strip<false>(me, registers, me.read);
    apply(me, step, registers);
    finish_strip(me, registers);
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* Two sums over a row of a lane, by row. */
typedef struct row_sums {
    float2 of[2];
} row_sums;

/* Adds up the sums of the lanes and of both warps of a row. which: a part of shared memory, which must not be the same twice in a row. */
__device__ inline void add_up(const fused_lane &me, row_sums &mine, int which)
{
    float2 *all = me.sums + which * SIDES * ROWS;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        mine.of[half] = make_float2(tile_row_sum(mine.of[half].x), tile_row_sum(mine.of[half].y));
        if (me.member == 0)
            all[me.side * ROWS + me.row + 8 * half] = mine.of[half];
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float2 one = all[me.row + 8 * half], two = all[ROWS + me.row + 8 * half];
        mine.of[half] = make_float2(one.x + two.x, one.y + two.y);
    }
}

__device__ inline void layer_norm(const fused_lane &me, const lp_step &step, strip &x)
{
    float inverse_cols = 1 / (float)me.cols;
    strip_factors gain = read_factors(me, (const float *)step.factors), shift = read_factors(me, step.shifts);
    row_sums sum = {}, square = {};
    if (has_rows(me, LP_STEP_MAIN)) {
        wait_rows();
        read_strip<false>(me, x, me.read);
    }
    map(x, [&](float one, int j, int i) {
        sum.of[i / 2].x += me.columns >> j & 1 ? one : 0;
        return one;
    });
    add_up(me, sum, 0);
    map(x, [&](float one, int j, int i) {
        float apart = one - sum.of[i / 2].x * inverse_cols;
        square.of[i / 2].x += me.columns >> j & 1 ? apart * apart : 0;
        return apart;
    });
    add_up(me, square, 1);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        square.of[half].x = rsqrtf(square.of[half].x * inverse_cols + step.shift);
        if (me.member == 0 && me.side == 0)
            ((float2 *)me.read)[me.row + 8 * half] = make_float2(sum.of[half].x * inverse_cols, square.of[half].x);
    }
    map(x, [&](float apart, int j, int i) {
        return apart * square.of[i / 2].x * factor_of(gain, j, i) + factor_of(shift, j, i);
    });
    finish_strip(me, x);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ inline void layer_norm_gradient(const fused_lane &me, const lp_step &step, strip &registers)
{
    float inverse_cols = 1 / (float)me.cols;
    strip_factors gain = read_factors(me, (const float *)step.factors);
    strip normal;
    row_sums moments = {}, sum = {};
    wait_rows();
    if (has_rows(me, LP_STEP_MAIN))
        read_strip<false>(me, registers, me.read);
    read_strip<false>(me, normal, read_second(me));
#pragma unroll
    for (int half = 0; half < 2; half++)
        moments.of[half] = me.sums[SIDES * ROWS + me.row + 8 * half];
    map(registers, [&](float dy, int j, int i) {
        bool column = me.columns >> j & 1;
        float g = column ? dy * factor_of(gain, j, i) : 0;
        float &n = normal.at[j][i];
        n = column ? (n - moments.of[i / 2].x) * moments.of[i / 2].y : 0;
        sum.of[i / 2].x += g;
        sum.of[i / 2].y += g * n;
        return g;
    });
    add_up(me, sum, 0);
    map(registers, [&](float g, int j, int i) {
        float2 all = sum.of[i / 2];
        return moments.of[i / 2].y * (g - inverse_cols * (all.x + normal.at[j][i] * all.y));
    });
    finish_strip(me, registers);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

__device__ inline void basis(const fused_lane &me, const lp_step &step)
{
    const double *frequency = (const double *)step.factors, *time = step.time + me.first;
    each_pair<1>(me, me.cols, [&](int row, int column) {
        float sine[2], cosine[2], *to = me.write + row * 2 * me.cols + column;
#pragma unroll
        for (int i = 0; i < 2; i++)
            lp_time_sincos(time[row], frequency[column + i], &sine[i], &cosine[i]);
        *(float2 *)to = make_float2(cosine[0], cosine[1]);
        *(float2 *)(to + me.cols) = make_float2(sine[0], sine[1]);
    });
}

/* a * b + sign * c * d, to a buffer. */
__device__ inline void write_sum(float *to, float2 a, float2 b, float sign, float2 c, float2 d)
{
    *(float2 *)to = make_float2(a.x * b.x + sign * c.x * d.x, a.y * b.y + sign * c.y * d.y);
}

/* reflect: x, u -> y with (c, s) -> (c cosine + s sine, c sine - s cosine). reflect_gradient: dy, u, x -> dx, du. A result overwrites the
 * buffer of its input; the x of a gradient is in that of a product's x. */
__device__ inline void reflect(const fused_lane &me, const lp_step &step)
{
    bool gradient = has_rows(me, LP_STEP_MORE);
    int cols = me.cols;
    wait_rows();
    each_pair<4>(me, cols, [&](int row, int column) {
        int at = row * 2 * cols + column;
        auto two = [&](const float *buffer) { return *(const float2 *)(buffer + at); };
        float2 c = two(me.write), s = two(me.write + cols), cosine = two(me.read), sine = two(me.read + cols);
        write_sum(me.write + at, c, cosine, 1, s, sine);
        write_sum(me.write + cols + at, c, sine, -1, s, cosine);
        if (gradient) {
            float2 xc = two(me.x), xs = two(me.x + cols);
            write_sum(me.read + at, xc, c, -1, xs, s);
            write_sum(me.read + cols + at, xc, s, 1, xs, c);
        }
    });
    __syncthreads();
    add_rows(me, me.write, step, LP_STEP_OLD);
    add_rows(me, me.read, step, LP_STEP_OLD_SECOND);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Offsets in shared memory, in floats. */
typedef struct shared_layout {
    int read, write, weights, weights_size, sums, steps;
} shared_layout;

/* A buffer holds a wide value, or a narrow one followed by random words. */
__host__ __device__ inline shared_layout shared_layout_of(int cols)
{
    int wide = 2 * ROWS * cols, drops = ROWS * cols + RANDOM_WORDS, buffer = (wide > drops ? wide : drops) + PADDING;
    shared_layout at = {};
    at.read = 2 * ROWS * x_stride(cols) + PADDING;
    at.write = at.read + buffer;
    at.weights = at.write + buffer;
    at.weights_size = term_tiles(cols) * LP_FUSED_TILES * 64;
    at.sums = at.weights + 2 * at.weights_size;
    at.steps = at.sums + ROW_SUMS;
    return at;
}

__device__ inline fused_lane lane_now(const lp_cuda_shard *shard, float *shared, int present, int cols)
{
    tile_lane lane = tile_lane_now();
    shared_layout at = shared_layout_of(cols);
    fused_lane me = {};
    me.shard = shard;
    me.x = shared;
    me.read = shared + at.read;
    me.write = shared + at.write;
    me.weights[0] = shared + at.weights;
    me.weights[1] = me.weights[0] + at.weights_size;
    me.sums = (float2 *)(shared + at.sums);
    me.first = (int)blockIdx.x * ROWS;
    me.rows = min(present - me.first, (int)ROWS);
    me.side = lane.warp % SIDES;
    me.row = lane.warp / SIDES * 16 + lane.group;
    me.member = lane.member;
    me.column = 8 * TILES * me.side + 2 * lane.member;
    me.cols = cols;
    for (int j = 0; j < TILES; j++)
        me.columns |= me.column + 8 * j < cols ? 1u << j : 0;
    return me;
}

/* The steps are copied to shared memory first: kernel parameters have a high latency at their first use. */
__global__ void __launch_bounds__(THREADS, 2)
    fused_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const lp_step *all_steps, int count)
{
    LP_SHARED(float, shared);
    shared_layout at = shared_layout_of(cols);
    lp_step *steps = (lp_step *)(shared + at.steps);
    int present = lp_rows_now(rows, shard);
    lp_pdl_trigger();
    if ((int)blockIdx.x * ROWS >= present) {
        lp_pdl_wait();
        return;
    }
    fused_lane me = lane_now(shard, shared, present, cols);
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(lp_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)all_steps)[i];
    __syncthreads();
    /* Elements beyond the columns of x have weight 0 but must be finite: zeros where there is no row. */
    for (int i = 4 * (int)threadIdx.x; i < at.weights; i += 4 * THREADS)
        *(float4 *)(shared + i) = make_float4(0, 0, 0, 0);
    lp_pdl_wait();
    load_weights(me, me.weights[0], steps[0].weight ? steps[0].weight : steps[0].next_weight);
    __syncthreads();
    strip registers = {};
    lp_step_head next = steps[0].head;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const lp_step &step = steps[i];
        me.now = next;
        if (i + 1 < count)
            next = steps[i + 1].head;
        __syncthreads();
        if (me.now.op != LP_OP_LINEAR) /* which loads its x first */
            load_rows(me, step, LP_STEP_MAIN);
        switch (me.now.op) {
        case LP_OP_LINEAR:
            linear(me, step, registers);
            break;
        case LP_OP_LAYER_NORM:
            layer_norm(me, step, registers);
            break;
        case LP_OP_LAYER_NORM_GRADIENT:
            layer_norm_gradient(me, step, registers);
            break;
        case LP_OP_BASIS:
            basis(me, step);
            break;
        case LP_OP_REFLECT:
        case LP_OP_REFLECT_GRADIENT:
            reflect(me, step);
            break;
        default:
            each_element(me, step, registers);
        }
        store_rows(me, step);
    }
}

/* Whether a value has halves of this many columns, aligned to the 16 bytes of a vector copy. */
bool fits(const lp_value *value, int cols)
{
    int halves = lp_fused_halves(value->cols);
    return halves && value->cols == halves * cols && value->storage != LP_STORAGE_TABLE_ROWS;
}

/* Whether the node has a single head: fused kernels do not support several. A product has the heads of its attributes; elsewhere the
 * widths tell, and gradients that go to one matrix would be added in an order that steps do not have. */
bool one_head(const lp_node *node)
{
    const lp_value *main = lp_step_input(node, LP_ROLE_MAIN);
    if (lp_step_input(node, LP_ROLE_WEIGHT))
        return node->attributes.heads == 1;
    return !main || !lp_cuda_rule_of(node)->step.pairs ||
           (main->cols == lp_step_input(node, LP_ROLE_OTHER)->cols && node->outputs[0] != node->outputs[1]);
}

} // namespace

bool lp_cuda_fused_suits(const lp_graph *graph)
{
    bool suits = true;
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        if (lp_step_input(node, LP_ROLE_WEIGHT) && node->outputs[0]->rows_of != LP_ROWS_FIXED)
            suits = suits && (node->inputs[0]->cols <= LP_FUSED_COLS || node->outputs[0]->cols <= LP_FUSED_COLS);
    }
    return suits;
}

unsigned lp_cuda_fused_supports(const lp_node *node)
{
    const lp_step_rule *rule = &lp_cuda_rule_of(node)->step;
    const lp_value *weight = lp_step_input(node, LP_ROLE_WEIGHT);
    int cols = lp_fused_cols(node);
    /* Few rows occupy few warps: concurrent kernels of single nodes are then faster. */
    bool good = rule->outputs && one_head(node) && lp_step_shape(node)->rows_of != LP_ROWS_FIXED &&
                (!weight || weight->rows_of == LP_ROWS_FIXED);
    /* Mean and inverse deviation of a layer norm, which are no halves, are its MORE and its second output. */
    lp_step_role last = rule->pairs ? LP_ROLE_MORE : LP_ROLE_OTHER;
    for (int i = 0; i < LP_STEP_INPUTS; i++)
        if (node->inputs[i] && rule->role[i] >= LP_ROLE_MAIN && rule->role[i] <= last)
            good = good && fits(node->inputs[i], cols);
    for (int i = 0; i <= rule->pairs; i++)
        if (node->outputs[i] && rule->outputs >> i & 1)
            good = good && fits(node->outputs[i], cols) &&
                   (weight || lp_fused_halves(node->outputs[i]->cols) == (rule->pairs ? 2 : 1));
    return good ? rule->outputs : 0;
}

void lp_cuda_fused_launch(const lp_cuda_stage *stage, const lp_step *steps, const lp_cuda_run *run)
{
    const lp_value *shape = lp_step_shape(stage->parts[0].node);
    int cols = lp_fused_cols(stage->parts[0].node);
    size_t shared = sizeof(float) * (size_t)shared_layout_of(cols).steps + sizeof *steps * (size_t)stage->count;
    LP_LAUNCH_PDL(run, fused_kernel, lp_blocks(lp_cuda_largest(run, shape), ROWS), THREADS, shared, run->shard,
                  lp_cuda_rows_of(shape), cols, steps, stage->count);
}
