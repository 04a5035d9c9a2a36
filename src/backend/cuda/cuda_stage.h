/* cuda_stage.h: the launches of a step, each of which takes several nodes where it can.
 *
 * A step of training is a hundred and more nodes, most of which move a few megabytes: as kernels of their own they take longer to start,
 * to ask for their rows and to write them back than to compute. So nodes are put together in stages, one launch each:
 *
 *   chain   nodes that make every row from the same row of their inputs. A block takes some rows through all of them, and what only
 *           the chain itself reads never leaves shared memory (cuda_chain.h)
 *   sums    nodes that sum over rows, such as the gradients of weights: one launch for all that are ready (cuda_sums.h)
 *   node    any other by itself
 *
 * A node whose outputs are partly rows and partly sums over them (the gradient of layer norm) is cut into two pieces.
 */
#ifndef LP_CUDA_STAGE_H
#define LP_CUDA_STAGE_H

#include "backend/cuda/cuda.h"

typedef enum lp_cuda_stage_kind { LP_STAGE_NODE, LP_STAGE_CHAIN, LP_STAGE_SUMS } lp_cuda_stage_kind;

/* A node, as far as some of its outputs go. */
typedef struct lp_cuda_piece {
    const lp_node *node;
    int number;       /* of the node in its graph */
    unsigned outputs; /* bit i: makes output i */
} lp_cuda_piece;

/* Pieces stand in the order of their nodes. */
typedef struct lp_cuda_stage {
    lp_cuda_stage_kind kind;
    int first, count; /* of the pieces */
} lp_cuda_stage;

#endif
