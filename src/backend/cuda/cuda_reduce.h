/* cuda_reduce.h: sums over rows in a fixed order, so that two runs give the same bits.
 *
 * The rows are cut into chunks, a block sums the rows of one chunk for 32 columns, and a second kernel adds the chunks up in
 * their order. How many chunks there are depends on the largest shard alone.
 */
#ifndef LP_CUDA_REDUCE_H
#define LP_CUDA_REDUCE_H

#include "backend/cuda/cuda.h"

enum { LP_REDUCE_COLS = 32, LP_REDUCE_ROWS = 8, LP_CHUNKS = 128 };

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

/* Adds up the eight rows of a block's sums; the thread of row 0 has the result. */
template <typename sum_type> __device__ static inline sum_type lp_sum_of_rows(sum_type mine)
{
    __shared__ sum_type sums[LP_REDUCE_ROWS][LP_REDUCE_COLS + 1];
    sums[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();
    sum_type sum = 0;
    if (threadIdx.y == 0)
        for (int i = 0; i < LP_REDUCE_ROWS; i++)
            sum += sums[i][threadIdx.x];
    return sum;
}

/* partial[chunk][col] = sum over the chunk's rows of term(row, col). Grid: (columns / 32, chunks). */
template <typename sum_type, typename term_type>
__global__ void reduce_chunks_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, term_type term,
                                     sum_type *partial)
{
    int count = lp_rows_now(rows, shard), each = lp_chunk_rows(count, (int)gridDim.y, 1);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count);
    int col = (int)(blockIdx.x * LP_REDUCE_COLS + threadIdx.x);
    sum_type sum = 0;
    if (col < cols)
        for (int row = begin + (int)threadIdx.y; row < end; row += LP_REDUCE_ROWS)
            sum += term(row, col);
    sum = lp_sum_of_rows(sum);
    if (threadIdx.y == 0 && col < cols)
        partial[(size_t)blockIdx.y * cols + col] = sum;
}

/* out[i] = (adds: out[i] +) sum over chunks of partial[chunk][i], i < size. Grid: size / 32. */
template <typename sum_type, typename out_type>
__global__ void add_chunks_kernel(const sum_type *partial, int chunks, int size, out_type *out, int adds)
{
    int i = (int)(blockIdx.x * LP_REDUCE_COLS + threadIdx.x);
    sum_type sum = 0;
    if (i < size)
        for (int chunk = (int)threadIdx.y; chunk < chunks; chunk += LP_REDUCE_ROWS)
            sum += partial[(size_t)chunk * size + i];
    sum = lp_sum_of_rows(sum);
    if (threadIdx.y == 0 && i < size)
        out[i] = (out_type)(adds ? out[i] + sum : sum);
}

template <typename sum_type, typename out_type>
static inline void lp_cuda_add_chunks(const lp_cuda_run *run, const sum_type *partial, int chunks, int size,
                                      out_type *out, int adds)
{
    LP_LAUNCH(run, (add_chunks_kernel<sum_type, out_type>), lp_blocks(size, LP_REDUCE_COLS),
              dim3(LP_REDUCE_COLS, LP_REDUCE_ROWS), 0, partial, chunks, size, out, adds);
}

/* out[col] = (adds: out[col] +) sum over the rows of `like` of term(row, col). Asks for scratch. */
template <typename sum_type, typename out_type, typename term_type>
static inline void lp_cuda_column_sums(const lp_cuda_run *run, const lp_value *like, int cols, term_type term,
                                       out_type *out, int adds)
{
    int tiles = (int)lp_blocks(cols, LP_REDUCE_COLS), chunks = lp_cuda_chunks(lp_cuda_largest(run, like), tiles);
    sum_type *partial = (sum_type *)lp_cuda_scratch(run, (size_t)chunks * (size_t)cols * sizeof *partial);
    if (!partial)
        return;
    lp_cuda_rows rows = lp_cuda_rows_of(like);
    const lp_cuda_shard *shard = run->shard;
    LP_LAUNCH(run, (reduce_chunks_kernel<sum_type, term_type>), dim3((unsigned)tiles, (unsigned)chunks),
              dim3(LP_REDUCE_COLS, LP_REDUCE_ROWS), 0, shard, rows, cols, term, partial);
    lp_cuda_add_chunks(run, partial, chunks, cols, out, adds);
}

#endif
