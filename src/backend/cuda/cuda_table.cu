/* cuda_table.cu: the launcher of every op, and of one without a node. */
#include "backend/cuda/cuda_reduction.h"

#include <initializer_list>

/* Filled by its constructor, because C++17 has no designated initializers for arrays. */
static const struct kernel_table {
#define LP_CUDA_ADDRESS(id, name) lp_cuda_##name,
    lp_cuda_kernel by_op[LP_OP_COUNT] = {LP_OPS(LP_CUDA_ADDRESS)};

    kernel_table()
    {
        for (lp_op_id id : {LP_OP_SCALE_COLUMNS, LP_OP_EMBED, LP_OP_GATHER, LP_OP_DROPOUT, LP_OP_LAYER_NORM,
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

/* The arrays are inputs of a run of its own. */
void lp_cuda_outer(const lp_cuda_run *run, lp_cuda_rows rows, const float *p, int p_cols, const float *q, int q_cols,
                   float *out, int out_adds, float *sums, int sums_adds)
{
    void *data[] = {(void *)p, (void *)q, out, sums};
    lp_value values[4] = {};
    lp_op op = {}; /* the plugin has no op table */
    op.id = out ? LP_OP_LINEAR_OUTER : LP_OP_COLUMN_SUM;
    lp_node node = {};
    node.op = &op;
    node.attributes.heads = 1;
    for (int i = 0; i < 4; i++) {
        values[i].storage = LP_STORAGE_INPUT;
        values[i].slot = i;
        values[i].rows_of = i < 2 ? (lp_rows)rows.type : LP_ROWS_FIXED;
        values[i].rows = i < 2 ? rows.fixed : i == 2 ? p_cols : 1;
        values[i].cols = i % 3 ? q_cols : p_cols;
    }
    node.inputs[0] = &values[0];
    node.inputs[1] = out ? &values[1] : NULL;
    node.outputs[0] = out ? &values[2] : sums ? &values[3] : NULL;
    node.outputs[1] = out && sums ? &values[3] : NULL;
    node.accumulate = out ? (unsigned)(out_adds | sums_adds << 1) : (unsigned)sums_adds;
    lp_run given = *run->run;
    given.inputs = data;
    lp_cuda_run with = *run;
    with.run = &given;
    with.copies = NULL;
    lp_cuda_reduce_node(&node, &with);
}
