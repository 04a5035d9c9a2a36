/* fast.h: SIMD float kernels, written once and compiled for each instruction-set level.
 *
 * The files of this folder are plain C that the compiler vectorizes: they are built for the compiler's baseline
 * ("portable") and, on x86-64, again with AVX2 and with AVX-512. cpu_level.c selects one build at run time. Two rules make
 * results bit-identical for any number of threads:
 *   - the order of a sum depends on shapes only, never on memory alignment;
 *   - matrix products are single-threaded.
 * The kernels of reference/ define each op; comments here explain only what differs from them.
 */
#ifndef LP_FAST_H
#define LP_FAST_H

#include "backend/cpu/cpu.h"

#ifndef LP_LEVEL
#define LP_LEVEL portable
#endif

#define LP_FAST_PASTE(name, level) lp_fast_##name##_##level
#define LP_FAST_EXPAND(name, level) LP_FAST_PASTE(name, level)
#define LP_FAST(name) LP_FAST_EXPAND(name, LP_LEVEL)

/* The kernels of the ops that LP_OPS marks as fast. */
#define LP_FAST_KERNEL_FAST(row) void LP_FAST(row)(const lp_node *node, const lp_run *run);
#define LP_FAST_KERNEL_PLAIN(row)
#define LP_FAST_KERNEL(id, row, cpu) LP_FAST_KERNEL_##cpu(row)
LP_OPS(LP_FAST_KERNEL)

/* lp_ranking_kernels */
void LP_FAST(scores)(int cases, int items, int dims, const float *state, const float *table, const float *bias,
                     float *scores);
int LP_FAST(count_at_least)(int count, const float *scores, float threshold);
void LP_FAST(row_scores)(int items, int dims, const float *state, const float *table, const float *bias, float *scores);
void LP_FAST(transposed_scores)(int items, int dims, const float *state, const float *transposed, size_t stride,
                                const float *bias, float *scores);
void LP_FAST(many_scores)(int cases, int items, int dims, const float *state, const float *table,
                          const float *transposed, size_t stride, const float *bias, float *scores);
double LP_FAST(log_sum)(int count, const float *scores);
void LP_FAST(largest)(int count, const float *scores, float *largest);
int LP_FAST(find_at_least)(int count, const float *scores, float limit, int32_t *index);
void LP_FAST(distances)(lp_score_rule rule, int cases, int items, int dims, const float *state, const float *table,
                        const float *bias, float *scores);

/* The score of an item by a distance, without its bias. */
float LP_FAST(distance)(lp_score_rule rule, const float *z, const float *item, int count);
#define fast_distance LP_FAST(distance)

/* lp_cpu_adam */
float LP_FAST(adam_norm)(size_t count, float l2, const float *parameters, float *gradients);
void LP_FAST(adam_add)(size_t count, float *sum, const float *a, const float *b);
void LP_FAST(adam_step)(size_t count, const lp_adam_factors *factors, float rate, float *parameters, float *moment1,
                        float *moment2, const float *gradients);
/* lp_cpu_fma_loop */
double LP_FAST(fma_loop)(int turns, float *sink);

/* Data of input or output i of `node`; NULL if absent or unused. */
#define INPUT(i) ((const float *)(node->inputs[i] ? lp_run_data(run, node->inputs[i]) : NULL))
#define OUTPUT(i) ((float *)(node->outputs[i] ? lp_run_data(run, node->outputs[i]) : NULL))
/* Whether output i accumulates. */
#define ADDED(i) ((node->accumulate >> (i)&1) != 0)

#endif
