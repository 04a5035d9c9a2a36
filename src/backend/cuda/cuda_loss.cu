/* cuda_loss.cu: cross-entropy over stored logits, loss = lse - logit[target], and its gradient dlogit = dloss (softmax
 * - [target]). One warp for each row. */
#include "backend/cuda/cuda_reduce.h"

enum { WARPS = 8, SUM_WARPS = 32 }; /* rows of a block; warps of a sum */

__global__ void cross_entropy_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *logits,
                                     const int32_t *target, float *losses)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    float lse = lp_row_lse(logits + (size_t)row * cols, cols, lane);
    if (lane == 0)
        losses[row] = lse - logits[(size_t)row * cols + target[row]];
}

/* Sum of the losses of all rows, by one block in a fixed order and in double. */
__global__ void loss_sum_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, const float *losses, float *loss)
{
    double sum = 0;
    for (int row = (int)threadIdx.x; row < lp_rows_now(rows, shard); row += 32 * SUM_WARPS)
        sum += (double)losses[row];
    sum = lp_block_sum<SUM_WARPS>(sum);
    if (threadIdx.x == 0)
        *loss = (float)sum;
}

void lp_cuda_loss_sum(const lp_cuda_run *run, const lp_value *like, const float *losses, float *loss)
{
    LP_LAUNCH(run, loss_sum_kernel, 1, 32 * SUM_WARPS, 0, run->shard, lp_cuda_rows_of(like), losses, loss);
}

void lp_cuda_cross_entropy(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *logits = node->inputs[0];
    int largest = lp_cuda_largest(run, logits);
    float *losses = (float *)lp_cuda_scratch(run, (size_t)largest * sizeof *losses);
    if (!losses)
        return;
    lp_cuda_rows rows = lp_cuda_rows_of(logits);
    LP_LAUNCH(run, cross_entropy_kernel, lp_blocks(largest, WARPS), WARPS * 32, 0, run->shard, rows, logits->cols,
              LP_INPUT(0), LP_INPUT_AS(int32_t, 1), losses);
    lp_cuda_loss_sum(run, logits, losses, LP_OUTPUT(0));
}

__global__ void cross_entropy_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols,
                                              const float *logits, const int32_t *target, const float *dloss,
                                              float *dlogits, int accumulate)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *mine = logits + (size_t)row * cols;
    float scale = *dloss, lse = lp_row_lse(mine, cols, lane);
    for (int c = lane; c < cols; c += 32) {
        float probability = expf(mine[c] - lse);
        lp_store(&dlogits[(size_t)row * cols + c], scale * (probability - (c == target[row] ? 1 : 0)), accumulate);
    }
}

void lp_cuda_cross_entropy_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *logits = node->inputs[0];
    LP_LAUNCH(run, cross_entropy_gradient_kernel, lp_blocks(lp_cuda_largest(run, logits), WARPS), WARPS * 32, 0,
              run->shard, lp_cuda_rows_of(logits), logits->cols, LP_INPUT(0), LP_INPUT_AS(int32_t, 1), LP_INPUT(2),
              LP_OUTPUT(0), LP_ADDS(0));
}
