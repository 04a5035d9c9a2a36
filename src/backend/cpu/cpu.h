/* cpu.h: kernel tables of the CPU backends, by instruction-set level. */
#ifndef LP_CPU_H
#define LP_CPU_H

#include "backend/backend.h"

/* reference/: one plain kernel per op, in float and in double */
extern const lp_kernel lp_reference_kernels_float[LP_OP_COUNT];
extern const lp_kernel lp_reference_kernels_double[LP_OP_COUNT];

/* Kernels by op: those of fast/ at the selected level, and reference kernels for the other ops. */
const lp_kernel *lp_cpu_kernels(void);

/* The selected level: the highest of this CPU, or the lower one named by the environment variable LAPSE_CPU_LEVEL. */
const char *lp_cpu_level(void);

/* Levels from the lowest: "portable", "x86-64-v3", "x86-64-v4". NULL past the highest of this CPU. */
const char *lp_cpu_level_name(int level);
const lp_kernel *lp_cpu_level_kernels(int level);

/* Ranking kernels of the selected level, and of any level up to the highest of this CPU (NULL past it). */
const lp_ranking_kernels *lp_cpu_ranking_table(void);
const lp_ranking_kernels *lp_cpu_level_ranking(int level);

/* Independent fused multiply-adds at the highest level of this CPU: the peak that kernels are measured against. Returns the
 * floating-point operations; *sink takes their result, so that the compiler keeps them. */
double lp_cpu_fma_loop(int turns, float *sink);

/* Optimizer kernels over contiguous elements. */
typedef struct lp_cpu_adam {
    /* gradients += l2 * parameters; returns the sum of their squares. */
    float (*norm)(size_t count, float l2, const float *parameters, float *gradients);
    /* sum = a + b; sum may be a */
    void (*add)(size_t count, float *sum, const float *a, const float *b);
    void (*step)(size_t count, const lp_adam_factors *factors, float rate, float *parameters, float *moment1,
                 float *moment2, const float *gradients);
} lp_cpu_adam;

/* The functions of fast/ at one level. */
typedef struct lp_cpu_functions {
    lp_kernel kernels[LP_OP_COUNT]; /* by op; NULL: the reference kernel is fast enough */
    lp_ranking_kernels ranking;
    lp_cpu_adam adam;
    double (*fma_loop)(int turns, float *sink); /* lp_cpu_fma_loop */
} lp_cpu_functions;

/* Of the selected level. */
const lp_cpu_adam *lp_cpu_adam_kernels(void);

/* The sum over shards and Adam's step, on adam->threads threads. */
void lp_cpu_reduce(const lp_adam *adam, const lp_row_union *rows);
/* Adds vectors [count], each the sum over a node of the tree of reduce.h that begins at shard[i]; nodes ascend and are disjoint. `sum` is
 * none of them. */
void lp_cpu_add_nodes(int threads, size_t count, int nodes, const uint32_t *shard, const float *const *node, float *sum);
void lp_cpu_adam_step(const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters);

/* Whether kernels may run on several threads at once. A sequential build of OpenBLAS is not thread-safe: it gives wrong
 * results. */
bool lp_cpu_threads_safe(void);

/* The CPU that OpenBLAS chose its kernels for. */
const char *lp_cpu_blas_core(void);

/* Called once, before any product. */
void lp_cpu_blas_init(void);
/* Before and after a call of OpenBLAS: the call uses the calling thread alone. `end` takes the result of `begin`. */
int lp_cpu_blas_begin(void);
void lp_cpu_blas_end(int threads);

#endif
