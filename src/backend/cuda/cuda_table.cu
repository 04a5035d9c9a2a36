/* cuda_table.cu: the launcher of every op. */
#include "backend/cuda/cuda_reduction.h"

#include <initializer_list>

/* Filled by its constructor, because C++17 has no designated initializers for arrays. */
static const struct kernel_table {
#define LP_CUDA_ADDRESS(id, name) lp_cuda_##name,
    lp_cuda_kernel by_op[LP_OP_COUNT] = {LP_OPS(LP_CUDA_ADDRESS)};

    kernel_table()
    {
        for (lp_op_id id : {LP_OP_ADD, LP_OP_RELU, LP_OP_RELU_GRADIENT, LP_OP_MULTIPLY, LP_OP_AFFINE,
                            LP_OP_SCALE_COLUMNS, LP_OP_EMBED, LP_OP_GATHER, LP_OP_DROPOUT, LP_OP_LAYER_NORM,
                            LP_OP_LAYER_NORM_GRADIENT, LP_OP_BASIS, LP_OP_REFLECT, LP_OP_REFLECT_GRADIENT})
            by_op[id] = lp_cuda_row_node;
        for (lp_op_id id : {LP_OP_LINEAR_OUTER, LP_OP_COLUMN_SUM, LP_OP_COLUMN_DOT, LP_OP_BASIS_GRADIENT})
            by_op[id] = lp_cuda_reduce_node;
    }
} table;

lp_cuda_kernel lp_cuda_kernel_of(lp_op_id id)
{
    return table.by_op[id];
}
