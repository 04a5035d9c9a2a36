/* op_loss.c: what training makes small. */
#include "graph/op_rows.h"

static void cross_entropy_shape(lp_graph *graph, lp_node *node)
{
    lp_value *logits = node->inputs[0], *target = node->inputs[1], *weight = node->inputs[2];
    if (!logits || !target || !weight || target->type != LP_TYPE_INT32 || target->cols != 1 || weight->cols != 1 ||
        target->rows_of != logits->rows_of || weight->rows_of != logits->rows_of) {
        lp_graph_mistake(graph, "cross_entropy wants one target and one weight a row");
        return;
    }
    if (target->limit == 0 || target->limit > logits->cols)
        target->limit = logits->cols;
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
}

static void cross_entropy_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->inputs[1], node->inputs[2], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_cross_entropy_gradient, inputs, NULL, &node->inputs[0]);
}

static lp_cost cross_entropy_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent, 0);
    cost.flop = 12.0 * (double)extent->tokens * node->inputs[0]->cols;
    return cost;
}

/* A row of logits, padded to whole vectors. */
static size_t cross_entropy_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return ((size_t)node->inputs[0]->cols + 15) / 16 * 16 * real_size;
}

static lp_node *cross_entropy_example(lp_graph *graph, lp_random *random)
{
    lp_value *logits = lp_example_tokens(graph, "logits", 2 + (int)lp_random_below(random, 20));
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *weight = lp_graph_input(graph, "weight", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, 1);
    lp_value *loss = lp_cross_entropy(graph, logits, target, weight);
    return loss ? loss->maker : NULL;
}

lp_value *lp_cross_entropy(lp_graph *graph, lp_value *logits, lp_value *target, lp_value *weight)
{
    lp_node *node = lp_graph_node(graph, &lp_op_cross_entropy, (lp_value *[]){logits, target, weight}, NULL);
    return node ? node->outputs[0] : NULL;
}

const lp_op lp_op_cross_entropy = {.id = LP_OP_CROSS_ENTROPY,
                                   .name = "cross_entropy",
                                   .input_count = 3,
                                   .output_count = 1,
                                   .shape = cross_entropy_shape,
                                   .gradient = cross_entropy_gradient,
                                   .cost = cross_entropy_cost,
                                   .scratch = cross_entropy_scratch,
                                   .example = cross_entropy_example};

/* (logits, target, weight, dloss [1 x 1]) -> dlogits = dloss * weight * (softmax - one at target) */
const lp_op lp_op_cross_entropy_gradient = {.id = LP_OP_CROSS_ENTROPY_GRADIENT,
                                            .name = "cross_entropy_gradient",
                                            .input_count = 4,
                                            .output_count = 1,
                                            .cost = cross_entropy_cost,
                                            .scratch = cross_entropy_scratch};
