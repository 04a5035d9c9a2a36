/* cuda_time.cu: frequencies, their cosines and sines, and shifts of time. Phases are double until they have lost their whole
 * turns; frequencies and their gradients are double throughout. */
#include "backend/cuda/cuda_reduce.h"

#define TWO_PI 6.283185307179586476925

__global__ void harmonics_kernel(const float *log_period, int size, int count, double *frequency)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < size)
        frequency[i] = TWO_PI * (i % count + 1) * exp(-(double)log_period[i / count]);
}

void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_kernel, lp_blocks(size, 128), 128, 0, LP_INPUT(0), size, node->with.harmonics,
              LP_OUTPUT_AS(double, 0));
}

__global__ void harmonics_gradient_kernel(const double *frequency, const double *dfrequency, int periods, int count,
                                          float *dlog_period, int adds)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= periods)
        return;
    double sum = 0;
    for (int j = 0; j < count; j++)
        sum -= frequency[i * count + j] * dfrequency[i * count + j];
    lp_store(&dlog_period[i], (float)sum, adds);
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int periods = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_gradient_kernel, lp_blocks(periods, 128), 128, 0, LP_INPUT_AS(double, 0),
              LP_INPUT_AS(double, 1), periods, node->with.harmonics, LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void basis_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int count, const double *time,
                             const double *frequency, float *u)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)lp_rows_now(rows, shard) * count)
        return;
    int row = (int)(i / count), f = (int)(i % count);
    double turns = time[row] * frequency[f] * (1 / TWO_PI);
    float half_turns = (float)(2 * (turns - rint(turns))), sine, cosine;
    sincospif(half_turns, &sine, &cosine);
    u[(size_t)row * 2 * count + f] = cosine;
    u[(size_t)row * 2 * count + count + f] = sine;
}

void lp_cuda_basis(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int count = node->inputs[1]->cols;
    LP_LAUNCH(run, basis_kernel, lp_blocks((int64_t)lp_cuda_largest(run, out) * count, 256), 256, 0, run->shard,
              lp_cuda_rows_of(out), count, LP_INPUT_AS(double, 0), LP_INPUT_AS(double, 1), LP_OUTPUT(0));
}

struct basis_gradient_term {
    const double *time;
    const float *u, *du;
    int count;
    __device__ double operator()(int row, int f) const
    {
        size_t c = (size_t)row * 2 * count + f, s = c + count;
        return time[row] * ((double)du[s] * u[c] - (double)du[c] * u[s]);
    }
};

void lp_cuda_basis_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->outputs[0]->cols;
    basis_gradient_term term = {LP_INPUT_AS(double, 0), LP_INPUT(1), LP_INPUT(2), count};
    lp_cuda_column_sums<double>(run, node->inputs[1], count, term, LP_OUTPUT_AS(double, 0), LP_ADDS(0));
}

__global__ void reflect_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int heads, int count, const float *x,
                               const float *u, float *y, int adds)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t each = (int64_t)heads * count;
    if (i >= (int64_t)lp_rows_now(rows, shard) * each)
        return;
    int row = (int)(i / each), h = (int)(i % each) / count, f = (int)(i % count);
    size_t c = ((size_t)row * heads + h) * 2 * count + f, s = c + count;
    float cosine = u[(size_t)row * 2 * count + f], sine = u[(size_t)row * 2 * count + count + f];
    float xc = x[c], xs = x[s];
    lp_store(&y[c], xc * cosine + xs * sine, adds);
    lp_store(&y[s], xc * sine - xs * cosine, adds);
}

void lp_cuda_reflect(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *x = node->inputs[0];
    int count = node->inputs[1]->cols / 2, heads = x->cols / (2 * count);
    LP_LAUNCH(run, reflect_kernel, lp_blocks((int64_t)lp_cuda_largest(run, x) * heads * count, 256), 256, 0, run->shard,
              lp_cuda_rows_of(x), heads, count, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void reflect_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int heads, int count,
                                        const float *x, const float *dy, float *du, int adds)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)lp_rows_now(rows, shard) * count)
        return;
    int row = (int)(i / count), f = (int)(i % count);
    float dcosine = 0, dsine = 0;
    for (int h = 0; h < heads; h++) {
        size_t c = ((size_t)row * heads + h) * 2 * count + f, s = c + count;
        dcosine += x[c] * dy[c] - x[s] * dy[s];
        dsine += x[s] * dy[c] + x[c] * dy[s];
    }
    lp_store(&du[(size_t)row * 2 * count + f], dcosine, adds);
    lp_store(&du[(size_t)row * 2 * count + count + f], dsine, adds);
}

void lp_cuda_reflect_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *x = node->inputs[0];
    int count = node->outputs[0]->cols / 2, heads = x->cols / (2 * count);
    LP_LAUNCH(run, reflect_gradient_kernel, lp_blocks((int64_t)lp_cuda_largest(run, x) * count, 256), 256, 0,
              run->shard, lp_cuda_rows_of(x), heads, count, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0));
}
