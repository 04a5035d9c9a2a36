/* cpu.h: the tables of kernels for the CPU, within this folder; and the loops of a ranking, for everybody. */
#ifndef LP_CPU_H
#define LP_CPU_H

#include "backend/backend.h"

/* reference/: one plain kernel for every op, in float and in double */
extern const lp_kernel lp_reference_kernels_float[LP_OP_COUNT];
extern const lp_kernel lp_reference_kernels_double[LP_OP_COUNT];

/* The best kernel for every op on this CPU: those of fast/ at the level chosen, over the plain ones. */
const lp_kernel *lp_cpu_kernels(void);

/* The level chosen: the highest the CPU has, or the lower one that the environment variable LAPSE_CPU_LEVEL names. */
const char *lp_cpu_level(void);

/* Levels from the lowest: "portable", "x86-64-v3", "x86-64-v4". NULL past the highest this CPU has. */
const char *lp_cpu_level_name(int level);
/* The kernels of that level. */
const lp_kernel *lp_cpu_level_kernels(int level);

/* scores [cases x items] = state [cases x dims] table [items x dims]^T + bias [items], where bias may be NULL. A score has
 * the same bits whatever the other cases and items are, so items listed apart can be compared with those of a tile. */
typedef void (*lp_scores_kernel)(int cases, int items, int dims, const float *state, const float *table,
                                 const float *bias, float *scores);

/* How many scores are not below the mark; those that are no numbers are not, and none is below such a mark. */
typedef int (*lp_reaching_kernel)(int count, const float *scores, float mark);

/* scores [items] of one state [dims]: what a question wants, with nothing copied. The bits are not those of the above. */
typedef void (*lp_row_scores_kernel)(int items, int dims, const float *state, const float *table, const float *bias,
                                     float *scores);

/* The same of a table on its side, [dims x stride], which takes two thirds of the time: nothing is summed across a vector. */
typedef void (*lp_transposed_scores_kernel)(int items, int dims, const float *state, const float *transposed,
                                            size_t stride, const float *bias, float *scores);

/* The log of the sum of exp of `count` scores, at least one. */
typedef double (*lp_log_sum_kernel)(int count, const float *scores);

typedef struct lp_cpu_ranking {
    lp_scores_kernel scores;
    lp_reaching_kernel reaching;
    lp_row_scores_kernel row_scores;
    lp_transposed_scores_kernel transposed_scores;
    lp_log_sum_kernel log_sum;
} lp_cpu_ranking;

/* Of the level chosen, and of any level up to the highest this CPU has (NULL past it). */
const lp_cpu_ranking *lp_cpu_ranking_kernels(void);
const lp_cpu_ranking *lp_cpu_level_ranking(int level);

/* Multiply-adds that wait for nothing, on the highest level this CPU has: what every kernel is measured against. Returns the
 * operations done; *sink takes their result, so that no compiler leaves them out. */
double lp_cpu_chains(int turns, float *sink);

/* What Adam's step has in common for all parameters. */
typedef struct lp_adam_factors {
    float beta1, beta2, epsilon;
    float correction2; /* of the second moment, which is short at first: its root is multiplied by this */
    float scale;       /* of the gradient, where it is clipped */
} lp_adam_factors;

/* Stretches of the optimizer's work. */
typedef struct lp_cpu_adam {
    /* gradients += l2 * parameters; returns the sum of their squares. */
    float (*norm)(size_t count, float l2, const float *parameters, float *gradients);
    /* sum += gradients */
    void (*add)(size_t count, float *sum, const float *gradients);
    void (*step)(size_t count, const lp_adam_factors *factors, float rate, float *parameters, float *moment1,
                 float *moment2, const float *gradients);
} lp_cpu_adam;

/* Of the level chosen. */
const lp_cpu_adam *lp_cpu_adam_kernels(void);

/* Adam's step, on adam->threads threads. */
void lp_cpu_adam_step(const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters);

/* Whether kernels may run on several threads at once. Not so where the system's OpenBLAS is the sequential build, which
 * gives wrong results then. */
bool lp_cpu_threads_safe(void);

#endif
