/* cuda_mixture_loss.cu: the loss function of the law of the time to the next event. One thread for each row, in
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

__device__ double z_of(const float *row, int count, int k, lp_mixture_gap gap, double l)
{
    return (gap.y - (double)row[count + k]) * exp(-l);
}

__device__ lp_mixture_part part(const float *row, int count, int k, lp_mixture_gap gap)
{
    double l = lp_mixture_bounded((double)row[2 * count + k]);
    return lp_mixture_part_of(gap, l, z_of(row, count, k, gap, l));
}

/* row [cols]: 3K numbers, or 3K + 1 with a background. */
__device__ row_sums sums_of(gap_scale scale, const float *row, int cols, double gap, const double *season)
{
    row_sums s = {lp_mixture_gap_of(gap, scale.floor, scale.mean, scale.scale, season, (double)row[cols - 1]),
                  -INFINITY, 0, -INFINITY, 0};
    for (int k = 0; k < cols / 3; k++) {
        double a = (double)row[k], p = a + part(row, cols / 3, k, s.gap).log_likelihood;
        double most = fmax(s.most, p), weight_most = fmax(s.weight_most, a);
        s.sum = s.sum * exp(s.most - most) + exp(p - most);
        s.weight_sum = s.weight_sum * exp(s.weight_most - weight_most) + exp(a - weight_most);
        s.most = most;
        s.weight_most = weight_most;
    }
    return s;
}

__global__ void mixture_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, gap_scale scale, int cols,
                                    const float *mixture, const double *gap, const double *season, float *losses)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= lp_rows_now(rows, shard))
        return;
    row_sums s = sums_of(scale, mixture + (size_t)row * cols, cols, gap[row], season ? season + 2 * (size_t)row : NULL);
    double loss = s.weight_most + log(s.weight_sum) - s.most - log(s.sum) - lp_mixture_log_common(s.gap);
    losses[row] = (float)loss;
}

__global__ void mixture_loss_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, gap_scale scale, int cols,
                                             const float *mixture, const double *gap, const double *season,
                                             const float *dloss, float *dmixture, int adds)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x), count = cols / 3;
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *mine = mixture + (size_t)row * cols;
    float *out = dmixture + (size_t)row * cols;
    row_sums s = sums_of(scale, mine, cols, gap[row], season ? season + 2 * (size_t)row : NULL);
    double seed = (double)*dloss, rest = 0;
    for (int k = 0; k < count; k++) {
        double l = lp_mixture_bounded((double)mine[2 * count + k]), bend = l / LP_MIXTURE_BOUND;
        double z = z_of(mine, count, k, s.gap, l);
        lp_mixture_part one = lp_mixture_part_of(s.gap, l, z);
        double p = exp((double)mine[k] - s.weight_most) / s.weight_sum;
        double q = exp((double)mine[k] + one.log_likelihood - s.most) / s.sum;
        lp_store(&out[k], (float)(seed * (p - q)), adds);
        lp_store(&out[count + k], (float)(-seed * q * one.slope * exp(-l)), adds);
        lp_store(&out[2 * count + k], (float)(seed * q * (one.own - one.slope * z) * (1 - bend * bend)), adds);
        rest += q * (1 - one.own);
    }
    if (season)
        lp_store(&out[3 * count],
                 (float)(-seed * lp_mixture_background_slope(s.gap, rest, (double)mine[3 * count], scale.scale)), adds);
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
              scale_of(node), mixture->cols, LP_INPUT(0), LP_INPUT_AS(double, 1), LP_INPUT_AS(double, 2), losses);
    lp_cuda_loss_sum(run, mixture, losses, LP_OUTPUT(0));
}

void lp_cuda_mixture_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *mixture = node->inputs[0];
    LP_LAUNCH(run, mixture_loss_gradient_kernel, lp_blocks(lp_cuda_largest(run, mixture), THREADS), THREADS, 0,
              run->shard, lp_cuda_rows_of(mixture), scale_of(node), mixture->cols, LP_INPUT(0), LP_INPUT_AS(double, 1),
              LP_INPUT_AS(double, 2), LP_INPUT(3), LP_OUTPUT(0), LP_ADDS(0));
}
