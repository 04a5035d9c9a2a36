/* cuda_rules.cu: the table of rules. */
#include "backend/cuda/cuda_rules.h"

namespace
{

constexpr lp_step_role MAIN = LP_ROLE_MAIN, OTHER = LP_ROLE_OTHER, MORE = LP_ROLE_MORE, TABLE = LP_ROLE_TABLE,
                       IDS = LP_ROLE_IDS, FACTORS = LP_ROLE_FACTORS;
constexpr int OUTPUT = LP_NODE_INPUTS; /* the first output, as an index of lp_cuda_rule.table */

/* The set of inputs or outputs with these indices. */
template <typename... indices> constexpr unsigned set(indices... index)
{
    return (0u | ... | (1u << index));
}

const lp_cuda_rule rules[] = {
    {.id = LP_OP_ADD, .step = {.outputs = set(0), .role = {MAIN, OTHER}, .commutes = true}},
    {.id = LP_OP_RELU, .either = set(0), .step = {.outputs = set(0), .role = {MAIN}}},
    {.id = LP_OP_RELU_GRADIENT, .either = set(0, 1), .step = {.outputs = set(0), .role = {OTHER, MAIN}}},
    {.id = LP_OP_MULTIPLY, .step = {.outputs = set(0), .role = {MAIN, OTHER}}},
    {.id = LP_OP_AFFINE, .step = {.outputs = set(0), .role = {MAIN}}},
    {.id = LP_OP_SCALE_COLUMNS, .step = {.outputs = set(0), .role = {MAIN, FACTORS}}},
    {.id = LP_OP_DROPOUT, .either = set(0), .step = {.outputs = set(0), .role = {MAIN}}},
    {.id = LP_OP_LINEAR,
     .copies = set(0, 1),
     .step = {.outputs = set(0), .role = {MAIN, LP_ROLE_WEIGHT, FACTORS, OTHER}}},
    {.id = LP_OP_LAYER_NORM, .step = {.outputs = set(0, 1), .role = {MAIN, FACTORS, LP_ROLE_SHIFTS}}},
    {.id = LP_OP_EMBED, .step = {.outputs = set(0), .role = {TABLE, IDS}}},
    {.id = LP_OP_GATHER, .step = {.role = {TABLE, IDS}}}, /* by its launcher alone */
    {.id = LP_OP_BASIS, .step = {.outputs = set(0), .role = {LP_ROLE_TIME, FACTORS}, .pairs = true}},
    {.id = LP_OP_REFLECT, .either = set(0), .step = {.outputs = set(0), .role = {MAIN, OTHER}, .pairs = true}},
    {.id = LP_OP_REFLECT_GRADIENT,
     .either = set(0, 2),
     .step = {.outputs = set(0, 1), .role = {MORE, OTHER, MAIN}, .pairs = true}},
    {.id = LP_OP_LINEAR_OUTER,
     .copies = set(0, 1),
     .reduction = {.type = LP_REDUCTION_OUTER, .outputs = set(0, 1), .p = 0, .q = 1}},
    {.id = LP_OP_COLUMN_SUM, .reduction = {.type = LP_REDUCTION_COLUMN, .outputs = set(0), .p = 0}},
    {.id = LP_OP_COLUMN_DOT, .reduction = {.type = LP_REDUCTION_DOT, .outputs = set(0), .p = 0, .q = 1}},
    {.id = LP_OP_BASIS_GRADIENT,
     .reduction = {.type = LP_REDUCTION_BASIS, .outputs = set(0), .p = 1, .q = 2, .extra = 0}},
    /* Both: the gradient by row, and those of gain and shift. */
    {.id = LP_OP_LAYER_NORM_GRADIENT,
     .step = {.outputs = set(0), .role = {OTHER, FACTORS, MORE, MAIN}},
     .reduction = {.type = LP_REDUCTION_NORM, .outputs = set(1, 2), .p = 0, .q = 3, .extra = 2}},
    {.id = LP_OP_ATTENTION, .copies = set(0, 1, 2, 3, 4)},
    {.id = LP_OP_ATTENTION_GRADIENT, .copies = set(0, 1, 2, 3, 4, 7, 9), .either = set(8)},
    {.id = LP_OP_SAMPLED_LOSS, .together = set(1), .ordered = true},
    {.id = LP_OP_SAMPLED_LOSS_GRADIENT, .together = set(0), .by_id = set(2, 3), .table = 1},
    {.id = LP_OP_EMBED_GRADIENT, .by_id = set(1), .table = OUTPUT},
    {.id = LP_OP_COUNT}, /* the rule of all other ops */
};

} // namespace

const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node)
{
    const lp_cuda_rule *rule = rules;
    while (rule->id != node->op->id && rule->id != LP_OP_COUNT)
        rule++;
    return rule;
}
