/* cuda_table.cu: the launcher of every op. */
#include "backend/cuda/cuda_reduction.h"

#include <initializer_list>

/* Filled by a function, because C++17 has no designated initializers for arrays. */
struct kernel_table {
    lp_cuda_kernel by_op[LP_OP_COUNT];
};

template <lp_op_id... ops> static void set_elementwise(kernel_table *table)
{
    ((table->by_op[ops] = lp_cuda_elementwise<ops>), ...);
}

#define LP_CUDA_ADDRESS(id, name) lp_cuda_##name,

static kernel_table make_table()
{
    kernel_table table = {{LP_OPS(LP_CUDA_ADDRESS)}};
    for (lp_op_id id : {LP_OP_SCALE_COLUMNS, LP_OP_EMBED, LP_OP_GATHER, LP_OP_DROPOUT, LP_OP_LAYER_NORM,
                        LP_OP_LAYER_NORM_GRADIENT, LP_OP_BASIS, LP_OP_REFLECT, LP_OP_REFLECT_GRADIENT})
        table.by_op[id] = lp_cuda_row_node;
    for (lp_op_id id : {LP_OP_LINEAR_OUTER, LP_OP_COLUMN_SUM, LP_OP_COLUMN_DOT, LP_OP_BASIS_GRADIENT})
        table.by_op[id] = lp_cuda_reduce_node;
    set_elementwise<LP_OP_ADD, LP_OP_RELU, LP_OP_RELU_GRADIENT, LP_OP_MULTIPLY, LP_OP_AFFINE, LP_OP_EXP, LP_OP_TANH,
                    LP_OP_TANH_GRADIENT, LP_OP_LOG_ABS, LP_OP_LOG_ABS_GRADIENT>(&table);
    return table;
}

static const kernel_table table = make_table();

lp_cuda_kernel lp_cuda_kernel_of(lp_op_id id)
{
    return table.by_op[id];
}
