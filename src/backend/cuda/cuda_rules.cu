/* cuda_rules.cu: the table of rules. */
#include "backend/cuda/cuda_rules.h"

namespace
{

constexpr lp_step_role MAIN = LP_ROLE_MAIN, OTHER = LP_ROLE_OTHER, MORE = LP_ROLE_MORE, TABLE = LP_ROLE_TABLE,
                       IDS = LP_ROLE_IDS, FACTORS = LP_ROLE_FACTORS;
constexpr int OUTPUT = LP_NODE_INPUTS; /* the first output, as an index of lp_cuda_rule.table */

/* Copies, either; the step: outputs, roles, pairs, commutes; the sum: type, outputs, p, q, extra; together, ordered, by_id, table. */
const lp_cuda_rule rules[] = {
    {LP_OP_ADD, 0, 0, {1, {MAIN, OTHER}, false, true}},
    {LP_OP_RELU, 0, 1, {1, {MAIN}}},
    {LP_OP_RELU_GRADIENT, 0, 1 | 2, {1, {OTHER, MAIN}}},
    {LP_OP_MULTIPLY, 0, 0, {1, {MAIN, OTHER}}},
    {LP_OP_AFFINE, 0, 0, {1, {MAIN}}},
    {LP_OP_SCALE_COLUMNS, 0, 0, {1, {MAIN, FACTORS}}},
    {LP_OP_DROPOUT, 0, 1, {1, {MAIN}}},
    {LP_OP_LINEAR, 1 | 2, 0, {1, {MAIN, LP_ROLE_WEIGHT, FACTORS, OTHER}}},
    {LP_OP_LAYER_NORM, 0, 0, {1 | 2, {MAIN, FACTORS, LP_ROLE_SHIFTS}}},
    {LP_OP_EMBED, 0, 0, {1, {TABLE, IDS}}},
    {LP_OP_GATHER, 0, 0, {0, {TABLE, IDS}}}, /* by its launcher alone */
    {LP_OP_BASIS, 0, 0, {1, {LP_ROLE_TIME, FACTORS}, true}},
    {LP_OP_REFLECT, 0, 1, {1, {MAIN, OTHER}, true}},
    {LP_OP_REFLECT_GRADIENT, 0, 1 | 4, {1 | 2, {MORE, OTHER, MAIN}, true}},
    {LP_OP_LINEAR_OUTER, 1 | 2, 0, {}, {LP_REDUCTION_OUTER, 1 | 2, 0, 1}},
    {LP_OP_COLUMN_SUM, 0, 0, {}, {LP_REDUCTION_COLUMN, 1, 0}},
    {LP_OP_COLUMN_DOT, 0, 0, {}, {LP_REDUCTION_DOT, 1, 0, 1}},
    {LP_OP_BASIS_GRADIENT, 0, 0, {}, {LP_REDUCTION_BASIS, 1, 1, 2, 0}},
    /* Both: the gradient by row, and those of gain and shift. */
    {LP_OP_LAYER_NORM_GRADIENT, 0, 0, {1, {OTHER, FACTORS, MORE, MAIN}}, {LP_REDUCTION_NORM, 2 | 4, 0, 3, 2}},
    {LP_OP_ATTENTION, 1 | 2 | 4 | 8 | 16},
    {LP_OP_ATTENTION_GRADIENT, 1 | 2 | 4 | 8 | 16 | 1 << 7 | 1 << 9, 1 << 8},
    {LP_OP_SAMPLED_LOSS, 0, 0, {}, {}, 2, true},
    {LP_OP_SAMPLED_LOSS_GRADIENT, 0, 0, {}, {}, 1, false, 4 | 8, 1},
    {LP_OP_EMBED_GRADIENT, 0, 0, {}, {}, 0, false, 2, OUTPUT},
    {LP_OP_COUNT}, /* the rule of all others */
};

} // namespace

const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node)
{
    const lp_cuda_rule *rule = rules;
    while (rule->id != node->op->id && rule->id != LP_OP_COUNT)
        rule++;
    return rule;
}
