#include "backend/cuda/cuda_sums.h"
unsigned lp_cuda_sums_takes(const lp_node *node)
{
    switch (node->op->id) {
    case LP_OP_LINEAR_OUTER: case LP_OP_COLUMN_SUM: case LP_OP_COLUMN_DOT: case LP_OP_BASIS_GRADIENT: return ~0u;
    case LP_OP_LAYER_NORM_GRADIENT: return 6;
    default: return 0;
    }
}
void lp_cuda_sums(const lp_stage_piece *pieces, int count, const lp_cuda_run *run)
{
    for (int i = 0; i < count; i++) {
        lp_node node = *pieces[i].node;
        for (int k = 0; k < node.op->output_count; k++)
            if (!lp_piece_makes(&pieces[i], k))
                node.outputs[k] = NULL;
        lp_cuda_kernel_of(node.op->id)(&node, run);
    }
}
