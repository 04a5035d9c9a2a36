/* cpu_level.c: which kernels this CPU gets. */
#include "backend/cpu/cpu.h"

const lp_kernel *lp_cpu_kernels(void)
{
    return lp_reference_kernels_float;
}

const char *lp_cpu_level(void)
{
    return "portable";
}
