/* cpu_blas.c: keeps OpenBLAS to the calling thread. Shards run in parallel; a product within one must not start threads of
 * its own: they would compete with those of the other shards, and the bits of the result could depend on their number.
 *
 * The pthread build of OpenBLAS has one number of threads per process. The OpenMP build follows omp_get_max_threads(), which
 * every thread has for itself: it is 1 only during a call, so that the OpenMP loops of the application keep their threads.
 * The OpenMP functions are found at run time, because only that build of OpenBLAS brings them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "backend/cpu/cpu.h"

#include <cblas.h>
#include <dlfcn.h>

/* NULL: not the OpenMP build. */
static int (*get_threads)(void);
static void (*set_threads)(int);

void lp_cpu_blas_init(void)
{
    if (openblas_get_parallel() == OPENBLAS_OPENMP) {
        get_threads = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_get_max_threads");
        set_threads = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    }
    if (!get_threads || !set_threads) {
        get_threads = NULL;
        openblas_set_num_threads(1);
    }
}

int lp_cpu_blas_begin(void)
{
    int threads = get_threads ? get_threads() : 1;
    if (threads != 1)
        set_threads(1);
    return threads;
}

void lp_cpu_blas_end(int threads)
{
    if (threads != 1)
        set_threads(threads);
}

const char *lp_cpu_blas_core(void)
{
    return openblas_get_corename();
}
