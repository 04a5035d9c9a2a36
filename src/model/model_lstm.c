/* model_lstm.c: a recurrent network over the order of events, as PyTorch's nn.LSTM computes it. It does not see times.
 *
 *     X = dropout(input layer)                                    [T x dims]      input_layer.h
 *     H = lstm(X W_ih^T + b_ih + b_hh, W_hh)                      [T x dims]      op `lstm`, `layers` times with dropout between
 *     logits or catalogue scores of H at the target positions                     output_layer.h
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "nn/recurrent.h"

#include <stddef.h>

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
     .help = "number of recurrent layers, 1 to 3"},
    {0},
};

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    return lp_recurrent_check(config->dims, "dims", error);
}

static void build(lp_builder *b)
{
    const lstm_settings *settings = (const void *)b->config->settings.bytes;
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        x = lp_lstm_layer(b->graph, "lstm", layer, lp_dropout(b->graph, x, b->dropout), b->config->dims);
    lp_output_layer(b, lp_at_targets(b, x));
}

const lp_model_row lp_model_lstm = {.name = "lstm",
                                    .summary = "recurrent network (LSTM) over the order of events",
                                    .tasks = LP_TASKS_ALL,
                                    .options = {options},
                                    .validate = validate,
                                    .build = build};
