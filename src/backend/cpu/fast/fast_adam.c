/* fast_adam.c: element-wise kernels of the Adam step. */
#include "backend/cpu/fast/fast.h"

#include <math.h>

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

void LP_FAST(adam_add)(size_t count, float *restrict sum, const float *restrict gradients)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        sum[i] += gradients[i];
}

void LP_FAST(adam_step)(size_t count, const lp_adam_factors *factors, float rate, float *restrict parameters,
                        float *restrict moment1, float *restrict moment2, const float *restrict gradients)
{
    const float beta1 = factors->beta1, beta2 = factors->beta2, epsilon = factors->epsilon, scale = factors->scale;
    const float correction = factors->correction2;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float gradient = gradients[i] * scale;
        float first = beta1 * moment1[i] + (1 - beta1) * gradient;
        float second = beta2 * moment2[i] + (1 - beta2) * gradient * gradient;
        moment1[i] = first;
        moment2[i] = second;
        parameters[i] -= rate * first / (sqrtf(second) * correction + epsilon);
    }
}
