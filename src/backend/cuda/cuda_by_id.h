/* cuda_by_id.h: sums of rows that share an id, without atomics and always in one order, in one launch.
 *
 * The host has sorted the ids of the shard (cuda_lists.h). A warp sums the elements of one id, and writes zeros for an id without
 * any, so that nothing has to be cleared before. An id with many elements would keep its warp busy long after all others are done: the
 * warps of its block share it, and their sums are added in the order of the warps.
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_lists.h"
#include "backend/cuda/cuda_rows.h"

enum { LP_BY_ID_WARPS = 8, LP_BY_ID_MOST_WARPS = 16, LP_BY_ID_MANY = 64 };

/* Where the sums go: out [ids x cols] or NULL, weights [ids] or NULL. */
typedef struct lp_by_id_place {
    float *out, *weights;
    int cols, adds, weights_add;
} lp_by_id_place;

/* The elements of an id in up to two lists, one after the other: where they begin in each, and how many they are. */
typedef struct lp_id_elements {
    int begin[2], count[2];
} lp_id_elements;

__device__ static inline int lp_elements_of(const lp_cuda_lists &lists, int id, int *begin)
{
    if (id >= *lists.ids)
        return 0;
    *begin = lists.starts[id];
    return lists.starts[id + 1] - *begin;
}

/* A warp: columns c .. c + n - 1 of the sum over terms number begin .. end - 1 of term.weight(i) * row term.row(i) of source; *weights
 * gets the lane's share of the sum of weights. Lanes find rows and weights each for its own term, and hand them round. */
template <int n, typename term_type>
__device__ static inline lp_floats<n> lp_weighted_rows(const term_type &term, int begin, int end, const float *source,
                                                       int cols, int c, float *weights)
{
    enum { AHEAD = 4 }; /* rows under way at once */
    int lane = (int)(threadIdx.x % 32);
    lp_floats<n> sum = {};
    *weights = 0;
#pragma unroll 1
    for (int first = begin; first < end; first += 32) {
        int count = min(end - first, 32), row = 0;
        float weight = 0;
        if (lane < count)
            term.find(first + lane, &row, &weight);
        *weights += weight;
#pragma unroll 1
        for (int k = 0; k < count; k += AHEAD) {
            lp_floats<n> x[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                int there = __shfl_sync(0xFFFFFFFFu, row, k + i);
                x[i] = {};
                if (k + i < count && c < cols)
                    x[i] = lp_read<n>(source + (size_t)there * cols + c);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                float factor = __shfl_sync(0xFFFFFFFFu, weight, k + i);
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum.at[j] += factor * x[i].at[j];
            }
        }
    }
    return sum;
}

/* The terms of an id, as a type of lists numbers them: lists.find(elements, i, &row, &weight). */
template <typename lists_type> struct lp_id_terms {
    const lists_type &lists;
    lp_id_elements elements;
    __device__ void find(int i, int *row, float *weight) const
    {
        lists.find(elements, i, row, weight);
    }
};

/* A warp takes an id. */
template <int n, typename lists_type>
__device__ static inline void lp_sum_id(const lists_type &lists, int id, lp_id_elements elements, const float *source,
                                        lp_by_id_place to)
{
    int lane = (int)(threadIdx.x % 32), cols = to.out ? to.cols : 0;
    lp_id_terms<lists_type> terms = {lists, elements};
    for (int first = 0; first == 0 || first < cols; first += 32 * n) {
        int c = first + n * lane;
        float weights;
        lp_floats<n> sum =
            lp_weighted_rows<n>(terms, 0, elements.count[0] + elements.count[1], source, cols, c, &weights);
        if (c < cols)
            lp_write<n>(to.out + (size_t)id * to.cols + c, sum, to.adds);
        if (first == 0 && to.weights) {
            weights = lp_warp_sum(weights);
            if (lane == 0)
                lp_store(&to.weights[id], weights, to.weights_add);
        }
    }
}

/* All warps of a block take an id. */
template <int n, typename lists_type>
__device__ static inline void lp_share_id(const lists_type &lists, int id, lp_id_elements elements, const float *source,
                                          lp_by_id_place to)
{
    enum { WIDE = 32 * n };
    __shared__ float sums[LP_BY_ID_MOST_WARPS][WIDE + 1];
    int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32), warps = (int)(blockDim.x / 32);
    int count = elements.count[0] + elements.count[1], each = (count + warps - 1) / warps;
    int begin = min(warp * each, count), end = min(begin + each, count), cols = to.out ? to.cols : 0;
    lp_id_terms<lists_type> terms = {lists, elements};
    for (int first = 0; first == 0 || first < cols; first += WIDE) {
        float weights;
        lp_floats<n> mine = lp_weighted_rows<n>(terms, begin, end, source, cols, first + n * lane, &weights);
        for (int j = 0; j < n; j++)
            sums[warp][n * lane + j] = mine.at[j];
        weights = lp_warp_sum(weights);
        if (lane == 0)
            sums[warp][WIDE] = weights;
        __syncthreads();
        for (int i = (int)threadIdx.x; i <= WIDE; i += (int)blockDim.x) {
            float sum = 0;
            for (int k = 0; k < warps; k++)
                sum += sums[k][i];
            if (i < WIDE && first + i < cols)
                lp_store(&to.out[(size_t)id * to.cols + first + i], sum, to.adds);
            else if (i == WIDE && first == 0 && to.weights)
                lp_store(&to.weights[id], sum, to.weights_add);
        }
        __syncthreads();
    }
}

/* A block takes `each` ids (at most as many as it has warps) from `first` on, of `count` there are. Every thread must come. */
template <int n, typename lists_type>
__device__ static inline void lp_sum_ids(const lists_type &lists, int first, int each, int count, const float *source,
                                         lp_by_id_place to)
{
    __shared__ lp_id_elements all[LP_BY_ID_MOST_WARPS];
    int warp = (int)(threadIdx.x / 32), id = first + warp;
    lp_id_elements mine = {{0, 0}, {0, 0}};
    bool have = warp < each && id < count, many = false;
    if (have) {
        mine = lists.elements(id);
        many = mine.count[0] + mine.count[1] > LP_BY_ID_MANY;
    }
    if (threadIdx.x % 32 == 0)
        all[warp] = mine;
    if (have && !many)
        lp_sum_id<n>(lists, id, mine, source, to);
    if (!__syncthreads_or(many))
        return;
#pragma unroll 1
    for (int i = 0; i < each; i++)
        if (all[i].count[0] + all[i].count[1] > LP_BY_ID_MANY)
            lp_share_id<n>(lists, first + i, all[i], source, to);
}

/* How a launch for so many ids and elements is cut into blocks. Where ids are few and elements many, an id has a block to itself. */
typedef struct lp_by_id_shape {
    int each, blocks, threads; /* ids of a block */
} lp_by_id_shape;

static inline lp_by_id_shape lp_by_id_shape_of(int64_t ids, int64_t elements)
{
    bool crowded = elements > ids * LP_BY_ID_MANY;
    int each = crowded ? 1 : LP_BY_ID_WARPS, warps = crowded ? LP_BY_ID_MOST_WARPS : LP_BY_ID_WARPS;
    lp_by_id_shape shape = {each, (int)lp_blocks(ids, each), 32 * warps};
    return shape;
}

#endif
