/* mixture_row.h: the loss of a row of numbers of a mixture (mixture.h) and its gap, and its gradient, for kernels of all backends.
 *
 * `real`, the type of the numbers, is defined where this is included.
 */
#ifndef LP_MIXTURE_ROW_H
#define LP_MIXTURE_ROW_H

#include "formula/mixture.h"

/* Component k of a row of K components: log deviation l, and z, the distance of the gap from the mean in deviations. */
LP_MIXTURE_INLINE lp_mixture_part lp_mixture_row_part(const real *row, int count, lp_mixture_gap gap, int k, double *l,
                                                      double *z)
{
    *l = lp_mixture_bounded((double)row[2 * count + k]);
    *z = (gap.y - (double)row[count + k]) * exp(-*l);
    return lp_mixture_part_of(gap, *l, *z);
}

/* Adds exp(x) to a sum of exponentials relative to the largest. */
LP_MIXTURE_INLINE void lp_mixture_row_add(double x, double *largest, double *sum)
{
    double most = fmax(*largest, x);
    *sum = *sum * exp(*largest - most) + exp(x - most);
    *largest = most;
}

/* The loss of a row [3K], or [3K + 1] with a background. out: NULL, or where the gradient, times dloss, is stored, or added if `adds`. */
LP_MIXTURE_INLINE double lp_mixture_row(const real *row, int cols, lp_mixture_gap gap, double scale, double dloss,
                                        real *out, int adds)
{
    int count = cols / 3;
    /* Of a, and of a plus the log likelihood. */
    double l, z, weight_most = -INFINITY, weight_sum = 0, most = -INFINITY, sum = 0, rest = 0;
    for (int k = 0; k < count; k++) {
        lp_mixture_row_add((double)row[k], &weight_most, &weight_sum);
        lp_mixture_row_add((double)row[k] + lp_mixture_row_part(row, count, gap, k, &l, &z).log_likelihood, &most,
                           &sum);
    }
    for (int k = 0; out && k < count; k++) {
        lp_mixture_part one = lp_mixture_row_part(row, count, gap, k, &l, &z);
        double bend = l / LP_MIXTURE_BOUND, p = exp((double)row[k] - weight_most) / weight_sum;
        double q = exp((double)row[k] + one.log_likelihood - most) / sum;
        out[k] = (real)(dloss * (p - q)) + (adds ? out[k] : 0);
        out[count + k] = (real)(-dloss * q * one.slope * exp(-l)) + (adds ? out[count + k] : 0);
        out[2 * count + k] =
            (real)(dloss * q * (one.own - one.slope * z) * (1 - bend * bend)) + (adds ? out[2 * count + k] : 0);
        rest += q * (1 - one.own);
    }
    if (out && cols > 3 * count)
        out[3 * count] = (real)(-dloss * lp_mixture_background_slope(gap, rest, (double)row[3 * count], scale)) +
                         (adds ? out[3 * count] : 0);
    return weight_most + log(weight_sum) - most - log(sum) - lp_mixture_log_common(gap);
}

#endif
