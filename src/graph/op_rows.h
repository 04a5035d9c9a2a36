/* op_rows.h: the rows of the op table, defined in the op_*.c of each family. */
#ifndef LP_OP_ROWS_H
#define LP_OP_ROWS_H

#include "graph/op.h"

/* op_basic.c */
extern const lp_op lp_op_add, lp_op_embed, lp_op_embed_gradient, lp_op_embed_pair, lp_op_gather, lp_op_relu,
    lp_op_relu_gradient, lp_op_dropout;
/* op_linear.c */
extern const lp_op lp_op_linear, lp_op_linear_outer, lp_op_column_sum, lp_op_column_dot, lp_op_scale_columns,
    lp_op_transpose;
/* op_norm.c */
extern const lp_op lp_op_layer_norm, lp_op_layer_norm_gradient;
/* op_time.c */
extern const lp_op lp_op_harmonics, lp_op_harmonics_gradient, lp_op_basis, lp_op_basis_gradient, lp_op_reflect,
    lp_op_reflect_gradient;
/* op_attention.c */
extern const lp_op lp_op_attention, lp_op_attention_gradient;
/* op_cache.c */
extern const lp_op lp_op_cache_append, lp_op_attention_cached;
/* op_loss.c */
extern const lp_op lp_op_cross_entropy, lp_op_cross_entropy_gradient, lp_op_softmax_loss, lp_op_softmax_loss_gradient,
    lp_op_bce_loss, lp_op_bce_loss_gradient;
/* op_flow.c */
extern const lp_op lp_op_noise, lp_op_multiply, lp_op_affine, lp_op_exp, lp_op_tanh, lp_op_tanh_gradient, lp_op_mask;

#endif
