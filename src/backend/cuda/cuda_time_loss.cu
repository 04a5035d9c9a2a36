/* cuda_time_loss.cu: the loss function of the time of the next event, in double. One thread for each row; one block sums in a
 * fixed order. */
#include "backend/cuda/cuda_reduce.h"
#include "base/hazard.h"

enum { THREADS = 128, SUM_WARPS = 32 };

__global__ void time_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, double scale, const float *score,
                                 const float *slope, const double *gap, float *losses)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= lp_rows_now(rows, shard))
        return;
    double d = fabs(gap[row]) * scale, s = (double)score[row], w = (double)*slope;
    double hazard = lp_hazard_cumulative(s, w, d);
    losses[row] = (float)(gap[row] < 0 ? hazard : hazard - s - w * d);
}

void lp_cuda_time_loss(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *score = node->inputs[0];
    int largest = lp_cuda_largest(run, score);
    float *losses = (float *)lp_cuda_scratch(run, (size_t)largest * sizeof *losses);
    if (!losses)
        return;
    LP_LAUNCH(run, time_loss_kernel, lp_blocks(largest, THREADS), THREADS, 0, run->shard, lp_cuda_rows_of(score),
              node->attributes.scale, LP_INPUT(0), LP_INPUT(1), LP_INPUT_AS(double, 2), losses);
    lp_cuda_loss_sum(run, score, losses, LP_OUTPUT(0));
}

/* By one block. dscore and dslope may be NULL. */
__global__ void time_loss_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, double scale,
                                          const float *score, const float *slope, const double *gap, const float *dloss,
                                          float *dscore, int add_score, float *dslope, int add_slope)
{
    double w = (double)*slope, seed = (double)*dloss, sum = 0;
    for (int row = (int)threadIdx.x; row < lp_rows_now(rows, shard); row += 32 * SUM_WARPS) {
        double d = fabs(gap[row]) * scale, hazard = lp_hazard_cumulative((double)score[row], w, d);
        double ended = gap[row] < 0 ? 0 : 1;
        if (dscore)
            lp_store(&dscore[row], (float)(seed * (hazard - ended)), add_score);
        sum += hazard * lp_hazard_log_slope(w, d) - ended * d;
    }
    sum = lp_block_sum<SUM_WARPS>(sum);
    if (threadIdx.x == 0 && dslope)
        lp_store(dslope, (float)(seed * sum), add_slope);
}

void lp_cuda_time_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, time_loss_gradient_kernel, 1, 32 * SUM_WARPS, 0, run->shard, lp_cuda_rows_of(node->inputs[0]),
              node->attributes.scale, LP_INPUT(0), LP_INPUT(1), LP_INPUT_AS(double, 2), LP_INPUT(3), LP_OUTPUT(0),
              LP_ADDS(0), LP_OUTPUT(1), LP_ADDS(1));
}
