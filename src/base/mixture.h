/* mixture.h: a mixture of normal distributions of y, the standardized logarithm of a time, from the numbers that a network puts out
 * for it. Of K components, component k has the numbers a_k, m_k and r_k, in three blocks of K:
 *
 *     weight = softmax(a)_k      mean = m_k      deviation = exp(l_k),  l_k = B tanh(r_k / B)
 *
 * B bounds the deviation from both sides: no component shrinks to a point, however often a gap repeats. Plain functions, for
 * kernels of all backends and for the law of a prediction. */
#ifndef LP_MIXTURE_H
#define LP_MIXTURE_H

#include <math.h>

#ifdef __CUDACC__
#define LP_MIXTURE_INLINE static inline __host__ __device__
#else
#define LP_MIXTURE_INLINE static inline
#endif

#define LP_MIXTURE_BOUND 5.0 /* B */
#define LP_LOG_ROOT_2_PI 0.91893853320467274178

/* y of a gap in seconds; one below the floor counts as the floor. scale: 1 / deviation of the logarithm. */
LP_MIXTURE_INLINE double lp_mixture_y(double gap, double floor, double mean, double scale)
{
    return (log(fmax(gap, floor)) - mean) * scale;
}

/* l: the logarithm of the deviation. */
LP_MIXTURE_INLINE double lp_mixture_log_deviation(double r)
{
    return LP_MIXTURE_BOUND * tanh(r / LP_MIXTURE_BOUND);
}

/* log of the density of component k at y, without its weight and without 1 / sqrt(2 pi). */
LP_MIXTURE_INLINE double lp_mixture_log_part(double y, double m, double l)
{
    double z = (y - m) * exp(-l);
    return -l - z * z / 2;
}

#endif
