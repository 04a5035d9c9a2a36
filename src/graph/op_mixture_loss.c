/* op_mixture_loss.c: the loss function of the law of the time to the next event (formula/mixture.h). */
#include "graph/op_rows.h"

enum { MIXTURE, GAP, SEASON };

static void shape(lp_graph *graph, lp_node *node)
{
    lp_value *mixture = node->inputs[MIXTURE], *gap = node->inputs[GAP], *season = node->inputs[SEASON];
    if (!mixture || !gap || mixture->cols < 3 || mixture->cols % 3 != (season ? 1 : 0) || gap->type != LP_TYPE_DOUBLE ||
        gap->cols != 1 || gap->rows_of != mixture->rows_of ||
        (season && (season->type != LP_TYPE_DOUBLE || season->cols != 2 || season->rows_of != mixture->rows_of))) {
        lp_graph_fail(graph,
                      "mixture_loss needs three numbers per component and a gap, for each row; with a background one "
                      "number more, and two of the season");
        return;
    }
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
}

static void gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[MIXTURE], node->inputs[GAP], node->inputs[SEASON], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_mixture_loss_gradient, inputs, &node->attributes, node->inputs);
}

/* About four transcendental functions for each component. */
static lp_cost cost(const lp_node *node, const lp_extent *extent)
{
    const lp_value *mixture = node->inputs[MIXTURE];
    lp_cost sum = lp_op_cost_elementwise(node, extent);
    sum.flop = 30.0 * (double)lp_value_rows(mixture, extent) * mixture->cols;
    return sum;
}

/* Seven numbers for each component of one row. */
static size_t scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return 7 * (size_t)(node->inputs[MIXTURE]->cols / 3) * real_size;
}

static lp_value *example(lp_graph *graph, lp_random *random)
{
    int components = 1 + (int)lp_random_below(random, 5), background = (int)lp_random_below(random, 2);
    lp_value *mixture = lp_example_rows(graph, "mixture", LP_ROWS_TARGETS, 3 * components + background);
    lp_value *gap = lp_graph_input(graph, "gap", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 0, 1);
    lp_value *season = background ? lp_graph_input(graph, "season", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 0, 2) : NULL;
    return lp_mixture_loss(graph, mixture, gap, season, 0.01, 0.3, 1.7);
}

lp_value *lp_mixture_loss(lp_graph *graph, lp_value *mixture, lp_value *gap, lp_value *season, double floor,
                          double mean, double deviation)
{
    lp_attributes attributes = {.epsilon = floor, .shift = mean, .scale = 1 / deviation};
    return lp_graph_node(graph, &lp_op_mixture_loss, (lp_value *[]){mixture, gap, season}, &attributes);
}

/* (mixture [A x 3K], or [A x 3K + 1] with season [A x 2]; gap [A x 1]) -> loss; attributes epsilon: floor, shift: mean, scale: 1 / deviation */
const lp_op lp_op_mixture_loss = {.id = LP_OP_MIXTURE_LOSS,
                                  .name = "mixture_loss",
                                  .input_count = 3,
                                  .output_count = 1,
                                  .shape = shape,
                                  .gradient = gradient,
                                  .cost = cost,
                                  .scratch = scratch,
                                  .example = example};

/* (mixture, gap, season, dloss [1 x 1]) -> dmixture: with p the weights, q the weights given y, and own and slope of lp_mixture_part,
 *     da = dloss (p - q)     dm = -dloss q slope / deviation     dr = dloss q (own - slope z) (1 - (l / B)^2)
 *     db = -dloss lp_mixture_background_slope */
const lp_op lp_op_mixture_loss_gradient = {.id = LP_OP_MIXTURE_LOSS_GRADIENT,
                                           .name = "mixture_loss_gradient",
                                           .input_count = 4,
                                           .output_count = 1,
                                           .cost = cost,
                                           .scratch = scratch};
