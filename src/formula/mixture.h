/* mixture.h: the law of y, the standardized logarithm of a time, from the numbers that a network puts out for it. Of K components of a
 * mixture of normal distributions, component k has the numbers a_k, m_k and r_k, in three blocks of K:
 *
 *     weight = softmax(a)_k      mean = m_k      deviation = exp(l_k),  l_k = bounded(r_k) = B tanh(r_k / B)
 *
 * B bounds the deviation from both sides: no component shrinks to a point, however often a gap repeats. One more number b stands for a
 * background, where there is one: a Poisson process beside the mixture, whose rate changes with the clock (formula/season.h). The next
 * event is the first of either, so that their survivals multiply and their hazards add:
 *
 *     rate = exp(-(mean of log t + 2 bounded(b / 2) deviation of log t))  per second of the season's time
 *     survival = exp(-rate E) sum_k weight_k Q(z_k)                        E: integral of the season over the gap
 *
 * So the rate falls to practically 0 where histories have ended for good.
 *
 * Plain functions, for kernels of all backends and for the law of a prediction. */
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

LP_MIXTURE_INLINE double lp_mixture_bounded(double r)
{
    return LP_MIXTURE_BOUND * tanh(r / LP_MIXTURE_BOUND);
}

/* The rate of the background. scale: 1 / deviation of the logarithm. */
LP_MIXTURE_INLINE double lp_mixture_rate(double b, double mean, double scale)
{
    return exp(-(mean + 2 * lp_mixture_bounded(b / 2) / scale));
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
    double background; /* rate E: the integral of the background's hazard; 0: none */
    double hazard;     /* of the background at y, per unit of y */
} lp_mixture_gap;

/* A gap below the floor counts as the floor; a censored one does not, because nothing is known to have happened. season: E and the level
 * of the season at the end of the gap, or NULL: no background; b is its number. */
LP_MIXTURE_INLINE lp_mixture_gap lp_mixture_gap_of(double gap, double floor, double mean, double scale,
                                                   const double *season, double b)
{
    double seconds = gap < 0 ? -gap : fmax(gap, floor), rate = season ? lp_mixture_rate(b, mean, scale) : 0;
    lp_mixture_gap seen = {(log(seconds) - mean) * scale, gap < 0, season ? rate * season[0] : 0,
                           season ? rate * season[1] * seconds / scale : 0};
    return seen;
}

/* What component k, without its weight, says of a gap, without the factor exp(-background) that all have in common. log_likelihood: of
 * the density at y times sqrt(2 pi), the background's hazard included, or of the survival of a censored gap. own: the part of the
 * likelihood that is the component's own density, 0 to 1; the rest is its survival times the background's hazard. With the slope
 *
 *     d log_likelihood / dm = slope / deviation        d log_likelihood / dl = slope z - own */
typedef struct lp_mixture_part {
    double log_likelihood, own, slope;
} lp_mixture_part;

LP_MIXTURE_INLINE lp_mixture_part lp_mixture_part_of(lp_mixture_gap gap, double l, double z)
{
    lp_mixture_part part = {-l - z * z / 2, 1, z};
    if (!gap.censored && !(gap.hazard > 0))
        return part;
    double tail = lp_normal_log_tail(z), hazard = lp_normal_hazard(z);
    if (gap.censored) {
        lp_mixture_part open = {tail, 0, hazard};
        return open;
    }
    double other = log(gap.hazard) + LP_LOG_ROOT_2_PI + tail, more = fmax(part.log_likelihood, other);
    double own = exp(part.log_likelihood - more), rest = exp(other - more);
    part.log_likelihood = more + log(own + rest);
    part.own = own / (own + rest);
    part.slope = part.own * z + (1 - part.own) * hazard;
    return part;
}

/* The terms of the log likelihood of a gap that are the same for all components. */
LP_MIXTURE_INLINE double lp_mixture_log_common(lp_mixture_gap gap)
{
    return -gap.background - (gap.censored ? 0 : LP_LOG_ROOT_2_PI);
}

/* d log likelihood / db. rest: the part of the likelihood that is the background's, of all components: 0 for a censored gap. */
LP_MIXTURE_INLINE double lp_mixture_background_slope(lp_mixture_gap gap, double rest, double b, double scale)
{
    double bend = tanh(b / (2 * LP_MIXTURE_BOUND));
    return (gap.background - (gap.censored ? 0 : rest)) * (1 - bend * bend) / scale;
}

#endif
