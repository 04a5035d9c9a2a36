/* bootstrap.h: bootstrap confidence intervals of means over events. Sequences are resampled, because events of one
 * sequence are not independent. The seed is fixed. */
#ifndef LP_BOOTSTRAP_H
#define LP_BOOTSTRAP_H

#include "base/error.h"
#include "base/memory.h"

/* The 95 % percentile intervals of `columns` means. Row s of parts [sequences x (1 + columns)] holds the number of
 * cases of sequence s and, for each column, the sum over them. Fills low and high [columns]. The result does not depend
 * on threads. */
lapse_status lp_bootstrap(const double *parts, int64_t sequences, int columns, int resamples, int threads, double *low,
                          double *high, lapse_error *error);

/* Sorts ascending; NaN is not allowed. */
void lp_sort_numbers(double *numbers, int count);
/* The quantile of sorted numbers, interpolated. */
double lp_quantile(const double *sorted, int count, double fraction);

#endif
