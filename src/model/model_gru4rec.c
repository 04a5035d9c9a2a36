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

#include <stddef.h>

typedef struct gru4rec_settings {
    lp_recurrent_settings recurrent; /* first: lp_target_lag_options, lp_encoding_options, lp_recurrent_options */
    int preset;
} gru4rec_settings;

_Static_assert(sizeof(gru4rec_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

enum { PRESET_NONE, PRESET_2016, PRESET_2018, NEGATIVES_2016 = 49 };
static const char *const preset_list[] = {"none", "2016", "2018", NULL};

static const char *const *preset_names(void)
{
    return preset_list;
}

/* clang-format off */
static const lp_option options[] = {
    {.name = "preset", .type = LAPSE_OPTION_CHOICE, .offset = offsetof(gru4rec_settings, preset), .group = "Training",
     .stored = LP_STORED_TRAINING, .placeholder = "YEAR", .choices = preset_names, .initial = "none", .advanced = true,
     .help = "defaults of one of the published models: 2016 (loss top1, 49 negatives from the batch, separate item vectors) or "
     "2018 (loss bpr-max, negatives by popularity, shared item vectors)"},
    {0},
};
/* clang-format on */

static void choose(int *member, int value)
{
    if (*member == LP_UNSET)
        *member = value;
}

static void defaults(lp_model_config *config)
{
    int preset = ((const gru4rec_settings *)(const void *)config->settings.bytes)->preset;
    if (preset == PRESET_NONE)
        return;
    choose(&config->loss, preset == PRESET_2016 ? LP_LOSS_TOP1 : LP_LOSS_BPR_MAX);
    choose(&config->output, preset == PRESET_2016 ? LP_OUTPUT_SEPARATE : LP_OUTPUT_SHARED);
    if (lp_model_samples_by_target(config)) {
        choose(&config->negatives, preset == PRESET_2016 ? LP_NEGATIVES_IN_BATCH : LP_NEGATIVES_POPULARITY);
        if (preset == PRESET_2016)
            choose(&config->negative_count, NEGATIVES_2016);
    }
}

/* The published models see no gaps. */
static lapse_status resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error)
{
    if (((const gru4rec_settings *)(const void *)config->settings.bytes)->preset != PRESET_NONE)
        choose(&config->gap_input, 0);
    return lp_recurrent_resolve(config, data, error);
}

static void build(lp_builder *b)
{
    const lp_recurrent_settings *settings = lp_recurrent_settings_of(b->config);
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        x = lp_gru_layer(b->graph, "gru", layer, lp_dropout(b->graph, x, b->dropout), b->config->dims);
    lp_output_layer(b, lp_target_lag(b, lp_at_targets(b, x)));
}

const lp_model_row lp_model_gru4rec = {
    .name = "gru4rec",
    .summary = "recurrent network (GRU) over item sequences",
    .tasks = 1 << LP_TASK_RECOMMEND,
    .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options, options},
    .defaults = defaults,
    .resolve = resolve,
    .validate = lp_recurrent_validate,
    .build = build};
