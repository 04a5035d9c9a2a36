/* cuda_fused_buffers.h: the rows, columns and shared-memory buffers of a lane of a fused kernel.
 *
 * Two warps share 16 rows: of every value one has the column tiles 0 to 3, the other 4 to 7. A lane has two rows, g and g + 8, and two
 * adjacent columns of each tile of its warp. Elements beyond the columns or rows of a value are undefined: they are not loaded,
 * stored or summed, and their weights are 0.
 *
 * The rows of a block are contiguous in global memory and are copied in that order through shared memory, where lanes then access their own
 * elements; stored directly from registers, every memory sector would be written in two parts. The buffer `read` holds the inputs of a step,
 * `write` its result. `x` is the left factor of a product, of which both warps need all columns; later products with the same factor
 * reuse it. There are two buffers for weights: one is loaded while the current product reads the other.
 */
#ifndef LP_CUDA_FUSED_BUFFERS_H
#define LP_CUDA_FUSED_BUFFERS_H

#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { SIDES = 2, TILES = LP_FUSED_TILES / SIDES }; /* warps that share 16 rows, and the tiles of each */
enum { ROWS = LP_FUSED_ROWS, WARPS = ROWS / 16 * SIDES, THREADS = 32 * WARPS };
enum { LANE_BLOCKS = 2 * TILES };                    /* random blocks for the two rows of a lane: one for each tile */
enum { RANDOM_WORDS = WARPS * 8 * LANE_BLOCKS * 4 }; /* of a thread block */
enum { ROW_SUMS = SIDES * 2 * ROWS };                /* floats: two sums of a row, from each of its warps */
enum { PADDING = 8 * LP_FUSED_TILES };               /* floats that may be read beyond the last row of a value */

/* A lane's elements of half a value: element i of tile j is row g + 8 (i / 2), column 8 j + 2 t + i % 2 of its columns. */
typedef struct strip {
    float at[TILES][4];
} strip;

typedef struct fused_lane {
    fused_head now; /* of the current step */
    const lp_cuda_shard *shard;
    float *x, *read, *write; /* shared-memory buffers */
    float *read_second;      /* second half of `read`: space for another narrow value */
    float *weights[2];       /* shared-memory buffers; the first is that of the next product */
    float2 *sums;            /* row sums by side: [SIDES x ROWS] */
    int side, rows;          /* which warp of its rows; rows of the block that exist */
    int row, member, column; /* its first row in the block, lane within the row, and first column */
    int cols, floats;        /* columns of half a value, and floats of all its rows */
    int first;               /* first row of the block */
    uint32_t valid;          /* bit 2 j + h: row h and tile j exist */
    uint32_t columns;        /* bit j: tile j exists */
} fused_lane;

/* Tells the compiler that a pointer loaded from memory points to global memory. */
template <typename type> __device__ inline type *global(type *data)
{
#ifdef __CUDACC__
    __builtin_assume(__isGlobal(data));
#endif
    return data;
}

__device__ inline bool has(const fused_lane &me, unsigned flag)
{
    return me.now.has & flag;
}

__device__ inline bool valid(const fused_lane &me, int j, int half)
{
    return me.valid >> (2 * j + half) & 1;
}

__device__ inline bool row_valid(const fused_lane &me, int half)
{
    return me.row + 8 * half < me.rows;
}

/* ---- shared-memory buffers ------------------------------------------------------------------------------------- */

/* Starts to copy the rows of a value to a buffer, if the step has this flag. */
__device__ inline void load_rows(const fused_lane &me, float *buffer, const fused_rows &rows, unsigned flag)
{
    if (!has(me, flag))
        return;
    const float *from = global(rows.data);
    int count = me.now.halves * me.floats, i = 4 * (int)threadIdx.x; /* a multiple of 2 */
#pragma unroll 1
    for (; i < count - 2; i += 4 * THREADS)
        tile_cp_async<4>(buffer + i, from + i);
    if (i < count)
        tile_cp_async<2>(buffer + i, from + i);
}

/* Waits until all copies of the block are complete. */
__device__ inline void wait_rows(void)
{
    tile_cp_async_wait();
    __syncthreads();
}

/* Stores the rows of a buffer to global memory, if the step has this flag. */
__device__ inline void store_rows(const fused_lane &me, const float *buffer, const fused_rows &rows, unsigned flag)
{
    if (!has(me, flag))
        return;
    float *to = global(rows.data);
    int count = me.now.halves * me.floats, i = 4 * (int)threadIdx.x;
    __syncthreads();
#pragma unroll 1
    for (; i < count - 2; i += 4 * THREADS)
        *(float4 *)(to + i) = *(const float4 *)(buffer + i);
    if (i < count)
        *(float2 *)(to + i) = *(const float2 *)(buffer + i);
}

/* Offset of the lane's first element in a buffer with this row stride. */
__device__ inline int offset_in(const fused_lane &me, int stride)
{
    return me.row * stride + me.column;
}

/* x = half number `part` of the value in the buffer; adds: x += it. Only the latter skips the columns beyond the value, and so may be used
 * while other lanes write there. */
template <bool adds>
__device__ inline void read_strip(const fused_lane &me, strip &x, const float *buffer, int part, int halves)
{
    int stride = halves * me.cols;
    const float *first = buffer + offset_in(me, stride) + part * me.cols, *second = first + 8 * stride;
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

__device__ inline void write_rows(const fused_lane &me, const strip &x, float *buffer, int stride)
{
    float *first = buffer + offset_in(me, stride), *second = first + 8 * stride;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        if (valid(me, j, 0))
            *(float2 *)(first + 8 * j) = make_float2(x.at[j][0], x.at[j][1]);
        if (valid(me, j, 1))
            *(float2 *)(second + 8 * j) = make_float2(x.at[j][2], x.at[j][3]);
    }
}

__device__ inline void write_strip(const fused_lane &me, const strip &x, float *buffer, int part, int halves)
{
    write_rows(me, x, buffer + part * me.cols, halves * me.cols);
}

/* The factors of two columns; 0 beyond the last column. */
__device__ inline float2 read_factors(const fused_lane &me, const float *factors, int j)
{
    float2 two = {0, 0};
    if (me.columns >> j & 1)
        two = *(const float2 *)(global(factors) + me.column + 8 * j);
    return two;
}

} // namespace

#endif
