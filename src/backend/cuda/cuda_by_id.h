/* cuda_by_id.h: reduction of rows by id (gradients of embeddings): out[id] = sum of weight * row over the elements of
 * id. One launch, no atomics, fixed order.
 *
 * The host sorts the ids of the shard (cuda_lists.h). The elements of an id are divided into pieces. The warps of a block reduce the
 * pieces of all its ids, so that an id of many elements delays no warp, and then add the sums of pieces in their order. A warp
 * reduces one piece; 8 lanes do if most ids have at most one element. An id without elements gets zeros, so outputs need no clearing.
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_lists.h"
#include "backend/cuda/cuda_rows.h"

enum { LP_BY_ID_THREADS = 256 };
enum { LP_BY_ID_FEW_LANES = 8 };   /* of a piece, if most ids have few elements */
enum { LP_BY_ID_MOST = 32 };       /* ids of a block; pieces whose sums are in shared memory at a time */
enum { LP_BY_ID_BLOCK_FROM = 48 }; /* elements of an id, on average, from which each has a block of its own */

/* Outputs: out [ids x cols] or NULL, weights [ids] or NULL. stride: from row to row of out and of the source. */
typedef struct lp_by_id_output {
    float *out, *weights;
    int cols, stride, accumulate, weights_accumulate;
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

/* Columns of a row that a lane holds, of 32 * n: a vector of n in every lanes * n columns. */
template <int n, int lanes> struct lp_row_vectors {
    enum { VECTORS = 32 / lanes };
    lp_vector<n> vector[VECTORS];
};

/* Columns c and on of the sum over terms begin .. end - 1 of weight * row of source, by `lanes` lanes; *weights
 * receives the lane's part of the sum of weights. Each lane looks up row and weight of its own term and passes them on
 * by shuffles. max_terms: the most terms of any lanes of this warp. */
template <int n, int lanes, typename term_type>
__device__ static inline lp_row_vectors<n, lanes> lp_weighted_rows(const term_type &term, int begin, int end,
                                                                   int max_terms, const float *source, int cols,
                                                                   int stride, int c, float *weights)
{
    enum { AHEAD = lanes < 32 ? 1 : 8 }; /* rows in flight */
    typedef lp_row_vectors<n, lanes> vectors;
    int lane = (int)threadIdx.x & (lanes - 1);
    vectors sum = {};
    *weights = 0;
#pragma unroll 1
    for (int first = 0; first < max_terms; first += lanes) {
        int count = end - begin - first, here = min(max_terms - first, lanes), row = 0;
        float weight = 0;
        if (lane < count)
            term.find(begin + first + lane, &row, &weight);
        *weights += weight;
#pragma unroll 1
        for (int k = 0; k < here; k += AHEAD) {
            vectors x[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                int source_row = __shfl_sync(0xFFFFFFFFu, row, k + i, lanes);
#pragma unroll
                for (int m = 0; m < vectors::VECTORS; m++) {
                    int at = c + m * lanes * n;
                    x[i].vector[m] = {};
                    if (k + i < count && at < cols)
                        x[i].vector[m] = lp_vector_load<n>(source + (size_t)source_row * stride + at);
                }
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                float factor = __shfl_sync(0xFFFFFFFFu, weight, k + i, lanes);
#pragma unroll
                for (int m = 0; m < vectors::VECTORS; m++)
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum.vector[m].at[j] += factor * x[i].vector[m].at[j];
            }
        }
    }
    return sum;
}

/* The terms of an id: lists.find(elements, i, &row, &weight). */
template <typename lists_type> struct lp_id_terms {
    const lists_type &lists;
    lp_id_elements elements;
    __device__ void find(int i, int *row, float *weight) const
    {
        lists.find(elements, i, row, weight);
    }
};

/* A launch over all ids. Block b has the ids b, b + blocks, ...: neighbours are often frequent together, and a block that had several
 * frequent ids would be late. */
typedef struct lp_by_id_shape {
    int each, blocks; /* each: ids of a block */
    int lanes;        /* of a piece: 32, or LP_BY_ID_FEW_LANES */
    int piece;        /* elements of a piece */
} lp_by_id_shape;

/* A block reduces its ids, of `count` in all. Every thread must call it. */
template <int n, int lanes, typename lists_type>
__device__ static inline void lp_sum_ids(const lists_type &lists, const lp_by_id_shape &shape, int block, int count,
                                         const float *source, lp_by_id_output to)
{
    __shared__ lp_vector<n> sums[LP_BY_ID_MOST][32]; /* of pieces */
    __shared__ float sums_of_weights[LP_BY_ID_MOST];
    __shared__ lp_id_elements all[LP_BY_ID_MOST];
    __shared__ int starts[LP_BY_ID_MOST + 1]; /* first pieces of ids; without an id: the number of pieces */
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, cols = to.out ? to.cols : 0;
    if (block >= count)
        return;
    int each = min(shape.each, (count - block + shape.blocks - 1) / shape.blocks);
    if (warp == 0) {
        lp_id_elements mine = {{0, 0}, {0, 0}};
        if (lane < each)
            mine = lists.elements(block + lane * shape.blocks);
        int elements = mine.count[0] + mine.count[1];
        int end = lane < each ? max((elements + shape.piece - 1) / shape.piece, 1) : 0;
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
    for (int first = 0; first == 0 || first < cols; first += 32 * n)
        for (int window = 0; window < starts[each]; window += LP_BY_ID_MOST) {
            int pieces = min(starts[each] - window, (int)LP_BY_ID_MOST);
#pragma unroll 1
            for (int p = (int)threadIdx.x / lanes; p - lane / lanes < pieces; p += LP_BY_ID_THREADS / lanes) {
                int i = 0; /* the id of the piece, or one without elements */
#pragma unroll
                for (int step = LP_BY_ID_MOST / 2; step > 0; step /= 2)
                    i += starts[i + step] <= window + p ? step : 0;
                lp_id_terms<lists_type> terms = {lists, all[i]};
                int begin = (window + p - starts[i]) * shape.piece;
                int end = min(begin + shape.piece, all[i].count[0] + all[i].count[1]), most = end - begin;
#pragma unroll
                for (int mask = lanes; mask < 32; mask *= 2)
                    most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, mask));
                float weights;
                lp_row_vectors<n, lanes> mine = lp_weighted_rows<n, lanes>(
                    terms, begin, end, most, source, cols, to.stride, first + n * (lane % lanes), &weights);
#pragma unroll
                for (int m = 0; m < 32 / lanes; m++)
                    sums[p][lane % lanes + m * lanes] = mine.vector[m];
#pragma unroll
                for (int mask = lanes / 2; mask > 0; mask >>= 1)
                    weights += __shfl_xor_sync(0xFFFFFFFFu, weights, mask);
                sums_of_weights[p] = weights;
            }
            __syncthreads();
            for (int i = warp; i < each; i += LP_BY_ID_THREADS / 32) {
                int begin = max(starts[i], window), end = min(starts[i + 1], window + pieces);
                int id = block + i * shape.blocks, c = first + n * lane, more = begin > starts[i];
                lp_vector<n> sum = {};
                float weights = 0;
                for (int p = begin - window; p < end - window; p++) {
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum.at[j] += sums[p][lane].at[j];
                    weights += sums_of_weights[p];
                }
                if (begin < end && c < cols)
                    lp_vector_store<n>(to.out + (size_t)id * to.stride + c, sum, to.accumulate || more);
                if (begin < end && c == 0 && to.weights)
                    lp_store(&to.weights[id], weights, to.weights_accumulate || more);
            }
            __syncthreads();
        }
}

/* For this many ids and elements. With few ids and many elements, an id has a block of its own. */
static inline lp_by_id_shape lp_by_id_shape_of(int64_t ids, int64_t elements, int piece)
{
    int lanes = elements <= ids ? LP_BY_ID_FEW_LANES : 32;
    int each = elements > ids * LP_BY_ID_BLOCK_FROM ? 1 : LP_BY_ID_THREADS / lanes;
    lp_by_id_shape shape = {each, (int)lp_blocks(ids, each), lanes, piece};
    return shape;
}

/* Calls launch with the lanes of an id as a compile-time constant. */
template <typename launcher> static inline void lp_with_lanes(const lp_by_id_shape &shape, const launcher &launch)
{
    if (shape.lanes == 32)
        launch(lp_constant<32>());
    else
        launch(lp_constant<LP_BY_ID_FEW_LANES>());
}

#endif
