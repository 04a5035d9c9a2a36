/* cuda_basic.cu: elementwise ops (elementwise.h), masks of autoregressive layers, noise, and harmonics: a thread for each element. */
#include "backend/cuda/cuda_rows.h"

typedef float real;
#include "backend/elementwise.h"

/* y = f(a, b). b can be NULL. */
template <float (*f)(float, float, double, double)>
__global__ void elementwise_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *a,
                                   const float *b, float *y, int adds, double scale, double shift)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (int64_t)lp_rows_now(rows, shard) * cols)
        lp_store(&y[i], f(a[i], b ? b[i] : 0, scale, shift), adds);
}

template <float (*f)(float, float, double, double)> static void elementwise(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    LP_LAUNCH(run, elementwise_kernel<f>, lp_blocks((int64_t)lp_cuda_largest(run, out) * out->cols, 256), 256, 0,
              run->shard, lp_cuda_rows_of(out), out->cols, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0),
              node->attributes.scale, node->attributes.shift);
}

#define ELEMENTWISE(name, f) LP_CUDA_OP_BY(name, elementwise<lp_element_##name>)
LP_ELEMENTWISE(ELEMENTWISE)

void lp_cuda_mask(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int cols = out->cols, adds = LP_ADDS(0);
    lp_attributes mask = node->attributes;
    const float *x = LP_INPUT(0);
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, lp_cuda_largest(run, out) * cols,
                 [=] __device__(int i) { lp_store(&y[i], lp_mask_keeps(&mask, i / cols, i % cols) ? x[i] : 0, adds); });
}

void lp_cuda_noise(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->rows * node->outputs[0]->cols;
    lp_attributes with = node->attributes;
    const lp_cuda_shard *shard = run->shard;
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, size,
                 [=] __device__(int i) { y[i] = lp_element_noise(&with, shard->seed, shard->step, i, size); });
}

/* Log periods to angular frequencies, in double. */
void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics;
    const float *log_period = LP_INPUT(0);
    double *frequency = LP_OUTPUT_AS(double, 0);
    lp_cuda_each(run, node->outputs[0]->cols,
                 [=] __device__(int i) { frequency[i] = lp_harmonic(log_period, i, count); });
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics, adds = LP_ADDS(0);
    const double *frequency = LP_INPUT_AS(double, 0), *dfrequency = LP_INPUT_AS(double, 1);
    float *dlog_period = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0]->cols, [=] __device__(int i) {
        double sum = 0;
        for (int j = i * count; j < (i + 1) * count; j++)
            sum -= frequency[j] * dfrequency[j];
        lp_store(&dlog_period[i], (float)sum, adds);
    });
}
