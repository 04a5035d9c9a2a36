/* reference.h: the reference kernels, compiled for float and for double.
 *
 * They define every op: plain loops without optimizations, with the shape beside every pointer.
 */
#ifndef LP_REFERENCE_H
#define LP_REFERENCE_H

#include "backend/backend.h"

#ifndef LP_REAL
#define LP_REAL float
#endif

typedef LP_REAL real;

#define LP_PASTE(name, type) lp_reference_##name##_##type
#define LP_EXPAND(name, type) LP_PASTE(name, type)
#define LP_REFERENCE(name) LP_EXPAND(name, LP_REAL)

#define LP_REFERENCE_KERNEL(id, row, cpu) void LP_REFERENCE(row)(const lp_node *node, const lp_run *run);
LP_OPS(LP_REFERENCE_KERNEL)
#undef LP_REFERENCE_KERNEL

extern const lp_kernel LP_REFERENCE(kernels)[LP_OP_COUNT];

/* Data of input or output i of `node`; NULL if absent or unused. */
#define INPUT(i) ((const real *)(node->inputs[i] ? lp_run_data(run, node->inputs[i]) : NULL))
#define OUTPUT(i) ((real *)(node->outputs[i] ? lp_run_data(run, node->outputs[i]) : NULL))

/* target = amount, or target += amount if output i accumulates. */
#define STORE(i, target, amount) ((target) = (real)((node->accumulate >> (i)&1) ? (target) + (amount) : (amount)))

#endif
