/* cuda_stage.h: groups the nodes of a step into stages, one launch each.
 *
 * A training step has more than a hundred nodes, most of which move a few megabytes. Run as separate kernels, they spend more time on
 * launch latency and memory traffic than on arithmetic. A stage is one of:
 *
 *   fused      nodes whose output rows depend only on the same rows of their inputs, as one fused kernel. A block takes some rows through
 *              all of them; values that only the kernel reads stay in registers and shared memory (cuda_fused.h)
 *   rows       the same for values of any width, but without products: a few lanes take a row through all of them (cuda_row_chain.cu)
 *   reduction  nodes that sum over rows, such as gradients of weights: one launch for all that are ready (cuda_reduction.h)
 *   product    products that add up to one value (cuda_linear.h)
 *   loss       the sampled loss together with its gradient by row (cuda_sampled_loss.cu)
 *   node       any other node
 *
 * A node with outputs of both types (the gradient of layer norm, the sampled loss and its gradient) is split into two parts.
 *
 * A part depends on the earlier parts that write what it reads or writes, or that read what it writes. Its level is one more than the
 * highest level among its dependencies; a dependency in the same fused kernel does not raise it, because the kernel runs its parts in
 * order. Products that are added up have the level of the last one. What is computed from sums over rows alone, in values of the
 * size of parameters, has the last level. Stages of one level are independent and may run concurrently.
 */
#ifndef LP_CUDA_STAGE_H
#define LP_CUDA_STAGE_H

#include "backend/cuda/cuda_rules.h"

typedef enum lp_cuda_stage_type {
    LP_STAGE_NODE,
    LP_STAGE_FUSED,
    LP_STAGE_REDUCTION,
    LP_STAGE_ROWS,
    LP_STAGE_PRODUCT,
    LP_STAGE_LOSS
} lp_cuda_stage_type;

enum { LP_STAGE_PARTS = 32 }; /* of a stage, at most */
enum { LP_PRODUCT_MOST = 3 }; /* products of a stage, at most */

/* A node, restricted to some of its outputs. */
typedef struct lp_stage_part {
    const lp_node *node;
    int number;       /* index of the node in its graph */
    unsigned outputs; /* bit i: computes output i */
    /* Of a product in a fused kernel (cuda_pack.cu): offset of the packed weight, in floats; the last stage that writes the weight before
     * it is read, or -1. */
    size_t packed = 0;
    int packed_after = -1;
} lp_stage_part;

typedef struct lp_cuda_stage {
    lp_cuda_stage_type type;
    int level;
    lp_stage_part *parts; /* in node order */
    int count;
    int first_step; /* of a fused kernel, among the steps of all */
} lp_cuda_stage;

typedef struct lp_cuda_stages {
    lp_cuda_stage *all; /* topologically sorted */
    int count;
    lp_stage_part *parts_end; /* of all stages, which follow one another */
    int step_count;           /* of all fused kernels */
    size_t packed_size;       /* floats of all packed weights */
    float *weights;           /* all packed weights, on the device */
} lp_cuda_stages;

/* The outputs of a node that there are, as bits. */
static inline unsigned lp_outputs_of(const lp_node *node)
{
    unsigned all = 0;
    for (int i = 0; i < node->op->output_count; i++)
        all |= node->outputs[i] ? 1u << i : 0;
    return all;
}

static inline bool lp_part_is_product(const lp_stage_part *part)
{
    return lp_step_input(part->node, LP_ROLE_WEIGHT) != NULL;
}

static inline bool lp_part_computes(const lp_stage_part *part, int i)
{
    return part->node->outputs[i] && (part->outputs >> i & 1);
}

static inline bool lp_part_reads(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->input_count; i++)
        found = found || part->node->inputs[i] == value;
    return found;
}

static inline bool lp_part_writes(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->output_count; i++)
        found = found || (part->node->outputs[i] == value && lp_part_computes(part, i));
    return found;
}

/* Gradients of parameters and the value of the loss: off the critical path, since little but the optimizer reads them. Their stages come
 * last in their level. */
static inline bool lp_part_off_path(lp_cuda_stage_type type, const lp_stage_part *part)
{
    unsigned together = lp_cuda_rule_of(part->node)->together;
    return type == LP_STAGE_REDUCTION || (type == LP_STAGE_NODE && together && !(part->outputs & together));
}

/* Beside fused kernels, which they would slow down, these stages have low priority. */
static inline bool lp_stage_low_priority(const lp_cuda_stages *stages, const lp_cuda_stage *stage)
{
    return stages->packed_size && lp_part_off_path(stage->type, stage->parts);
}

/* unscheduled: a stage for each node, in node order. fused: with fused kernels; otherwise their nodes are launched one by one.
 * joined: the same for products that add up. False when out of memory. */
bool lp_cuda_stages_build(const lp_graph *graph, bool unscheduled, bool fused, bool joined, lp_arena *arena,
                          lp_cuda_stages *stages);

/* lp_backend.schedule: the first and last level of each node. */
bool lp_cuda_stage_levels(const lp_graph *graph, lp_schedule_level *levels);

#endif
