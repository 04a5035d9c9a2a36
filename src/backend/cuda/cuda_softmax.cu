/* cuda_softmax.cu: softmax over the columns of each row, the cross-entropy with soft targets, and their gradients. One warp for
 * each row. */
#include "backend/cuda/cuda.h"

enum { WARPS = 8 }; /* rows of a block */

__global__ void softmax_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *x, float *y)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *mine = x + (size_t)row * cols;
    float lse = lp_row_lse(mine, cols, lane);
    for (int c = lane; c < cols; c += 32)
        y[(size_t)row * cols + c] = expf(mine[c] - lse);
}

void lp_cuda_softmax(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *x = node->inputs[0];
    LP_LAUNCH(run, softmax_kernel, lp_blocks(lp_cuda_largest(run, x), WARPS), WARPS * 32, 0, run->shard,
              lp_cuda_rows_of(x), x->cols, LP_INPUT(0), LP_OUTPUT(0));
}

__global__ void softmax_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *y,
                                        const float *dy, float *dx, int accumulate)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    size_t first = (size_t)row * cols;
    float dot = 0;
    for (int c = lane; c < cols; c += 32)
        dot += y[first + c] * dy[first + c];
    dot = lp_warp_sum(dot);
    for (int c = lane; c < cols; c += 32)
        lp_store(&dx[first + c], y[first + c] * (dy[first + c] - dot), accumulate);
}

void lp_cuda_softmax_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *y = node->inputs[0];
    LP_LAUNCH(run, softmax_gradient_kernel, lp_blocks(lp_cuda_largest(run, y), WARPS), WARPS * 32, 0, run->shard,
              lp_cuda_rows_of(y), y->cols, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void soft_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *logits,
                                 const float *target, float *losses)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    size_t first = (size_t)row * cols;
    float lse = lp_row_lse(logits + first, cols, lane), sum = 0;
    for (int c = lane; c < cols; c += 32)
        sum += target[first + c] * (lse - logits[first + c]);
    sum = lp_warp_sum(sum);
    if (lane == 0)
        losses[row] = sum;
}

void lp_cuda_soft_loss(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *logits = node->inputs[0];
    int largest = lp_cuda_largest(run, logits);
    float *losses = (float *)lp_cuda_scratch(run, (size_t)largest * sizeof *losses);
    if (!losses)
        return;
    LP_LAUNCH(run, soft_loss_kernel, lp_blocks(largest, WARPS), WARPS * 32, 0, run->shard, lp_cuda_rows_of(logits),
              logits->cols, LP_INPUT(0), LP_INPUT(1), losses);
    lp_cuda_loss_sum(run, logits, losses, LP_OUTPUT(0));
}

__global__ void soft_loss_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *logits,
                                          const float *target, const float *dloss, float *dlogits, int accumulate)
{
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (row >= lp_rows_now(rows, shard))
        return;
    size_t first = (size_t)row * cols;
    float scale = *dloss, lse = lp_row_lse(logits + first, cols, lane), mass = 0;
    for (int c = lane; c < cols; c += 32)
        mass += target[first + c];
    mass = lp_warp_sum(mass);
    for (int c = lane; c < cols; c += 32)
        lp_store(&dlogits[first + c], scale * (mass * expf(logits[first + c] - lse) - target[first + c]), accumulate);
}

void lp_cuda_soft_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *logits = node->inputs[0];
    LP_LAUNCH(run, soft_loss_gradient_kernel, lp_blocks(lp_cuda_largest(run, logits), WARPS), WARPS * 32, 0, run->shard,
              lp_cuda_rows_of(logits), logits->cols, LP_INPUT(0), LP_INPUT(1), LP_INPUT(2), LP_OUTPUT(0), LP_ADDS(0));
}
