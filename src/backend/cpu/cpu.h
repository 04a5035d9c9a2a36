/* cpu.h: the tables of kernels for the CPU, within this folder. */
#ifndef LP_CPU_H
#define LP_CPU_H

#include "backend/backend.h"

/* reference/: one plain kernel for every op, in float and in double */
extern const lp_kernel lp_reference_kernels_float[LP_OP_COUNT];
extern const lp_kernel lp_reference_kernels_double[LP_OP_COUNT];

/* The best kernel for every op on this CPU: those of fast/ at the highest level the CPU has, over the plain ones. */
const lp_kernel *lp_cpu_kernels(void);

/* The level chosen: "x86-64-v4", "x86-64-v3" or "portable". */
const char *lp_cpu_level(void);

#endif
