/* op_flow.c: ops of sampled encodings: noise, and the elementwise ops and masks of normalizing flows.
 *
 * They process one row of some hundred frequencies per step, not tokens, so the reference kernels are fast enough.
 */
#include "graph/op_rows.h"

static lp_value *example_input(lp_graph *graph, lp_random *random)
{
    return lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 9));
}

/* attributes.heads rows and attributes.units columns */
static void noise_shape(lp_graph *graph, lp_node *node)
{
    int rows = node->attributes.heads, cols = node->attributes.units;
    if (rows < 1 || cols < 1)
        lp_graph_fail(graph, "noise needs at least one row and column");
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, rows, cols);
}

/* No inputs: nothing to propagate to. */
static void noise_gradient(lp_graph *graph, lp_node *node)
{
    (void)graph;
    (void)node;
}

static lp_value *noise_example(lp_graph *graph, lp_random *random)
{
    int rows = 1 + (int)lp_random_below(random, 3), cols = 1 + (int)lp_random_below(random, 9);
    lp_value *noise = lp_noise(graph, rows, cols, lp_random_below(random, 2), lp_random_below(random, 2), 0);
    return lp_multiply(graph, noise, lp_example_fixed(graph, "scale", rows, cols));
}

lp_value *lp_noise(lp_graph *graph, int rows, int cols, bool uniform, bool independent, uint32_t stream)
{
    lp_attributes attributes = {
        .heads = rows, .units = cols, .uniform = uniform, .independent = independent, .stream = stream};
    return lp_graph_node(graph, &lp_op_noise, (lp_value *[]){NULL}, &attributes);
}

const lp_op lp_op_noise = {.id = LP_OP_NOISE,
                           .name = "noise",
                           .input_count = 0,
                           .output_count = 1,
                           .shape = noise_shape,
                           .gradient = noise_gradient,
                           .cost = lp_op_cost_elementwise,
                           .element_flop = 20,
                           .example = noise_example};

static void multiply_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *dy = node->outputs[0]->gradient;
    lp_value *by_a[] = {node->inputs[1], dy}, *by_b[] = {node->inputs[0], dy};
    lp_graph_gradient_node(graph, &lp_op_multiply, by_a, NULL, &node->inputs[0]);
    lp_graph_gradient_node(graph, &lp_op_multiply, by_b, NULL, &node->inputs[1]);
}

static lp_value *multiply_example(lp_graph *graph, lp_random *random)
{
    lp_value *a = example_input(graph, random), *b = lp_example_tokens(graph, "b", a ? a->cols : 1);
    return lp_multiply(graph, lp_multiply(graph, a, b), a);
}

lp_value *lp_multiply(lp_graph *graph, lp_value *a, lp_value *b)
{
    return lp_graph_node(graph, &lp_op_multiply, (lp_value *[]){a, b}, NULL);
}

const lp_op lp_op_multiply = {.id = LP_OP_MULTIPLY,
                              .name = "multiply",
                              .input_count = 2,
                              .output_count = 1,
                              .shape = lp_op_shape_binary,
                              .gradient = multiply_gradient,
                              .cost = lp_op_cost_elementwise,
                              .element_flop = 1,
                              .example = multiply_example};

static void affine_gradient(lp_graph *graph, lp_node *node)
{
    lp_attributes attributes = {.scale = node->attributes.scale};
    lp_graph_gradient_node(graph, &lp_op_affine, &node->outputs[0]->gradient, &attributes, &node->inputs[0]);
}

static lp_value *affine_example(lp_graph *graph, lp_random *random)
{
    return lp_affine(graph, example_input(graph, random), -1.5, 0.25);
}

lp_value *lp_affine(lp_graph *graph, lp_value *x, double scale, double shift)
{
    lp_attributes attributes = {.scale = scale, .shift = shift};
    return lp_graph_node(graph, &lp_op_affine, &x, &attributes);
}

const lp_op lp_op_affine = {.id = LP_OP_AFFINE,
                            .name = "affine",
                            .input_count = 1,
                            .output_count = 1,
                            .shape = lp_op_shape_unary,
                            .gradient = affine_gradient,
                            .cost = lp_op_cost_elementwise,
                            .element_flop = 1,
                            .example = affine_example};

static void exp_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_multiply, inputs, NULL, &node->inputs[0]);
}

static lp_value *exp_example(lp_graph *graph, lp_random *random)
{
    return lp_exp(graph, example_input(graph, random));
}

lp_value *lp_exp(lp_graph *graph, lp_value *x)
{
    return lp_graph_node(graph, &lp_op_exp, &x, NULL);
}

const lp_op lp_op_exp = {.id = LP_OP_EXP,
                         .name = "exp",
                         .input_count = 1,
                         .output_count = 1,
                         .shape = lp_op_shape_unary,
                         .gradient = exp_gradient,
                         .cost = lp_op_cost_elementwise,
                         .element_flop = 20,
                         .example = exp_example};

static void tanh_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_tanh_gradient, inputs, &node->attributes, &node->inputs[0]);
}

static lp_value *tanh_example(lp_graph *graph, lp_random *random)
{
    return lp_tanh(graph, example_input(graph, random), 2);
}

lp_value *lp_tanh(lp_graph *graph, lp_value *x, double bound)
{
    lp_attributes attributes = {.scale = bound};
    return lp_graph_node(graph, &lp_op_tanh, &x, &attributes);
}

const lp_op lp_op_tanh = {.id = LP_OP_TANH,
                          .name = "tanh",
                          .input_count = 1,
                          .output_count = 1,
                          .shape = lp_op_shape_unary,
                          .gradient = tanh_gradient,
                          .cost = lp_op_cost_elementwise,
                          .element_flop = 20,
                          .example = tanh_example};

/* (y, dy) -> dx = dy (1 - (y / bound)^2) */
const lp_op lp_op_tanh_gradient = {.id = LP_OP_TANH_GRADIENT,
                                   .name = "tanh_gradient",
                                   .input_count = 2,
                                   .output_count = 1,
                                   .cost = lp_op_cost_elementwise,
                                   .element_flop = 1};

static void log_abs_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_log_abs_gradient, inputs, &node->attributes, &node->inputs[0]);
}

static lp_value *log_abs_example(lp_graph *graph, lp_random *random)
{
    return lp_log_abs(graph, example_input(graph, random), 0.1);
}

lp_value *lp_log_abs(lp_graph *graph, lp_value *x, double least)
{
    lp_attributes attributes = {.scale = least};
    return lp_graph_node(graph, &lp_op_log_abs, &x, &attributes);
}

const lp_op lp_op_log_abs = {.id = LP_OP_LOG_ABS,
                             .name = "log_abs",
                             .input_count = 1,
                             .output_count = 1,
                             .shape = lp_op_shape_unary,
                             .gradient = log_abs_gradient,
                             .cost = lp_op_cost_elementwise,
                             .element_flop = 20,
                             .example = log_abs_example};

/* (x, dy) -> dx = dy x / (x^2 + least^2) */
const lp_op lp_op_log_abs_gradient = {.id = LP_OP_LOG_ABS_GRADIENT,
                                      .name = "log_abs_gradient",
                                      .input_count = 2,
                                      .output_count = 1,
                                      .cost = lp_op_cost_elementwise,
                                      .element_flop = 4};

static void mask_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *x = node->inputs[0];
    int units = node->attributes.units;
    bool fits = x && x->rows_of == LP_ROWS_FIXED && units >= 1;
    fits = fits && (node->attributes.layer != LP_LAYER_FIRST || x->cols == units);
    fits = fits && (node->attributes.layer != LP_LAYER_LAST || x->rows == units);
    fits = fits && (node->attributes.layer != LP_LAYER_BIAS || (x->rows == 1 && x->cols == units));
    if (!fits)
        lp_graph_fail(graph, "mask needs a weight or bias with %d units on the side of the variables", units);
    else
        lp_op_output_like(graph, node, 0, x);
}

static void mask_gradient(lp_graph *graph, lp_node *node)
{
    lp_graph_gradient_node(graph, &lp_op_mask, &node->outputs[0]->gradient, &node->attributes, &node->inputs[0]);
}

static lp_value *mask_example(lp_graph *graph, lp_random *random)
{
    int units = 1 + (int)lp_random_below(random, 5), hidden = 1 + (int)lp_random_below(random, 6);
    lp_order order = (lp_order)lp_random_below(random, 3);
    lp_mask_layer layer = (lp_mask_layer)lp_random_below(random, 4);
    int rows = layer == LP_LAYER_LAST ? units : layer == LP_LAYER_BIAS ? 1 : hidden;
    int cols = layer == LP_LAYER_FIRST || layer == LP_LAYER_BIAS ? units : hidden;
    return lp_mask(graph, lp_example_fixed(graph, "x", rows, cols), units, order, layer);
}

lp_value *lp_mask(lp_graph *graph, lp_value *x, int units, lp_order order, lp_mask_layer layer)
{
    lp_attributes attributes = {.units = units, .order = order, .layer = layer};
    return lp_graph_node(graph, &lp_op_mask, &x, &attributes);
}

const lp_op lp_op_mask = {.id = LP_OP_MASK,
                          .name = "mask",
                          .input_count = 1,
                          .output_count = 1,
                          .shape = mask_shape,
                          .gradient = mask_gradient,
                          .cost = lp_op_cost_elementwise,
                          .element_flop = 1,
                          .example = mask_example};
