/* model_lstm.c: a recurrent network over the order of events, as PyTorch's nn.LSTM computes it. It does not see times, except the lag to the
 * predicted event with an encoding (target_lag.h).
 *
 *     X = dropout(input layer)                                    [T x dims]      input_layer.h
 *     H = lstm(X W_ih^T + b_ih + b_hh, W_hh)                      [T x dims]      op `lstm`, `layers` times with dropout between
 *     logits or catalogue scores of H at the target positions                     output_layer.h
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/recurrent_options.h"
#include "nn/recurrent.h"

static void build(lp_builder *b)
{
    const lp_recurrent_settings *settings = lp_recurrent_settings_of(b->config);
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        x = lp_lstm_layer(b->graph, "lstm", layer, lp_dropout(b->graph, x, b->dropout), b->config->dims);
    lp_output_layer(b, lp_target_lag(b, lp_at_targets(b, x)));
}

const lp_model_row lp_model_lstm = {.name = "lstm",
                                    .summary = "recurrent network (LSTM) over the order of events",
                                    .tasks = LP_TASKS_ALL,
                                    .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options},
                                    .resolve = lp_recurrent_resolve,
                                    .validate = lp_recurrent_validate,
                                    .build = build};
