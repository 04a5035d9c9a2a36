/* cpu_level.c: selects the kernels for this CPU's instruction set, once, at the first call. */
#include "backend/cpu/cpu.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern const lp_cpu_functions lp_fast_functions_portable, lp_fast_functions_v3, lp_fast_functions_v4;

static bool always(void)
{
    return true;
}

#ifdef __x86_64__
static bool has_v3(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* From the lowest; each level includes the instructions of those before it. */
static const struct level {
    const char *name;
    bool (*present)(void);
    const lp_cpu_functions *fast;
} levels[] = {
    {"portable", always, &lp_fast_functions_portable},
#ifdef __x86_64__
    {"x86-64-v3", has_v3, &lp_fast_functions_v3},
    {"x86-64-v4", has_v4, &lp_fast_functions_v4},
#endif
};

enum { LEVELS = sizeof levels / sizeof *levels };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static lp_kernel tables[LEVELS][LP_OP_COUNT];
static int highest, selected;

static void select_level(void)
{
    for (int i = 0; i < LEVELS && levels[i].present(); i++) {
        highest = i;
        for (int op = 0; op < LP_OP_COUNT; op++)
            tables[i][op] = levels[i].fast->kernels[op] ? levels[i].fast->kernels[op] : lp_reference_kernels_float[op];
    }
    selected = highest;
    const char *wanted = getenv("LAPSE_CPU_LEVEL");
    for (int i = 0; wanted && i < highest; i++)
        if (strcmp(levels[i].name, wanted) == 0)
            selected = i;
    lp_cpu_blas_init();
}

const lp_kernel *lp_cpu_kernels(void)
{
    pthread_once(&once, select_level);
    return tables[selected];
}

const char *lp_cpu_level(void)
{
    pthread_once(&once, select_level);
    return levels[selected].name;
}

const char *lp_cpu_level_name(int level)
{
    pthread_once(&once, select_level);
    return level <= highest ? levels[level].name : NULL;
}

const lp_kernel *lp_cpu_level_kernels(int level)
{
    pthread_once(&once, select_level);
    return level <= highest ? tables[level] : NULL;
}

const lp_ranking_kernels *lp_cpu_ranking_table(void)
{
    pthread_once(&once, select_level);
    return &levels[selected].fast->ranking;
}

const lp_ranking_kernels *lp_cpu_level_ranking(int level)
{
    pthread_once(&once, select_level);
    return level <= highest ? &levels[level].fast->ranking : NULL;
}

double lp_cpu_fma_loop(int turns, float *sink)
{
    pthread_once(&once, select_level);
    return levels[highest].fast->fma_loop(turns, sink);
}

bool lp_cpu_threads_safe(void)
{
    return openblas_get_parallel() != OPENBLAS_SEQUENTIAL;
}

const lp_cpu_adam *lp_cpu_adam_kernels(void)
{
    pthread_once(&once, select_level);
    return &levels[selected].fast->adam;
}
