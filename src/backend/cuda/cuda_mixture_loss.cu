/* cuda_mixture_loss.cu: the loss function of a mixture of log-normals of the time to the next event. One thread for each row, in
 * double; one block sums in a fixed order. */
#include "backend/cuda/cuda.h"
#include "base/mixture.h"

namespace
{

enum { THREADS = 64 };

/* Attributes of the node: lp_mixture_gap_of. */
typedef struct gap_scale {
    double floor, mean, scale;
} gap_scale;

gap_scale scale_of(const lp_node *node)
{
    gap_scale scale = {node->attributes.epsilon, node->attributes.shift, node->attributes.scale};
    return scale;
}

/* Sums of exponentials relative to the largest: of a, and of a plus the log likelihood. */
typedef struct row_sums {
    lp_mixture_gap gap;
    double weight_most, weight_sum, most, sum;
} row_sums;

__device__ double part(const float *row, int count, int k, lp_mixture_gap gap)
{
    return (double)row[k] +
           lp_mixture_log_part(gap, (double)row[count + k], lp_mixture_log_deviation((double)row[2 * count + k]));
}

__device__ row_sums sums_of(gap_scale scale, const float *row, int count, double gap)
{
    row_sums s = {lp_mixture_gap_of(gap, scale.floor, scale.mean, scale.scale), -INFINITY, 0, -INFINITY, 0};
    for (int k = 0; k < count; k++) {
        double p = part(row, count, k, s.gap), a = (double)row[k];
        double most = fmax(s.most, p), weight_most = fmax(s.weight_most, a);
        s.sum = s.sum * exp(s.most - most) + exp(p - most);
        s.weight_sum = s.weight_sum * exp(s.weight_most - weight_most) + exp(a - weight_most);
        s.most = most;
        s.weight_most = weight_most;
    }
    return s;
}

__global__ void mixture_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, gap_scale scale, int cols,
                                    const float *mixture, const double *gap, float *losses)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= lp_rows_now(rows, shard))
        return;
    row_sums s = sums_of(scale, mixture + (size_t)row * cols, cols / 3, gap[row]);
    double loss = s.weight_most + log(s.weight_sum) - s.most - log(s.sum) - lp_mixture_log_constant(s.gap);
    losses[row] = (float)loss;
}

__global__ void mixture_loss_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, gap_scale scale, int cols,
                                             const float *mixture, const double *gap, const float *dloss,
                                             float *dmixture, int adds)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x), count = cols / 3;
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *mine = mixture + (size_t)row * cols;
    float *out = dmixture + (size_t)row * cols;
    row_sums s = sums_of(scale, mine, count, gap[row]);
    double seed = (double)*dloss;
    for (int k = 0; k < count; k++) {
        double l = lp_mixture_log_deviation((double)mine[2 * count + k]), bend = l / LP_MIXTURE_BOUND;
        double narrow = exp(-l), z = (s.gap.y - (double)mine[count + k]) * narrow, slope = lp_mixture_slope(s.gap, z);
        double p = exp((double)mine[k] - s.weight_most) / s.weight_sum;
        double q = exp(part(mine, count, k, s.gap) - s.most) / s.sum;
        lp_store(&out[k], (float)(seed * (p - q)), adds);
        lp_store(&out[count + k], (float)(-seed * q * slope * narrow), adds);
        lp_store(&out[2 * count + k], (float)(seed * q * ((s.gap.censored ? 0 : 1) - slope * z) * (1 - bend * bend)),
                 adds);
    }
}

} // namespace

void lp_cuda_mixture_loss(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *mixture = node->inputs[0];
    int largest = lp_cuda_largest(run, mixture);
    float *losses = (float *)lp_cuda_scratch(run, (size_t)largest * sizeof *losses);
    if (!losses)
        return;
    LP_LAUNCH(run, mixture_loss_kernel, lp_blocks(largest, THREADS), THREADS, 0, run->shard, lp_cuda_rows_of(mixture),
              scale_of(node), mixture->cols, LP_INPUT(0), LP_INPUT_AS(double, 1), losses);
    lp_cuda_loss_sum(run, mixture, losses, LP_OUTPUT(0));
}

void lp_cuda_mixture_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *mixture = node->inputs[0];
    LP_LAUNCH(run, mixture_loss_gradient_kernel, lp_blocks(lp_cuda_largest(run, mixture), THREADS), THREADS, 0,
              run->shard, lp_cuda_rows_of(mixture), scale_of(node), mixture->cols, LP_INPUT(0), LP_INPUT_AS(double, 1),
              LP_INPUT(2), LP_OUTPUT(0), LP_ADDS(0));
}
