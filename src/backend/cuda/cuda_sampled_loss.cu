/* cuda_sampled_loss.cu: losses of a target and its negative samples.
 *
 *     s(t, c) = z_t . item_c + bias_c, or by a distance (score.h)
 *     loss: op.h        dscore: its gradient by score
 *     dz_t = dloss sum_c dscore item_c     ditem_c = dloss sum_t dscore z_t, or the slopes of the distance
 *
 * 8 lanes own a row of z; 512 threads a block. A launch stores the scores of a row in the place of the dscores, replaces them by those
 * (sampled.h), and computes dz if it is needed. Gradients of items and bias are reductions by id (cuda_by_id.h).
 */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

enum { WARPS = 16, LANES = 8 }; /* of a block; of a row */

typedef float real;
#define LP_ROW_LANES LANES
#include "formula/sampled.h"
#include "formula/score.h"

typedef struct loss_task {
    const float *z, *items, *bias; /* bias: NULL: dscores are there, and only dz is computed */
    const int32_t *target, *negative;
    int cols, count; /* scores of a row: 1 + negatives */
    lp_loss type;
    lp_score_rule score;
    float regularization;
    float *dscores;
    /* dz = dloss * sum of dscore * item; NULL: not computed */
    float *dz;
    const float *dloss;
    int accumulate;
} loss_task;

__device__ static inline int item_of(const loss_task &task, int row, int i)
{
    return i ? task.negative[(size_t)row * (task.count - 1) + i - 1] : task.target[row];
}

/* Vectors of n columns that a lane loads of a row, one in every LANES * n columns. Loops over columns and items are
 * not unrolled: all rows run at once, and each instruction is fetched for the first time. */
enum { VECTORS = 4, ITEMS_AHEAD = 2 };

template <int n>
__device__ static inline void load_vectors(lp_vector<n> (&x)[VECTORS], const float *row, int first, int cols)
{
#pragma unroll
    for (int m = 0; m < VECTORS; m++) {
        int col = first + m * LANES * n;
        x[m] = {};
        if (col < cols)
            x[m] = lp_vector_load<n>(row + col);
    }
}

/* Scores of a row of z with `count` items, one item ID a lane: lane k receives the score of item k. */
template <int n> __device__ static inline float score_items(const loss_task &task, const float *z, int item, int count)
{
    int lane = (int)(threadIdx.x % LANES);
    float score = 0;
#pragma unroll 1
    for (int k = 0; k < count; k += ITEMS_AHEAD) {
        float sum[ITEMS_AHEAD] = {};
#pragma unroll 1
        for (int first = n * lane; first < n * lane + task.cols; first += VECTORS * LANES * n) {
            lp_vector<n> mine[VECTORS], other[ITEMS_AHEAD][VECTORS];
            load_vectors<n>(mine, z, first, task.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
                load_vectors<n>(other[i],
                                task.items +
                                    (size_t)__shfl_sync(0xFFFFFFFFu, item, min(k + i, count - 1), LANES) * task.cols,
                                first, task.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
#pragma unroll
                for (int m = 0; m < VECTORS; m++)
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum[i] += lp_score_term(task.score, mine[m].at[j], other[i][m].at[j]);
        }
#pragma unroll
        for (int i = 0; i < ITEMS_AHEAD; i++) {
            sum[i] = lp_row_sum(sum[i]);
            score = lane == k + i ? sum[i] : score;
        }
    }
    return score;
}

/* dz = (accumulate: dz +) the weighted sum of `count` items, or of slopes at the row z, one item ID and weight a lane. dz is NULL for a row that
 * does not exist. */
template <int n>
__device__ static inline void add_items(const loss_task &task, const float *z, int item, float weight, int count,
                                        float *dz, int accumulate)
{
    int begin = n * (int)(threadIdx.x % LANES);
#pragma unroll 1
    for (int first = begin; first < begin + task.cols; first += VECTORS * LANES * n) {
        lp_vector<n> sum[VECTORS] = {}, mine[VECTORS] = {};
        if (task.score)
            load_vectors<n>(mine, z, first, task.cols);
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            lp_vector<n> other[VECTORS];
            float factor = __shfl_sync(0xFFFFFFFFu, weight, k, LANES);
            load_vectors<n>(other, task.items + (size_t)__shfl_sync(0xFFFFFFFFu, item, k, LANES) * task.cols, first,
                            task.cols);
#pragma unroll
            for (int m = 0; m < VECTORS; m++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[m].at[j] += factor * lp_score_by_state(task.score, mine[m].at[j], other[m].at[j]);
        }
#pragma unroll
        for (int m = 0; m < VECTORS; m++)
            if (dz && first + m * LANES * n < task.cols)
                lp_vector_store<n>(dz + first + m * LANES * n, sum[m], accumulate);
    }
}

/* Replaces the scores of a row by the dscores, and returns the lane's part of its loss. */
__device__ static inline float row_loss(const loss_task &task, float *row, int lane)
{
#define ROW_LOSS(id, kernel, ...)  \
    if (task.type == LP_LOSS_##id) \
        return lp_##kernel##_row(row, task.count, task.regularization, lane);
    LP_SAMPLED_LOSSES(ROW_LOSS)
    return 0;
}

/* partial: sum of the losses of each block. */
template <int n>
__global__ void __launch_bounds__(WARPS * 32, 2)
    loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, loss_task task, double *partial)
{
    int count = lp_rows_now(rows, shard), row = (int)(blockIdx.x * (WARPS * 32 / LANES) + threadIdx.x / LANES);
    float loss = 0;
    if (row - (int)(threadIdx.x % 32) / LANES < count) {
        /* Lanes without a row of their own repeat another and store nothing. */
        int lane = row < count ? (int)threadIdx.x % LANES : task.count;
        float *dz = task.dz && row < count ? task.dz + (size_t)row * task.cols : NULL;
        row = min(row, count - 1);
        float *mine = task.dscores + (size_t)row * task.count;
#pragma unroll 1
        for (int first = 0; task.bias && first < task.count; first += LANES) {
            int i = first + lane, item = i < task.count ? item_of(task, row, i) : 0;
            float bias = task.bias[item];
            float score =
                score_items<n>(task, task.z + (size_t)row * task.cols, item, min(task.count - first, (int)LANES));
            if (i < task.count)
                mine[i] = score + bias;
        }
        __syncwarp();
        if (task.bias)
            loss = row_loss(task, mine, lane);
        __syncwarp();
#pragma unroll 1
        for (int first = 0; task.dz && first < task.count; first += LANES) {
            int i = first + lane, item = i < task.count ? item_of(task, row, i) : 0;
            float weight = i < task.count ? *task.dloss * mine[i] : 0;
            add_items<n>(task, task.z + (size_t)row * task.cols, item, weight, min(task.count - first, (int)LANES), dz, task.accumulate || first);
        }
    }
    double sum = lp_block_sum<WARPS>((double)loss);
    if (threadIdx.x == 0 && task.bias)
        partial[blockIdx.x] = sum;
}

/* At least one block: the loss of an empty shard is 0. */
static unsigned loss_blocks(const lp_value *z, const lp_cuda_run *run)
{
    return lp_blocks(lp_cuda_largest(run, z) + 1, WARPS * 32 / LANES);
}

static void launch_rows(const lp_value *z, const lp_cuda_run *run, const loss_task &task, double *partial)
{
    uintptr_t all = (uintptr_t)task.z | (uintptr_t)task.items | (uintptr_t)task.dz;
    lp_with_vector_width(lp_vector_width(all, task.cols), [&](auto by) {
        LP_LAUNCH(run, loss_kernel<decltype(by)::value>, loss_blocks(z, run), WARPS * 32, 0, run->shard,
                  lp_cuda_rows_of(z), task, partial);
    });
}

/* node: the loss (target: input 4), or the gradient (2). gradient: that has the dz to be computed; NULL: none. */
static loss_task task_of(const lp_node *node, const lp_cuda_run *run, int target, const lp_node *gradient)
{
    loss_task task = {};
    task.z = LP_INPUT(0);
    task.items = LP_INPUT(1);
    task.target = LP_INPUT_AS(int32_t, target);
    task.negative = LP_INPUT_AS(int32_t, target + 1);
    task.cols = node->inputs[0]->cols;
    task.count = 1 + node->inputs[target + 1]->cols;
    task.score = node->attributes.score;
    node = gradient;
    task.dloss = node ? LP_INPUT(5) : NULL;
    task.dz = node ? LP_OUTPUT(0) : NULL;
    task.accumulate = node ? LP_ADDS(0) : 0;
    return task;
}

/* The loss and the dscores may be computed by two pieces of the node, the dscores first: losses belong to the node. */
void lp_cuda_sampled_loss_fused(const lp_node *node, const lp_node *gradient, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0];
    lp_cuda_rows blocks = {LP_ROWS_FIXED, (int)loss_blocks(z, run)};
    /* Each piece lacks the other's output; the producer has both. */
    const lp_value *owner = (node->outputs[0] ? node->outputs[0] : node->outputs[1])->producer->outputs[0];
    double *losses = (double *)lp_cuda_side_buffer(run, owner, (size_t)blocks.fixed * sizeof *losses);
    if (!losses)
        return;
    loss_task task = task_of(node, run, 4, gradient);
    task.bias = LP_INPUT(2);
    task.type = node->attributes.loss;
    task.regularization = (float)node->attributes.regularization;
    task.dscores = LP_OUTPUT(1);
    if (task.dscores)
        launch_rows(z, run, task, losses);
    if (node->outputs[0])
        lp_cuda_loss_sum(run, blocks, losses, LP_OUTPUT(0));
}

void lp_cuda_sampled_loss(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_sampled_loss_fused(node, NULL, run);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

void lp_cuda_sampled_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = task_of(node, run, 2, node);
    task.dscores = (float *)LP_INPUT(4);
    if (task.dz)
        launch_rows(node->inputs[0], run, task, NULL);
    lp_by_id items = {{lp_cuda_lists_of(run, node->inputs[2]), lp_cuda_lists_of(run, node->inputs[3])},
                      task.dscores,
                      task.dloss,
                      task.count,
                      task.z,
                      task.score ? task.items : NULL,
                      task.score,
                      LP_OUTPUT(1),
                      LP_OUTPUT(2),
                      task.cols,
                      LP_ADDS(1),
                      LP_ADDS(2)};
    if (items.out || items.weights)
        lp_cuda_by_id(run, node->inputs[1], items);
}
