/* cuda_by_id.h: reduction of rows by id (gradients of embeddings): out[id] = sum of weight * row over the elements of
 * id. One launch, no atomics, fixed order.
 *
 * The host sorts the ids of the shard (lp_cuda_lists). The elements of an id are divided into pieces. The warps of a block reduce the
 * pieces of all its ids, so that an id of many elements delays no warp, and then add the sums of pieces in their order. A warp
 * reduces one piece; 8 lanes do if most ids have at most one element. An id without elements gets zeros, so outputs need no clearing.
 *
 * The elements are a type with two functions: elements(id) has up to two lists of them, and find(elements, i, &row, &weight) has the
 * row and the weight of the i-th.
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_upload.h"

enum { LP_BY_ID_THREADS = 256, LP_BY_ID_MOST_THREADS = 512 };
enum { LP_BY_ID_FEW_LANES = 8 };    /* of a piece, if most ids have few elements */
enum { LP_BY_ID_MOST = 32 };        /* ids of a block; pieces whose sums are in shared memory at a time */
enum { LP_BY_ID_MOST_PIECES = 16 }; /* of an id */
enum { LP_BY_ID_BLOCK_FROM = 48 };  /* elements of an id, on average, from which each has a block of its own */

/* Outputs: out [ids x cols] or NULL, weights [ids] or NULL. */
typedef struct lp_by_id_output {
    float *out, *weights;
    int cols, accumulate, weights_accumulate;
} lp_by_id_output;

/* Elements of an id in up to two lists: first index and count in each. */
typedef struct lp_id_elements {
    int begin[2], count[2];
} lp_id_elements;

/* Loads unconditionally, so that all loads are issued at once. */
__device__ static inline int lp_elements_of(const lp_cuda_lists &lists, int id, int *begin)
{
    int index = min(id, lists.largest_ids), ids = *lists.ids, end = lists.starts[index + 1];
    *begin = lists.starts[index];
    return id < ids ? end - *begin : 0;
}

/* sum += weight * row over elements begin .. end - 1 of an id, by `lanes` lanes: a lane has the columns c and on, a vector of n in
 * every lanes * n columns. Each lane looks up row and weight of its own element and passes them on by shuffles. most: elements of any
 * lanes of this warp. Returns the lane's part of the sum of weights. */
template <int n, int lanes, typename lists_type>
__device__ static inline float lp_sum_piece(lp_vector<n> (&sum)[32 / lanes], const lists_type &lists,
                                            const lp_id_elements &elements, int begin, int end, int most,
                                            const float *source, int cols, int c)
{
    enum { VECTORS = 32 / lanes, AHEAD = lanes / 4 }; /* AHEAD: rows in flight */
    float weights = 0;
#pragma unroll 1
    for (int first = 0; first < most; first += lanes) {
        int count = end - begin - first, here = min(most - first, lanes), lane = (int)threadIdx.x % lanes, row = 0;
        float weight = 0;
        if (lane < count)
            lists.find(elements, begin + first + lane, &row, &weight);
        weights += weight;
#pragma unroll 1
        for (int k = 0; k < here; k += AHEAD) {
            lp_vector<n> x[AHEAD][VECTORS] = {};
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const float *from = source + (size_t)__shfl_sync(0xFFFFFFFFu, row, k + i, lanes) * cols + c;
#pragma unroll
                for (int m = 0; m < VECTORS; m++)
                    if (k + i < count && c + m * lanes * n < cols)
                        x[i][m] = lp_vector_load<n>(from + m * lanes * n);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                float factor = __shfl_sync(0xFFFFFFFFu, weight, k + i, lanes);
#pragma unroll
                for (int j = 0; j < VECTORS * n; j++)
                    sum[j / n].at[j % n] += factor * x[i][j / n].at[j % n];
            }
        }
    }
    return weights;
}

/* A launch over all ids. Block b has the ids b, b + blocks, ...: neighbours are often frequent together, and a block that had several
 * frequent ids would be late. */
typedef struct lp_by_id_shape {
    lp_cuda_rows rows;
    int parts;        /* an id is as many ids of `lists`, one after the other */
    int each, blocks; /* each: ids of a block */
    int piece;        /* elements of a piece, at least */
} lp_by_id_shape;

__device__ static inline int lp_piece_of(const lp_by_id_shape &shape, const lp_id_elements &elements)
{
    return max(shape.piece, (elements.count[0] + elements.count[1] + LP_BY_ID_MOST_PIECES - 1) / LP_BY_ID_MOST_PIECES);
}

/* blockIdx.y: a part of the columns, as wide as a warp. A launch waits for memory, so as many warps as possible run. */
template <int n, int lanes, typename lists_type>
__global__ void __launch_bounds__(LP_BY_ID_MOST_THREADS, 2)
    lp_by_id_kernel(const lp_cuda_shard *shard, lists_type lists, lp_by_id_shape shape, const float *source,
                    lp_by_id_output to)
{
    __shared__ lp_vector<n> sums[LP_BY_ID_MOST][32]; /* of pieces */
    __shared__ float sums_of_weights[LP_BY_ID_MOST];
    __shared__ lp_id_elements all[LP_BY_ID_MOST];
    __shared__ int starts[LP_BY_ID_MOST + 1]; /* first pieces of ids; without an id: the number of pieces */
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, column = (int)blockIdx.y * 32 * n;
    int block = (int)blockIdx.x, count = lp_rows_now(shape.rows, shard) * shape.parts, cols = to.out ? to.cols : 0;
    int each = min(shape.each, (count - block + shape.blocks - 1) / shape.blocks);
    if (block >= count)
        return;
    if (warp == 0) {
        lp_id_elements mine = {{0, 0}, {0, 0}};
        if (lane < each)
            mine = lists.elements(block + lane * shape.blocks);
        int elements = mine.count[0] + mine.count[1], piece = lp_piece_of(shape, mine);
        int end = lane < each ? max((elements + piece - 1) / piece, 1) : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int before = __shfl_up_sync(0xFFFFFFFFu, end, step);
            end += lane >= step ? before : 0;
        }
        all[lane] = mine;
        starts[0] = 0;
        starts[lane + 1] = end;
    }
    __syncthreads();
    for (int window = 0; window < starts[each]; window += LP_BY_ID_MOST) {
        int pieces = min(starts[each] - window, (int)LP_BY_ID_MOST);
#pragma unroll 1
        for (int p = (int)threadIdx.x / lanes; p - lane / lanes < pieces; p += (int)blockDim.x / lanes) {
            int i = 0; /* the id of the piece, or one without elements */
#pragma unroll
            for (int step = LP_BY_ID_MOST / 2; step > 0; step /= 2)
                i += starts[i + step] <= window + p ? step : 0;
            lp_id_elements mine = all[i];
            int piece = lp_piece_of(shape, mine), begin = (window + p - starts[i]) * piece;
            int end = min(begin + piece, mine.count[0] + mine.count[1]), most = end - begin;
#pragma unroll
            for (int mask = lanes; mask < 32; mask *= 2)
                most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, mask));
            lp_vector<n> sum[32 / lanes] = {};
            float weights =
                lp_sum_piece<n, lanes>(sum, lists, mine, begin, end, most, source, cols, column + n * (lane % lanes));
#pragma unroll
            for (int m = 0; m < 32 / lanes; m++)
                sums[p][lane % lanes + m * lanes] = sum[m];
#pragma unroll
            for (int mask = lanes / 2; mask > 0; mask >>= 1)
                weights += __shfl_xor_sync(0xFFFFFFFFu, weights, mask);
            sums_of_weights[p] = weights;
        }
        __syncthreads();
        for (int i = warp; i < each; i += (int)blockDim.x / 32) {
            int begin = max(starts[i], window), end = min(starts[i + 1], window + pieces);
            int id = block + i * shape.blocks, c = column + n * lane, more = begin > starts[i];
            lp_vector<n> sum = {};
            float weights = 0;
            for (int p = begin - window; p < end - window; p++) {
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum.at[j] += sums[p][lane].at[j];
                weights += sums_of_weights[p];
            }
            if (begin < end && c < cols)
                lp_vector_store<n>(to.out + (size_t)id * cols + c, sum, to.accumulate || more);
            if (begin < end && c == 0 && to.weights)
                lp_store(&to.weights[id], weights, to.weights_accumulate || more);
        }
        __syncthreads();
    }
}

/* The ids are the rows of `table`, with `elements` elements in all, at most. With few ids and many elements, an id has a block of its
 * own, of more warps. */
template <typename lists_type>
static void lp_by_id_reduce(const lp_cuda_run *run, const lp_value *table, const lists_type &lists, int64_t elements,
                            int piece, const float *source, const lp_by_id_output &to, int parts = 1)
{
    int64_t ids = (int64_t)lp_cuda_largest(run, table) * parts;
    bool few = elements <= ids, crowded = elements > ids * LP_BY_ID_BLOCK_FROM;
    int lanes = few ? LP_BY_ID_FEW_LANES : 32, each = crowded ? 1 : LP_BY_ID_THREADS / lanes;
    unsigned blocks = lp_blocks(ids, each), threads = crowded ? LP_BY_ID_MOST_THREADS : LP_BY_ID_THREADS;
    lp_by_id_shape shape = {lp_cuda_rows_of(table), parts, each, (int)blocks, min(piece, lanes)};
    lp_with_vector_width(lp_vector_width((uintptr_t)source | (uintptr_t)to.out, to.cols), [&](auto by) {
        constexpr int n = decltype(by)::value;
        auto kernel = few ? lp_by_id_kernel<n, LP_BY_ID_FEW_LANES, lists_type> : lp_by_id_kernel<n, 32, lists_type>;
        LP_LAUNCH(run, kernel, dim3(blocks, to.out ? lp_blocks(to.cols, 32 * n) : 1), threads, 0, run->shard, lists,
                  shape, source, to);
    });
}

#endif
