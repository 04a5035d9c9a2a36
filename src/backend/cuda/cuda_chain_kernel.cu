/* cuda_chain_kernel.cu: runs the program of a chain (cuda_chain.h), 64 rows to a block of eight warps (cuda_chain_rooms.h).
 *
 * A step is done when all warps are: what it left in modules or in memory is there for the next, whoever wrote it.
 * What a step draws or sums is what the kernels of single nodes draw and sum, but for the order of terms.
 */
#include "backend/cuda/cuda_chain_products.h"

namespace
{

#define TWO_PI 6.283185307179586476925

/* ---- elements ------------------------------------------------------------------------------------------------ */

/* The random words of a lane's rows: the four lanes of a row draw in turn, a block for each tile, and find their own two columns in
 * those of the others. They lie where a dropout has nothing else. */
__device__ inline uint32_t *drawn_words(const chain_lane &me)
{
    return (uint32_t *)me.read_second + ((int)threadIdx.x >> 2) * DRAWS * 4;
}

__device__ inline void draw(const chain_lane &me, const chain_step &step)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t first = shard->first_token + (uint64_t)(me.first + me.place);
    uint4 *words = (uint4 *)drawn_words(me);
#pragma unroll
    for (int k = 0; k < DRAWS / 4; k++) {
        int i = 4 * k + me.member, lower = i / TILES, tile = i % TILES + me.side * TILES;
        lp_random_block block =
            lp_philox(shard->seed, step.purpose, shard->step, (first + (lower ? 8 : 0)) * 65536 + (uint64_t)tile);
        words[i] = make_uint4(block.word[0], block.word[1], block.word[2], block.word[3]);
    }
    __syncwarp();
}

__device__ inline void drop(const chain_lane &me, strip &x, float scale, uint32_t threshold)
{
    const uint32_t *words = drawn_words(me) + me.member;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t word = words[4 * (j + half * TILES)];
            x.at[j][2 * half] = (word & 0xFFFFu) >= threshold ? x.at[j][2 * half] * scale : 0;
            x.at[j][2 * half + 1] = word >> 16 >= threshold ? x.at[j][2 * half + 1] * scale : 0;
        }
}

/* x = f(x, y), where y is the other input's part, in this room. */
__device__ inline void apply(const chain_lane &me, const chain_step &step, strip &x, const float *other, int part)
{
    float scale = step.scale, shift = step.shift;
    strip y = {};
    switch (me.now.op) {
    case LP_OP_ADD: /* a second one may be absent */
        if (has(me, LP_STEP_OTHER))
            take_strip<true>(me, x, other, part, me.now.parts);
        return;
    case LP_OP_DROPOUT:
        return drop(me, x, scale, step.threshold);
    case LP_OP_RELU_GRADIENT:
        take_strip<true>(me, y, other, part, me.now.parts);
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] = y.at[k / 4][k % 4] > 0 ? x.at[k / 4][k % 4] : 0;
        return;
    case LP_OP_MULTIPLY:
        take_strip<true>(me, y, other, part, me.now.parts);
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

/* Rows of a table. */
__device__ inline void read_table(const chain_lane &me, const chain_step &step, strip &x, int part)
{
    const int32_t *ids = step.ids + me.place;
    int stride = step.main.stride;
    const float *table = global(step.main.data) + part * me.cols + me.column;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float *row = table + (row_there(me, half) ? (int64_t)ids[8 * half] * stride : 0);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float2 two = {0, 0};
            if (there(me, j, half))
                two = *(const float2 *)(row + 8 * j);
            x.at[j][2 * half] = two.x;
            x.at[j][2 * half + 1] = two.y;
        }
    }
}

__device__ inline void each_element(const chain_lane &me, const chain_step &step, strip &here)
{
    int parts = me.now.parts;
    bool accumulates = has(me, LP_STEP_OLD);
    float *other = parts == 1 ? me.read_second : me.write; /* where the lane then finds what it replaces */
    ask_rows(me, me.read, step.main, LP_STEP_MAIN);
    ask_rows(me, other, step.other[0], LP_STEP_OTHER);
    if (me.now.op == LP_OP_DROPOUT)
        draw(me, step);
    if (parts == 1)
        ask_rows(me, me.write, step.old[0], LP_STEP_OLD);
    wait_rows();
#pragma unroll 1
    for (int part = 0; part < parts; part++) {
        if (has(me, LP_STEP_TABLE))
            read_table(me, step, here, part);
        else if (has(me, LP_STEP_MAIN))
            take_strip<false>(me, here, me.read, part, parts);
        apply(me, step, here, other, part);
        if (accumulates && parts == 1)
            take_strip<true>(me, here, me.write, 0, 1);
        if (has(me, LP_STEP_RESULT) || parts > 1)
            put_strip(me, here, me.write, part, parts);
    }
    if (accumulates && parts > 1) { /* modules are free again for the third of three wide values */
        __syncthreads();
        ask_rows(me, me.read, step.old[0], LP_STEP_OLD);
        wait_rows();
#pragma unroll 1
        for (int part = 0; part < parts; part++) {
            here = {};
            take_strip<true>(me, here, me.write, part, parts);
            take_strip<true>(me, here, me.read, part, parts);
            put_strip(me, here, me.write, part, parts);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* The sum over the four lanes of a row. */
__device__ inline float row_sum(float value)
{
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

/* What all warps of the lane's two rows have of them. */
typedef struct all_sides {
    float2 of[SIDES][2];
} all_sides;

__device__ inline all_sides exchange(const chain_lane &me, const float2 (&mine)[2])
{
    all_sides all;
    if (me.member == 0)
#pragma unroll
        for (int half = 0; half < 2; half++)
            me.sums[me.side * ROWS + me.place + 8 * half] = mine[half];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 2 * SIDES; k++)
        all.of[k / 2][k % 2] = me.sums[k / 2 * ROWS + me.place + 8 * (k % 2)];
    return all;
}

/* The columns of a side. */
__device__ inline int side_cols(const chain_lane &me, int side)
{
    return max(0, min(me.cols - 8 * TILES * side, 8 * TILES));
}

/* Each warp has the mean of its own columns and the squares of what differs from it. */
__device__ inline void layer_norm(const chain_lane &me, const chain_step &step, strip &x)
{
    int mine = side_cols(me, me.side);
    float share = mine ? 1 / (float)mine : 0, whole = 1 / (float)me.cols;
    if (has(me, LP_STEP_MAIN)) {
        ask_rows(me, me.read, step.main, LP_STEP_MAIN);
        wait_rows();
        take_strip<false>(me, x, me.read, 0, 1);
    }
    float2 own[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            sum += me.columns >> j & 1 ? x.at[j][2 * half] + x.at[j][2 * half + 1] : 0;
        float mean = row_sum(sum) * share;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float one = x.at[j][2 * half] - mean, two = x.at[j][2 * half + 1] - mean;
            square += me.columns >> j & 1 ? one * one + two * two : 0;
        }
        own[half] = make_float2(mean, row_sum(square));
    }
    all_sides all = exchange(me, own);
    float mean[2], inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int side = 0; side < SIDES; side++)
            sum += all.of[side][half].x * (float)side_cols(me, side);
        mean[half] = sum * whole;
#pragma unroll
        for (int side = 0; side < SIDES; side++) {
            float apart = all.of[side][half].x - mean[half];
            square += all.of[side][half].y + apart * apart * (float)side_cols(me, side);
        }
        inverse[half] = rsqrtf(square * whole + step.shift);
        float2 *moments = (float2 *)(global(step.result[1].data) + (me.place + 8 * half) * 2);
        if (has(me, LP_STEP_RESULT_SECOND) && row_there(me, half) && me.member == 0 && me.side == 0)
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
        put_strip(me, x, me.write, 0, 1);
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ inline void layer_norm_gradient(const chain_lane &me, const chain_step &step, strip &here)
{
    float share = 1.0f / (float)me.cols;
    strip normal;
    float2 moments[2] = {}, own[2] = {};
    ask_rows(me, me.read, step.main, LP_STEP_MAIN);
    ask_rows(me, me.read_second, step.other[0], LP_STEP_OTHER);
    ask_rows(me, me.write, step.old[0], LP_STEP_OLD);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row_there(me, half))
            moments[half] = *(const float2 *)(global(step.other[1].data) + (me.place + 8 * half) * 2);
    wait_rows();
    if (has(me, LP_STEP_MAIN))
        take_strip<false>(me, here, me.read, 0, 1);
    take_strip<false>(me, normal, me.read_second, 0, 1);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j);
        bool column = me.columns >> j & 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            normal.at[j][i] = column ? (normal.at[j][i] - moments[i / 2].x) * moments[i / 2].y : 0;
            here.at[j][i] = column ? here.at[j][i] * (i % 2 ? gain.y : gain.x) : 0;
            own[i / 2].x += here.at[j][i];
            own[i / 2].y += here.at[j][i] * normal.at[j][i];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        own[half] = make_float2(row_sum(own[half].x) * share, row_sum(own[half].y) * share);
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
            here.at[j][i] = moments[i / 2].y * (here.at[j][i] - mean.x - normal.at[j][i] * mean.y);
        }
    if (has(me, LP_STEP_OLD))
        take_strip<true>(me, here, me.write, 0, 1);
    if (has(me, LP_STEP_RESULT))
        put_strip(me, here, me.write, 0, 1);
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

__device__ inline void basis(const chain_lane &me, const chain_step &step)
{
    const double *frequency = (const double *)step.factors, *time = step.time + me.place;
    int cols = me.cols;
    float *to = me.write + place_in(me, 2 * cols);
    double at[2] = {row_there(me, 0) ? time[0] : 0, row_there(me, 1) ? time[8] : 0};
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
            float *here = to + 16 * half * cols + 8 * j;
            *(float2 *)here = make_float2(cosine[0], cosine[1]);
            *(float2 *)(here + cols) = make_float2(sine[0], sine[1]);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

/* One row of a lane: cosines and sines, or what belongs to them. */
typedef struct turn {
    float2 c[TILES], s[TILES];
} turn;

/* From memory, 0 where there is nothing: all of it is asked for before any is waited for. */
__device__ inline void read_turn(const chain_lane &me, turn &x, const chain_rows &rows, int half)
{
    const float *from = global(rows.data) + place_in(me, rows.stride) + 8 * half * rows.stride;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = x.s[j] = make_float2(0, 0);
        if (there(me, j, half)) {
            x.c[j] = *(const float2 *)(from + 8 * j);
            x.s[j] = *(const float2 *)(from + me.cols + 8 * j);
        }
    }
}

__device__ inline void take_turn(const chain_lane &me, turn &x, const float *room, int half)
{
    const float *from = room + place_in(me, 2 * me.cols) + 16 * half * me.cols;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = x.s[j] = make_float2(0, 0);
        if (me.columns >> j & 1) {
            x.c[j] = *(const float2 *)(from + 8 * j);
            x.s[j] = *(const float2 *)(from + me.cols + 8 * j);
        }
    }
}

__device__ inline void put_turn(const chain_lane &me, const turn &x, float *room, int half)
{
    float *to = room + place_in(me, 2 * me.cols) + 16 * half * me.cols;
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

__device__ inline void add_turn(turn &x, const turn &more)
{
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = make_float2(x.c[j].x + more.c[j].x, x.c[j].y + more.c[j].y);
        x.s[j] = make_float2(x.s[j].x + more.s[j].x, x.s[j].y + more.s[j].y);
    }
}

/* x, u -> y: (c, s) -> (c cosine + s sine, c sine - s cosine). Where there are three: dy, u, x -> dx, du. A result takes the place of what it is
 * made of; what du is added to comes to the room of x. */
__device__ inline void reflect(const chain_lane &me, const chain_step &step)
{
    bool slopes = me.now.op == LP_OP_REFLECT_GRADIENT && has(me, LP_STEP_RESULT_SECOND);
    turn from[2];
    ask_rows(me, me.write, step.main, LP_STEP_MAIN);
    ask_rows(me, me.read, step.other[0], LP_STEP_OTHER);
    ask_rows(me, me.x, step.old[1], LP_STEP_OLD_SECOND);
    if (slopes)
#pragma unroll
        for (int half = 0; half < 2; half++)
            read_turn(me, from[half], step.other[1], half);
    wait_rows();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        turn x, y, u, more;
        take_turn(me, x, me.write, half);
        take_turn(me, u, me.read, half);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            y.c[j] = cross(x.c[j], u.c[j], x.s[j], u.s[j], 1);
            y.s[j] = cross(x.c[j], u.s[j], x.s[j], u.c[j], -1);
        }
        if (has(me, LP_STEP_OLD)) {
            read_turn(me, more, step.old[0], half);
            add_turn(y, more);
        }
        put_turn(me, y, me.write, half);
        if (slopes) {
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                y.c[j] = cross(from[half].c[j], x.c[j], from[half].s[j], x.s[j], -1);
                y.s[j] = cross(from[half].s[j], x.c[j], from[half].c[j], x.s[j], 1);
            }
            if (has(me, LP_STEP_OLD_SECOND)) {
                take_turn(me, more, me.x, half);
                add_turn(y, more);
            }
            put_turn(me, y, me.read, half);
        }
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
    store_rows(me, me.read, step.result[1], LP_STEP_RESULT_SECOND);
}

/* ---- the program --------------------------------------------------------------------------------------------- */

/* What a block has in shared memory, in floats from its beginning. */
typedef struct chain_places {
    int x, read, write, weights, weights_size, sums, steps;
} chain_places;

/* A room holds a wide value, or random words behind a narrow one. */
__host__ __device__ inline chain_places places_of(int cols)
{
    int wide = 2 * ROWS * cols, drops = ROWS * cols + DRAWN, room = (wide > drops ? wide : drops) + BEHIND;
    chain_places at = {};
    at.read = 2 * ROWS * x_stride(cols) + BEHIND;
    at.write = at.read + room;
    at.weights = at.write + room;
    at.weights_size = term_tiles(cols) * LP_CHAIN_TILES * 64;
    at.sums = at.weights + 2 * at.weights_size;
    at.steps = at.sums + SUMS;
    return at;
}

__device__ inline chain_lane lane_here(const lp_cuda_shard *shard, float *shared, int present, int cols)
{
    tile_lane lane = tile_lane_now();
    chain_places at = places_of(cols);
    chain_lane me = {};
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
    me.place = lane.warp / SIDES * 16 + lane.group;
    me.member = lane.member;
    me.column = 8 * TILES * me.side + 2 * lane.member;
    me.cols = cols;
    me.floats = me.rows * cols;
    for (int j = 0; j < TILES; j++)
        if (me.column + 8 * j < cols) {
            me.columns |= 1u << j;
            me.there |= (row_there(me, 0) ? 1u : 0u) << (2 * j) | (row_there(me, 1) ? 2u : 0u) << (2 * j);
        }
    return me;
}

/* From here on rows begin with those of the block. */
__device__ inline void begin_at(chain_step *steps, int count, int first)
{
    for (int i = (int)threadIdx.x; i < count; i += THREADS) {
        chain_step *step = &steps[i];
        chain_rows *rows[] = {&step->main,   &step->other[0],  &step->other[1], &step->old[0],
                              &step->old[1], &step->result[0], &step->result[1]};
#pragma unroll
        for (int k = 0; k < 7; k++)
            if (rows[k]->data && (k > 0 || !step->ids)) /* a table stays where it is */
                rows[k]->data += (int64_t)first * rows[k]->stride;
        step->ids = step->ids ? step->ids + first : NULL;
        step->time = step->time ? step->time + first : NULL;
    }
}

/* The steps come to shared memory first of all, since what comes with a launch is far away when it is read for the first time. */
__global__ void __launch_bounds__(THREADS, 2) chain_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols,
                                                           const char *program, int count, const float *first_weight)
{
    LP_SHARED(float, shared);
    chain_places at = places_of(cols);
    chain_step *steps = (chain_step *)(shared + at.steps);
    int present = lp_rows_now(rows, shard);
    lp_let_next_begin();
    if ((int)blockIdx.x * ROWS >= present) {
        lp_wait_for_last();
        return;
    }
    chain_lane me = lane_here(shard, shared, present, cols);
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(chain_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)program)[i];
    __syncthreads();
    begin_at(steps, count, me.first);
    /* Behind the columns of an x lie those of the next row, which meet weights of 0, and so must be numbers: 0 where there is no row. */
    for (int i = 4 * (int)threadIdx.x; i < at.weights; i += 4 * THREADS)
        *(float4 *)(shared + i) = make_float4(0, 0, 0, 0);
    lp_wait_for_last();
    ask_weights(me, me.weights[0], first_weight);
    __syncthreads();
    strip here = {};
    chain_head next = steps[0].head;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const chain_step &step = steps[i];
        me.now = next;
        if (i + 1 < count)
            next = steps[i + 1].head;
        __syncthreads();
        switch (me.now.op) {
        case LP_OP_LINEAR:
            linear(me, step, here);
            break;
        case LP_OP_LAYER_NORM:
            layer_norm(me, step, here);
            break;
        case LP_OP_LAYER_NORM_GRADIENT:
            layer_norm_gradient(me, step, here);
            break;
        case LP_OP_BASIS:
            basis(me, step);
            break;
        case LP_OP_REFLECT:
        case LP_OP_REFLECT_GRADIENT:
            reflect(me, step);
            break;
        default:
            each_element(me, step, here);
        }
    }
}

} // namespace

bool lp_cuda_chain_runs(const lp_cuda_run *run)
{
    return tile_tensor(run);
}

void lp_cuda_chain_launch(const lp_cuda_chain *chain, const lp_cuda_run *run)
{
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_chain mine = *chain;
    size_t shared = sizeof(float) * (size_t)places_of(mine.cols).steps + sizeof(chain_step) * (size_t)mine.count;
    LP_LAUNCH_EARLY(run, chain_kernel, mine.blocks, THREADS, shared, shard, mine.rows, mine.cols, mine.program,
                    mine.count, mine.first_weight);
}
