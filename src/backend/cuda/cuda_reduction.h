/* cuda_reduction.h: sums over rows, grouped into as few launches as possible.
 *
 * Gradients of weights, biases, gains and frequencies are sums over all rows of values in global memory. One of them is too small to fill the
 * device, and all of them together read a few tens of megabytes. So a group of reductions is two launches: in the first, every block sums
 * some rows of one reduction; the second adds the partial sums of the blocks.
 */
#ifndef LP_CUDA_REDUCTION_H
#define LP_CUDA_REDUCTION_H

#include "backend/cuda/cuda_stage.h"

enum { LP_CUDA_REDUCTION_MAX = LP_STAGE_PARTS };

/* Whether an outer product has enough columns to be multiplied in bf16 by warpgroups (cuda_outer.cu). */
bool lp_cuda_outer_wide(const lp_node *node);

/* Computes a group of up to LP_CUDA_REDUCTION_MAX independent parts. Several parts may have the same output if all but the first
 * accumulate into it. */
void lp_cuda_reduce(const lp_stage_part *parts, int count, const lp_cuda_run *run);

/* The outputs of one node that are sums over rows (lp_reduction_rule), as a group of one. */
void lp_cuda_reduce_node(const lp_node *node, const lp_cuda_run *run);

#endif
