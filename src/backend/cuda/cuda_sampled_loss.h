/* cuda_sampled_loss.h: the loss of sampled negatives and the gradient of its states in one launch: the gradient reuses the
 * scores. */
#ifndef LP_CUDA_SAMPLED_LOSS_H
#define LP_CUDA_SAMPLED_LOSS_H

#include "backend/cuda/cuda.h"

/* loss: a sampled_loss node. gradient: its sampled_loss_gradient node, of which only the first output (dz) is computed. */
void lp_cuda_sampled_loss_fused(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run);

/* Whether `gradient` is the gradient of `loss`. */
static inline bool lp_cuda_sampled_loss_fusable(const lp_node *loss, const lp_node *gradient)
{
    return loss->op->id == LP_OP_SAMPLED_LOSS && gradient->op->id == LP_OP_SAMPLED_LOSS_GRADIENT &&
           loss->outputs[1] == gradient->inputs[4];
}

#endif
