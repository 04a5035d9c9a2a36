/* hazard.h: the law of the time d to the next event whose intensity is exp(score + slope d), the Gompertz law: the cumulative
 * hazard L(d) = exp(score) (exp(slope d) - 1) / slope, and its derivatives, in a form that is exact around the slope 0 and finite
 * for every finite argument. Plain functions, for kernels of all backends. */
#ifndef LP_HAZARD_H
#define LP_HAZARD_H

#include <math.h>

#ifdef __CUDACC__
#define LP_HAZARD_INLINE static inline __host__ __device__
#else
#define LP_HAZARD_INLINE static inline
#endif

/* log L is taken as at most this: exp(30) is far beyond every likelihood that training stays at, and its square is a float. */
#define LP_HAZARD_MOST 30.0

/* log((exp(x) - 1) / x), 0 for x = 0 */
LP_HAZARD_INLINE double lp_hazard_log_phi(double x)
{
    double size = fabs(x);
    return size < 1e-8 ? x / 2 : fmax(x, 0.0) + log(-expm1(-size) / size);
}

/* The derivative of lp_hazard_log_phi: 1 / (1 - exp(-x)) - 1 / x, from 0 to 1 */
LP_HAZARD_INLINE double lp_hazard_log_phi_slope(double x)
{
    return fabs(x) < 1e-2 ? 0.5 + x / 12 - x * x * x / 720 : -1 / expm1(-x) - 1 / x;
}

/* The cumulative hazard L at d >= 0. */
LP_HAZARD_INLINE double lp_hazard_cumulative(double score, double slope, double d)
{
    return d > 0 ? exp(fmin(score + log(d) + lp_hazard_log_phi(slope * d), LP_HAZARD_MOST)) : 0;
}

/* The derivative of log L with respect to the slope; that with respect to the score is 1. */
LP_HAZARD_INLINE double lp_hazard_log_slope(double slope, double d)
{
    return d * lp_hazard_log_phi_slope(slope * d);
}

/* The negative log likelihood of a time `gap`, or of none until -gap where it is negative, in units of 1 / scale; and its derivatives
 * with respect to score and slope. */
LP_HAZARD_INLINE double lp_hazard_loss(double score, double slope, double gap, double scale, double *dscore,
                                       double *dslope)
{
    double d = fabs(gap) * scale, hazard = lp_hazard_cumulative(score, slope, d), ended = gap < 0 ? 0 : 1;
    *dscore = hazard - ended;
    *dslope = hazard * lp_hazard_log_slope(slope, d) - ended * d;
    return hazard - ended * (score + slope * d);
}

#endif
