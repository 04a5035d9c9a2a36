/* op_convolution.c: convolutions over the tokens of a packed sequence: fold, max_rows, vertical_conv.
 *
 * A causal convolution of `height` taps is two ops: `linear` multiplies every token with the weights of all taps at once, and `fold`
 * adds the product of tap m to the row m tokens later. So the products are those of the tuned kernels, and nothing is stored for
 * every tap of every column, as an unfolded input would be.
 */
#include "graph/op_rows.h"

static bool check_tokens(lp_graph *graph, const lp_node *node)
{
    const lp_value *x = node->inputs[0];
    if (x && x->type == LP_TYPE_REAL && x->rows_of == LP_ROWS_TOKENS && node->attributes.height >= 1)
        return true;
    lp_graph_fail(graph, "%s needs a row for each token and a height of at least 1", node->op->name);
    return false;
}

static lp_cost window_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop *= node->attributes.height;
    return cost;
}

/* -------------------------------------------------------------------------------------------------- fold ----- */

static void fold_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *x = node->inputs[0], *bias = node->inputs[1];
    int height = node->attributes.height;
    if (!check_tokens(graph, node))
        return;
    if (x->cols % height ||
        (bias && (bias->rows_of != LP_ROWS_FIXED || bias->rows != 1 || bias->cols * height != x->cols)))
        lp_graph_fail(graph, "fold needs columns for each of its %d taps and one bias per column of a tap", height);
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, x->cols / height);
}

static void fold_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *dy = node->outputs[0]->gradient;
    lp_graph_gradient_node(graph, &lp_op_unfold, &dy, &node->attributes, &node->inputs[0]);
    if (node->inputs[1])
        lp_graph_gradient_node(graph, &lp_op_column_sum, &dy, NULL, &node->inputs[1]);
}

static lp_value *fold_example(lp_graph *graph, lp_random *random)
{
    int height = 1 + (int)lp_random_below(random, 5), cols = 1 + (int)lp_random_below(random, 9);
    lp_value *x = lp_example_tokens(graph, "x", height * cols);
    lp_value *bias = lp_random_below(random, 2) ? lp_example_fixed(graph, "bias", 1, cols) : NULL;
    return lp_fold(graph, x, bias, height);
}

lp_value *lp_fold(lp_graph *graph, lp_value *x, lp_value *bias, int height)
{
    lp_attributes attributes = {.height = height};
    return lp_graph_node(graph, &lp_op_fold, (lp_value *[]){x, bias}, &attributes);
}

const lp_op lp_op_fold = {.id = LP_OP_FOLD,
                          .name = "fold",
                          .input_count = 2,
                          .output_count = 1,
                          .shape = fold_shape,
                          .gradient = fold_gradient,
                          .cost = window_cost,
                          .element_flop = 1,
                          .example = fold_example};

/* dy [T x a] -> [T x height*a]: dy of the row m tokens later in the columns of tap m; zeros past the segment's end */
const lp_op lp_op_unfold = {
    .id = LP_OP_UNFOLD, .name = "unfold", .input_count = 1, .output_count = 1, .cost = lp_op_cost_elementwise};

/* ---------------------------------------------------------------------------------------------- max_rows ----- */

static void max_rows_shape(lp_graph *graph, lp_node *node)
{
    if (check_tokens(graph, node))
        lp_op_output_like(graph, node, 0, node->inputs[0]);
}

static void max_rows_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_max_rows_gradient, inputs, &node->attributes, &node->inputs[0]);
}

static lp_value *max_rows_example(lp_graph *graph, lp_random *random)
{
    lp_value *x = lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 9));
    return lp_max_rows(graph, x, 1 + (int)lp_random_below(random, 5));
}

lp_value *lp_max_rows(lp_graph *graph, lp_value *x, int height)
{
    lp_attributes attributes = {.height = height};
    return lp_graph_node(graph, &lp_op_max_rows, &x, &attributes);
}

const lp_op lp_op_max_rows = {.id = LP_OP_MAX_ROWS,
                              .name = "max_rows",
                              .input_count = 1,
                              .output_count = 1,
                              .shape = max_rows_shape,
                              .gradient = max_rows_gradient,
                              .cost = window_cost,
                              .element_flop = 1,
                              .example = max_rows_example};

/* (x, y, dy) -> dx: the gradient of a maximum goes to the newest of the rows that have it */
const lp_op lp_op_max_rows_gradient = {.id = LP_OP_MAX_ROWS_GRADIENT,
                                       .name = "max_rows_gradient",
                                       .input_count = 3,
                                       .output_count = 1,
                                       .cost = window_cost,
                                       .element_flop = 1};

/* ----------------------------------------------------------------------------------------- vertical_conv ----- */

static void vertical_conv_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *x = node->inputs[0], *weight = node->inputs[1];
    int height = node->attributes.height;
    if (!check_tokens(graph, node))
        return;
    if (!weight || weight->rows_of != LP_ROWS_FIXED || weight->rows != 1 || weight->cols % height)
        lp_graph_fail(graph, "vertical_conv needs a weight [1 x filters*%d]", height);
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, weight->cols / height * x->cols);
}

/* The weight's gradient is a sum over tokens of products by token, so that it is reduced as other parameters' gradients are. */
static void vertical_conv_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *weight = node->inputs[1], *dy = node->outputs[0]->gradient;
    if (weight->requires_grad) {
        lp_value *products =
            lp_graph_node(graph, &lp_op_vertical_conv_products, (lp_value *[]){x, dy}, &node->attributes);
        lp_graph_gradient_node(graph, &lp_op_column_sum, &products, NULL, &node->inputs[1]);
    }
    lp_graph_gradient_node(graph, &lp_op_vertical_conv_gradient, (lp_value *[]){weight, dy}, &node->attributes,
                           &node->inputs[0]);
}

/* Of each of the three ops: a multiplication and an addition for each column, filter and tap. */
static lp_cost vertical_conv_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double weights = node->op == &lp_op_vertical_conv            ? node->inputs[1]->cols
                     : node->op == &lp_op_vertical_conv_gradient ? node->inputs[0]->cols
                                                                 : node->outputs[0]->cols;
    const lp_value *x = node->op == &lp_op_vertical_conv_gradient ? node->outputs[0] : node->inputs[0];
    cost.flop = 2 * weights * x->cols * (double)extent->rows[LP_ROWS_TOKENS];
    return cost;
}

static lp_value *vertical_conv_example(lp_graph *graph, lp_random *random)
{
    int height = 1 + (int)lp_random_below(random, 5), filters = 1 + (int)lp_random_below(random, 4);
    lp_value *x = lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 9));
    return lp_vertical_conv(graph, x, lp_example_fixed(graph, "weight", 1, filters * height), height);
}

lp_value *lp_vertical_conv(lp_graph *graph, lp_value *x, lp_value *weight, int height)
{
    lp_attributes attributes = {.height = height};
    return lp_graph_node(graph, &lp_op_vertical_conv, (lp_value *[]){x, weight}, &attributes);
}

const lp_op lp_op_vertical_conv = {.id = LP_OP_VERTICAL_CONV,
                                   .name = "vertical_conv",
                                   .input_count = 2,
                                   .output_count = 1,
                                   .shape = vertical_conv_shape,
                                   .gradient = vertical_conv_gradient,
                                   .cost = vertical_conv_cost,
                                   .example = vertical_conv_example};

/* (weight, dy) -> dx */
const lp_op lp_op_vertical_conv_gradient = {.id = LP_OP_VERTICAL_CONV_GRADIENT,
                                            .name = "vertical_conv_gradient",
                                            .input_count = 2,
                                            .output_count = 1,
                                            .cost = vertical_conv_cost};

static void products_shape(lp_graph *graph, lp_node *node)
{
    int filters = node->inputs[1]->cols / node->inputs[0]->cols;
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, filters * node->attributes.height);
}

/* (x, dy) -> [T x filters*height]: x of the row m tokens earlier times dy of filter j, summed over columns */
const lp_op lp_op_vertical_conv_products = {.id = LP_OP_VERTICAL_CONV_PRODUCTS,
                                            .name = "vertical_conv_products",
                                            .input_count = 2,
                                            .output_count = 1,
                                            .shape = products_shape,
                                            .cost = vertical_conv_cost};
