/* cuda_reduce.h: sums over rows in a fixed order, so that two runs give the same bits.
 *
 * The rows are cut into chunks, and a block sums the rows of one chunk for 32 columns. The block that comes last adds the chunks up in
 * their order: which block that is depends on chance, what it does not. How many chunks there are depends on the largest shard alone.
 */
#ifndef LP_CUDA_REDUCE_H
#define LP_CUDA_REDUCE_H

#include "backend/cuda/cuda_schedule.h"

enum { LP_REDUCE_COLS = 32, LP_REDUCE_ROWS = 32, LP_CHUNKS = 128 };
enum { LP_FEW_ROWS = 128 }; /* that one block sums */

/* Chunks for so many rows, where `tiles` blocks work on each. */
static inline int lp_cuda_chunks(int64_t rows, int64_t tiles)
{
    int64_t chunks = 2 * LP_CHUNKS / (tiles > 0 ? tiles : 1), most = (rows + 31) / 32;
    most = most > LP_CHUNKS ? (int64_t)LP_CHUNKS : most;
    chunks = chunks > most ? most : chunks;
    return (int)(chunks < 1 ? 1 : chunks);
}

/* The rows of a chunk, a multiple of `unit`. */
__device__ static inline int lp_chunk_rows(int rows, int chunks, int unit)
{
    int each = (rows + chunks - 1) / chunks;
    return (each + unit - 1) / unit * unit;
}

/* Whether all other blocks of the launch have been here before this one, which then sees what they wrote. Every thread of a block
 * must come, once in a launch. The count is back at 0 for the next launch in this lane. */
__device__ static inline bool lp_last_block(int lane)
{
    static unsigned arrived[LP_CUDA_LANES];
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) {
        last = atomicAdd(&arrived[lane], 1u) + 1 == gridDim.x * gridDim.y;
        if (last)
            arrived[lane] = 0;
    }
    __syncthreads();
    if (last)
        __threadfence();
    return last;
}

/* Adds up the rows of a block's sums; the thread of row 0 has the result. */
template <typename sum_type> __device__ static inline sum_type lp_sum_of_rows(sum_type mine)
{
    __shared__ sum_type sums[LP_REDUCE_ROWS][LP_REDUCE_COLS + 1];
    __syncthreads();
    sums[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    sum_type sum = 0;
    if (threadIdx.y == 0)
        for (int i = 0; i < LP_REDUCE_ROWS; i++)
            sum += sums[i][threadIdx.x];
    return sum;
}

/* out[i] = (adds: out[i] +) sum over chunks of partial[chunk * stride + i], for i = first + threadIdx.x < size. */
template <typename sum_type, typename out_type>
__device__ static inline void lp_add_chunks(const sum_type *partial, int chunks, int stride, int size, int first,
                                            out_type *out, int adds)
{
    int i = first + (int)threadIdx.x;
    sum_type sum = 0;
    if (i < size)
#pragma unroll 4
        for (int chunk = (int)threadIdx.y; chunk < chunks; chunk += LP_REDUCE_ROWS)
            sum += partial[(size_t)chunk * stride + i];
    sum = lp_sum_of_rows(sum);
    if (threadIdx.y == 0 && i < size)
        out[i] = (out_type)(adds ? out[i] + sum : sum);
}

/* partial[chunk][col] = sum over the chunk's rows of term(row, col), and out their sums. Grid: (columns / 32, chunks). */
template <typename sum_type, typename out_type, typename term_type>
__global__ void __launch_bounds__(LP_REDUCE_COLS *LP_REDUCE_ROWS)
    column_sums_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, term_type term, sum_type *partial,
                       out_type *out, int adds, int lane)
{
    int count = lp_rows_now(rows, shard), chunks = (int)gridDim.y, each = lp_chunk_rows(count, chunks, 1);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count);
    int col = (int)(blockIdx.x * LP_REDUCE_COLS + threadIdx.x);
    sum_type sum = 0;
    if (col < cols)
#pragma unroll 4
        for (int row = begin + (int)threadIdx.y; row < end; row += LP_REDUCE_ROWS)
            sum += term(row, col);
    sum = lp_sum_of_rows(sum);
    if (threadIdx.y == 0 && col < cols) {
        if (chunks == 1)
            out[col] = (out_type)(adds ? out[col] + sum : sum);
        else
            partial[(size_t)blockIdx.y * cols + col] = sum;
    }
    if (chunks > 1 && lp_last_block(lane))
        for (int first = 0; first < cols; first += LP_REDUCE_COLS)
            lp_add_chunks(partial, chunks, cols, cols, first, out, adds);
}

/* out[col] = (adds: out[col] +) sum over the rows of `like` of term(row, col). Asks for scratch. */
template <typename sum_type, typename out_type, typename term_type>
static inline void lp_cuda_column_sums(const lp_cuda_run *run, const lp_value *like, int cols, term_type term,
                                       out_type *out, int adds)
{
    int tiles = (int)lp_blocks(cols, LP_REDUCE_COLS), largest = lp_cuda_largest(run, like), lane = run->lane;
    int chunks = largest <= LP_FEW_ROWS ? 1 : lp_cuda_chunks(largest, tiles);
    sum_type *partial = (sum_type *)lp_cuda_scratch(run, (size_t)chunks * (size_t)cols * sizeof *partial);
    if (!partial)
        return;
    lp_cuda_rows rows = lp_cuda_rows_of(like);
    const lp_cuda_shard *shard = run->shard;
    LP_LAUNCH(run, (column_sums_kernel<sum_type, out_type, term_type>), dim3((unsigned)tiles, (unsigned)chunks),
              dim3(LP_REDUCE_COLS, LP_REDUCE_ROWS), 0, shard, rows, cols, term, partial, out, adds, lane);
}

#endif
