/* bench_check.h: whether what is about to be timed computes the right thing.
 *
 * One step of training on a few short histories, on the backend that will be timed and on the plain kernels in double.
 */
#ifndef LP_BENCH_CHECK_H
#define LP_BENCH_CHECK_H

#include "backend/backend.h"
#include "bench/bench_preset.h"

/* Largest error allowed, as a share of the largest element of the same gradient. */
double lp_bench_tolerance(lp_precision precision);

/* Fills *worst with the largest error of any parameter's gradient, as such a share. Beyond the tolerance it fails. Seed, device
 * and precision are taken from the options. `backend` does the step; NULL: the device's. */
lapse_status lp_bench_check(const lp_bench_preset *preset, const lapse_bench_options *options,
                            const lp_backend *backend, double *worst, lapse_error *error);

#endif
