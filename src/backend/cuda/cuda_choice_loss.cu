/* cuda_choice_loss.cu: the choice between a target and its negatives. A warp takes a row. */
#include "backend/cuda/cuda_by_id.h"

enum { WARPS = 8 };

/* What the scores are made of. */
typedef struct choice {
    const float *z, *items, *bias;
    const int32_t *target, *negative;
    int cols, count; /* of scores: 1 + negatives */
} choice;

__device__ static inline int item_of(const choice &c, int row, int i)
{
    return i ? c.negative[(size_t)row * (c.count - 1) + i - 1] : c.target[row];
}

/* log(1 + exp(x)) without overflow */
__device__ static inline float softplus(float x)
{
    return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

/* Scores to slopes, in place; every lane has the row's loss. */
__device__ static float choose(const choice &c, float *slope, int lane)
{
    float loss = 0;
    for (int i = lane; i < c.count; i += 32) {
        float s = slope[i];
        loss += softplus(i ? s : -s);
        slope[i] = 1 / (1 + expf(-s)) - (i ? 0 : 1);
    }
    return lp_warp_sum(loss);
}

__global__ void choice_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, choice c, float *slopes,
                                   float *losses)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    float *slope = slopes + (size_t)row * c.count;
    const float *z = c.z + (size_t)row * c.cols;
    for (int i = 0; i < c.count; i++) {
        int item = item_of(c, row, i);
        const float *vector = c.items + (size_t)item * c.cols;
        float sum = 0;
        for (int k = lane; k < c.cols; k += 32)
            sum += z[k] * vector[k];
        sum = lp_warp_sum(sum);
        if (lane == 0)
            slope[i] = sum + c.bias[item];
    }
    __syncwarp();
    float loss = choose(c, slope, lane);
    if (lane == 0)
        losses[row] = loss;
}

void lp_cuda_choice_loss(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0];
    int largest = lp_cuda_largest(run, z);
    float *losses = (float *)lp_cuda_scratch(run, (size_t)largest * sizeof *losses);
    if (!losses)
        return;
    choice c = {LP_INPUT(0), LP_INPUT(1),           LP_INPUT(2), LP_INPUT_AS(int32_t, 4), LP_INPUT_AS(int32_t, 5),
                z->cols,     node->outputs[1]->cols};
    LP_LAUNCH(run, choice_loss_kernel, lp_blocks(largest, WARPS), WARPS * 32, 0, run->shard, lp_cuda_rows_of(z), c,
              LP_OUTPUT(1), losses);
    lp_cuda_loss_sum(run, z, losses, LP_OUTPUT(0));
}

/* dz = dloss * sum of slope * item */
__global__ void choice_state_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, choice c, const float *slopes,
                                    const float *dloss, float *dz, int adds)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *slope = slopes + (size_t)row * c.count;
    for (int k = lane; k < c.cols; k += 32) {
        float sum = 0;
        for (int i = 0; i < c.count; i++)
            sum += slope[i] * c.items[(size_t)item_of(c, row, i) * c.cols + k];
        lp_store(&dz[(size_t)row * c.cols + k], *dloss * sum, adds);
    }
}

/* Element e of the targets (`count` 1, `from` 0) or of the negatives: its row, and its slope. */
struct choice_term {
    const float *source, *slopes, *dloss;
    int count, from, stride; /* ids a row; place of the first among the slopes of a row; slopes of a row */
    __device__ int row(int e) const
    {
        return e / count;
    }
    __device__ float weight(int e) const
    {
        return *dloss * slopes[(size_t)(e / count) * stride + from + e % count];
    }
};

/* Adds what the slopes of the targets, then of the negatives, give to items and biases. */
static void spread_to_items(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *items = node->inputs[1];
    int count = node->inputs[4]->cols;
    lp_cuda_lists lists[] = {lp_cuda_lists_of(run, node->inputs[2]), lp_cuda_lists_of(run, node->inputs[3])};
    size_t first = lp_by_id_scratch(&lists[0], items->cols), second = lp_by_id_scratch(&lists[1], items->cols);
    float *scratch = (float *)lp_cuda_scratch(run, first > second ? first : second);
    if (!scratch)
        return;
    for (int i = 1; i < 3; i++)
        if (node->outputs[i] && !LP_ADDS(i))
            lp_cuda_clear(run, LP_OUTPUT(i),
                          (size_t)lp_cuda_largest(run, node->outputs[i]) * (size_t)node->outputs[i]->cols *
                              sizeof(float));
    lp_by_id_place to = {LP_OUTPUT(1), LP_OUTPUT(2), items->cols};
    choice_term targets = {LP_INPUT(0), LP_INPUT(4), LP_INPUT(5), 1, 0, count};
    choice_term negatives = {LP_INPUT(0), LP_INPUT(4), LP_INPUT(5), count - 1, 1, count};
    lp_cuda_sum_by_id(run, lists[0], targets, to, scratch);
    lp_cuda_sum_by_id(run, lists[1], negatives, to, scratch);
}

void lp_cuda_choice_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0];
    if (node->outputs[0]) {
        choice c = {LP_INPUT(0), LP_INPUT(1),          NULL, LP_INPUT_AS(int32_t, 2), LP_INPUT_AS(int32_t, 3),
                    z->cols,     node->inputs[4]->cols};
        LP_LAUNCH(run, choice_state_kernel, lp_blocks(lp_cuda_largest(run, z), WARPS), WARPS * 32, 0, run->shard,
                  lp_cuda_rows_of(z), c, LP_INPUT(4), LP_INPUT(5), LP_OUTPUT(0), LP_ADDS(0));
    }
    if (node->outputs[1] || node->outputs[2])
        spread_to_items(node, run);
}
