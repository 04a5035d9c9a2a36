/* bench_machine.h: what the machine can do at most, measured in the same process as what is held against it. */
#ifndef LP_BENCH_MACHINE_H
#define LP_BENCH_MACHINE_H

#include "base/error.h"

/* Operations a second of multiply-adds alone, on so many threads at once. */
double lp_bench_peak(int threads);

/* Bytes a second, read and written, of each thread copying one half of a buffer of `size` bytes to the other. */
lapse_status lp_bench_bandwidth(int threads, size_t size, double *bandwidth, lapse_error *error);

#endif
