/* op_time.c: time features: frequencies, their cosines and sines, and time shifts.
 *
 * Phases are computed in double: times are unix seconds, and a phase of a million turns must retain its fraction.
 * Frequencies are double too, and so are their gradients, which sum large terms that cancel.
 */
#include "graph/op_rows.h"

static void harmonics_shape(lp_graph *graph, lp_node *node)
{
    lp_value *log_period = node->inputs[0];
    if (!log_period || log_period->rows_of != LP_ROWS_FIXED || log_period->rows != 1 || node->attributes.harmonics < 1)
        lp_graph_fail(graph, "harmonics needs one row of log periods and at least one harmonic");
    else
        lp_op_output(graph, node, 0, LP_TYPE_DOUBLE, LP_ROWS_FIXED, 1, log_period->cols * node->attributes.harmonics);
}

static void harmonics_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_harmonics_gradient, inputs, &node->attributes, &node->inputs[0]);
}

static lp_value *harmonics_example(lp_graph *graph, lp_random *random)
{
    int periods = 1 + (int)lp_random_below(random, 4), count = 1 + (int)lp_random_below(random, 4);
    return lp_harmonics(graph, lp_example_fixed(graph, "log_period", 1, periods), count);
}

lp_value *lp_harmonics(lp_graph *graph, lp_value *log_period, int harmonics)
{
    lp_attributes attributes = {.harmonics = harmonics};
    return lp_graph_node(graph, &lp_op_harmonics, &log_period, &attributes);
}

const lp_op lp_op_harmonics = {.id = LP_OP_HARMONICS,
                               .name = "harmonics",
                               .input_count = 1,
                               .output_count = 1,
                               .shape = harmonics_shape,
                               .gradient = harmonics_gradient,
                               .cost = lp_op_cost_elementwise,
                               .element_flop = 4,
                               .example = harmonics_example};

/* (w, dw [1 x n*k]) -> dlog_period[i] = - sum over its harmonics of w dw */
const lp_op lp_op_harmonics_gradient = {.id = LP_OP_HARMONICS_GRADIENT,
                                        .name = "harmonics_gradient",
                                        .input_count = 2,
                                        .output_count = 1,
                                        .cost = lp_op_cost_elementwise,
                                        .element_flop = 4};

static void basis_shape(lp_graph *graph, lp_node *node)
{
    lp_value *time = node->inputs[0], *frequency = node->inputs[1];
    if (!time || !frequency || time->type != LP_TYPE_DOUBLE || time->cols != 1 || frequency->type != LP_TYPE_DOUBLE ||
        frequency->rows_of != LP_ROWS_FIXED || frequency->rows != 1)
        lp_graph_fail(graph, "basis needs times and one row of frequencies, both double");
    else if (node->inputs[2] && (!lp_value_same_shape(node->inputs[2], time) || !node->inputs[3] ||
                                 node->inputs[3]->cols != 2 * frequency->cols))
        lp_graph_fail(graph, "basis needs the times of the known basis");
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, time->rows_of, time->rows, 2 * frequency->cols);
}

static void basis_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_basis_gradient, inputs, NULL, &node->inputs[1]);
}

static lp_value *basis_example(lp_graph *graph, lp_random *random)
{
    lp_value *time = lp_graph_input(graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *log_period = lp_example_fixed(graph, "log_period", 1, 1 + (int)lp_random_below(random, 10));
    return lp_basis(graph, time, lp_harmonics(graph, log_period, 1 + (int)lp_random_below(random, 3)));
}

lp_value *lp_basis(lp_graph *graph, lp_value *time, lp_value *frequency)
{
    return lp_graph_node(graph, &lp_op_basis, (lp_value *[]){time, frequency, NULL, NULL}, NULL);
}

lp_value *lp_basis_after(lp_graph *graph, lp_value *time, lp_value *known_time, lp_value *known)
{
    lp_value *frequency = known && known->producer ? known->producer->inputs[1] : NULL;
    return lp_graph_node(graph, &lp_op_basis, (lp_value *[]){time, frequency, known_time, known}, NULL);
}

/* (time, frequency, known_time?, known?): a kernel may copy rows of `known` where times are equal */
const lp_op lp_op_basis = {.id = LP_OP_BASIS,
                           .name = "basis",
                           .input_count = 4,
                           .output_count = 1,
                           .shape = basis_shape,
                           .gradient = basis_gradient,
                           .cost = lp_op_cost_elementwise,
                           .element_flop = 14,
                           .example = basis_example};

/* (time [T x 1], u, du [T x 2F]) -> dw[f] = sum over tokens of t (du_sin cos - du_cos sin) */
const lp_op lp_op_basis_gradient = {.id = LP_OP_BASIS_GRADIENT,
                                    .name = "basis_gradient",
                                    .input_count = 3,
                                    .output_count = 1,
                                    .cost = lp_op_cost_elementwise,
                                    .element_flop = 4};

static void reflect_shape(lp_graph *graph, lp_node *node)
{
    lp_value *x = node->inputs[0], *u = node->inputs[1];
    if (!x || !u || u->cols % 2 || x->cols % u->cols || x->rows_of != u->rows_of)
        lp_graph_fail(graph, "reflect needs features of each head and one u(t') per row");
    else
        lp_op_output_like(graph, node, 0, x);
}

static void reflect_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *dy = node->outputs[0]->gradient;
    lp_value *inputs[] = {node->inputs[0], node->inputs[1], dy};
    lp_graph_gradient_node(graph, &lp_op_reflect_gradient, inputs, NULL, node->inputs);
}

static lp_value *reflect_example(lp_graph *graph, lp_random *random)
{
    int cols = 2 * (1 + (int)lp_random_below(random, 9)), heads = 1 + (int)lp_random_below(random, 3);
    bool itself = heads == 1 && lp_random_below(random, 2); /* both gradients accumulate in one value */
    lp_value *x = lp_example_tokens(graph, "x", heads * cols);
    return lp_reflect(graph, x, itself ? x : lp_example_tokens(graph, "u", cols));
}

lp_value *lp_reflect(lp_graph *graph, lp_value *x, lp_value *u)
{
    return lp_graph_node(graph, &lp_op_reflect, (lp_value *[]){x, u}, NULL);
}

const lp_op lp_op_reflect = {.id = LP_OP_REFLECT,
                             .name = "reflect",
                             .input_count = 2,
                             .output_count = 1,
                             .shape = reflect_shape,
                             .gradient = reflect_gradient,
                             .cost = lp_op_cost_elementwise,
                             .element_flop = 4,
                             .example = reflect_example};

static lp_cost reflect_gradient_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double elements = (double)lp_value_rows(node->inputs[0], extent) * node->inputs[0]->cols;
    cost.flop = 3 * elements * ((node->outputs[0] != NULL) + (node->outputs[1] != NULL));
    return cost;
}

/* (x [T x H*2F], u [T x 2F], dy) -> dx = M dy; du, summed over heads: (xc dc - xs ds, xs dc + xc ds) */
const lp_op lp_op_reflect_gradient = {.id = LP_OP_REFLECT_GRADIENT,
                                      .name = "reflect_gradient",
                                      .input_count = 3,
                                      .output_count = 2,
                                      .cost = reflect_gradient_cost};
