/* op_time_loss.c: the loss function of the time of the next event (formula/hazard.h has the law). */
#include "graph/op_rows.h"

enum { SCORE, SLOPE, GAP };

static void shape(lp_graph *graph, lp_node *node)
{
    lp_value *score = node->inputs[SCORE], *slope = node->inputs[SLOPE], *gap = node->inputs[GAP];
    if (!score || !slope || !gap || score->cols != 1 || gap->type != LP_TYPE_DOUBLE || gap->cols != 1 ||
        gap->rows_of != score->rows_of || slope->rows_of != LP_ROWS_FIXED || slope->rows != 1 || slope->cols != 1) {
        lp_graph_fail(graph, "time_loss needs a score and a gap per row, and one slope");
        return;
    }
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
}

static void gradient(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    lp_value *inputs[] = {in[SCORE], in[SLOPE], in[GAP], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_time_loss_gradient, inputs, &node->attributes, node->inputs);
}

/* Three transcendental functions for each row. */
static lp_cost cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost sum = lp_op_cost_elementwise(node, extent);
    sum.flop = 60.0 * (double)lp_value_rows(node->inputs[SCORE], extent);
    return sum;
}

static lp_value *example(lp_graph *graph, lp_random *random)
{
    static const double units[] = {1, 0.25, 1e3};
    lp_value *score = lp_example_rows(graph, "score", LP_ROWS_TARGETS, 1);
    lp_value *slope = lp_example_fixed(graph, "slope", 1, 1);
    lp_value *gap = lp_graph_input(graph, "gap", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 0, 1);
    return lp_time_loss(graph, score, slope, gap, units[lp_random_below(random, 3)]);
}

lp_value *lp_time_loss(lp_graph *graph, lp_value *score, lp_value *slope, lp_value *gap, double unit)
{
    return lp_graph_node(graph, &lp_op_time_loss, (lp_value *[]){score, slope, gap},
                         &(lp_attributes){.scale = 1 / unit});
}

/* (score, slope, gap) -> loss; attribute scale: 1 / unit */
const lp_op lp_op_time_loss = {.id = LP_OP_TIME_LOSS,
                               .name = "time_loss",
                               .input_count = 3,
                               .output_count = 1,
                               .shape = shape,
                               .gradient = gradient,
                               .cost = cost,
                               .example = example};

/* (score, slope, gap, dloss [1 x 1]) -> dscore = dloss (L - 1), dslope = dloss sum of (L dlog L/dslope - d); of a censored
 * gap without the 1 and the d */
const lp_op lp_op_time_loss_gradient = {
    .id = LP_OP_TIME_LOSS_GRADIENT, .name = "time_loss_gradient", .input_count = 4, .output_count = 2, .cost = cost};
