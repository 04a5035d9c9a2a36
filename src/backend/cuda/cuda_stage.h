/* cuda_stage.h: the launches of a step, each of which takes several nodes where it can.
 *
 * A step of training is a hundred and more nodes, most of which move a few megabytes: as kernels of their own they take longer to start,
 * to ask for their rows and to write them back than to compute. So nodes are put together in stages, one launch each:
 *
 *   chain   nodes that make every row from the same row of their inputs. A block takes some rows through all of them, and what only
 *           the chain itself reads never leaves its registers and shared memory (cuda_chain.h)
 *   pack    weights, in the order in which the products of chains read them, for all products whose weights are ready; a parameter whose columns
 *           are scaled by another is scaled on the way. The first pack of a step takes along nodes that need nothing but parameters and inputs
 *   sums    nodes that sum over rows, such as the gradients of weights: one launch for all that are ready (cuda_sums.h)
 *   choice  the loss of a choice, and the part of its gradient that is by row (cuda_bce_loss.h)
 *   node    any other by itself
 *
 * A node whose outputs are partly rows and partly sums over them (the gradient of layer norm, a choice and its gradient) is cut into two pieces.
 *
 * A piece has to wait for those before it that write what it reads or writes, or read what it writes. Its moment is the earliest at which
 * all of these are over, where one in the same chain need not be: there the order of the pieces does. Stages of one moment do not depend
 * on one another, and may run side by side; what is lazy (lp_piece_lazy) comes last among them.
 */
#ifndef LP_CUDA_STAGE_H
#define LP_CUDA_STAGE_H

#include "backend/cuda/cuda.h"

typedef enum lp_cuda_stage_type {
    LP_STAGE_NODE,
    LP_STAGE_CHAIN,
    LP_STAGE_PACK,
    LP_STAGE_SUMS,
    LP_STAGE_CHOICE
} lp_cuda_stage_type;

/* A node, as far as some of its outputs go. */
typedef struct lp_stage_piece {
    const lp_node *node;
    int number;       /* of the node in its graph */
    unsigned outputs; /* bit i: makes output i */
} lp_stage_piece;

typedef struct lp_cuda_stage {
    lp_cuda_stage_type type;
    int moment;
    /* In the order of their nodes; of a pack: products that read what it packs, then other nodes whose work it does. */
    const lp_stage_piece *pieces;
    int count;
    bool packed; /* a node: the first pack does its work, and so it is launched only where there are none */
} lp_cuda_stage;

typedef struct lp_cuda_stages {
    lp_cuda_stage *all; /* in an order in which they may run one by one */
    int count;
    int *touches;       /* by value: how many pieces read or write it */
    size_t *packed;     /* by node: where its weight is packed, in floats; only of products in chains */
    size_t packed_size; /* of all of them */
} lp_cuda_stages;

/* Whether a stage is not launched in runs with or without chains: there are none in float, and nothing is packed for them. */
static inline bool lp_stage_left_out(const lp_cuda_stage *stage, bool chains)
{
    return chains ? stage->packed : stage->type == LP_STAGE_PACK;
}

/* Whether a piece of a pack is there for its packed weight. */
static inline bool lp_piece_is_packed(const lp_stage_piece *piece)
{
    return piece->node->op->id == LP_OP_LINEAR;
}

/* Whether the piece makes output i of its node. */
static inline bool lp_piece_makes(const lp_stage_piece *piece, int i)
{
    return piece->node->outputs[i] && (piece->outputs >> i & 1);
}

/* The node that makes the weight of a product, where a pack does its work: from parameters alone; otherwise NULL. */
static inline const lp_node *lp_cuda_packed_maker(const lp_node *product)
{
    const lp_node *producer = product->inputs[1]->producer;
    bool scales = producer && producer->op->id == LP_OP_SCALE_COLUMNS && !producer->accumulate &&
                  producer->inputs[0]->storage == LP_STORAGE_PARAMETER &&
                  producer->inputs[1]->storage == LP_STORAGE_PARAMETER;
    return scales ? producer : NULL;
}

/* Gradients of parameters: sums over rows, and what a choice adds to its items; and what its loss is. Almost nobody waits for them before the
 * end. */
static inline bool lp_piece_lazy(lp_cuda_stage_type type, const lp_stage_piece *piece)
{
    lp_op_id id = piece->node->op->id;
    bool by_item = id == LP_OP_BCE_LOSS_GRADIENT && !lp_piece_makes(piece, 0);
    bool loss = id == LP_OP_BCE_LOSS && !lp_piece_makes(piece, 1);
    return type == LP_STAGE_SUMS || (type == LP_STAGE_NODE && (by_item || loss));
}

/* one_by_one: a stage for each node, in their order. False when out of memory. */
bool lp_cuda_stages_make(const lp_graph *graph, bool one_by_one, lp_arena *arena, lp_cuda_stages *stages);

/* lp_backend.schedule */
bool lp_cuda_arrange(const lp_graph *graph, lp_schedule_level *moments);

#endif
