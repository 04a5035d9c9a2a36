/* bootstrap.h: how far a mean over events can be trusted. Sequences are resampled, since events of one sequence are not
 * independent; the numbers drawn are always the same. */
#ifndef LP_BOOTSTRAP_H
#define LP_BOOTSTRAP_H

#include "base/error.h"
#include "base/memory.h"

/* The 95 % percentile intervals of `columns` means. Row s of parts [sequences x (1 + columns)] holds the number of sequence
 * s's cases and, for each column, the sum over them. Fills low and high [columns]. The threads never change the result. */
lapse_status lp_bootstrap(const double *parts, int64_t sequences, int columns, int resamples, int threads, double *low,
                          double *high, lapse_error *error);

#endif
