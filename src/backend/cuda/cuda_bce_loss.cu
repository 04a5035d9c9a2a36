/* cuda_bce_loss.cu: binary cross-entropy of a target and its negative samples.
 *
 *     s(t, c) = z_t . item_c + bias_c
 *     loss = -sum over targets log sigmoid(s) - sum over negatives log sigmoid(-s)
 *     dscore = sigmoid(s) - [c = target_t]   dz_t = dloss sum_c dscore item_c     ditem_c = dloss sum_t dscore z_t
 *
 * Forward: 8 lanes (a warp, if rows are wide) own a row of z; 512 threads a block. If dz is needed too, the same
 * launch computes it (lp_cuda_bce_loss_fused). Gradients of items and bias are reductions by id (cuda_by_id.h).
 */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_bce_loss.h"
#include "backend/cuda/cuda_reduce.h"

enum { WARPS = 16 };                         /* of a forward block */
enum { NARROW_LANES = 8, NARROW_COLS = 64 }; /* lanes of a row of up to NARROW_COLS columns; otherwise a warp */

/* Inputs of the scores. */
typedef struct bce_inputs {
    const float *z, *items, *bias;
    const int32_t *target, *negative;
    int cols, count; /* scores of a row: 1 + negatives */
} bce_inputs;

__device__ static inline int item_of(const bce_inputs &in, int row, int i)
{
    return i ? in.negative[(size_t)row * (in.count - 1) + i - 1] : in.target[row];
}

/* dscores, and dz = dloss * sum of dscore * item if it is not NULL. */
typedef struct bce_outputs {
    float *dscores, *dz;
    const float *dloss;
    int accumulate;
} bce_outputs;

/* Index of a lane among the lanes of its row. */
template <int lanes> __device__ static inline int lane_index(void)
{
    return (int)threadIdx.x & (lanes - 1);
}

/* The value of lane k of the row's lanes. */
template <int lanes, typename type> __device__ static inline type lane_value(type value, int k)
{
    return __shfl_sync(0xFFFFFFFFu, value, k, lanes);
}

/* Vectors of n columns that a lane loads of a row, one in every lanes * n columns. Loops over columns and items are
 * not unrolled: all rows run at once, and each instruction is fetched for the first time. */
enum { VECTORS = 4, ITEMS_AHEAD = 2 };

template <int n, int lanes>
__device__ static inline void load_vectors(lp_vector<n> (&x)[VECTORS], const float *row, int first, int cols)
{
#pragma unroll
    for (int m = 0; m < VECTORS; m++) {
        int col = first + m * lanes * n;
        x[m] = {};
        if (col < cols)
            x[m] = lp_vector_load<n>(row + col);
    }
}

/* Scores of a row of z with `count` items, one item ID a lane: lane k receives the score of item k. */
template <int n, int lanes>
__device__ static inline float score_items(const bce_inputs &in, const float *z, int item, int count)
{
    int lane = lane_index<lanes>();
    float score = 0;
#pragma unroll 1
    for (int k = 0; k < count; k += ITEMS_AHEAD) {
        float sum[ITEMS_AHEAD] = {};
#pragma unroll 1
        for (int first = n * lane; first < n * lane + in.cols; first += VECTORS * lanes * n) {
            lp_vector<n> mine[VECTORS], other[ITEMS_AHEAD][VECTORS];
            load_vectors<n, lanes>(mine, z, first, in.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
                load_vectors<n, lanes>(other[i],
                                       in.items + (size_t)lane_value<lanes>(item, min(k + i, count - 1)) * in.cols,
                                       first, in.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
#pragma unroll
                for (int m = 0; m < VECTORS; m++)
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum[i] += mine[m].at[j] * other[i][m].at[j];
        }
#pragma unroll
        for (int i = 0; i < ITEMS_AHEAD; i++) {
#pragma unroll
            for (int mask = lanes / 2; mask > 0; mask >>= 1)
                sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], mask);
            score = lane == k + i ? sum[i] : score;
        }
    }
    return score;
}

/* dz = (accumulate: dz +) the weighted sum of `count` items, one item ID and weight a lane. dz is NULL for a row that
 * does not exist. */
template <int n, int lanes>
__device__ static inline void add_items(const bce_inputs &in, int item, float weight, int count, float *dz,
                                        int accumulate)
{
    int begin = n * lane_index<lanes>();
#pragma unroll 1
    for (int first = begin; first < begin + in.cols; first += VECTORS * lanes * n) {
        lp_vector<n> sum[VECTORS] = {};
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            lp_vector<n> other[VECTORS];
            float factor = lane_value<lanes>(weight, k);
            load_vectors<n, lanes>(other, in.items + (size_t)lane_value<lanes>(item, k) * in.cols, first, in.cols);
#pragma unroll
            for (int m = 0; m < VECTORS; m++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[m].at[j] += factor * other[m].at[j];
        }
#pragma unroll
        for (int m = 0; m < VECTORS; m++)
            if (dz && first + m * lanes * n < in.cols)
                lp_vector_store<n>(dz + first + m * lanes * n, sum[m], accumulate);
    }
}

/* dscore and loss: -log sigmoid(score) for a target, -log sigmoid(-score) for a negative. */
__device__ static inline float dscore_of(float score, bool target, float *loss)
{
    float x = target ? -score : score, small = __expf(-fabsf(x));
    *loss = fmaxf(x, 0) + log1pf(small);
    float dscore = __fdividef(x > 0 ? 1 : small, 1 + small);
    return target ? -dscore : dscore;
}

/* Processes a row; returns the lane's part of its loss. Lanes without a row of their own repeat another and store
 * nothing. */
template <int n, int lanes>
__device__ static inline float bce_row(const bce_inputs &in, const bce_outputs &out, int row, bool valid, float dloss)
{
    float loss = 0;
#pragma unroll 1
    for (int first = 0; first < in.count; first += lanes) {
        int i = first + lane_index<lanes>(), count = min(in.count - first, lanes);
        int item = i < in.count ? item_of(in, row, i) : 0;
        float bias = i < in.count ? in.bias[item] : 0, dscore = 0;
        float score = score_items<n, lanes>(in, in.z + (size_t)row * in.cols, item, count) + bias;
        if (i < in.count && valid) {
            float mine;
            dscore = dscore_of(score, i == 0, &mine);
            loss += mine;
            out.dscores[(size_t)row * in.count + i] = dscore;
        }
        if (out.dz)
            add_items<n, lanes>(in, item, dloss * dscore, count, valid ? out.dz + (size_t)row * in.cols : NULL,
                                out.accumulate || first);
    }
    return loss;
}

/* partial: sum of the losses of each block. */
template <int n, int lanes>
__global__ void __launch_bounds__(WARPS * 32, 2)
    bce_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, bce_inputs in, bce_outputs out, double *partial)
{
    int count = lp_rows_now(rows, shard), row = (int)(blockIdx.x * (WARPS * 32 / lanes) + threadIdx.x / lanes);
    float dloss = out.dz ? *out.dloss : 0;
    double mine = 0;
    if (row - (int)(threadIdx.x % 32) / lanes < count)
        mine = (double)bce_row<n, lanes>(in, out, min(row, count - 1), row < count, dloss);
    mine = lp_block_sum<WARPS>(mine);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = mine;
}

__global__ void __launch_bounds__(WARPS * 32) add_losses_kernel(const double *partial, int count, float *loss)
{
    double sum = 0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < count; i += WARPS * 32)
        sum += partial[i];
    sum = lp_block_sum<WARPS>(sum);
    if (threadIdx.x == 0)
        *loss = (float)sum;
}

/* The loss and the dscores may be computed by two pieces of the node, the dscores first: partial losses belong to the
 * node. */
static void launch_bce(const lp_node *node, const lp_cuda_run *run, bce_outputs out)
{
    const lp_value *z = node->inputs[0];
    bool narrow = z->cols <= NARROW_COLS;
    /* At least one block: the loss of an empty shard is 0. */
    unsigned blocks = lp_blocks(lp_cuda_largest(run, z) + 1, WARPS * 32 / (narrow ? NARROW_LANES : 32));
    /* Each piece lacks the other's output; the producer has both. */
    const lp_value *owner = (node->outputs[0] ? node->outputs[0] : node->outputs[1])->producer->outputs[0];
    double *partial = (double *)lp_cuda_side_buffer(run, owner, blocks * sizeof *partial);
    if (!partial)
        return;
    bce_inputs in = {LP_INPUT(0),
                     LP_INPUT(1),
                     LP_INPUT(2),
                     LP_INPUT_AS(int32_t, 4),
                     LP_INPUT_AS(int32_t, 5),
                     z->cols,
                     1 + node->inputs[5]->cols};
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(z);
    float *loss = LP_OUTPUT(0);
    out.dscores = LP_OUTPUT(1);
    if (out.dscores)
        lp_with_vector_width(lp_vector_width((uintptr_t)in.z | (uintptr_t)in.items | (uintptr_t)out.dz, in.cols),
                             [&](auto by) {
                                 if (narrow)
                                     LP_LAUNCH(run, (bce_loss_kernel<decltype(by)::value, NARROW_LANES>), blocks,
                                               WARPS * 32, 0, shard, rows, in, out, partial);
                                 else
                                     LP_LAUNCH(run, (bce_loss_kernel<decltype(by)::value, 32>), blocks, WARPS * 32, 0,
                                               shard, rows, in, out, partial);
                             });
    if (loss)
        LP_LAUNCH(run, add_losses_kernel, 1, WARPS * 32, 0, partial, (int)blocks, loss);
}

void lp_cuda_bce_loss(const lp_node *node, const lp_cuda_run *run)
{
    launch_bce(node, run, bce_outputs());
}

void lp_cuda_bce_loss_fused(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run)
{
    const lp_node *node = gradient;
    bce_outputs out = {NULL, LP_OUTPUT(0), LP_INPUT(5), LP_ADDS(0)};
    launch_bce(loss, run, out);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Elements of an item: the rows that have it as target, then the rows that have it as negative. */
struct bce_lists {
    lp_cuda_lists targets, negatives;
    const float *dscores, *dloss;
    int count; /* dscores of a row */
    __device__ lp_id_elements elements(int id) const
    {
        lp_id_elements all = {{0, 0}, {0, 0}};
        all.count[0] = lp_elements_of(targets, id, &all.begin[0]);
        all.count[1] = lp_elements_of(negatives, id, &all.begin[1]);
        return all;
    }
    __device__ void find(const lp_id_elements &all, int i, int *row, float *weight) const
    {
        int column = 0;
        if (i < all.count[0]) {
            *row = targets.order[all.begin[0] + i];
        } else {
            int e = negatives.order[all.begin[1] + i - all.count[0]];
            *row = e / (count - 1);
            column = 1 + e - *row * (count - 1);
        }
        *weight = *dloss * dscores[(size_t)*row * count + column];
    }
};

/* The items of a row, weighted by their dscores. */
struct row_terms {
    const bce_inputs &in;
    const float *dscore, *dloss;
    int row_index;
    __device__ void find(int i, int *row, float *weight) const
    {
        *row = item_of(in, row_index, i);
        *weight = *dloss * dscore[i];
    }
};

/* One warp: dz of a row. */
template <int n>
__device__ static inline void state_gradient(const bce_inputs &in, const bce_lists &lists, int row, float *dz,
                                             int accumulate)
{
    row_terms terms = {in, lists.dscores + (size_t)row * in.count, lists.dloss, row};
    for (int first = 0; first < in.cols; first += 32 * n) {
        int col = first + n * (int)(threadIdx.x % 32);
        float weights;
        lp_row_vectors<n, 32> sum =
            lp_weighted_rows<n, 32>(terms, 0, in.count, in.count, in.items, in.cols, col, &weights);
        if (col < in.cols)
            lp_vector_store<n>(dz + (size_t)row * in.cols + col, sum.vector[0], accumulate);
    }
}

typedef struct gradient_task {
    bce_inputs in;
    bce_lists lists;
    lp_cuda_rows rows, items;
    lp_by_id_shape shape; /* no blocks: gradients by item are not computed */
    lp_by_id_output to;
    float *dz;
    int accumulate;
} gradient_task;

/* The first blocks own items, the others rows. */
template <int n, int lanes>
__global__ void __launch_bounds__(LP_BY_ID_MAX_WARPS * 32)
    bce_gradient_kernel(const lp_cuda_shard *shard, gradient_task task)
{
    int block = (int)blockIdx.x, by_item = task.shape.blocks;
    if (block < by_item) {
        lp_sum_ids<n, lanes>(task.lists, block * task.shape.each, task.shape.each, lp_rows_now(task.items, shard),
                             task.in.z, task.to);
        return;
    }
    int row = (block - by_item) * (int)(blockDim.x / 32) + (int)(threadIdx.x / 32);
    if (row < lp_rows_now(task.rows, shard))
        state_gradient<n>(task.in, task.lists, row, task.dz, task.accumulate);
}

void lp_cuda_bce_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0], *items = node->inputs[1];
    int count = node->inputs[4]->cols;
    gradient_task task = {};
    task.in = {LP_INPUT(0), LP_INPUT(1), NULL, LP_INPUT_AS(int32_t, 2), LP_INPUT_AS(int32_t, 3), z->cols, count};
    task.lists = {lp_cuda_lists_of(run, node->inputs[2]), lp_cuda_lists_of(run, node->inputs[3]), LP_INPUT(4),
                  LP_INPUT(5), count};
    task.rows = lp_cuda_rows_of(z);
    task.items = lp_cuda_rows_of(items);
    task.shape = lp_by_id_shape_of(lp_cuda_largest(run, items), (int64_t)task.lists.targets.largest_elements +
                                                                    task.lists.negatives.largest_elements);
    task.to = {LP_OUTPUT(1), LP_OUTPUT(2), z->cols, LP_ADDS(1), LP_ADDS(2)};
    if (!task.to.out && !task.to.weights)
        task.shape.blocks = 0;
    task.dz = LP_OUTPUT(0);
    task.accumulate = LP_ADDS(0);
    unsigned rows = task.dz ? lp_blocks(lp_cuda_largest(run, z), task.shape.threads / 32) : 0;
    uintptr_t all = (uintptr_t)task.in.z | (uintptr_t)task.in.items | (uintptr_t)task.to.out | (uintptr_t)task.dz;
    const lp_cuda_shard *shard = run->shard;
    lp_with_vector_width(lp_vector_width(all, z->cols), [&](auto by) {
        lp_with_lanes(task.shape, [&](auto lanes) {
            LP_LAUNCH(run, (bce_gradient_kernel<decltype(by)::value, decltype(lanes)::value>),
                      (unsigned)task.shape.blocks + rows, (unsigned)task.shape.threads, 0, shard, task);
        });
    });
}
