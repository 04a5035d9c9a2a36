/* cuda_rules.cu: the table of rules. */
#include "backend/cuda/cuda_rules.h"

namespace
{

constexpr lp_step_role MAIN = LP_ROLE_MAIN, OTHER = LP_ROLE_OTHER, MORE = LP_ROLE_MORE, TABLE = LP_ROLE_TABLE,
                       IDS = LP_ROLE_IDS, FACTORS = LP_ROLE_FACTORS;
constexpr int OUTPUT = LP_NODE_INPUTS; /* the first output, as an index of lp_cuda_rule.table */

constexpr lp_cuda_rule rule(lp_op_id id, unsigned copies = 0, unsigned either = 0)
{
    return {id, {}, {LP_REDUCTION_NONE, 0, -1, -1, -1, 1}, 0, false, 0, -1, copies, either};
}

constexpr lp_cuda_rule step(lp_cuda_rule all, lp_step_rule step)
{
    all.step = step;
    return all;
}

constexpr lp_cuda_rule sum(lp_cuda_rule all, lp_reduction_rule reduction)
{
    all.reduction = reduction;
    return all;
}

constexpr lp_cuda_rule by_id(lp_cuda_rule all, unsigned ids, int table)
{
    all.by_id = ids;
    all.table = table;
    return all;
}

constexpr lp_cuda_rule loss(lp_cuda_rule all, unsigned together, bool ordered)
{
    all.together = together;
    all.ordered = ordered;
    return all;
}

const lp_cuda_rule rules[] = {
    /* Steps: outputs, roles, pairs, commutes. */
    step(rule(LP_OP_ADD), {1, {MAIN, OTHER}, false, true}),
    step(rule(LP_OP_RELU, 0, 1), {1, {MAIN}}),
    step(rule(LP_OP_RELU_GRADIENT, 0, 1 | 2), {1, {OTHER, MAIN}}),
    step(rule(LP_OP_MULTIPLY), {1, {MAIN, OTHER}}),
    step(rule(LP_OP_AFFINE), {1, {MAIN}}),
    step(rule(LP_OP_SCALE_COLUMNS), {1, {MAIN, FACTORS}}),
    step(rule(LP_OP_DROPOUT, 0, 1), {1, {MAIN}}),
    step(rule(LP_OP_LINEAR, 1 | 2), {1, {MAIN, LP_ROLE_WEIGHT, FACTORS, OTHER}}),
    step(rule(LP_OP_LAYER_NORM), {1 | 2, {MAIN, FACTORS, LP_ROLE_SHIFTS}}),
    step(rule(LP_OP_EMBED), {1, {TABLE, IDS}}),
    step(rule(LP_OP_BASIS), {1, {LP_ROLE_TIME, FACTORS}, true}),
    step(rule(LP_OP_REFLECT, 0, 1), {1, {MAIN, OTHER}, true}),
    step(rule(LP_OP_REFLECT_GRADIENT, 0, 1 | 4), {1 | 2, {MORE, OTHER, MAIN}, true}),
    /* Sums: type, outputs, p, q, extra, halves. */
    sum(rule(LP_OP_LINEAR_OUTER, 1 | 2), {LP_REDUCTION_OUTER, 1 | 2, 0, 1, -1, 1}),
    sum(rule(LP_OP_COLUMN_SUM), {LP_REDUCTION_COLUMN, 1, 0, -1, -1, 1}),
    sum(rule(LP_OP_COLUMN_DOT), {LP_REDUCTION_DOT, 1, 0, 1, -1, 1}),
    sum(rule(LP_OP_BASIS_GRADIENT), {LP_REDUCTION_BASIS, 1, 1, 2, 0, 2}),
    /* Both: the gradient by row, and those of gain and shift. */
    sum(step(rule(LP_OP_LAYER_NORM_GRADIENT), {1, {OTHER, FACTORS, MORE, MAIN}}),
        {LP_REDUCTION_NORM, 2 | 4, 0, 3, 2, 1}),
    step(rule(LP_OP_GATHER), {0, {TABLE, IDS}}), /* by its launcher alone */
    rule(LP_OP_ATTENTION, 1 | 2 | 4 | 8 | 16),
    rule(LP_OP_ATTENTION_GRADIENT, 1 | 2 | 4 | 8 | 16 | 1 << 7 | 1 << 9, 1 << 8),
    /* Losses, and gradients by id. */
    loss(rule(LP_OP_SAMPLED_LOSS), 2, true),
    by_id(loss(rule(LP_OP_SAMPLED_LOSS_GRADIENT), 1, false), 4 | 8, 1),
    by_id(rule(LP_OP_EMBED_GRADIENT), 2, OUTPUT),
};

} // namespace

const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node)
{
    static const lp_cuda_rule none = rule(LP_OP_COUNT);
    for (const lp_cuda_rule &one : rules)
        if (one.id == node->op->id)
            return &one;
    return &none;
}
