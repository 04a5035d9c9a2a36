/* device_check.h: compares the results of a graph on a GPU with those of the reference kernels in double, in every
 * precision. `what` names the case in the message of a failure. */
#ifndef LP_DEVICE_CHECK_H
#define LP_DEVICE_CHECK_H

#include "support/graph_case.h"

/* The largest error of a value or gradient, relative to the largest element of its matrix, or to 0.1 if that is larger.
 * Fails if one exceeds `allowed` or is NaN. */
double device_check_error(const graph_case *this, const graph_result *got, const graph_result *wanted, double allowed,
                          const char *what);

void device_check_same_bits(const graph_case *this, const graph_result *a, const graph_result *b, const char *what);

/* graph_case_run_on with the blocks of the emulation in the opposite order. */
void device_check_run_reversed(graph_case *this, const lp_backend *device, int extra_tokens, int times,
                               graph_result *result);

/* What device_check_precisions does; bits. */
enum { DEVICE_FP32 = 1, DEVICE_TF32 = 2, DEVICE_BF16 = 4, DEVICE_ALL = 7, DEVICE_SAME_BITS = 8 };

/* Runs the case in these precisions. The error of each is bounded on both sides: one that is too small means that
 * another precision was used. DEVICE_SAME_BITS: the second run of a program, with blocks in the opposite order, must
 * give the same bits as a single run. */
void device_check_precisions(graph_case *this, const lp_backend *device, int extra_tokens, int checks,
                             const char *what);

#endif
