/* cuda_chain_kernel.cu: runs the program of a chain (cuda_chain.h), 16 rows to a warp.
 *
 * A lane has two rows, g and g + 8 of the warp's, and of every tile of 8 columns two side by side. Columns beyond a value's own, and rows
 * that are not there, hold any number: they are not read from memory nor written to it, not summed, and meet a weight of 0.
 *
 * Rows come and go in straight runs: 16 rows of a narrow value lie side by side in memory, and so do those of a wide one. A warp has room in shared
 * memory in which they change from that order to its own; stored from the registers, every sector would be written in two parts.
 * What a step draws or sums is what the kernels of single nodes draw and sum, but for the order of terms.
 */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { TILES = LP_CHAIN_TILES, WARPS = LP_CHAIN_WARPS, THREADS = 32 * WARPS };
enum { ROOM = LP_CHAIN_ROWS * 2 * LP_CHAIN_COLS + 8 * TILES }; /* a wide value, and what is read behind its last row */
enum { DRAWS = 2 * TILES }; /* random blocks of a lane's two rows: one for each tile */

#define TWO_PI 6.283185307179586476925

/* Half a value: element i of tile j is row g + 8 (i / 2), column 8 j + 2 t + i % 2. */
typedef struct strip {
    float at[TILES][4];
} strip;

/* A lane. */
typedef struct chain_lane {
    const lp_cuda_shard *shard;
    uint4 *drawn;              /* the warp's: [8 x DRAWS] */
    float *room;               /* the warp's: two of ROOM */
    int lane, rows;            /* rows: of the warp that are there */
    int group, member, column; /* column: its first */
    int cols;                  /* of half a value */
    int64_t row;               /* its first */
    uint32_t there;            /* bit 2 j + h: that row h and tile j are there */
    uint32_t columns;          /* bit j: that tile j is */
} chain_lane;

/* For the compiler, which does not know where pointers that lie in memory point to. */
__device__ inline const float *global(const float *place)
{
#ifdef __CUDACC__
    __builtin_assume(__isGlobal(place));
#endif
    return place;
}

__device__ inline float *global(float *place)
{
#ifdef __CUDACC__
    __builtin_assume(__isGlobal(place));
#endif
    return place;
}

__device__ inline bool there(const chain_lane &me, int j, int half)
{
    return me.there >> (2 * j + half) & 1;
}

/* Whether the row is, whatever its columns. */
__device__ inline bool row_there(const chain_lane &me, int half)
{
    return me.there >> half & 1;
}

/* The warp's first row. */
__device__ inline float *rows_at(const chain_lane &me, const chain_rows &rows)
{
    return global(rows.data) + (me.row - me.group) * rows.stride;
}

/* Rows of `cols` columns from the room, where they lie side by side, to memory: all of a value. */
__device__ inline void store_room(const chain_lane &me, const float *room, const chain_rows &rows, int cols)
{
    float *to = rows_at(me, rows);
    int count = me.rows * cols, i = 4 * me.lane; /* floats: a multiple of 2 */
    __syncwarp();
#pragma unroll 2
    for (; i + 4 <= count; i += 128)
        *(float4 *)(to + i) = *(const float4 *)(room + i);
    if (i < count)
        *(float2 *)(to + i) = *(const float2 *)(room + i);
    __syncwarp();
}

/* x = rows, or more by them. Rows may be absent. Half a wide value comes a row at a time. */
template <bool adds> __device__ inline void read_strip(const chain_lane &me, strip &x, const chain_rows &rows, int part)
{
    int cols = me.cols, stride = rows.stride;
    if (!rows.data)
        return;
    const float *from = rows_at(me, rows) + part * cols;
    float *room = me.room;
    __syncwarp();
    if (stride == cols) {
        int count = me.rows * cols, i = 4 * me.lane;
#pragma unroll 1
        for (; i + 4 <= count; i += 128)
            tile_copy<4>(room + i, from + i);
        if (i < count)
            tile_copy<2>(room + i, from + i);
    } else if (2 * me.lane < cols) {
#pragma unroll 1
        for (int r = 0; r < me.rows; r++)
            tile_copy<2>(room + r * cols + 2 * me.lane, from + r * stride + 2 * me.lane);
    }
    tile_wait();
    __syncwarp();
    const float *first = room + me.group * cols + me.column, *second = first + 8 * cols;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 one = *(const float2 *)(first + 8 * j), two = *(const float2 *)(second + 8 * j);
        x.at[j][0] = adds ? x.at[j][0] + one.x : one.x;
        x.at[j][1] = adds ? x.at[j][1] + one.y : one.y;
        x.at[j][2] = adds ? x.at[j][2] + two.x : two.x;
        x.at[j][3] = adds ? x.at[j][3] + two.y : two.y;
    }
}

/* Half `part` of so many; the last one sends the value on its way. */
__device__ inline void write_strip(const chain_lane &me, const strip &x, const chain_rows &rows, int part, int parts)
{
    int stride = parts * me.cols;
    /* Halves that wait for one another do so in the second room: the first serves for reading. */
    float *room = me.room + ROOM, *first = room + me.group * stride + part * me.cols + me.column,
          *second = first + 8 * stride;
    if (!rows.data)
        return;
#pragma unroll
    for (int j = 0; j < TILES; j++)
        if (me.columns >> j & 1) {
            *(float2 *)(first + 8 * j) = make_float2(x.at[j][0], x.at[j][1]);
            *(float2 *)(second + 8 * j) = make_float2(x.at[j][2], x.at[j][3]);
        }
    if (part + 1 == parts)
        store_room(me, room, rows, stride);
}

/* Numbers of columns, the same for all rows: 0 where there is no column. */
__device__ inline float2 read_factors(const chain_lane &me, const float *factors, int j)
{
    float2 two = {0, 0};
    if (me.columns >> j & 1)
        two = *(const float2 *)(global(factors) + me.column + 8 * j);
    return two;
}

/* ---- products ------------------------------------------------------------------------------------------------ */

/* sum += x W, W a packed block. A step of the tensor core takes the terms 8 j + 2 t in the place of t, and 8 j + 2 t + 1 in that of
 * t + 4: as the lane has them. x is cut to tf32 by the tensor core: rounding it takes more instructions than all else here. The weights of
 * the next step are under way while one is at work. */
__device__ inline void multiply(strip &sum, const strip &x, const float *weight)
{
    enum { PAIRS = LP_PACK_TILES / 2 };
    const float4 *right = (const float4 *)global(weight) + ((int)threadIdx.x & 31);
    float4 next[PAIRS];
#pragma unroll
    for (int i = 0; i < PAIRS; i++)
        next[i] = __ldg(right + i * 32);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        const float left[4] = {x.at[j][0], x.at[j][2], x.at[j][1], x.at[j][3]};
        float4 now[PAIRS];
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            now[i] = next[i];
            if (j + 1 < TILES)
                next[i] = __ldg(right + ((j + 1) * PAIRS + i) * 32);
        }
#pragma unroll
        for (int i = 0; i < TILES; i++)
            tile_multiply(sum.at[i], left, i % 2 ? now[i / 2].z : now[i / 2].x, i % 2 ? now[i / 2].w : now[i / 2].y);
    }
}

/* y = x W + bias + addend + what was there. `x` stays as it is for a product that follows. */
__device__ inline void linear(const chain_lane &me, const chain_step &step, strip &here, strip &x)
{
    int parts = step.parts, in_parts = step.in_parts;
    bool reads = !step.follows && !step.again; /* x */
    const float *weight = step.weight, *bias = (const float *)step.factors;
    if (step.follows)
        x = here;
#pragma unroll 1
    for (int to = 0; to < parts; to++) {
        strip sum = {};
        if (bias)
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float2 more = read_factors(me, bias + to * me.cols, j);
                sum.at[j][0] = sum.at[j][2] = more.x;
                sum.at[j][1] = sum.at[j][3] = more.y;
            }
        read_strip<true>(me, sum, step.other[0], to);
        read_strip<true>(me, sum, step.old[0], to);
#pragma unroll 1
        for (int from = 0; from < in_parts; from++) {
            if (reads && (to == 0 || in_parts > 1))
                read_strip<false>(me, x, step.main, from);
            multiply(sum, x, weight + (from * parts + to) * LP_PACK_BLOCK);
        }
        write_strip(me, sum, step.result[0], to, parts);
        if (parts == 1)
            here = sum;
    }
}

/* ---- elements ------------------------------------------------------------------------------------------------ */

/* The random words of a lane's rows: the four lanes of a row draw in turn, a block for each tile, and find their own two columns in
 * those of the others. */
__device__ inline void draw(const chain_lane &me, const chain_step &step)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t first = shard->first_token + (uint64_t)me.row;
    __syncwarp();
#pragma unroll 2
    for (int i = me.member; i < DRAWS; i += 4) {
        int lower = i >= TILES, tile = lower ? i - TILES : i;
        lp_random_block block =
            lp_philox(shard->seed, step.purpose, shard->step, (first + (lower ? 8 : 0)) * 65536 + (uint64_t)tile);
        me.drawn[me.group * DRAWS + i] = make_uint4(block.word[0], block.word[1], block.word[2], block.word[3]);
    }
    __syncwarp();
}

__device__ inline void drop(const chain_lane &me, strip &x, float scale, uint32_t threshold)
{
    const uint32_t *words = (const uint32_t *)(me.drawn + me.group * DRAWS) + me.member;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t word = words[4 * (j + half * TILES)];
            x.at[j][2 * half] = (word & 0xFFFFu) >= threshold ? x.at[j][2 * half] * scale : 0;
            x.at[j][2 * half + 1] = word >> 16 >= threshold ? x.at[j][2 * half + 1] * scale : 0;
        }
}

/* x = f(x, y), where y is the other input's part. */
__device__ inline void apply(const chain_lane &me, const chain_step &step, strip &x, int part)
{
    float scale = step.scale, shift = step.shift;
    strip y;
    switch (step.op) {
    case LP_OP_ADD:
        return read_strip<true>(me, x, step.other[0], part);
    case LP_OP_DROPOUT:
        return drop(me, x, scale, step.threshold);
    case LP_OP_RELU_GRADIENT:
        read_strip<false>(me, y, step.other[0], part);
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++)
            x.at[k / 4][k % 4] = y.at[k / 4][k % 4] > 0 ? x.at[k / 4][k % 4] : 0;
        return;
    case LP_OP_MULTIPLY:
        read_strip<false>(me, y, step.other[0], part);
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
    const int32_t *ids = step.ids + me.row;
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
    if (step.op == LP_OP_DROPOUT)
        draw(me, step);
#pragma unroll 1
    for (int part = 0; part < step.parts; part++) {
        if (step.ids)
            read_table(me, step, here, part);
        else if (!step.follows)
            read_strip<false>(me, here, step.main, part);
        apply(me, step, here, part);
        read_strip<true>(me, here, step.old[0], part);
        write_strip(me, here, step.result[0], part, step.parts);
    }
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* The sum over the four lanes of a row. */
__device__ inline float row_sum(float value)
{
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

__device__ inline void layer_norm(const chain_lane &me, const chain_step &step, strip &x)
{
    float share = 1.0f / (float)me.cols, mean[2], inverse[2];
    if (!step.follows)
        read_strip<false>(me, x, step.main, 0);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            sum += me.columns >> j & 1 ? x.at[j][2 * half] + x.at[j][2 * half + 1] : 0;
        mean[half] = row_sum(sum) * share;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float one = x.at[j][2 * half] - mean[half], two = x.at[j][2 * half + 1] - mean[half];
            square += me.columns >> j & 1 ? one * one + two * two : 0;
        }
        inverse[half] = rsqrtf(row_sum(square) * share + step.shift);
        float2 *moments = (float2 *)(global(step.result[1].data) + (me.row + 8 * half) * 2);
        if (step.result[1].data && row_there(me, half) && me.member == 0)
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
    write_strip(me, x, step.result[0], 0, 1);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ inline void layer_norm_gradient(const chain_lane &me, const chain_step &step, strip &here)
{
    float share = 1.0f / (float)me.cols;
    strip normal;
    if (!step.follows)
        read_strip<false>(me, here, step.main, 0);
    read_strip<false>(me, normal, step.other[0], 0);
    float2 moments[2] = {};
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row_there(me, half))
            moments[half] = *(const float2 *)(global(step.other[1].data) + (me.row + 8 * half) * 2);
    float sum[2] = {0, 0}, dot[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j); /* 0 where there is no column */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            normal.at[j][i] = (normal.at[j][i] - moments[i / 2].x) * moments[i / 2].y;
            here.at[j][i] *= i % 2 ? gain.y : gain.x;
            sum[i / 2] += here.at[j][i];
            dot[i / 2] += here.at[j][i] * normal.at[j][i];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] = row_sum(sum[half]) * share;
        dot[half] = row_sum(dot[half]) * share;
    }
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            here.at[j][i] = moments[i / 2].y * (here.at[j][i] - sum[i / 2] - normal.at[j][i] * dot[i / 2]);
    read_strip<true>(me, here, step.old[0], 0);
    write_strip(me, here, step.result[0], 0, 1);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

__device__ inline void basis(const chain_lane &me, const chain_step &step)
{
    const double *frequency = (const double *)step.factors, *time = step.time + me.row;
    int cols = me.cols;
    float *to = me.room + me.group * 2 * cols + me.column;
    double at[2] = {row_there(me, 0) ? time[0] : 0, row_there(me, 1) ? time[8] : 0};
    __syncwarp();
#pragma unroll 1
    for (int j = 0; me.column + 8 * j < cols; j++) {
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
    store_room(me, me.room, step.result[0], 2 * cols);
}

/* One row of a lane: cosines and sines, or what belongs to them. All of it is asked for before any is waited for. */
typedef struct turn {
    float2 c[TILES], s[TILES];
} turn;

__device__ inline void read_turn(const chain_lane &me, turn &x, const chain_rows &rows, int half)
{
    const float *from = global(rows.data) + (me.row + 8 * half) * rows.stride + me.column;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = x.s[j] = make_float2(0, 0);
        if (rows.data && there(me, j, half)) {
            x.c[j] = *(const float2 *)(from + 8 * j);
            x.s[j] = *(const float2 *)(from + me.cols + 8 * j);
        }
    }
}

/* a b + sign c d */
__device__ inline float2 cross(float2 a, float2 b, float2 c, float2 d, float sign)
{
    return make_float2(a.x * b.x + sign * (c.x * d.x), a.y * b.y + sign * (c.y * d.y));
}

/* To a room, which is stored when both rows of all lanes are there. */
__device__ inline void write_turn(const chain_lane &me, const turn &x, float *room, int half)
{
    float *to = room + (me.group + 8 * half) * 2 * me.cols + me.column;
#pragma unroll
    for (int j = 0; j < TILES; j++)
        if (me.columns >> j & 1) {
            *(float2 *)(to + 8 * j) = x.c[j];
            *(float2 *)(to + me.cols + 8 * j) = x.s[j];
        }
}

__device__ inline void add_turn(turn &x, const turn &more)
{
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        x.c[j] = make_float2(x.c[j].x + more.c[j].x, x.c[j].y + more.c[j].y);
        x.s[j] = make_float2(x.s[j].x + more.s[j].x, x.s[j].y + more.s[j].y);
    }
}

/* x, u -> y: (c, s) -> (c cosine + s sine, c sine - s cosine). Where there are three: dy, u, x -> dx, du. */
__device__ inline void reflect(const chain_lane &me, const chain_step &step)
{
    bool slopes = step.op == LP_OP_REFLECT_GRADIENT && step.result[1].data;
    __syncwarp();
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        turn x, u, more;
        read_turn(me, x, step.main, half);
        read_turn(me, u, step.other[0], half);
        if (slopes) {
            turn from;
            read_turn(me, from, step.other[1], half);
            read_turn(me, more, step.old[1], half);
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float2 c = from.c[j];
                from.c[j] = cross(c, x.c[j], from.s[j], x.s[j], -1);
                from.s[j] = cross(from.s[j], x.c[j], c, x.s[j], 1);
            }
            add_turn(from, more);
            write_turn(me, from, me.room + ROOM, half);
        }
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float2 c = x.c[j];
            x.c[j] = cross(c, u.c[j], x.s[j], u.s[j], 1);
            x.s[j] = cross(c, u.s[j], x.s[j], u.c[j], -1);
        }
        if (step.old[0].data) {
            read_turn(me, more, step.old[0], half);
            add_turn(x, more);
        }
        write_turn(me, x, me.room, half);
    }
    if (step.result[0].data)
        store_room(me, me.room, step.result[0], 2 * me.cols);
    if (slopes)
        store_room(me, me.room + ROOM, step.result[1], 2 * me.cols);
}

/* ---- the program --------------------------------------------------------------------------------------------- */

/* The steps come to shared memory first of all, since what comes with a launch is far away when it is read for the first time. */
__global__ void __launch_bounds__(THREADS)
    chain_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const char *program, int count)
{
    __shared__ chain_step steps[LP_CHAIN_STEPS];
    __shared__ uint4 drawn[WARPS][8 * DRAWS];
    __shared__ __align__(16) float rooms[WARPS][2 * ROOM];
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(chain_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)program)[i];
    int present = lp_rows_now(rows, shard);
    tile_lane lane = tile_lane_now();
    int64_t first = ((int64_t)blockIdx.x * WARPS + lane.warp) * LP_CHAIN_ROWS;
    /* Behind the columns of a row that is there may lie one that is not: any number will do, but it must be one. */
    for (int i = 4 * lane.lane; i < LP_CHAIN_ROWS * cols + 8 * TILES; i += 128)
        *(float4 *)(rooms[lane.warp] + i) = make_float4(0, 0, 0, 0);
    int rows_there = (int)min(present - first, (int64_t)LP_CHAIN_ROWS);
    chain_lane me = {shard,
                     drawn[lane.warp],
                     rooms[lane.warp],
                     lane.lane,
                     rows_there,
                     lane.group,
                     lane.member,
                     2 * lane.member,
                     cols,
                     first + lane.group,
                     0,
                     0};
    for (int j = 0; j < TILES; j++)
        if (me.column + 8 * j < cols) {
            me.columns |= 1u << j;
            me.there |= (me.row < present ? 1u : 0u) << (2 * j) | (me.row + 8 < present ? 2u : 0u) << (2 * j);
        }
    __syncthreads();
    if (first >= present)
        return;
    strip here = {}, x = {};
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const chain_step &step = steps[i];
        switch (step.op) {
        case LP_OP_LINEAR:
            linear(me, step, here, x);
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
        __syncwarp(); /* moments are read by others than wrote them */
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
    LP_LAUNCH(run, chain_kernel, mine.blocks, THREADS, 0, shard, mine.rows, mine.cols, mine.program, mine.count);
}
