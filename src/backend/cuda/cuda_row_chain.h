/* cuda_row_chain.h: nodes that work row by row, of any width and in every precision, as one launch.
 *
 * The kernel interprets a short list of steps (cuda_steps.h). A team of lanes takes a row through all of them: part of a warp, a
 * warp, or for wide rows a block. Every lane has the same columns of all values, so that the result of a step stays in its
 * registers for the next one. The team synchronizes between steps, so a step may read any column of the row that an earlier one
 * stored. Nodes of cosines and sines take a thread for some pairs of a row, which is the same in all steps: a chain has only nodes
 * with the same number of them (lp_step_frequencies).
 *
 * Sums over the columns have the same order in every launch.
 */
#ifndef LP_CUDA_ROW_CHAIN_H
#define LP_CUDA_ROW_CHAIN_H

#include "backend/cuda/cuda_steps.h"

enum { LP_ROW_CHAIN_STEPS = 12 }; /* of a launch, at most */

/* The outputs (bits) of a node that a chain can compute; 0: none. */
unsigned lp_cuda_row_chain_supports(const lp_node *node);

/* Launches the parts of a stage as one chain. */
void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run);

#endif
