/* op_loss.c: loss functions.
 *
 *   cross_entropy   from stored logits, for few classes
 *   softmax_loss    over a catalogue; logits are computed in tiles, and stored for the gradient if they are few, otherwise recomputed
 *   sampled_loss    the target against sampled negatives: bce, bpr, bpr-max, top1-max
 */
#include "graph/op_rows.h"

static void cross_entropy_shape(lp_graph *graph, lp_node *node)
{
    lp_value *logits = node->inputs[0], *target = node->inputs[1];
    if (!logits || !target || target->type != LP_TYPE_INT32 || target->cols != 1 ||
        target->rows_of != logits->rows_of) {
        lp_graph_fail(graph, "cross_entropy needs one target per row");
        return;
    }
    if (target->limit == 0 || target->limit > logits->cols)
        target->limit = logits->cols;
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
}

static void cross_entropy_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->inputs[0], node->inputs[1], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_cross_entropy_gradient, inputs, NULL, &node->inputs[0]);
}

static lp_cost cross_entropy_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop = 12.0 * (double)lp_value_rows(node->inputs[0], extent) * node->inputs[0]->cols;
    return cost;
}

/* A row of logits, padded to whole vectors. */
static size_t cross_entropy_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return ((size_t)node->inputs[0]->cols + 15) / 16 * 16 * real_size;
}

static lp_value *cross_entropy_example(lp_graph *graph, lp_random *random)
{
    lp_value *logits = lp_example_rows(graph, "logits", LP_ROWS_TARGETS, 2 + (int)lp_random_below(random, 20));
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
    return lp_cross_entropy(graph, logits, target);
}

lp_value *lp_cross_entropy(lp_graph *graph, lp_value *logits, lp_value *target)
{
    return lp_graph_node(graph, &lp_op_cross_entropy, (lp_value *[]){logits, target}, NULL);
}

const lp_op lp_op_cross_entropy = {.id = LP_OP_CROSS_ENTROPY,
                                   .name = "cross_entropy",
                                   .input_count = 2,
                                   .output_count = 1,
                                   .shape = cross_entropy_shape,
                                   .gradient = cross_entropy_gradient,
                                   .cost = cross_entropy_cost,
                                   .scratch = cross_entropy_scratch,
                                   .example = cross_entropy_example};

/* (logits, target, dloss [1 x 1]) -> dlogits = dloss * (softmax - one at target) */
const lp_op lp_op_cross_entropy_gradient = {.id = LP_OP_CROSS_ENTROPY_GRADIENT,
                                            .name = "cross_entropy_gradient",
                                            .input_count = 3,
                                            .output_count = 1,
                                            .cost = cross_entropy_cost,
                                            .scratch = cross_entropy_scratch};

enum { Z, ITEMS, BIAS, SHIFT, TARGET, NEGATIVE };

/* One number per item. */
static bool is_column(const lp_value *value, const lp_value *items)
{
    return value->rows_of == items->rows_of && value->rows == items->rows && value->cols == 1;
}

/* Checks the first five inputs of both losses over items. */
static bool check_items(lp_graph *graph, const lp_node *node)
{
    lp_value *const *in = node->inputs;
    if (!in[Z] || !in[ITEMS] || !in[BIAS] || !in[TARGET] || in[Z]->cols != in[ITEMS]->cols ||
        !is_column(in[BIAS], in[ITEMS]) || (in[SHIFT] && !is_column(in[SHIFT], in[ITEMS])) ||
        in[TARGET]->type != LP_TYPE_INT32 || in[TARGET]->cols != 1 || in[TARGET]->rows_of != in[Z]->rows_of)
        return lp_graph_fail(graph, "%s needs a vector and a target per row, and a vector and a bias per item",
                             node->op->name);
    lp_op_limit(in[TARGET], in[ITEMS]);
    return true;
}

static void softmax_loss_shape(lp_graph *graph, lp_node *node)
{
    if (!check_items(graph, node))
        return;
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
    lp_op_output(graph, node, 1, LP_TYPE_REAL, node->inputs[Z]->rows_of, node->inputs[Z]->rows, 1);
}

static void softmax_loss_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs, *scores = NULL;
    if (in[ITEMS]->rows_of == LP_ROWS_FIXED)
        scores = lp_op_output(graph, node, 2, LP_TYPE_REAL, in[Z]->rows_of, in[Z]->rows, in[ITEMS]->rows);
    if (scores)
        scores->optional = true;
    lp_value *inputs[] = {
        in[Z], in[ITEMS], in[BIAS], in[SHIFT], in[TARGET], node->outputs[1], node->outputs[0]->gradient, scores};
    lp_graph_gradient_node(graph, &lp_op_softmax_loss_gradient, inputs, NULL, node->inputs);
}

/* Matrix products of all rows with all items: one forward, two backward, without the scores that the gradient may compute again. */
static lp_cost softmax_loss_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double products = node->op == &lp_op_softmax_loss ? 1 : 2;
    double pairs = (double)lp_value_rows(node->inputs[Z], extent) * (double)lp_value_rows(node->inputs[ITEMS], extent);
    cost.flop = pairs * (2 * products * node->inputs[Z]->cols + 12);
    return cost;
}

/* A tile of logits, a panel of transposed items, their bias plus logq, and the running maximum and sum of each row. */
static size_t softmax_loss_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    size_t cols = (size_t)node->inputs[ITEMS]->cols, rows = (size_t)lp_value_rows(node->inputs[Z], extent);
    return (LP_SOFTMAX_ITEMS * (LP_SOFTMAX_ROWS + cols + 1) + 2 * rows) * real_size;
}

/* Vectors, items (the batch vocabulary, or the whole catalogue), bias and logq. */
static void example_items(lp_graph *graph, lp_random *random, lp_value *inputs[])
{
    int cols = 1 + (int)lp_random_below(random, 20), rows = 1 + (int)lp_random_below(random, 40);
    bool own = lp_random_below(random, 2);
    inputs[Z] = lp_example_rows(graph, "z", LP_ROWS_TARGETS, cols);
    inputs[ITEMS] =
        own ? lp_example_rows(graph, "items", LP_ROWS_ITEMS, cols) : lp_example_fixed(graph, "items", rows, cols);
    inputs[BIAS] = own ? lp_example_rows(graph, "bias", LP_ROWS_ITEMS, 1) : lp_example_fixed(graph, "bias", rows, 1);
    inputs[SHIFT] = own ? lp_graph_input(graph, "logq", LP_TYPE_REAL, LP_ROWS_ITEMS, 0, 1) : NULL;
    inputs[TARGET] = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
}

static lp_value *softmax_loss_example(lp_graph *graph, lp_random *random)
{
    lp_value *in[NEGATIVE];
    example_items(graph, random, in);
    return lp_softmax_loss(graph, in[Z], in[ITEMS], in[BIAS], in[SHIFT], in[TARGET]);
}

lp_value *lp_softmax_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *logq,
                          lp_value *target)
{
    return lp_graph_node(graph, &lp_op_softmax_loss, (lp_value *[]){z, items, bias, logq, target}, NULL);
}

/* (z, items, bias, logq?, target) -> loss, log-sum-exp of each row [A x 1], scores [A x items], optional */
const lp_op lp_op_softmax_loss = {.id = LP_OP_SOFTMAX_LOSS,
                                  .name = "softmax_loss",
                                  .input_count = 5,
                                  .output_count = 3,
                                  .shape = softmax_loss_shape,
                                  .gradient = softmax_loss_gradient,
                                  .cost = softmax_loss_cost,
                                  .scratch = softmax_loss_scratch,
                                  .example = softmax_loss_example};

/* (z, items, bias, logq?, target, log_sum, dloss [1 x 1], scores?) -> dz, ditems, dbias, with
 * ds = dloss * (exp(s - log_sum) - one at target):  dz = ds items,  ditems = ds^T z,  dbias = sum of ds */
const lp_op lp_op_softmax_loss_gradient = {.id = LP_OP_SOFTMAX_LOSS_GRADIENT,
                                           .name = "softmax_loss_gradient",
                                           .input_count = 8,
                                           .output_count = 3,
                                           .cost = softmax_loss_cost,
                                           .scratch = softmax_loss_scratch};

static void sampled_loss_shape(lp_graph *graph, lp_node *node)
{
    lp_value *negative = node->inputs[NEGATIVE];
    if (!check_items(graph, node))
        return;
    if (!negative || negative->type != LP_TYPE_INT32 || negative->cols < 1 ||
        negative->rows_of != node->inputs[Z]->rows_of) {
        lp_graph_fail(graph, "sampled_loss needs negatives for every row");
        return;
    }
    lp_op_limit(negative, node->inputs[ITEMS]);
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
    lp_op_output(graph, node, 1, LP_TYPE_REAL, node->inputs[Z]->rows_of, node->inputs[Z]->rows, 1 + negative->cols);
}

static void sampled_loss_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    lp_value *inputs[] = {in[Z], in[ITEMS], in[TARGET], in[NEGATIVE], node->outputs[1], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_sampled_loss_gradient, inputs, &node->attributes, node->inputs);
}

/* Dot products of rows with their target and negatives: one forward, two backward. */
static lp_cost sampled_loss_cost(const lp_node *node, const lp_extent *extent)
{
    bool forward = node->op == &lp_op_sampled_loss;
    const lp_value *z = node->inputs[0], *negative = node->inputs[forward ? NEGATIVE : 3];
    double products = forward ? 1 : 2, pairs = (double)lp_value_rows(z, extent) * (1 + negative->cols);
    return (lp_cost){pairs * (2 * products * z->cols + 12), pairs * (products * z->cols + 1) * 4};
}

static lp_value *sampled_loss_example(lp_graph *graph, lp_random *random)
{
    lp_value *in[NEGATIVE];
    example_items(graph, random, in);
    lp_value *negative =
        lp_graph_input(graph, "negative", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1 + (int)lp_random_below(random, 5));
    lp_loss type = (lp_loss)(LP_LOSS_BCE + lp_random_below(random, LP_LOSS_COUNT - LP_LOSS_BCE));
    lp_score_rule score = (lp_score_rule)lp_random_below(random, LP_SCORE_L1 + 1);
    return lp_sampled_loss(graph, in[Z], in[ITEMS], in[BIAS], in[TARGET], negative, type, 0.3, score);
}

lp_value *lp_sampled_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *target,
                          lp_value *negative, lp_loss type, double regularization, lp_score_rule score)
{
    lp_value *inputs[] = {z, items, bias, NULL, target, negative};
    lp_attributes attributes = {.loss = type, .regularization = regularization, .score = score};
    return lp_graph_node(graph, &lp_op_sampled_loss, inputs, &attributes);
}

/* (z, items, bias, NULL, target, negative) -> loss, dscore [A x (1 + N)], the gradient of each score, target first */
const lp_op lp_op_sampled_loss = {.id = LP_OP_SAMPLED_LOSS,
                                  .name = "sampled_loss",
                                  .input_count = 6,
                                  .output_count = 2,
                                  .shape = sampled_loss_shape,
                                  .gradient = sampled_loss_gradient,
                                  .cost = sampled_loss_cost,
                                  .example = sampled_loss_example};

/* (z, items, target, negative, dscore, dloss [1 x 1]) -> dz, ditems, dbias: sums in the order of rows, target first */
const lp_op lp_op_sampled_loss_gradient = {.id = LP_OP_SAMPLED_LOSS_GRADIENT,
                                           .name = "sampled_loss_gradient",
                                           .input_count = 6,
                                           .output_count = 3,
                                           .cost = sampled_loss_cost};
