/* reference_table.c: the plain kernel of every op. */
#include "backend/cpu/reference/reference.h"

const lp_kernel LP_REFERENCE(kernels)[LP_OP_COUNT] = {
    [LP_OP_ADD] = LP_REFERENCE(add),
    [LP_OP_LINEAR] = LP_REFERENCE(linear),
    [LP_OP_LINEAR_OUTER] = LP_REFERENCE(linear_outer),
    [LP_OP_COLUMN_SUM] = LP_REFERENCE(column_sum),
    [LP_OP_COLUMN_DOT] = LP_REFERENCE(column_dot),
    [LP_OP_SCALE_COLUMNS] = LP_REFERENCE(scale_columns),
    [LP_OP_EMBED] = LP_REFERENCE(embed),
    [LP_OP_EMBED_GRADIENT] = LP_REFERENCE(embed_gradient),
    [LP_OP_RELU] = LP_REFERENCE(relu),
    [LP_OP_RELU_GRADIENT] = LP_REFERENCE(relu_gradient),
    [LP_OP_DROPOUT] = LP_REFERENCE(dropout),
    [LP_OP_LAYER_NORM] = LP_REFERENCE(layer_norm),
    [LP_OP_LAYER_NORM_GRADIENT] = LP_REFERENCE(layer_norm_gradient),
    [LP_OP_HARMONICS] = LP_REFERENCE(harmonics),
    [LP_OP_HARMONICS_GRADIENT] = LP_REFERENCE(harmonics_gradient),
    [LP_OP_BASIS] = LP_REFERENCE(basis),
    [LP_OP_BASIS_GRADIENT] = LP_REFERENCE(basis_gradient),
    [LP_OP_REFLECT] = LP_REFERENCE(reflect),
    [LP_OP_REFLECT_GRADIENT] = LP_REFERENCE(reflect_gradient),
    [LP_OP_ATTENTION] = LP_REFERENCE(attention),
    [LP_OP_ATTENTION_GRADIENT] = LP_REFERENCE(attention_gradient),
    [LP_OP_CROSS_ENTROPY] = LP_REFERENCE(cross_entropy),
    [LP_OP_CROSS_ENTROPY_GRADIENT] = LP_REFERENCE(cross_entropy_gradient),
};
