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
#include <stdbool.h>

#ifdef __CUDACC__
#define LP_MIXTURE_INLINE static inline __host__ __device__
#else
#define LP_MIXTURE_INLINE static inline
#endif

#define LP_MIXTURE_BOUND 5.0 /* B */
#define LP_LOG_ROOT_2_PI 0.91893853320467274178

/* l: the logarithm of the deviation. */
LP_MIXTURE_INLINE double lp_mixture_log_deviation(double r)
{
    return LP_MIXTURE_BOUND * tanh(r / LP_MIXTURE_BOUND);
}

/* From here on erfc nears its underflow at 37, and the asymptotic series of the tail is exact to double precision. */
#define LP_NORMAL_FAR 30.0

/* Q(z) z / density of z, for z >= LP_NORMAL_FAR, less 1. */
LP_MIXTURE_INLINE double lp_normal_far_tail(double z)
{
    double w = 1 / (z * z);
    return -w * (1 - w * (3 - w * (15 - w * 105)));
}

/* log Q(z): of the probability that a standard normal number exceeds z. */
LP_MIXTURE_INLINE double lp_normal_log_tail(double z)
{
    const double root_half = 0.70710678118654752440;
    if (z < -1)
        return log1p(-0.5 * erfc(-z * root_half));
    if (z < LP_NORMAL_FAR)
        return log(0.5 * erfc(z * root_half));
    return -z * z / 2 - log(z) - LP_LOG_ROOT_2_PI + log1p(lp_normal_far_tail(z));
}

/* The hazard of a standard normal number, density / Q: the derivative of -log Q(z). Near 0 far below 0, near z far above. */
LP_MIXTURE_INLINE double lp_normal_hazard(double z)
{
    if (z < LP_NORMAL_FAR)
        return exp(-z * z / 2 - LP_LOG_ROOT_2_PI - lp_normal_log_tail(z));
    return z / (1 + lp_normal_far_tail(z));
}

/* A gap as a loss sees it. In the arrays of gaps a negative number -c is a right-censored gap: no event came within c seconds. */
typedef struct lp_mixture_gap {
    double y;
    bool censored;
} lp_mixture_gap;

/* scale: 1 / deviation of the logarithm. A gap below the floor counts as the floor; a censored one does not, because nothing is known
 * to have happened. */
LP_MIXTURE_INLINE lp_mixture_gap lp_mixture_gap_of(double gap, double floor, double mean, double scale)
{
    lp_mixture_gap seen = {(log(gap < 0 ? -gap : fmax(gap, floor)) - mean) * scale, gap < 0};
    return seen;
}

/* log of the likelihood of a gap under component k, without its weight: of the density at y without 1 / sqrt(2 pi), or of the survival
 * Q(z) of a censored gap. With slope = -d log likelihood / dz of the part that depends on z:
 *
 *     d / dm = slope / deviation        d / dl = slope z - (censored ? 0 : 1) */
LP_MIXTURE_INLINE double lp_mixture_log_part(lp_mixture_gap gap, double m, double l)
{
    double z = (gap.y - m) * exp(-l);
    return gap.censored ? lp_normal_log_tail(z) : -l - z * z / 2;
}

LP_MIXTURE_INLINE double lp_mixture_slope(lp_mixture_gap gap, double z)
{
    return gap.censored ? lp_normal_hazard(z) : z;
}

/* The constant that the log likelihood of a gap lacks. */
LP_MIXTURE_INLINE double lp_mixture_log_constant(lp_mixture_gap gap)
{
    return gap.censored ? 0 : -LP_LOG_ROOT_2_PI;
}

#endif
