/* fast_adam.c: element-wise kernels of the Adam step. */
#include "backend/cpu/fast/fast.h"

float LP_FAST(adam_norm)(size_t count, float l2, const float *restrict parameters, float *restrict gradients)
{
    float norm = 0;
#pragma omp simd reduction(+ : norm)
    for (size_t i = 0; i < count; i++) {
        gradients[i] += l2 * parameters[i];
        norm += gradients[i] * gradients[i];
    }
    return norm;
}

void LP_FAST(adam_add)(size_t count, float *sum, const float *a, const float *b)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

void LP_FAST(adam_step)(size_t count, const lp_adam_factors *factors, float rate, float *restrict parameters,
                        float *restrict moment1, float *restrict moment2, const float *restrict gradients)
{
    const lp_adam_factors by = *factors;
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        lp_adam_element(by, rate, gradients[i], &parameters[i], &moment1[i], &moment2[i]);
}
