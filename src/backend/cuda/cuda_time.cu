/* cuda_time.cu: harmonics (log periods to angular frequencies w), in double, and their gradient. The gradient of a basis is a
 * reduction over rows (cuda_reduction.cu). */
#include "backend/cuda/cuda_rows.h"

__global__ void harmonics_kernel(const float *log_period, int size, int count, double *frequency)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < size)
        frequency[i] = lp_harmonic(log_period, i, count);
}

void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_kernel, lp_blocks(size, 128), 128, 0, LP_INPUT(0), size, node->attributes.harmonics,
              LP_OUTPUT_AS(double, 0));
}

__global__ void harmonics_gradient_kernel(const double *frequency, const double *dfrequency, int periods, int count,
                                          float *dlog_period, int accumulate)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= periods)
        return;
    double sum = 0;
    for (int j = 0; j < count; j++)
        sum -= frequency[i * count + j] * dfrequency[i * count + j];
    lp_store(&dlog_period[i], (float)sum, accumulate);
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int periods = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_gradient_kernel, lp_blocks(periods, 128), 128, 0, LP_INPUT_AS(double, 0),
              LP_INPUT_AS(double, 1), periods, node->attributes.harmonics, LP_OUTPUT(0), LP_ADDS(0));
}
