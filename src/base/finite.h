/* finite.h: whether all numbers of an array are finite. */
#ifndef LP_FINITE_H
#define LP_FINITE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest magnitude; infinite if an element is NaN or infinite. Compilers vectorize it. */
static inline float lp_largest_float(const float *numbers, size_t count)
{
    float largest = 0;
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        float size = fabsf(numbers[i]);
        finite &= size <= FLT_MAX;
        largest = size > largest ? size : largest;
    }
    return finite ? largest : INFINITY;
}

static inline double lp_largest_double(const double *numbers, size_t count)
{
    double largest = 0;
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        double size = fabs(numbers[i]);
        finite &= size <= DBL_MAX;
        largest = size > largest ? size : largest;
    }
    return finite ? largest : INFINITY;
}

/* By the bits of the exponent, which takes a third of the instructions of comparisons. */
static inline bool lp_all_finite(const float *numbers, size_t count)
{
    const uint32_t exponent = 0x7F800000u;
    uint32_t infinite = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        infinite |= (bits & exponent) == exponent;
    }
    return !infinite;
}

static inline bool lp_all_finite_double(const double *numbers, size_t count)
{
    return lp_largest_double(numbers, count) <= DBL_MAX;
}

#endif
