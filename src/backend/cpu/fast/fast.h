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

void LP_FAST(add)(const lp_node *node, const lp_run *run);
void LP_FAST(linear)(const lp_node *node, const lp_run *run);
void LP_FAST(linear_outer)(const lp_node *node, const lp_run *run);
void LP_FAST(column_sum)(const lp_node *node, const lp_run *run);
void LP_FAST(column_dot)(const lp_node *node, const lp_run *run);
void LP_FAST(scale_columns)(const lp_node *node, const lp_run *run);
void LP_FAST(embed)(const lp_node *node, const lp_run *run);
void LP_FAST(embed_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(embed_pair)(const lp_node *node, const lp_run *run);
void LP_FAST(gather)(const lp_node *node, const lp_run *run);
void LP_FAST(affine)(const lp_node *node, const lp_run *run);
void LP_FAST(relu)(const lp_node *node, const lp_run *run);
void LP_FAST(relu_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(dropout)(const lp_node *node, const lp_run *run);
void LP_FAST(layer_norm)(const lp_node *node, const lp_run *run);
void LP_FAST(layer_norm_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(basis)(const lp_node *node, const lp_run *run);
void LP_FAST(basis_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(reflect)(const lp_node *node, const lp_run *run);
void LP_FAST(reflect_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(attention)(const lp_node *node, const lp_run *run);
void LP_FAST(attention_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(cache_append)(const lp_node *node, const lp_run *run);
void LP_FAST(attention_cached)(const lp_node *node, const lp_run *run);
void LP_FAST(cross_entropy)(const lp_node *node, const lp_run *run);
void LP_FAST(cross_entropy_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(softmax_loss)(const lp_node *node, const lp_run *run);
void LP_FAST(softmax_loss_gradient)(const lp_node *node, const lp_run *run);
void LP_FAST(bce_loss)(const lp_node *node, const lp_run *run);
void LP_FAST(bce_loss_gradient)(const lp_node *node, const lp_run *run);

/* lp_ranking_kernels */
void LP_FAST(scores)(int cases, int items, int dims, const float *state, const float *table, const float *bias,
                     float *scores);
int LP_FAST(count_at_least)(int count, const float *scores, float threshold);
void LP_FAST(row_scores)(int items, int dims, const float *state, const float *table, const float *bias, float *scores);
void LP_FAST(transposed_scores)(int items, int dims, const float *state, const float *transposed, size_t stride,
                                const float *bias, float *scores);
double LP_FAST(log_sum)(int count, const float *scores);

/* lp_cpu_adam */
float LP_FAST(adam_norm)(size_t count, float l2, const float *parameters, float *gradients);
void LP_FAST(adam_add)(size_t count, float *sum, const float *gradients);
void LP_FAST(adam_step)(size_t count, const lp_adam_factors *factors, float rate, float *parameters, float *moment1,
                        float *moment2, const float *gradients);
/* lp_cpu_fma_loop */
double LP_FAST(fma_loop)(int turns, float *sink);

/* By op; NULL: the reference kernel is fast enough. */
extern const lp_kernel LP_FAST(kernels)[LP_OP_COUNT];

/* Data of input or output i of `node`; NULL if absent or unused. */
#define INPUT(i) ((const float *)(node->inputs[i] ? lp_run_data(run, node->inputs[i]) : NULL))
#define OUTPUT(i) ((float *)(node->outputs[i] ? lp_run_data(run, node->outputs[i]) : NULL))
/* Whether output i accumulates. */
#define ADDED(i) ((node->accumulate >> (i)&1) != 0)

static inline size_t element_count(const lp_run *run, const lp_value *value)
{
    return (size_t)lp_run_rows(run, value) * (size_t)value->cols;
}

#endif
