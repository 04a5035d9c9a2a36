/* op_recurrent.c: ops that carry a state from token to token of a packed sequence: shift_rows, the plain layer, the LSTM and the GRU.
 *
 * A recurrent layer is two ops: `linear` computes the input part of all gates for all tokens at once, and the scan here
 * adds the recurrent part token by token. Every segment starts from a zero state.
 */
#include "graph/op_rows.h"

/* ------------------------------------------------------------------------------------------- shift_rows ------ */

static void shift_rows_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *x = node->inputs[0];
    if (!x || x->type != LP_TYPE_REAL || x->rows_of != LP_ROWS_TOKENS)
        lp_graph_fail(graph, "shift_rows wants a value with a row for each token");
    else
        lp_op_output_like(graph, node, 0, x);
}

static void shift_rows_gradient(lp_graph *graph, lp_node *node)
{
    lp_attributes back = {.shift = -node->attributes.shift};
    lp_graph_gradient_node(graph, &lp_op_shift_rows, &node->outputs[0]->gradient, &back, &node->inputs[0]);
}

static lp_value *shift_rows_example(lp_graph *graph, lp_random *random)
{
    int cols = 1 + (int)lp_random_below(random, 9), k = (int)lp_random_below(random, 9) - 4;
    lp_value *x = lp_example_tokens(graph, "x", cols);
    /* x is used twice, so that a gradient is added to. */
    return lp_add(graph, lp_shift_rows(graph, x, k), lp_shift_rows(graph, x, 1));
}

lp_value *lp_shift_rows(lp_graph *graph, lp_value *x, int k)
{
    return lp_graph_node(graph, &lp_op_shift_rows, &x, &(lp_attributes){.shift = k});
}

const lp_op lp_op_shift_rows = {.id = LP_OP_SHIFT_ROWS,
                                .name = "shift_rows",
                                .input_count = 1,
                                .output_count = 1,
                                .shape = shift_rows_shape,
                                .gradient = shift_rows_gradient,
                                .cost = lp_op_cost_elementwise,
                                .example = shift_rows_example};

/* ------------------------------------------------------------------------------------- recurrent layers ------ */

/* stored: columns of H that the second output has: the activated gates, and for a GRU the recurrent part of its third. */
enum { RNN_GATES = 1, RNN_STORED = 4, LSTM_GATES = 4, LSTM_STORED = 4, GRU_GATES = 3, GRU_STORED = 4 };

/* Checks x [T x gates*H] and weight_hh [gates*H x H]; the outputs are the hidden states [T x H] and what the gradient
 * needs of the gates [T x stored*H]. */
static bool recurrent_shape(lp_graph *graph, lp_node *node, int gates, int stored)
{
    const lp_value *x = node->inputs[0], *weight = node->inputs[1];
    if (!x || !weight || x->type != LP_TYPE_REAL || x->rows_of != LP_ROWS_TOKENS || weight->rows_of != LP_ROWS_FIXED ||
        weight->cols < 1 || weight->cols > LP_RECURRENT_HIDDEN || weight->rows != gates * weight->cols ||
        x->cols != weight->rows) {
        lp_graph_fail(graph, "%s needs gates [T x %d*H] and a weight [%d*H x H], H at most %d", node->op->name, gates,
                      gates, (int)LP_RECURRENT_HIDDEN);
        return false;
    }
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, weight->cols);
    lp_op_output(graph, node, 1, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, stored * weight->cols);
    return true;
}

/* `products` of the size of h W_hh^T for each token. */
static lp_cost recurrent_cost(const lp_node *node, const lp_extent *extent, const lp_value *weight, int products)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop = 2.0 * products * (double)extent->rows[LP_ROWS_TOKENS] * weight->rows * weight->cols;
    return cost;
}

static lp_cost forward_cost(const lp_node *node, const lp_extent *extent)
{
    return recurrent_cost(node, extent, node->inputs[1], 1);
}

/* Inputs of an example, each of which may require no gradient. */
typedef struct recurrent_example {
    lp_value *x, *weight;
    int given; /* the input that requires no gradient, if below 3 */
} recurrent_example;

static recurrent_example example_of(lp_graph *graph, lp_random *random, int gates)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 11};
    int hidden = sizes[lp_random_below(random, 6)], cols = gates * hidden, given = (int)lp_random_below(random, 6);
    lp_value *x = given == 0 ? lp_graph_input(graph, "x", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, cols)
                             : lp_example_tokens(graph, "x", cols);
    lp_value *weight = given == 1 ? lp_graph_input(graph, "weight_hh", LP_TYPE_REAL, LP_ROWS_FIXED, cols, hidden)
                                  : lp_example_fixed(graph, "weight_hh", cols, hidden);
    return (recurrent_example){x, weight, given};
}

/* The order of the segments, then what is held for each of the segments that advance together. */
static size_t recurrent_scratch(const lp_extent *extent, int held, size_t real_size)
{
    size_t tokens = (size_t)extent->rows[LP_ROWS_TOKENS];
    size_t together = tokens < LP_RECURRENT_SEGMENTS ? tokens : LP_RECURRENT_SEGMENTS;
    return (tokens + (size_t)extent->longest + 4) * sizeof(int32_t) + together * (size_t)held * real_size;
}

/* -------------------------------------------------------------------------------------------------- rnn ------ */

static void rnn_shape(lp_graph *graph, lp_node *node)
{
    recurrent_shape(graph, node, RNN_GATES, RNN_STORED);
}

static void rnn_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *h = node->outputs[0], *stored = node->outputs[1];
    lp_value *inputs[] = {stored, h, node->inputs[1], h->gradient};
    if (!h->gradient || stored->gradient)
        lp_graph_fail(graph, "rnn: a gradient flows through the hidden states alone");
    else
        lp_graph_gradient_node(graph, &lp_op_rnn_gradient, inputs, NULL, node->inputs);
}

static lp_cost rnn_gradient_cost(const lp_node *node, const lp_extent *extent)
{
    return recurrent_cost(node, extent, node->inputs[2], node->outputs[1] ? 2 : 1);
}

/* Of a token the gradients of the gate, the hidden state and the cell. */
static size_t rnn_gradient_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return 3 * (size_t)node->inputs[2]->cols * real_size;
}

static lp_value *rnn_example(lp_graph *graph, lp_random *random)
{
    recurrent_example e = example_of(graph, random, RNN_GATES);
    lp_value *weight = lp_affine(graph, e.weight, 0.1, 0); /* so that states do not grow from token to token */
    lp_value *h = lp_rnn(graph, e.x, weight);
    return lp_add(graph, h, lp_random_below(random, 2) ? lp_rnn(graph, e.x, weight) : h);
}

lp_value *lp_rnn(lp_graph *graph, lp_value *x, lp_value *weight_hh)
{
    return lp_graph_node(graph, &lp_op_rnn, (lp_value *[]){x, weight_hh}, NULL);
}

/* (x, weight_hh) -> hidden states h [T x H], zeros [T x 4H] */
const lp_op lp_op_rnn = {.id = LP_OP_RNN,
                         .name = "rnn",
                         .input_count = 2,
                         .output_count = 2,
                         .shape = rnn_shape,
                         .gradient = rnn_gradient,
                         .cost = forward_cost,
                         .example = rnn_example};

/* (zeros, h, weight_hh, dh) -> dx [T x H], dweight_hh [H x H] */
const lp_op lp_op_rnn_gradient = {.id = LP_OP_RNN_GRADIENT,
                                  .name = "rnn_gradient",
                                  .input_count = 4,
                                  .output_count = 2,
                                  .cost = rnn_gradient_cost,
                                  .scratch = rnn_gradient_scratch};

/* ------------------------------------------------------------------------------------------------- lstm ------ */

static void lstm_shape(lp_graph *graph, lp_node *node)
{
    if (recurrent_shape(graph, node, LSTM_GATES, LSTM_STORED))
        lp_op_output_like(graph, node, 2, node->outputs[0]);
}

static void lstm_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *h = node->outputs[0], *gates = node->outputs[1], *c = node->outputs[2];
    lp_value *inputs[] = {gates, c, h, node->inputs[1], h->gradient};
    if (!h->gradient || gates->gradient || c->gradient)
        lp_graph_fail(graph, "lstm: a gradient flows through the hidden states alone");
    else
        lp_graph_gradient_node(graph, &lp_op_lstm_gradient, inputs, NULL, node->inputs);
}

static lp_cost lstm_gradient_cost(const lp_node *node, const lp_extent *extent)
{
    return recurrent_cost(node, extent, node->inputs[3], node->outputs[1] ? 2 : 1);
}

/* Of a segment the gates, the hidden state and the cell state; and the transposed weight. */
static size_t lstm_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    int hidden = node->inputs[1]->cols;
    return recurrent_scratch(extent, (LSTM_GATES + 2) * hidden, real_size) +
           (size_t)LSTM_GATES * (size_t)hidden * (size_t)hidden * real_size;
}

/* Of a segment the gradients of the gates, the hidden state and the cell state; a row of zeros; of all tokens the previous
 * hidden states, and the gradients of the gates where they cannot be written to dx at once. */
static size_t lstm_gradient_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    int hidden = node->inputs[3]->cols;
    bool direct = node->outputs[0] && !(node->accumulate & 1);
    size_t per_token = (size_t)(direct ? 1 : 1 + LSTM_GATES) * (size_t)hidden;
    return recurrent_scratch(extent, (LSTM_GATES + 2) * hidden, real_size) +
           ((size_t)extent->rows[LP_ROWS_TOKENS] * per_token + (size_t)hidden) * real_size;
}

static lp_value *lstm_example(lp_graph *graph, lp_random *random)
{
    recurrent_example e = example_of(graph, random, LSTM_GATES);
    lp_value *h = lp_lstm(graph, e.x, e.weight);
    /* A second layer on the same inputs makes both gradients add. */
    return lp_add(graph, h, lp_random_below(random, 2) ? lp_lstm(graph, e.x, e.weight) : h);
}

lp_value *lp_lstm(lp_graph *graph, lp_value *x, lp_value *weight_hh)
{
    return lp_graph_node(graph, &lp_op_lstm, (lp_value *[]){x, weight_hh}, NULL);
}

/* (x, weight_hh) -> hidden states h [T x H], activated gates [T x 4H], cell states c [T x H] */
const lp_op lp_op_lstm = {.id = LP_OP_LSTM,
                          .name = "lstm",
                          .input_count = 2,
                          .output_count = 3,
                          .shape = lstm_shape,
                          .gradient = lstm_gradient,
                          .cost = forward_cost,
                          .scratch = lstm_scratch,
                          .example = lstm_example};

/* (gates, c, h, weight_hh, dh) -> dx [T x 4H], dweight_hh [4H x H] */
const lp_op lp_op_lstm_gradient = {.id = LP_OP_LSTM_GRADIENT,
                                   .name = "lstm_gradient",
                                   .input_count = 5,
                                   .output_count = 2,
                                   .cost = lstm_gradient_cost,
                                   .scratch = lstm_gradient_scratch};

/* -------------------------------------------------------------------------------------------------- gru ------ */

static void gru_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *bias = node->inputs[2];
    if (!recurrent_shape(graph, node, GRU_GATES, GRU_STORED))
        return;
    if (!bias || bias->rows_of != LP_ROWS_FIXED || bias->rows != 1 || bias->cols != node->inputs[1]->rows)
        lp_graph_fail(graph, "gru needs a bias [1 x %d]", node->inputs[1]->rows);
}

static void gru_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *h = node->outputs[0], *gates = node->outputs[1];
    lp_value *inputs[] = {gates, h, node->inputs[1], h->gradient};
    if (!h->gradient || gates->gradient)
        lp_graph_fail(graph, "gru: a gradient flows through the hidden states alone");
    else
        lp_graph_gradient_node(graph, &lp_op_gru_gradient, inputs, NULL, node->inputs);
}

static lp_cost gru_gradient_cost(const lp_node *node, const lp_extent *extent)
{
    return recurrent_cost(node, extent, node->inputs[2], node->outputs[1] ? 2 : 1);
}

/* Of a segment the gates and the hidden state; and the transposed weight. */
static size_t gru_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    int hidden = node->inputs[1]->cols;
    return recurrent_scratch(extent, (GRU_GATES + 1) * hidden, real_size) +
           (size_t)GRU_GATES * (size_t)hidden * (size_t)hidden * real_size;
}

/* Of a segment the gradients of the recurrent parts of the gates and two parts of that of the hidden state; of all tokens the
 * previous hidden states, the gradients of the recurrent parts and a row of their sums. */
static size_t gru_gradient_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    int hidden = node->inputs[2]->cols;
    return recurrent_scratch(extent, (GRU_GATES + 2) * hidden, real_size) +
           (size_t)(extent->rows[LP_ROWS_TOKENS] + 1) * (size_t)(1 + GRU_GATES) * (size_t)hidden * real_size;
}

static lp_value *gru_example(lp_graph *graph, lp_random *random)
{
    recurrent_example e = example_of(graph, random, GRU_GATES);
    lp_value *bias = e.given == 2 ? lp_graph_input(graph, "bias_hh", LP_TYPE_REAL, LP_ROWS_FIXED, 1, e.weight->rows)
                                  : lp_example_fixed(graph, "bias_hh", 1, e.weight->rows);
    lp_value *h = lp_gru(graph, e.x, e.weight, bias);
    return lp_add(graph, h, lp_random_below(random, 2) ? lp_gru(graph, e.x, e.weight, bias) : h);
}

lp_value *lp_gru(lp_graph *graph, lp_value *x, lp_value *weight_hh, lp_value *bias_hh)
{
    return lp_graph_node(graph, &lp_op_gru, (lp_value *[]){x, weight_hh, bias_hh}, NULL);
}

/* (x, weight_hh, bias_hh) -> hidden states h [T x H]; r, z, n and the recurrent part of n [T x 4H] */
const lp_op lp_op_gru = {.id = LP_OP_GRU,
                         .name = "gru",
                         .input_count = 3,
                         .output_count = 2,
                         .shape = gru_shape,
                         .gradient = gru_gradient,
                         .cost = forward_cost,
                         .scratch = gru_scratch,
                         .example = gru_example};

/* (gates, h, weight_hh, dh) -> dx [T x 3H], dweight_hh [3H x H], dbias_hh [1 x 3H] */
const lp_op lp_op_gru_gradient = {.id = LP_OP_GRU_GRADIENT,
                                  .name = "gru_gradient",
                                  .input_count = 4,
                                  .output_count = 3,
                                  .cost = gru_gradient_cost,
                                  .scratch = gru_gradient_scratch};
