/* bench_check.h: verifies the kernels before they are timed: one training step on a few short sequences, on the backend
 * to be timed and on the reference kernels in double. */
#ifndef LP_BENCH_CHECK_H
#define LP_BENCH_CHECK_H

#include "backend/backend.h"
#include "bench/bench_preset.h"
#include "lapse_lab.h"
#include "train/trainer.h"

/* Maximum error of a gradient: its root mean square, relative to that of the gradient. */
double lp_bench_tolerance(lp_precision precision);

/* Fills *worst with the maximum of these errors over all parameters. Fails above the tolerance. Uses
 * seed, device and precision of the options. backend: runs the step; NULL: the device's. */
lapse_status lp_bench_check(const lp_bench_preset *preset, const lapse_bench_options *options,
                            const lp_backend *backend, double *worst, lapse_error *error);

/* The same of the first step of a trainer of one shard that has not begun: runs it, after which the trainer cannot run. */
lapse_status lp_bench_check_step(lp_trainer *trainer, double *worst, lapse_error *error);

/* Operations of a step with as many tokens as the plan allows. */
double lp_bench_step_flop(const lp_trainer *trainer);

#endif
