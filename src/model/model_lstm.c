/* model_lstm.c: a recurrent network over the order of events, as PyTorch's nn.LSTM computes it. It does not see times.
 *
 *     X = dropout(input layer)                                    [T x dims]      input_layer.h
 *     H = lstm(X W_ih^T + b_ih + b_hh, W_hh)                      [T x dims]      op `lstm`, `layers` times with dropout between
 *     logits or catalogue scores of H at the target positions                     output_layer.h
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "nn/layer.h"

#include <stddef.h>
#include <stdio.h>

typedef struct lstm_settings {
    int layers;
} lstm_settings;

static const lp_option options[] = {
    {.name = "layers",
     .type = LAPSE_OPTION_INTEGER,
     .offset = offsetof(lstm_settings, layers),
     .group = "Model",
     .stored = LP_STORED_FORWARD,
     .placeholder = "N",
     .least = 1,
     .most = 3,
     .initial = "1",
     .advanced = true,
     .help = "number of LSTM layers, 1 to 3"},
    {0},
};

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    if (config->dims > LP_RECURRENT_HIDDEN)
        return lp_fail(error, LAPSE_ERROR_USAGE, "dims (%d) of an LSTM is at most %d", config->dims,
                       LP_RECURRENT_HIDDEN);
    return LAPSE_OK;
}

/* All weights and biases start uniform in +-1 / sqrt(hidden size), as in PyTorch. */
static lp_value *parameter(const lp_builder *b, int layer, const char *part, int rows, int cols)
{
    char name[LP_PARAMETER_NAME_SIZE];
    snprintf(name, sizeof name, "lstm.%d.%s", layer, part);
    return lp_graph_parameter(b->graph, name, rows, cols, LP_INIT_UNIFORM, lp_uniform_bound(b->config->dims));
}

/* x [T x dims] -> hidden states [T x dims] */
static lp_value *build_layer(const lp_builder *b, int layer, lp_value *x)
{
    int dims = b->config->dims;
    lp_value *weight_ih = parameter(b, layer, "weight_ih", 4 * dims, dims);
    lp_value *weight_hh = parameter(b, layer, "weight_hh", 4 * dims, dims);
    lp_value *bias_ih = parameter(b, layer, "bias_ih", 1, 4 * dims);
    lp_value *bias_hh = parameter(b, layer, "bias_hh", 1, 4 * dims);
    lp_value *gates = lp_linear(b->graph, x, weight_ih, lp_add(b->graph, bias_ih, bias_hh), NULL, 1, true);
    return lp_lstm(b->graph, gates, weight_hh);
}

static void build(lp_builder *b)
{
    const lstm_settings *settings = (const void *)b->config->settings.bytes;
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        x = build_layer(b, layer, lp_dropout(b->graph, x, b->dropout));
    lp_output_layer(b, lp_at_targets(b, x));
}

const lp_model_row lp_model_lstm = {.name = "lstm",
                                    .summary = "recurrent network (LSTM) over the order of events",
                                    .tasks = LP_TASKS_ALL,
                                    .options = {options},
                                    .validate = validate,
                                    .build = build};
