/* cuda_chain_rooms.h: what a lane of a chain has: its place among rows and columns, and the modules of its block.
 *
 * Two warps have 16 rows, and share their columns: of every value one has tiles 0 to 3, the other 4 to 7. A lane has two rows, g and g + 8, and
 * of each of its warp's tiles of 8 columns two side by side. Columns beyond a value's own, and rows that are not there, hold any number: they
 * are not read from memory nor written to it, not summed, and meet a weight of 0.
 *
 * Rows come and go in straight runs: the rows of a block lie side by side in memory. The block has modules in shared memory in which they
 * change from that order to its own; stored from the registers, every sector would be written in two parts. `read` holds what a step reads,
 * `write` what it makes. `x` is the left side of a product, of which both warps need all columns, until another product has another one.
 * The weights of a product are on their way to one of two modules while the product before it reads the other.
 */
#ifndef LP_CUDA_CHAIN_ROOMS_H
#define LP_CUDA_CHAIN_ROOMS_H

#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { SIDES = 2, TILES = LP_CHAIN_TILES / SIDES }; /* warps that share 16 rows, and the tiles of one */
enum { ROWS = LP_CHAIN_ROWS, WARPS = ROWS / 16 * SIDES, THREADS = 32 * WARPS };
enum { DRAWS = 2 * TILES };             /* random blocks of a lane's two rows: one for each tile */
enum { DRAWN = WARPS * 8 * DRAWS * 4 }; /* words of all of them */
enum { SUMS = SIDES * 2 * ROWS };       /* floats: two of a row, from each of its warps */
enum { BEHIND = 8 * LP_CHAIN_TILES };   /* floats that are read behind a value's last row */

/* A warp's share of half a value: element i of tile j is row g + 8 (i / 2), column 8 j + 2 t + i % 2 of its columns. */
typedef struct strip {
    float at[TILES][4];
} strip;

/* A lane. */
typedef struct chain_lane {
    chain_head now; /* of the step at hand */
    const lp_cuda_shard *shard;
    float *x, *read, *write;   /* modules */
    float *read_second;        /* the second half of `read`: room for a narrow value */
    float *weights[2];         /* modules, of which the first is that of the product to come */
    float2 *sums;              /* of rows, by side: [SIDES x ROWS] */
    int side, rows;            /* which of its rows' warps, and the rows of the block that are there */
    int place, member, column; /* its first row in the block, and column */
    int cols, floats;          /* of half a value: its columns, and all of its rows */
    int first;                 /* row of the block */
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

__device__ inline bool has(const chain_lane &me, unsigned what)
{
    return me.now.has & what;
}

__device__ inline bool there(const chain_lane &me, int j, int half)
{
    return me.there >> (2 * j + half) & 1;
}

/* Whether the row is, whatever its columns. */
__device__ inline bool row_there(const chain_lane &me, int half)
{
    return me.place + 8 * half < me.rows;
}

/* ---- modules --------------------------------------------------------------------------------------------------- */

/* The rows of a value, all its columns, are on their way to a room: if the step has it. */
__device__ inline void ask_rows(const chain_lane &me, float *room, const chain_rows &rows, unsigned what)
{
    if (!has(me, what))
        return;
    const float *from = global(rows.data);
    int count = me.now.parts * me.floats, i = 4 * (int)threadIdx.x; /* a multiple of 2 */
#pragma unroll 1
    for (; i < count - 2; i += 4 * THREADS)
        tile_cp_async<4>(room + i, from + i);
    if (i < count)
        tile_cp_async<2>(room + i, from + i);
}

/* All rows asked for are there. */
__device__ inline void wait_rows(void)
{
    tile_cp_async_wait();
    __syncthreads();
}

/* What the block wrote to `room` goes to memory: all of a value. */
__device__ inline void store_rows(const chain_lane &me, const float *room, const chain_rows &rows, unsigned what)
{
    if (!has(me, what))
        return;
    float *to = global(rows.data);
    int count = me.now.parts * me.floats, i = 4 * (int)threadIdx.x;
    __syncthreads();
#pragma unroll 1
    for (; i < count - 2; i += 4 * THREADS)
        *(float4 *)(to + i) = *(const float4 *)(room + i);
    if (i < count)
        *(float2 *)(to + i) = *(const float2 *)(room + i);
}

/* Where the lane begins in a room with rows of so many floats. */
__device__ inline int place_in(const chain_lane &me, int stride)
{
    return me.place * stride + me.column;
}

/* x = what is in the room, half `part` of so many, or more by it. The first takes along what lies behind a value's columns; the second does not, and so may
 * be used where others write. */
template <bool adds>
__device__ inline void take_strip(const chain_lane &me, strip &x, const float *room, int part, int parts)
{
    int stride = parts * me.cols;
    const float *first = room + place_in(me, stride) + part * me.cols, *second = first + 8 * stride;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        if (adds && !(me.columns >> j & 1))
            continue;
        float2 one = *(const float2 *)(first + 8 * j), two = *(const float2 *)(second + 8 * j);
        x.at[j][0] = adds ? x.at[j][0] + one.x : one.x;
        x.at[j][1] = adds ? x.at[j][1] + one.y : one.y;
        x.at[j][2] = adds ? x.at[j][2] + two.x : two.x;
        x.at[j][3] = adds ? x.at[j][3] + two.y : two.y;
    }
}

__device__ inline void put_rows(const chain_lane &me, const strip &x, float *room, int stride)
{
    float *first = room + place_in(me, stride), *second = first + 8 * stride;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        if (there(me, j, 0))
            *(float2 *)(first + 8 * j) = make_float2(x.at[j][0], x.at[j][1]);
        if (there(me, j, 1))
            *(float2 *)(second + 8 * j) = make_float2(x.at[j][2], x.at[j][3]);
    }
}

__device__ inline void put_strip(const chain_lane &me, const strip &x, float *room, int part, int parts)
{
    put_rows(me, x, room + part * me.cols, parts * me.cols);
}

/* Numbers of columns, the same for all rows: 0 where there is no column. */
__device__ inline float2 read_factors(const chain_lane &me, const float *factors, int j)
{
    float2 two = {0, 0};
    if (me.columns >> j & 1)
        two = *(const float2 *)(global(factors) + me.column + 8 * j);
    return two;
}

} // namespace

#endif
