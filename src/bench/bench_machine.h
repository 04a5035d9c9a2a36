/* bench_machine.h: the limits of the CPU for a roofline, measured in the same process as the benchmark. */
#ifndef LP_BENCH_MACHINE_H
#define LP_BENCH_MACHINE_H

#include "base/error.h"

/* flop/s of fused multiply-adds on this number of threads. */
double lp_bench_peak(int threads);

/* bytes/s, read and written, of copies from one half of a buffer of `size` bytes per thread to the other half. */
lapse_status lp_bench_bandwidth(int threads, size_t size, double *bandwidth, lapse_error *error);

#endif
