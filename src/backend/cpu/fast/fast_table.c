/* fast_table.c: the ops that have a fast kernel. */
#include "backend/cpu/fast/fast.h"

const lp_kernel LP_FAST(kernels)[LP_OP_COUNT] = {
    [LP_OP_ADD] = LP_FAST(add),
    [LP_OP_LINEAR] = LP_FAST(linear),
    [LP_OP_LINEAR_OUTER] = LP_FAST(linear_outer),
    [LP_OP_COLUMN_SUM] = LP_FAST(column_sum),
    [LP_OP_COLUMN_DOT] = LP_FAST(column_dot),
    [LP_OP_SCALE_COLUMNS] = LP_FAST(scale_columns),
    [LP_OP_EMBED] = LP_FAST(embed),
    [LP_OP_EMBED_GRADIENT] = LP_FAST(embed_gradient),
    [LP_OP_RELU] = LP_FAST(relu),
    [LP_OP_RELU_GRADIENT] = LP_FAST(relu_gradient),
    [LP_OP_DROPOUT] = LP_FAST(dropout),
    [LP_OP_LAYER_NORM] = LP_FAST(layer_norm),
    [LP_OP_LAYER_NORM_GRADIENT] = LP_FAST(layer_norm_gradient),
    [LP_OP_BASIS] = LP_FAST(basis),
    [LP_OP_BASIS_GRADIENT] = LP_FAST(basis_gradient),
    [LP_OP_REFLECT] = LP_FAST(reflect),
    [LP_OP_REFLECT_GRADIENT] = LP_FAST(reflect_gradient),
    [LP_OP_ATTENTION] = LP_FAST(attention),
    [LP_OP_ATTENTION_GRADIENT] = LP_FAST(attention_gradient),
    [LP_OP_CROSS_ENTROPY] = LP_FAST(cross_entropy),
    [LP_OP_CROSS_ENTROPY_GRADIENT] = LP_FAST(cross_entropy_gradient),
};
