/* model_gru4rec.c: a GRU over item sequences (Hidasi et al. 2016, Hidasi and Karatzoglou 2018). It does not see times,
 * except the lag to the predicted event with an encoding (target_lag.h).
 *
 *     X = dropout(input layer)                                    [T x dims]      input_layer.h
 *     H = gru(X)                                                  [T x dims]      nn/recurrent.h, `layers` times with dropout between
 *     catalogue scores of H at the target positions                               output_layer.h
 *
 * The published model feeds one-hot items or a separate embedding; ours is the input layer of every network, whose item vectors are
 * those of the output unless --item-output separate is given ("constrained embeddings" of the second paper).
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
        x = lp_gru_layer(b->graph, "gru", layer, lp_dropout(b->graph, x, b->dropout), b->config->dims);
    lp_output_layer(b, lp_target_lag(b, lp_at_targets(b, x)));
}

const lp_model_row lp_model_gru4rec = {.name = "gru4rec",
                                       .summary = "recurrent network (GRU) over item sequences",
                                       .tasks = 1 << LP_TASK_RECOMMEND,
                                       .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options},
                                       .resolve = lp_target_lag_resolve,
                                       .validate = lp_recurrent_validate,
                                       .build = build};
