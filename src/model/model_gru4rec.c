/* model_gru4rec.c: a GRU over item sequences (Hidasi et al. 2016, Hidasi and Karatzoglou 2018). It does not see times.
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
#include "nn/recurrent.h"

#include <stddef.h>

typedef struct gru4rec_settings {
    int layers;
} gru4rec_settings;

static const lp_option options[] = {
    {.name = "layers",
     .type = LAPSE_OPTION_INTEGER,
     .offset = offsetof(gru4rec_settings, layers),
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
    const gru4rec_settings *settings = (const void *)b->config->settings.bytes;
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        x = lp_gru_layer(b->graph, "gru", layer, lp_dropout(b->graph, x, b->dropout), b->config->dims);
    lp_output_layer(b, lp_at_targets(b, x));
}

const lp_model_row lp_model_gru4rec = {.name = "gru4rec",
                                       .summary = "recurrent network (GRU) over item sequences",
                                       .tasks = 1 << LP_TASK_RECOMMEND,
                                       .options = {options},
                                       .validate = validate,
                                       .build = build};
