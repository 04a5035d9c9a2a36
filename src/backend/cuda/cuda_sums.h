/* cuda_sums.h: sums over rows, all that are ready in one go.
 *
 * Gradients of weights, biases, gains and frequencies are sums over all rows of what lies in memory already. Each by itself is too
 * little to keep the device busy, and all of them together read no more than a few tens of megabytes. So a group of them is two
 * launches: one in which every block sums some rows of one of them, and one that adds up what the blocks have.
 */
#ifndef LP_CUDA_SUMS_H
#define LP_CUDA_SUMS_H

#include "backend/cuda/cuda_stage.h"

/* Pieces that a group may have. */
enum { LP_CUDA_SUMS_MOST = 32 };

/* Whether a node may go into a group, and which of its outputs that are wanted. */
bool lp_cuda_sums_takes(const lp_node *node, unsigned *outputs);

/* Computes up to LP_CUDA_SUMS_MOST pieces. None may read what another writes. Several may have the same output if all but the first of
 * them add to it. */
void lp_cuda_sums(const lp_stage_piece *pieces, int count, const lp_cuda_run *run);

/* All of a node that the group takes, as a group of its own. */
void lp_cuda_sums_alone(const lp_node *node, const lp_cuda_run *run);

#endif
