/* cuda_by_id.h: reduction of rows by id (gradients of embeddings): out[id] = sum of weight * row over the elements of
 * id. One launch, no atomics, fixed order.
 *
 * The host sorts the ids of the shard (cuda_lists.h). A warp reduces one id; 8 lanes do if most ids have at most one
 * element. An id without elements gets zeros, so outputs need no clearing. An id with more than
 * LP_BY_ID_BLOCK_THRESHOLD elements would delay its warp: all warps of the block reduce it together, and their sums
 * are added in the order of the warps. Or (lists_type::in_pieces, for one list without weights) the elements of an id are
 * divided into pieces, which are loaded at once, the warps of a block reduce the pieces of all its ids, and the sums of pieces
 * are added in their order.
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_lists.h"
#include "backend/cuda/cuda_rows.h"

enum { LP_BY_ID_WARPS = 8, LP_BY_ID_MAX_WARPS = 16, LP_BY_ID_BLOCK_THRESHOLD = 48 };
enum { LP_BY_ID_FEW_LANES = 8 }; /* of an id, if most ids have few elements */
/* Elements of a piece; pieces whose sums are in shared memory at a time. */
enum { LP_BY_ID_PIECE = 8, LP_BY_ID_PIECES = 32 };

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

/* Columns of a row that a lane holds: a vector of n in every lanes * n columns. */
template <int n, int lanes> struct lp_row_vectors {
    enum { VECTORS = lanes < 32 ? 4 : 1, COLS = lanes * n * VECTORS };
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

/* `lanes` lanes reduce an id; no id of the warp has more than max_terms elements. */
template <int n, int lanes, typename lists_type>
__device__ static inline void lp_sum_id(const lists_type &lists, int id, bool have, lp_id_elements elements,
                                        int max_terms, const float *source, lp_by_id_output to)
{
    typedef lp_row_vectors<n, lanes> vectors;
    int lane = (int)threadIdx.x & (lanes - 1), cols = to.out ? to.cols : 0;
    lp_id_terms<lists_type> terms = {lists, elements};
    for (int first = 0; first == 0 || first < cols; first += vectors::COLS) {
        float weights;
        vectors sum = lp_weighted_rows<n, lanes>(terms, 0, elements.count[0] + elements.count[1], max_terms, source,
                                                 cols, to.stride, first + n * lane, &weights);
#pragma unroll
        for (int m = 0; m < vectors::VECTORS; m++) {
            int c = first + n * (lane + m * lanes);
            if (have && c < cols)
                lp_vector_store<n>(to.out + (size_t)id * to.stride + c, sum.vector[m], to.accumulate);
        }
        if (first == 0 && to.weights) {
#pragma unroll
            for (int mask = lanes / 2; mask > 0; mask >>= 1)
                weights += __shfl_xor_sync(0xFFFFFFFFu, weights, mask);
            if (have && lane == 0)
                lp_store(&to.weights[id], weights, to.weights_accumulate);
        }
    }
}

/* All warps of a block reduce an id. */
template <int n, typename lists_type>
__device__ static inline void lp_sum_id_by_block(const lists_type &lists, int id, lp_id_elements elements,
                                                 const float *source, lp_by_id_output to)
{
    enum { WIDE = 32 * n };
    __shared__ float sums[LP_BY_ID_MAX_WARPS][WIDE + 1];
    int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32), warps = (int)(blockDim.x / 32);
    int count = elements.count[0] + elements.count[1], each = (count + warps - 1) / warps;
    int begin = min(warp * each, count), end = min(begin + each, count), cols = to.out ? to.cols : 0;
    lp_id_terms<lists_type> terms = {lists, elements};
    for (int first = 0; first == 0 || first < cols; first += WIDE) {
        float weights;
        lp_row_vectors<n, 32> mine = lp_weighted_rows<n, 32>(terms, begin, end, end - begin, source, cols, to.stride,
                                                             first + n * lane, &weights);
        for (int j = 0; j < n; j++)
            sums[warp][n * lane + j] = mine.vector[0].at[j];
        weights = lp_warp_sum(weights);
        if (lane == 0)
            sums[warp][WIDE] = weights;
        __syncthreads();
        for (int i = (int)threadIdx.x; i <= WIDE; i += (int)blockDim.x) {
            float sum = 0;
            for (int k = 0; k < warps; k++)
                sum += sums[k][i];
            if (i < WIDE && first + i < cols)
                lp_store(&to.out[(size_t)id * to.stride + first + i], sum, to.accumulate);
            else if (i == WIDE && first == 0 && to.weights)
                lp_store(&to.weights[id], sum, to.weights_accumulate);
        }
        __syncthreads();
    }
}

/* A launch over all ids. Block b has the ids b, b + blocks, ...: neighbours are often frequent together, and a block that had several
 * frequent ids would be late. */
typedef struct lp_by_id_shape {
    int each, blocks, threads; /* each: ids of a block */
    int lanes;                 /* of an id: 32, or LP_BY_ID_FEW_LANES */
} lp_by_id_shape;

/* The warps of a block reduce the ids of `all`, of which it has `each` (at most LP_BY_ID_MAX_WARPS), in pieces. */
template <int n, typename lists_type>
__device__ static inline void lp_sum_pieces(const lists_type &lists, const lp_by_id_shape &shape, int block, int each,
                                            const lp_id_elements *all, const float *source, lp_by_id_output to)
{
    enum { WIDE = 32 * n };
    __shared__ float sums[LP_BY_ID_PIECES][WIDE];
    __shared__ int starts[LP_BY_ID_MAX_WARPS + 1]; /* first pieces of ids */
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;
    if (warp == 0) {
        int count = lane < each ? all[lane].count[0] : 0, end;
        int pieces = end = lane < each ? max((count + LP_BY_ID_PIECE - 1) / LP_BY_ID_PIECE, 1) : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int before = __shfl_up_sync(0xFFFFFFFFu, end, step);
            end += lane >= step ? before : 0;
        }
        if (lane <= each)
            starts[lane] = end - pieces;
    }
    __syncthreads();
    for (int first = 0; first < to.cols; first += WIDE)
        for (int window = 0; window < starts[each]; window += LP_BY_ID_PIECES) {
            int pieces = min(starts[each] - window, (int)LP_BY_ID_PIECES);
            for (int p = warp; p < pieces; p += warps) {
                int i = __popc(__ballot_sync(0xFFFFFFFFu, lane < each && starts[lane + 1] <= window + p));
                lp_id_terms<lists_type> terms = {lists, all[i]};
                int begin = (window + p - starts[i]) * LP_BY_ID_PIECE;
                int end = min(begin + LP_BY_ID_PIECE, all[i].count[0]);
                float weights;
                lp_row_vectors<n, 32> mine = lp_weighted_rows<n, 32>(terms, begin, end, end - begin, source, to.cols,
                                                                     to.stride, first + n * lane, &weights);
#pragma unroll
                for (int j = 0; j < n; j++)
                    sums[p][n * lane + j] = mine.vector[0].at[j];
            }
            __syncthreads();
            for (int k = (int)threadIdx.x; k < each * WIDE; k += (int)blockDim.x) {
                int i = k / WIDE, c = k % WIDE, begin = max(starts[i], window),
                    end = min(starts[i + 1], window + pieces);
                float sum = 0;
                for (int p = begin; p < end; p++)
                    sum += sums[p - window][c];
                if (begin < end && first + c < to.cols)
                    lp_store(&to.out[(size_t)(block + i * shape.blocks) * to.stride + first + c], sum,
                             to.accumulate || begin > starts[i]);
            }
            __syncthreads();
        }
}

/* A block reduces its ids, of `count` in all; shape.each is at most threads / lanes. Every thread must call it. */
template <int n, int lanes, typename lists_type>
__device__ static inline void lp_sum_ids(const lists_type &lists, const lp_by_id_shape &shape, int block, int count,
                                         const float *source, lp_by_id_output to)
{
    __shared__ lp_id_elements all[LP_BY_ID_MAX_WARPS * (32 / lanes)];
    int slot = (int)threadIdx.x / lanes, id = block + slot * shape.blocks;
    lp_id_elements mine = {{0, 0}, {0, 0}};
    if (block >= count)
        return;
    if (lists_type::in_pieces && lanes == 32 && shape.each > 1) {
        int each = min(shape.each, (count - block + shape.blocks - 1) / shape.blocks), i = (int)threadIdx.x;
        if (i < each)
            all[i] = lists.elements(block + i * shape.blocks);
        __syncthreads();
        lp_sum_pieces<n>(lists, shape, block, each, all, source, to);
        return;
    }
    if (slot < shape.each)
        mine = lists.elements(id);
    bool have = slot < shape.each && id < count;
    int elements = have ? mine.count[0] + mine.count[1] : 0;
    bool by_block = elements > LP_BY_ID_BLOCK_THRESHOLD;
    if (((int)threadIdx.x & (lanes - 1)) == 0)
        all[slot] = mine;
    if (!have || by_block)
        mine = {{0, 0}, {0, 0}};
    int max_terms = by_block ? 0 : elements;
#pragma unroll
    for (int mask = lanes; mask < 32; mask *= 2)
        max_terms = max(max_terms, __shfl_xor_sync(0xFFFFFFFFu, max_terms, mask));
    lp_sum_id<n, lanes>(lists, id, have && !by_block, mine, max_terms, source, to);
    if (!__syncthreads_or(by_block))
        return;
#pragma unroll 1
    for (int i = 0; i < shape.each && block + i * shape.blocks < count; i++)
        if (all[i].count[0] + all[i].count[1] > LP_BY_ID_BLOCK_THRESHOLD)
            lp_sum_id_by_block<n>(lists, block + i * shape.blocks, all[i], source, to);
}

/* For this many ids and elements. With few ids and many elements, an id has a block of its own. */
static inline lp_by_id_shape lp_by_id_shape_of(int64_t ids, int64_t elements)
{
    bool crowded = elements > ids * LP_BY_ID_BLOCK_THRESHOLD, few = elements <= ids;
    int lanes = few ? LP_BY_ID_FEW_LANES : 32, warps = crowded ? LP_BY_ID_MAX_WARPS : LP_BY_ID_WARPS;
    int each = crowded ? 1 : warps * (32 / lanes);
    lp_by_id_shape shape = {each, (int)lp_blocks(ids, each), 32 * warps, lanes};
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
