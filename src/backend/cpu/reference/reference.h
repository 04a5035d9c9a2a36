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

void LP_REFERENCE(add)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(linear)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(linear_outer)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(column_sum)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(column_dot)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(scale_columns)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(transpose)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(embed)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(embed_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(embed_pair)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(gather)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(relu)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(relu_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(dropout)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(layer_norm)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(layer_norm_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(harmonics)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(harmonics_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(basis)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(basis_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(reflect)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(reflect_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(attention)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(attention_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(cache_append)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(attention_cached)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(cross_entropy)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(cross_entropy_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(softmax_loss)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(softmax_loss_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(bce_loss)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(bce_loss_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(noise)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(multiply)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(affine)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(exp)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(tanh)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(tanh_gradient)(const lp_node *node, const lp_run *run);
void LP_REFERENCE(mask)(const lp_node *node, const lp_run *run);

extern const lp_kernel LP_REFERENCE(kernels)[LP_OP_COUNT];

/* Data of input or output i of `node`; NULL if absent or unused. */
#define INPUT(i) ((const real *)(node->inputs[i] ? lp_run_data(run, node->inputs[i]) : NULL))
#define OUTPUT(i) ((real *)(node->outputs[i] ? lp_run_data(run, node->outputs[i]) : NULL))

/* target = amount, or target += amount if output i accumulates. */
#define STORE(i, target, amount) ((target) = (real)((node->accumulate >> (i)&1) ? (target) + (amount) : (amount)))

#endif
