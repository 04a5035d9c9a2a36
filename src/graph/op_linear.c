/* op_linear.c: linear layers and the reductions over rows of their gradients. */
#include "graph/op_rows.h"

static void linear_shape(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2], *add = node->inputs[3];
    int heads = node->attributes.heads;
    if (!x || !weight || weight->rows_of != LP_ROWS_FIXED || heads < 1 || weight->rows % heads) {
        lp_graph_fail(graph, "linear needs a value, and a weight whose rows the heads divide");
        return;
    }
    int into = node->attributes.transpose ? heads * weight->cols : weight->rows;
    int outof = node->attributes.transpose ? weight->rows : heads * weight->cols;
    if (x->cols != into) {
        lp_graph_fail(graph, "linear: '%s' has %d columns, the weight '%s' needs %d", x->name, x->cols, weight->name,
                      into);
        return;
    }
    lp_value *y = lp_op_output(graph, node, 0, LP_TYPE_REAL, x->rows_of, x->rows, outof);
    if (y && ((bias && (bias->rows != 1 || bias->cols != outof)) || (add && !lp_value_same_shape(add, y))))
        lp_graph_fail(graph, "linear: bias or addend of '%s' has the wrong shape", weight->name);
}

static void linear_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *dy = node->outputs[0]->gradient;
    bool transpose = node->attributes.transpose;
    lp_attributes back = {.heads = node->attributes.heads, .transpose = !transpose};
    /* W_h is [a x b]; the factor with H*a columns comes first in the outer product. */
    lp_value *outer[] = {transpose ? dy : x, transpose ? x : dy};
    if (node->inputs[1]->requires_grad)
        lp_graph_gradient_node(graph, &lp_op_linear_outer, outer, &back, &node->inputs[1]);
    else
        lp_graph_gradient_node(graph, &lp_op_column_sum, &dy, NULL, &node->inputs[2]);
    lp_value *product[] = {dy, node->inputs[1], NULL, lp_graph_gradient_take(graph, x)};
    lp_graph_gradient_node(graph, &lp_op_linear, product, &back, &node->inputs[0]);
    lp_graph_gradient_pass(graph, node->inputs[3], dy);
}

static lp_cost linear_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    const lp_value *weight = node->op == &lp_op_linear ? node->inputs[1] : node->outputs[0];
    cost.flop = 2.0 * (double)lp_value_rows(node->inputs[0], extent) * weight->rows * weight->cols;
    return cost;
}

static lp_value *linear_example(lp_graph *graph, lp_random *random)
{
    int heads = 1 + (int)lp_random_below(random, 3), a = 1 + (int)lp_random_below(random, 7);
    int b = 1 + (int)lp_random_below(random, 7);
    bool transpose = lp_random_below(random, 2), more = lp_random_below(random, 2);
    bool given = more && lp_random_below(random, 2); /* a weight that is not trained */
    int into = heads * (transpose ? b : a), outof = heads * (transpose ? a : b);
    lp_value *x = lp_example_tokens(graph, "x", into);
    lp_value *weight = given ? lp_graph_input(graph, "weight", LP_TYPE_REAL, LP_ROWS_FIXED, heads * a, b)
                             : lp_example_fixed(graph, "weight", heads * a, b);
    lp_value *bias = more ? lp_example_fixed(graph, "bias", 1, outof) : NULL;
    lp_value *add = more ? lp_example_tokens(graph, "add", outof) : NULL;
    return lp_linear(graph, x, weight, bias, add, heads, transpose);
}

lp_value *lp_linear(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias, lp_value *add, int heads,
                    bool transpose)
{
    lp_attributes attributes = {.heads = heads, .transpose = transpose};
    return lp_graph_node(graph, &lp_op_linear, (lp_value *[]){x, weight, bias, add}, &attributes);
}

const lp_op lp_op_linear = {.id = LP_OP_LINEAR,
                            .name = "linear",
                            .input_count = 4,
                            .output_count = 1,
                            .shape = linear_shape,
                            .gradient = linear_gradient,
                            .cost = linear_cost,
                            .example = linear_example};

/* (p [T x H*a], q [T x H*b]) -> [H*a x b]: p_h^T q_h per head; and, if there is a bias, its gradient: the column sums of the
 * output gradient, which is q if `transpose` is set and p otherwise. One op, so that a kernel reads it once. */
const lp_op lp_op_linear_outer = {
    .id = LP_OP_LINEAR_OUTER, .name = "linear_outer", .input_count = 2, .output_count = 2, .cost = linear_cost};

static lp_cost column_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop = (double)lp_value_rows(node->inputs[0], extent) * node->inputs[0]->cols;
    return cost;
}

/* x [rows x a] -> [1 x a]: the sum of each column */
const lp_op lp_op_column_sum = {
    .id = LP_OP_COLUMN_SUM, .name = "column_sum", .input_count = 1, .output_count = 1, .cost = column_cost};

/* (x, y [rows x a]) -> [1 x a]: the sum of x*y in each column */
const lp_op lp_op_column_dot = {
    .id = LP_OP_COLUMN_DOT, .name = "column_dot", .input_count = 2, .output_count = 1, .cost = column_cost};

static void scale_columns_shape(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *scale = node->inputs[1];
    if (!x || !scale || scale->rows_of != LP_ROWS_FIXED || scale->rows != 1 || scale->cols != x->cols)
        lp_graph_fail(graph, "scale_columns needs one factor per column");
    else
        lp_op_output_like(graph, node, 0, x);
}

static void scale_columns_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *dy = node->outputs[0]->gradient;
    lp_value *dot[] = {node->inputs[0], dy}, *scaled[] = {dy, node->inputs[1]};
    lp_graph_gradient_node(graph, &lp_op_column_dot, dot, NULL, &node->inputs[1]);
    lp_graph_gradient_node(graph, &lp_op_scale_columns, scaled, NULL, &node->inputs[0]);
}

static lp_value *scale_columns_example(lp_graph *graph, lp_random *random)
{
    int rows = 1 + (int)lp_random_below(random, 6), cols = 1 + (int)lp_random_below(random, 9);
    lp_value *x =
        lp_random_below(random, 2) ? lp_example_tokens(graph, "x", cols) : lp_example_fixed(graph, "x", rows, cols);
    return lp_scale_columns(graph, x, lp_example_fixed(graph, "scale", 1, cols));
}

lp_value *lp_scale_columns(lp_graph *graph, lp_value *x, lp_value *scale)
{
    return lp_graph_node(graph, &lp_op_scale_columns, (lp_value *[]){x, scale}, NULL);
}

const lp_op lp_op_scale_columns = {.id = LP_OP_SCALE_COLUMNS,
                                   .name = "scale_columns",
                                   .input_count = 2,
                                   .output_count = 1,
                                   .shape = scale_columns_shape,
                                   .gradient = scale_columns_gradient,
                                   .cost = lp_op_cost_elementwise,
                                   .element_flop = 1,
                                   .example = scale_columns_example};

static void transpose_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *weight = node->inputs[0];
    int heads = node->attributes.heads;
    if (!weight || weight->type != LP_TYPE_REAL || weight->rows_of != LP_ROWS_FIXED || heads < 1 ||
        weight->rows % heads)
        lp_graph_fail(graph, "transpose needs a weight whose rows the heads divide");
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, heads * weight->cols, weight->rows / heads);
}

lp_value *lp_transpose(lp_graph *graph, lp_value *weight, int heads)
{
    lp_attributes attributes = {.heads = heads};
    return lp_graph_node(graph, &lp_op_transpose, &weight, &attributes);
}

const lp_op lp_op_transpose = {.id = LP_OP_TRANSPOSE,
                               .name = "transpose",
                               .input_count = 1,
                               .output_count = 1,
                               .shape = transpose_shape,
                               .cost = lp_op_cost_elementwise};
