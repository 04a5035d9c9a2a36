/* op_norm.c: layer normalization. */
#include "graph/op_rows.h"

static void layer_norm_shape(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];
    if (!x || !weight || !bias || weight->rows != 1 || weight->cols != x->cols || !lp_value_same_shape(weight, bias)) {
        lp_graph_fail(graph, "layer_norm needs a weight and a bias per column");
        return;
    }
    lp_op_output_like(graph, node, 0, x);
    lp_op_output(graph, node, 1, LP_TYPE_REAL, x->rows_of, x->rows, 2);
}

static void layer_norm_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_layer_norm_gradient, inputs, NULL, node->inputs);
}

static lp_value *layer_norm_example(lp_graph *graph, lp_random *random)
{
    int cols = 2 + (int)lp_random_below(random, 20);
    return lp_layer_norm(graph, lp_example_tokens(graph, "x", cols), lp_example_fixed(graph, "weight", 1, cols),
                         lp_example_fixed(graph, "logq", 1, cols), 1e-5);
}

lp_value *lp_layer_norm(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias, double epsilon)
{
    lp_attributes attributes = {.epsilon = epsilon};
    return lp_graph_node(graph, &lp_op_layer_norm, (lp_value *[]){x, weight, bias}, &attributes);
}

/* (x [T x a], weight, bias [1 x a]) -> y [T x a], (mean, 1 / standard deviation) [T x 2] */
const lp_op lp_op_layer_norm = {.id = LP_OP_LAYER_NORM,
                                .name = "layer_norm",
                                .input_count = 3,
                                .output_count = 2,
                                .shape = layer_norm_shape,
                                .gradient = layer_norm_gradient,
                                .cost = lp_op_cost_elementwise,
                                .element_flop = 8,
                                .example = layer_norm_example};

/* (x, weight, (mean, 1 / standard deviation), dy) -> dx, dweight, dbias */
const lp_op lp_op_layer_norm_gradient = {.id = LP_OP_LAYER_NORM_GRADIENT,
                                         .name = "layer_norm_gradient",
                                         .input_count = 4,
                                         .output_count = 3,
                                         .cost = lp_op_cost_elementwise,
                                         .element_flop = 8};
