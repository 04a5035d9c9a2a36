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
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { SIDES = 2, TILES = LP_FUSED_TILES / SIDES }; /* warps that share 16 rows, and the tiles of each */
enum { ROWS = LP_FUSED_ROWS, WARPS = ROWS / 16 * SIDES, THREADS = 32 * WARPS };
enum { LANE_BLOCKS = 2 * TILES };                    /* random blocks for the two rows of a lane: one for each tile */
enum { RANDOM_WORDS = WARPS * 8 * LANE_BLOCKS * 4 }; /* of a thread block */
enum { ROW_SUMS = 2 * SIDES * 2 * ROWS };            /* floats: twice two sums of a row, from each of its warps */
enum { PADDING = 8 * LP_FUSED_TILES };               /* floats that may be read beyond the last row of a value */

/* A lane's elements of half a value: element i of tile j is row g + 8 (i / 2), column 8 j + 2 t + i % 2 of its columns. */
typedef struct strip {
    float at[TILES][4];
} strip;

typedef struct fused_lane {
    lp_step_head now; /* of the current step */
    const lp_cuda_shard *shard;
    float *x, *read, *write; /* shared-memory buffers */
    float *weights[2];       /* shared-memory buffers; the first is that of the next product */
    float2 *sums;            /* row sums by side: [2 x SIDES x ROWS] */
    int side, rows;          /* which warp of its rows; rows of the block that exist */
    int row, member, column; /* its first row in the block, lane within the row, and first column */
    int cols, first;         /* columns of half a value; first row of the block */
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

/* Second half of the buffer `read`: space for another narrow value. */
__device__ inline float *read_second(const fused_lane &me)
{
    return me.read + ROWS * me.cols;
}

/* Whether the step reads or writes these rows. */
__device__ inline bool has_rows(const fused_lane &me, int which)
{
    return me.now.has >> which & 1;
}

__device__ inline bool row_valid(const fused_lane &me, int half)
{
    return me.row + 8 * half < me.rows;
}

__device__ inline bool valid(const fused_lane &me, int j, int half)
{
    return me.columns >> j & 1 && row_valid(me, half);
}

/* Rows of a step, from the first one of the block on. */
__device__ inline lp_step_rows rows_of(const fused_lane &me, const lp_step &step, int which)
{
    lp_step_rows rows = step.rows[which];
    rows.data += rows.data ? (int64_t)me.first * rows.stride : 0;
    rows.copy += rows.copy ? (int64_t)me.first * rows.copy_stride : 0;
    return rows;
}

/* ---- shared-memory buffers ------------------------------------------------------------------------------------- */

/* Calls act(row, column) for pairs of columns of all rows, in the order of global memory; for so many rows at a time. */
template <int at_once, typename action>
__device__ inline void each_pair(const fused_lane &me, int cols, const action &act)
{
#pragma unroll 1
    for (int column = 2 * ((int)threadIdx.x & 31); column < cols; column += 64)
#pragma unroll at_once
        for (int row = (int)threadIdx.x >> 5; row < me.rows; row += WARPS)
            act(row, column);
}

/* Calls act(k, row, column) for the vectors of 8 columns of a thread, number k of VECTORS at most. */
enum { VECTORS = ROWS * 2 * LP_FUSED_TILES / THREADS };

template <typename action> __device__ inline void each_vector(const fused_lane &me, int cols, const action &act)
{
    int column = 8 * ((int)threadIdx.x % (2 * LP_FUSED_TILES)), row = (int)threadIdx.x / (2 * LP_FUSED_TILES);
#pragma unroll
    for (int k = 0; k < VECTORS; k++, row += ROWS / VECTORS)
        if (column < cols && row < me.rows)
            act(k, row, column);
}

/* The buffer of the inputs of a step. Code for each input apart would be slower: a block executes most of it once. */
__device__ inline float *buffer_of(const fused_lane &me, int which)
{
    bool wide = me.now.halves == 2;
    return which == LP_STEP_MAIN    ? wide ? me.write : me.read
           : which == LP_STEP_OTHER ? wide ? me.read : read_second(me)
           : which == LP_STEP_MORE ? wide ? me.x : (float *)(me.sums + SIDES * ROWS)
                                   : me.write;
}

/* Starts to copy the inputs of a step, from this one on, to their buffers. */
__device__ inline void load_rows(const fused_lane &me, const lp_step &step, int first)
{
    if (!(me.now.has >> first & ((1u << (LP_STEP_OLD_SECOND - first)) - 1)))
        return;
#pragma unroll 1
    for (int which = first; which < LP_STEP_OLD_SECOND; which++) {
        if (!has_rows(me, which))
            continue;
        lp_step_rows rows = rows_of(me, step, which);
        float *buffer = buffer_of(me, which);
        const float *from = global(rows.data);
        int count = rows.copy ? 0 : me.rows * rows.stride;
#pragma unroll 1
        for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
            tile_cp_async_part<4>(buffer + i, from + i, min(4, count - i));
        if (!rows.copy)
            continue;
        lp_vector<4> all[VECTORS] = {}; /* all loads are issued before the first is used */
        each_vector(me, rows.stride, [&](int k, int row, int column) {
            all[k] = lp_vector_load<4>((const float *)(global(rows.copy) + row * rows.copy_stride + column));
        });
        each_vector(me, rows.stride, [&](int k, int row, int column) {
            float *to = buffer + row * rows.stride + column;
#pragma unroll
            for (int i = 0; i < 4 && column + 2 * i < rows.stride; i++) {
                uint32_t both = __float_as_uint(all[k].at[i]);
                *(float2 *)(to + 2 * i) = make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xFFFF0000u));
            }
        });
    }
}

/* Waits until all copies of the block are complete. */
__device__ inline void wait_rows(void)
{
    tile_cp_async_wait();
    __syncthreads();
}

/* Adds rows of a step, if there are any, to those in a buffer. */
__device__ inline void add_rows(const fused_lane &me, float *buffer, const lp_step &step, int which)
{
    lp_step_rows rows = rows_of(me, step, which);
    const float *from = global(rows.data);
    int count = from ? me.rows * rows.stride : 0;
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS) {
        float4 more = *(const float4 *)(from + i), *to = (float4 *)(buffer + i);
        *to = make_float4(to->x + more.x, to->y + more.y, to->z + more.z, to->w + more.w);
    }
}

/* Stores the results of a step, the first in the buffer `write`, the second in `read`. The last 16 bytes may be beyond the rows. */
__device__ inline void store_rows(const fused_lane &me, const lp_step &step)
{
    if (!has_rows(me, LP_STEP_RESULT) && !has_rows(me, LP_STEP_RESULT_SECOND))
        return;
    __syncthreads();
#pragma unroll 1
    for (int which = LP_STEP_RESULT; which < LP_STEP_ROWS; which++) {
        if (!has_rows(me, which))
            continue;
        lp_step_rows rows = rows_of(me, step, which);
        const float *buffer = which == LP_STEP_RESULT ? me.write : me.read;
        float *to = global(rows.data);
        int count = to ? me.rows * rows.stride : 0;
#pragma unroll 1
        for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
            *(float4 *)(to + i) = *(const float4 *)(buffer + i);
        if (rows.copy)
            each_vector(me, rows.stride, [&](int, int row, int column) {
                lp_vector<4> all = {};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float2 two = *(const float2 *)(buffer + row * rows.stride + column + 2 * i);
                    all.at[i] = column + 2 * i < rows.stride ? tile_pack_bf16(two.x, two.y) : 0;
                }
                *(lp_vector<4> *)(global(rows.copy) + row * rows.copy_stride + column) = all;
            });
    }
}

/* Offset of the lane's first element in a buffer with this row stride. */
__device__ inline int offset_in(const fused_lane &me, int stride)
{
    return me.row * stride + me.column;
}

/* x = half number `part` of the value in the buffer; adds: x += it. Only the latter skips the columns beyond the value, and so may be used
 * while other lanes write there. */
template <bool adds>
__device__ inline void read_strip(const fused_lane &me, strip &x, const float *buffer, int part = 0, int halves = 1)
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

/* Writes x to rows of a buffer with this stride. */
__device__ inline void write_strip(const fused_lane &me, const strip &x, float *buffer, int stride)
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

/* Writes the narrow result x, to which the value in the buffer `write` is added if there is one. */
__device__ inline void finish_strip(const fused_lane &me, strip &x)
{
    if (has_rows(me, LP_STEP_OLD))
        read_strip<true>(me, x, me.write);
    if (has_rows(me, LP_STEP_RESULT))
        write_strip(me, x, me.write, me.cols);
}

/* Factors of the columns of a lane; 0 beyond the last column. */
typedef struct strip_factors {
    float2 at[TILES];
} strip_factors;

__device__ inline strip_factors read_factors(const fused_lane &me, const float *factors)
{
    strip_factors all = {};
#pragma unroll
    for (int j = 0; j < TILES; j++)
        if (me.columns >> j & 1)
            all.at[j] = *(const float2 *)(global(factors) + me.column + 8 * j);
    return all;
}

/* The factor of element i of tile j. */
__device__ inline float factor_of(const strip_factors &all, int j, int i)
{
    return i % 2 ? all.at[j].y : all.at[j].x;
}

} // namespace

#endif
