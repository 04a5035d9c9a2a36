/* cuda_basic.cu: elementwise ops (elementwise.h), masks of autoregressive layers, noise, and harmonics: a thread for each element. */
#include "backend/cuda/cuda.h"

typedef float real;
#include "backend/elementwise.h"

/* y = f(a, b). b can be NULL. */
template <float (*f)(float, float, double, double)> static void elementwise(const lp_node *node, const lp_cuda_run *run)
{
    const float *a = LP_INPUT(0), *b = LP_INPUT(1);
    float *y = LP_OUTPUT(0);
    double scale = node->attributes.scale, shift = node->attributes.shift;
    int adds = LP_ADDS(0);
    lp_cuda_each(run, node->outputs[0], node->outputs[0]->cols,
                 [=] __device__(int64_t i, int) { lp_store(&y[i], f(a[i], b ? b[i] : 0, scale, shift), adds); });
}

#define ELEMENTWISE(name, f) LP_CUDA_OP_BY(name, elementwise<lp_element_##name>)
LP_ELEMENTWISE(ELEMENTWISE)

void lp_cuda_mask(const lp_node *node, const lp_cuda_run *run)
{
    int cols = node->outputs[0]->cols, adds = LP_ADDS(0);
    lp_attributes mask = node->attributes;
    const float *x = LP_INPUT(0);
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0], cols, [=] __device__(int i, int) {
        lp_store(&y[i], lp_mask_keeps(&mask, i / cols, i % cols) ? x[i] : 0, adds);
    });
}

void lp_cuda_place_columns(const lp_node *node, const lp_cuda_run *run)
{
    int cols = node->outputs[0]->cols, from = node->inputs[0]->cols, first = node->attributes.first, adds = LP_ADDS(0);
    const float *x = LP_INPUT(0);
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0], cols, [=] __device__(int64_t i, int) {
        lp_store(&y[i], lp_element_placed(x + i / cols * from, from, first, (int)(i % cols)), adds);
    });
}

void lp_cuda_noise(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->rows * node->outputs[0]->cols;
    lp_attributes with = node->attributes;
    const lp_cuda_shard *shard = run->shard;
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0], node->outputs[0]->cols,
                 [=] __device__(int i, int) { y[i] = lp_element_noise(&with, shard->seed, shard->step, i, size); });
}

/* Log periods to angular frequencies, in double. */
void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics;
    const float *log_period = LP_INPUT(0);
    double *frequency = LP_OUTPUT_AS(double, 0);
    lp_cuda_each(run, node->outputs[0], node->outputs[0]->cols, [=] __device__(int i, int) {
        frequency[i] = 6.283185307179586476925 * (i % count + 1) * exp(-(double)log_period[i / count]);
    });
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics, adds = LP_ADDS(0);
    const double *frequency = LP_INPUT_AS(double, 0), *dfrequency = LP_INPUT_AS(double, 1);
    float *dlog_period = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0], node->outputs[0]->cols, [=] __device__(int i, int) {
        double sum = 0;
        for (int j = i * count; j < (i + 1) * count; j++)
            sum -= frequency[j] * dfrequency[j];
        lp_store(&dlog_period[i], (float)sum, adds);
    });
}
