/* cuda_rules.cu: the table of rules. */
#include "backend/cuda/cuda_rules.h"

namespace
{

constexpr unsigned EITHER = LP_FUSED_NARROW | LP_FUSED_WIDE, NARROW = LP_FUSED_NARROW, WIDE = LP_FUSED_WIDE;
constexpr int OUTPUT =
    LP_NODE_INPUTS; /* the first output, as an index of lp_fused_rule.moments and lp_cuda_rule.table */

constexpr lp_fused_rule NOT_FUSED = {0, 0, -1, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, 0};
constexpr lp_reduction_rule NO_SUM = {LP_REDUCTION_NONE, 0, -1, -1, -1, 1};
constexpr lp_cuda_rule NO_RULE = {LP_OP_COUNT, NOT_FUSED, NO_SUM, LP_PACK_NONE, 0, false, 0, -1, 0, 0};

/* A step of a fused kernel, and nothing else. */
constexpr lp_cuda_rule step(lp_op_id id, lp_fused_rule fused, lp_pack_rule pack = LP_PACK_NONE, unsigned copies = 0,
                            unsigned either = 0)
{
    return {id, fused, NO_SUM, pack, 0, false, 0, -1, copies, either};
}

constexpr lp_cuda_rule sum(lp_op_id id, lp_reduction_rule reduction, unsigned copies = 0)
{
    return {id, NOT_FUSED, reduction, LP_PACK_NONE, 0, false, 0, -1, copies, 0};
}

const lp_cuda_rule rules[] = {
    /* Steps: outputs, by_row, main, wide, other, factors, shifts, weight, ids, time, moments, flags. */
    step(LP_OP_ADD, {1, 1 | 2, 0, -1, {1, -1}, -1, -1, -1, -1, -1, -1, NARROW | LP_FUSED_COMMUTES}),
    step(LP_OP_RELU, {1, 1, 0, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, NARROW}, LP_PACK_NONE, 0, 1),
    step(LP_OP_RELU_GRADIENT, {1, 1 | 2, 1, -1, {0, -1}, -1, -1, -1, -1, -1, -1, NARROW}, LP_PACK_NONE, 0, 1 | 2),
    step(LP_OP_MULTIPLY, {1, 1 | 2, 0, -1, {1, -1}, -1, -1, -1, -1, -1, -1, NARROW}),
    step(LP_OP_AFFINE, {1, 1, 0, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, NARROW}),
    step(LP_OP_SCALE_COLUMNS, {1, 1, 0, -1, {-1, -1}, 1, -1, -1, -1, -1, -1, NARROW}, LP_PACK_SCALE),
    step(LP_OP_DROPOUT, {1, 1, 0, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, NARROW | LP_FUSED_DROPS}, LP_PACK_NONE, 0, 1),
    step(LP_OP_LINEAR, {1, 1 | 8, 0, 0, {3, -1}, 2, -1, 1, -1, -1, -1, EITHER}, LP_PACK_WEIGHT, 1 | 2),
    step(LP_OP_LAYER_NORM, {1 | 2, 1, 0, -1, {-1, -1}, 1, 2, -1, -1, -1, OUTPUT + 1, NARROW}),
    step(LP_OP_EMBED, {1, 2, -1, -1, {-1, -1}, -1, -1, -1, 1, -1, -1, NARROW}),
    step(LP_OP_BASIS, {1, 1, -1, -1, {-1, -1}, 1, -1, -1, -1, 0, -1, WIDE | LP_FUSED_KEEPS_REGISTERS}),
    step(LP_OP_REFLECT, {1, 1 | 2, -1, 0, {1, -1}, -1, -1, -1, -1, -1, -1, WIDE | LP_FUSED_KEEPS_REGISTERS},
         LP_PACK_NONE, 0, 1),
    step(LP_OP_REFLECT_GRADIENT,
         {1 | 2,
          1 | 2 | 4,
          -1,
          2,
          {1, 0},
          -1,
          -1,
          -1,
          -1,
          -1,
          -1,
          WIDE | LP_FUSED_KEEPS_REGISTERS | LP_FUSED_OVERWRITES_X},
         LP_PACK_NONE, 0, 1 | 4),
    /* Sums: type, outputs, p, q, extra, halves. */
    sum(LP_OP_LINEAR_OUTER, {LP_REDUCTION_OUTER, 1 | 2, 0, 1, -1, 1}, 1 | 2),
    sum(LP_OP_COLUMN_SUM, {LP_REDUCTION_COLUMN, 1, 0, -1, -1, 1}),
    sum(LP_OP_COLUMN_DOT, {LP_REDUCTION_DOT, 1, 0, 1, -1, 1}),
    sum(LP_OP_BASIS_GRADIENT, {LP_REDUCTION_BASIS, 1, 1, 2, 0, 2}),
    /* Both: the gradient by row, and those of gain and shift. */
    {LP_OP_LAYER_NORM_GRADIENT,
     {1, 1 | 4 | 8, 3, -1, {0, 2}, 1, -1, -1, -1, -1, 2, NARROW},
     {LP_REDUCTION_NORM, 2 | 4, 0, 3, 2, 1},
     LP_PACK_NONE,
     0,
     false,
     0,
     -1,
     0,
     0},
    /* Nodes that the first pack of a step runs. */
    step(LP_OP_GATHER, {0, 2, -1, -1, {-1, -1}, -1, -1, -1, 1, -1, -1, 0}, LP_PACK_RUN),
    step(LP_OP_HARMONICS, NOT_FUSED, LP_PACK_RUN),
    step(LP_OP_ATTENTION, NOT_FUSED, LP_PACK_NONE, 1 | 2 | 4 | 8 | 16),
    step(LP_OP_ATTENTION_GRADIENT, NOT_FUSED, LP_PACK_NONE, 1 | 2 | 4 | 8 | 16 | 1 << 7 | 1 << 9, 1 << 8),
    /* Losses, and gradients by id. */
    {LP_OP_SAMPLED_LOSS, NOT_FUSED, NO_SUM, LP_PACK_NONE, 2, true, 0, -1, 0, 0},
    {LP_OP_SAMPLED_LOSS_GRADIENT, NOT_FUSED, NO_SUM, LP_PACK_NONE, 1, false, 4 | 8, 1, 0, 0},
    {LP_OP_EMBED_GRADIENT, NOT_FUSED, NO_SUM, LP_PACK_NONE, 0, false, 2, OUTPUT, 0, 0},
};

} // namespace

const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node)
{
    static const lp_cuda_rule none = NO_RULE;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].id == node->op->id)
            return &rules[i];
    return &none;
}
