/* op_softmax.c: softmax over the columns of each row, and the cross-entropy with soft targets. */
#include "graph/op_rows.h"

static void softmax_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_softmax_gradient, inputs, NULL, node->inputs);
}

/* A row, padded to whole vectors. */
static size_t softmax_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return ((size_t)node->inputs[0]->cols + 15) / 16 * 16 * real_size;
}

static lp_value *softmax_example(lp_graph *graph, lp_random *random)
{
    return lp_softmax(graph, lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 40)));
}

lp_value *lp_softmax(lp_graph *graph, lp_value *x)
{
    return lp_graph_node(graph, &lp_op_softmax, &x, NULL);
}

const lp_op lp_op_softmax = {.id = LP_OP_SOFTMAX,
                             .name = "softmax",
                             .input_count = 1,
                             .output_count = 1,
                             .shape = lp_op_shape_unary,
                             .gradient = softmax_gradient,
                             .cost = lp_op_cost_elementwise,
                             .element_flop = 12,
                             .scratch = softmax_scratch,
                             .example = softmax_example};

/* (y, dy) -> dx = y * (dy - y . dy) */
const lp_op lp_op_softmax_gradient = {.id = LP_OP_SOFTMAX_GRADIENT,
                                      .name = "softmax_gradient",
                                      .input_count = 2,
                                      .output_count = 1,
                                      .cost = lp_op_cost_elementwise,
                                      .element_flop = 4};

static void soft_loss_shape(lp_graph *graph, lp_node *node)
{
    lp_value *logits = node->inputs[0], *target = node->inputs[1];
    if (!logits || !target || logits->type != LP_TYPE_REAL || target->type != LP_TYPE_REAL ||
        !lp_value_same_shape(logits, target))
        lp_graph_fail(graph, "soft_loss needs logits and targets of the same shape");
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
}

static void soft_loss_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->inputs[1], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_soft_loss_gradient, inputs, NULL, node->inputs);
}

static lp_cost soft_loss_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop = 14.0 * (double)lp_value_rows(node->inputs[0], extent) * node->inputs[0]->cols;
    return cost;
}

static lp_value *soft_loss_example(lp_graph *graph, lp_random *random)
{
    int cols = 1 + (int)lp_random_below(random, 40);
    lp_value *logits = lp_example_rows(graph, "logits", LP_ROWS_TARGETS, cols);
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_REAL, LP_ROWS_TARGETS, 0, cols);
    return lp_soft_loss(graph, logits, target);
}

lp_value *lp_soft_loss(lp_graph *graph, lp_value *logits, lp_value *target)
{
    return lp_graph_node(graph, &lp_op_soft_loss, (lp_value *[]){logits, target}, NULL);
}

const lp_op lp_op_soft_loss = {.id = LP_OP_SOFT_LOSS,
                               .name = "soft_loss",
                               .input_count = 2,
                               .output_count = 1,
                               .shape = soft_loss_shape,
                               .gradient = soft_loss_gradient,
                               .cost = soft_loss_cost,
                               .example = soft_loss_example};

/* (logits, target, dloss [1 x 1]) -> dlogits = dloss (softmax * sum of target - target) */
const lp_op lp_op_soft_loss_gradient = {.id = LP_OP_SOFT_LOSS_GRADIENT,
                                        .name = "soft_loss_gradient",
                                        .input_count = 3,
                                        .output_count = 1,
                                        .cost = soft_loss_cost};
