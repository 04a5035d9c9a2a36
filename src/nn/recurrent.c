/* recurrent.c: LSTM and GRU layers with their parameters. */
#include "nn/recurrent.h"

#include "nn/layer.h"

#include <stdio.h>

typedef struct recurrent_weights {
    lp_value *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} recurrent_weights;

static lp_value *parameter(lp_graph *graph, const char *name, int layer, const char *part, int rows, int cols,
                           int hidden)
{
    char full[LP_PARAMETER_NAME_SIZE];
    snprintf(full, sizeof full, "%s.%d.%s", name, layer, part);
    return lp_graph_parameter(graph, full, rows, cols, LP_INIT_UNIFORM, lp_uniform_bound(hidden));
}

static recurrent_weights declare(lp_graph *graph, const char *name, int layer, int gates, int in, int hidden)
{
    int rows = gates * hidden;
    return (recurrent_weights){.weight_ih = parameter(graph, name, layer, "weight_ih", rows, in, hidden),
                               .weight_hh = parameter(graph, name, layer, "weight_hh", rows, hidden, hidden),
                               .bias_ih = parameter(graph, name, layer, "bias_ih", 1, rows, hidden),
                               .bias_hh = parameter(graph, name, layer, "bias_hh", 1, rows, hidden)};
}

lp_value *lp_lstm_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden)
{
    if (!x)
        return NULL;
    recurrent_weights w = declare(graph, name, layer, 4, x->cols, hidden);
    lp_value *gates = lp_linear(graph, x, w.weight_ih, lp_add(graph, w.bias_ih, w.bias_hh), NULL, 1, true);
    return lp_lstm(graph, gates, w.weight_hh);
}

lp_value *lp_rnn_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden)
{
    if (!x)
        return NULL;
    lp_value *weight_ih = parameter(graph, name, layer, "weight_ih", hidden, x->cols, hidden);
    lp_value *weight_hh = parameter(graph, name, layer, "weight_hh", hidden, hidden, hidden);
    lp_value *bias = parameter(graph, name, layer, "bias_ih", 1, hidden, hidden);
    return lp_rnn(graph, lp_linear(graph, x, weight_ih, bias, NULL, 1, true), weight_hh);
}

lp_value *lp_gru_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden)
{
    if (!x)
        return NULL;
    recurrent_weights w = declare(graph, name, layer, 3, x->cols, hidden);
    return lp_gru(graph, lp_linear(graph, x, w.weight_ih, w.bias_ih, NULL, 1, true), w.weight_hh, w.bias_hh);
}

lapse_status lp_recurrent_check(int hidden, const char *option, lapse_error *error)
{
    if (hidden > LP_RECURRENT_HIDDEN)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%s (%d) of a recurrent layer is at most %d", option, hidden,
                       LP_RECURRENT_HIDDEN);
    return LAPSE_OK;
}
