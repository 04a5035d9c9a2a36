/* cuda_fused_kernel.cu: executes the steps of a fused kernel (cuda_fused.h), 64 rows to a block of eight warps (cuda_fused_buffers.h).
 *
 * The block synchronizes between steps, so a step may read what any warp wrote in an earlier one. Random numbers and sums are those
 * of the kernels of single nodes, up to the order of the terms.
 */
#include "backend/cuda/cuda_fused_products.h"

namespace
{

#define TWO_PI 6.283185307179586476925

/* ---- elementwise ops ----------------------------------------------------------------------------------------- */

/* Random words of a lane's rows, in a part of `read` that dropout does not use. The four lanes of a row generate them in turn, a block for
 * each tile, and each finds the words of its columns among those of the others. */
__device__ inline uint32_t *random_words(const fused_lane &me)
{
    return (uint32_t *)me.read_second + ((int)threadIdx.x >> 2) * LANE_BLOCKS * 4;
}

__device__ inline void generate_random(const fused_lane &me, const fused_step &step)
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

__device__ inline void drop(const fused_lane &me, strip &x, float scale, uint32_t threshold)
{
    const uint32_t *words = random_words(me) + me.member;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t word = words[4 * (j + half * TILES)];
            x.at[j][2 * half] = (word & 0xFFFFu) >= threshold ? x.at[j][2 * half] * scale : 0;
            x.at[j][2 * half + 1] = word >> 16 >= threshold ? x.at[j][2 * half + 1] * scale : 0;
        }
}

/* x = f(x, y), where y is half number `part` of the other input. */
__device__ inline void apply(const fused_lane &me, const fused_step &step, strip &x, const float *other, int part)
{
    float scale = step.scale, shift = step.shift;
    strip y = {};
    switch (me.now.op) {
    case LP_OP_ADD: /* the second addend is optional */
        if (has(me, LP_STEP_OTHER))
            read_strip<true>(me, x, other, part, me.now.halves);
        return;
    case LP_OP_DROPOUT:
        return drop(me, x, scale, step.threshold);
    case LP_OP_RELU_GRADIENT:
        read_strip<true>(me, y, other, part, me.now.halves);
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] = y.at[k / 4][k % 4] > 0 ? x.at[k / 4][k % 4] : 0;
        return;
    case LP_OP_MULTIPLY:
        read_strip<true>(me, y, other, part, me.now.halves);
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] *= y.at[k / 4][k % 4];
        return;
    case LP_OP_RELU:
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] = x.at[k / 4][k % 4] > 0 ? x.at[k / 4][k % 4] : 0;
        return;
    case LP_OP_AFFINE:
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] = scale * x.at[k / 4][k % 4] + shift;
        return;
    case LP_OP_SCALE_COLUMNS:
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float2 factor = read_factors(me, (const float *)step.factors + part * me.cols, j);
#pragma unroll
            for (int i = 0; i < 4; i++)
                x.at[j][i] *= i % 2 ? factor.y : factor.x;
        }
    }
}

__device__ inline void read_table(const fused_lane &me, const fused_step &step, strip &x, int part)
{
    const int32_t *ids = step.ids + me.row;
    int stride = step.main.stride;
    const float *table = global(step.main.data) + part * me.cols + me.column;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float *row = table + (row_valid(me, half) ? (int64_t)ids[8 * half] * stride : 0);
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

__device__ inline void each_element(const fused_lane &me, const fused_step &step, strip &registers)
{
    int halves = me.now.halves;
    bool accumulates = has(me, LP_STEP_OLD);
    float *other =
        halves == 1 ? me.read_second : me.write; /* each lane overwrites only the elements that it has read */
    load_rows(me, me.read, step.main, LP_STEP_MAIN);
    load_rows(me, other, step.other[0], LP_STEP_OTHER);
    if (me.now.op == LP_OP_DROPOUT)
        generate_random(me, step);
    if (halves == 1)
        load_rows(me, me.write, step.old[0], LP_STEP_OLD);
    wait_rows();
#pragma unroll 1
    for (int part = 0; part < halves; part++) {
        if (has(me, LP_STEP_TABLE))
            read_table(me, step, registers, part);
        else if (has(me, LP_STEP_MAIN))
            read_strip<false>(me, registers, me.read, part, halves);
        apply(me, step, registers, other, part);
        if (accumulates && halves == 1)
            read_strip<true>(me, registers, me.write, 0, 1);
        if (has(me, LP_STEP_RESULT) || halves > 1)
            write_strip(me, registers, me.write, part, halves);
    }
    if (accumulates && halves > 1) { /* the third wide value needs a buffer that is free only now */
        __syncthreads();
        load_rows(me, me.read, step.old[0], LP_STEP_OLD);
        wait_rows();
#pragma unroll 1
        for (int part = 0; part < halves; part++) {
            registers = {};
            read_strip<true>(me, registers, me.write, part, halves);
            read_strip<true>(me, registers, me.read, part, halves);
            write_strip(me, registers, me.write, part, halves);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* The partial sums of both warps, for the two rows of a lane. */
typedef struct all_sides {
    float2 of[SIDES][2];
} all_sides;

__device__ inline all_sides exchange(const fused_lane &me, const float2 (&mine)[2])
{
    all_sides all;
    if (me.member == 0)
#pragma unroll
        for (int half = 0; half < 2; half++)
            me.sums[me.side * ROWS + me.row + 8 * half] = mine[half];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 2 * SIDES; k++)
        all.of[k / 2][k % 2] = me.sums[k / 2 * ROWS + me.row + 8 * (k % 2)];
    return all;
}

/* Number of columns of a side. */
__device__ inline int side_cols(const fused_lane &me, int side)
{
    return max(0, min(me.cols - 8 * TILES * side, 8 * TILES));
}

/* Each warp computes the mean and the squared deviations of its own columns; then they are combined (Chan et al.). */
__device__ inline void layer_norm(const fused_lane &me, const fused_step &step, strip &x)
{
    int mine = side_cols(me, me.side);
    float inverse_mine = mine ? 1 / (float)mine : 0, inverse_cols = 1 / (float)me.cols;
    if (has(me, LP_STEP_MAIN)) {
        load_rows(me, me.read, step.main, LP_STEP_MAIN);
        wait_rows();
        read_strip<false>(me, x, me.read, 0, 1);
    }
    float2 own[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            sum += me.columns >> j & 1 ? x.at[j][2 * half] + x.at[j][2 * half + 1] : 0;
        float mean = tile_row_sum(sum) * inverse_mine;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float one = x.at[j][2 * half] - mean, two = x.at[j][2 * half + 1] - mean;
            square += me.columns >> j & 1 ? one * one + two * two : 0;
        }
        own[half] = make_float2(mean, tile_row_sum(square));
    }
    all_sides all = exchange(me, own);
    float mean[2], inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int side = 0; side < SIDES; side++)
            sum += all.of[side][half].x * (float)side_cols(me, side);
        mean[half] = sum * inverse_cols;
#pragma unroll
        for (int side = 0; side < SIDES; side++) {
            float apart = all.of[side][half].x - mean[half];
            square += all.of[side][half].y + apart * apart * (float)side_cols(me, side);
        }
        inverse[half] = rsqrtf(square * inverse_cols + step.shift);
        float2 *moments = (float2 *)(global(step.result[1].data) + (me.row + 8 * half) * 2);
        if (has(me, LP_STEP_RESULT_SECOND) && row_valid(me, half) && me.member == 0 && me.side == 0)
            *moments = make_float2(mean[half], inverse[half]);
    }
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j), shift = read_factors(me, step.shifts, j);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x.at[j][i] =
                (x.at[j][i] - mean[i / 2]) * inverse[i / 2] * (i % 2 ? gain.y : gain.x) + (i % 2 ? shift.y : shift.x);
    }
    if (has(me, LP_STEP_RESULT))
        write_strip(me, x, me.write, 0, 1);
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ inline void layer_norm_gradient(const fused_lane &me, const fused_step &step, strip &registers)
{
    float inverse_cols = 1.0f / (float)me.cols;
    strip normal;
    float2 moments[2] = {}, own[2] = {};
    load_rows(me, me.read, step.main, LP_STEP_MAIN);
    load_rows(me, me.read_second, step.other[0], LP_STEP_OTHER);
    load_rows(me, me.write, step.old[0], LP_STEP_OLD);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row_valid(me, half))
            moments[half] = *(const float2 *)(global(step.other[1].data) + (me.row + 8 * half) * 2);
    wait_rows();
    if (has(me, LP_STEP_MAIN))
        read_strip<false>(me, registers, me.read, 0, 1);
    read_strip<false>(me, normal, me.read_second, 0, 1);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j);
        bool column = me.columns >> j & 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            normal.at[j][i] = column ? (normal.at[j][i] - moments[i / 2].x) * moments[i / 2].y : 0;
            registers.at[j][i] = column ? registers.at[j][i] * (i % 2 ? gain.y : gain.x) : 0;
            own[i / 2].x += registers.at[j][i];
            own[i / 2].y += registers.at[j][i] * normal.at[j][i];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        own[half] = make_float2(tile_row_sum(own[half].x) * inverse_cols, tile_row_sum(own[half].y) * inverse_cols);
    all_sides all = exchange(me, own);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int side = 1; side < SIDES; side++)
            all.of[0][half] =
                make_float2(all.of[0][half].x + all.of[side][half].x, all.of[0][half].y + all.of[side][half].y);
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 mean = all.of[0][i / 2];
            registers.at[j][i] = moments[i / 2].y * (registers.at[j][i] - mean.x - normal.at[j][i] * mean.y);
        }
    if (has(me, LP_STEP_OLD))
        read_strip<true>(me, registers, me.write, 0, 1);
    if (has(me, LP_STEP_RESULT))
        write_strip(me, registers, me.write, 0, 1);
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

__device__ inline void basis(const fused_lane &me, const fused_step &step)
{
    const double *frequency = (const double *)step.factors, *time = step.time + me.row;
    int cols = me.cols;
    float *to = me.write + offset_in(me, 2 * cols);
    double at[2] = {row_valid(me, 0) ? time[0] : 0, row_valid(me, 1) ? time[8] : 0};
#pragma unroll 1
    for (int j = 0; j < TILES && me.column + 8 * j < cols; j++) {
        double speed[2] = {frequency[me.column + 8 * j] * (1 / TWO_PI),
                           frequency[me.column + 8 * j + 1] * (1 / TWO_PI)};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sine[2], cosine[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                double turns = at[half] * speed[i];
                sincospif((float)(2 * (turns - rint(turns))), &sine[i], &cosine[i]);
            }
            float *first = to + 16 * half * cols + 8 * j;
            *(float2 *)first = make_float2(cosine[0], cosine[1]);
            *(float2 *)(first + cols) = make_float2(sine[0], sine[1]);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* Elements of one row of a lane in a wide value: cosines and sines, or their gradients. */
typedef struct sincos_row {
    float2 c[TILES], s[TILES];
} sincos_row;

/* From global memory; 0 beyond the rows and columns. Issues all loads before the first is used. */
__device__ inline void load_sincos(const fused_lane &me, sincos_row &x, const fused_rows &rows, int half)
{
    const float *from = global(rows.data) + offset_in(me, rows.stride) + 8 * half * rows.stride;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = x.s[j] = make_float2(0, 0);
        if (valid(me, j, half)) {
            x.c[j] = *(const float2 *)(from + 8 * j);
            x.s[j] = *(const float2 *)(from + me.cols + 8 * j);
        }
    }
}

__device__ inline void read_sincos(const fused_lane &me, sincos_row &x, const float *buffer, int half)
{
    const float *from = buffer + offset_in(me, 2 * me.cols) + 16 * half * me.cols;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = x.s[j] = make_float2(0, 0);
        if (me.columns >> j & 1) {
            x.c[j] = *(const float2 *)(from + 8 * j);
            x.s[j] = *(const float2 *)(from + me.cols + 8 * j);
        }
    }
}

__device__ inline void write_sincos(const fused_lane &me, const sincos_row &x, float *buffer, int half)
{
    float *to = buffer + offset_in(me, 2 * me.cols) + 16 * half * me.cols;
#pragma unroll
    for (int j = 0; j < TILES; j++)
        if (me.columns >> j & 1) {
            *(float2 *)(to + 8 * j) = x.c[j];
            *(float2 *)(to + me.cols + 8 * j) = x.s[j];
        }
}

/* a b + sign c d */
__device__ inline float2 cross(float2 a, float2 b, float2 c, float2 d, float sign)
{
    return make_float2(a.x * b.x + sign * (c.x * d.x), a.y * b.y + sign * (c.y * d.y));
}

__device__ inline void add_sincos(sincos_row &x, const sincos_row &more)
{
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = make_float2(x.c[j].x + more.c[j].x, x.c[j].y + more.c[j].y);
        x.s[j] = make_float2(x.s[j].x + more.s[j].x, x.s[j].y + more.s[j].y);
    }
}

/* reflect: x, u -> y with (c, s) -> (c cosine + s sine, c sine - s cosine). reflect_gradient: dy, u, x -> dx, du. A result overwrites the
 * buffer of its input; the value that du is added to is loaded into the buffer of x. */
__device__ inline void reflect(const fused_lane &me, const fused_step &step)
{
    bool wants_du = me.now.op == LP_OP_REFLECT_GRADIENT && has(me, LP_STEP_RESULT_SECOND);
    sincos_row from[2];
    load_rows(me, me.write, step.main, LP_STEP_MAIN);
    load_rows(me, me.read, step.other[0], LP_STEP_OTHER);
    load_rows(me, me.x, step.old[1], LP_STEP_OLD_SECOND);
    if (wants_du)
#pragma unroll
        for (int half = 0; half < 2; half++)
            load_sincos(me, from[half], step.other[1], half);
    wait_rows();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sincos_row x, y, u, more;
        read_sincos(me, x, me.write, half);
        read_sincos(me, u, me.read, half);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            y.c[j] = cross(x.c[j], u.c[j], x.s[j], u.s[j], 1);
            y.s[j] = cross(x.c[j], u.s[j], x.s[j], u.c[j], -1);
        }
        if (has(me, LP_STEP_OLD)) {
            load_sincos(me, more, step.old[0], half);
            add_sincos(y, more);
        }
        write_sincos(me, y, me.write, half);
        if (wants_du) {
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                y.c[j] = cross(from[half].c[j], x.c[j], from[half].s[j], x.s[j], -1);
                y.s[j] = cross(from[half].s[j], x.c[j], from[half].c[j], x.s[j], 1);
            }
            if (has(me, LP_STEP_OLD_SECOND)) {
                read_sincos(me, more, me.x, half);
                add_sincos(y, more);
            }
            write_sincos(me, y, me.read, half);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
    store_rows(me, me.read, step.result[1], LP_STEP_RESULT_SECOND);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Offsets in shared memory, in floats. */
typedef struct shared_layout {
    int x, read, write, weights, weights_size, sums, steps;
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
    me.x = shared + at.x;
    me.read = shared + at.read;
    me.write = shared + at.write;
    me.read_second = me.read + ROWS * cols;
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
    me.floats = me.rows * cols;
    for (int j = 0; j < TILES; j++)
        if (me.column + 8 * j < cols) {
            me.columns |= 1u << j;
            me.valid |= (row_valid(me, 0) ? 1u : 0u) << (2 * j) | (row_valid(me, 1) ? 2u : 0u) << (2 * j);
        }
    return me;
}

/* Advances all row pointers to the first row of the block. */
__device__ inline void offset_rows(fused_step *steps, int count, int first)
{
    for (int i = (int)threadIdx.x; i < count; i += THREADS) {
        fused_step *step = &steps[i];
        fused_rows *rows[] = {&step->main,   &step->other[0],  &step->other[1], &step->old[0],
                              &step->old[1], &step->result[0], &step->result[1]};
#pragma unroll
        for (int k = 0; k < 7; k++)
            if (rows[k]->data && (k > 0 || !step->ids)) /* not a table */
                rows[k]->data += (int64_t)first * rows[k]->stride;
        step->ids = step->ids ? step->ids + first : NULL;
        step->time = step->time ? step->time + first : NULL;
    }
}

/* The steps are copied to shared memory first: kernel parameters have a high latency at their first use. */
__global__ void __launch_bounds__(THREADS, 2) fused_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols,
                                                           const char *all_steps, int count, const float *first_weight)
{
    LP_SHARED(float, shared);
    shared_layout at = shared_layout_of(cols);
    fused_step *steps = (fused_step *)(shared + at.steps);
    int present = lp_rows_now(rows, shard);
    lp_pdl_trigger();
    if ((int)blockIdx.x * ROWS >= present) {
        lp_pdl_wait();
        return;
    }
    fused_lane me = lane_now(shard, shared, present, cols);
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(fused_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)all_steps)[i];
    __syncthreads();
    offset_rows(steps, count, me.first);
    /* Elements beyond the columns of x have weight 0 but must be finite: zeros where there is no row. */
    for (int i = 4 * (int)threadIdx.x; i < at.weights; i += 4 * THREADS)
        *(float4 *)(shared + i) = make_float4(0, 0, 0, 0);
    lp_pdl_wait();
    load_weights(me, me.weights[0], first_weight);
    __syncthreads();
    strip registers = {};
    fused_head next = steps[0].head;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const fused_step &step = steps[i];
        me.now = next;
        if (i + 1 < count)
            next = steps[i + 1].head;
        __syncthreads();
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
    }
}

} // namespace

bool lp_cuda_fused_enabled(const lp_cuda_run *run)
{
    return tile_tensor(run);
}

void lp_cuda_fused_launch(const lp_cuda_fused *fused, const lp_cuda_run *run)
{
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_fused mine = *fused;
    size_t shared = sizeof(float) * (size_t)shared_layout_of(mine.cols).steps + sizeof(fused_step) * (size_t)mine.count;
    LP_LAUNCH_PDL(run, fused_kernel, mine.blocks, THREADS, shared, shard, mine.rows, mine.cols, mine.steps, mine.count,
                  mine.first_weight);
}
