/* cuda_bce_loss.h: the loss of a choice and the gradient of its rows in one launch: what the second needs of the first is at hand. */
#ifndef LP_CUDA_BCE_LOSS_H
#define LP_CUDA_BCE_LOSS_H

#include "backend/cuda/cuda.h"

/* loss: a node of bce_loss. gradient: that of its bce_loss_gradient, of which the first output (dz) is made. */
void lp_cuda_bce_loss_fused(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run);

/* Whether one of these is the gradient of the other. */
static inline bool lp_cuda_bce_loss_fusable(const lp_node *loss, const lp_node *gradient)
{
    return loss->op->id == LP_OP_BCE_LOSS && gradient->op->id == LP_OP_BCE_LOSS_GRADIENT &&
           loss->outputs[1] == gradient->inputs[4];
}

#endif
