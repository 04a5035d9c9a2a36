/* model_rmtpp.c: recurrent marked temporal point process (Du et al. 2016). It predicts the next event and its time.
 *
 *     X = dropout(input layer), by default with the gap of each event     [T x dims]      input_layer.h
 *     H = rnn(X), or gru(X)                                               [T x dims]      nn/recurrent.h, `layers` times
 *     logits of H at the target positions                                                 output_layer.h, target_lag.h
 *     s = H v + b at the target positions                                 [targets x 1]
 *     intensity of the next event at the time d after the last one: exp(s + w d), d in units of `time-unit`
 *     loss = cross-entropy + time-weight * negative log-likelihood of the time                op `time_loss`
 *
 * With an encoding and a known target time the logits see the lag to the predicted event. The intensity, which predicts this lag, never
 * does.
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/recurrent_options.h"
#include "nn/layer.h"
#include "nn/recurrent.h"

#include <math.h>
#include <stddef.h>

#define SLOPE "time.slope"

#define TIME_UNIT_LEAST 1e-30 /* seconds */
#define TIME_UNIT_MOST 1e30

typedef struct rmtpp_settings {
    lp_recurrent_settings recurrent; /* first: lp_target_lag_options, lp_encoding_options, lp_recurrent_options */
    double time_unit;                /* seconds */
    double time_weight;
    int cell;
} rmtpp_settings;

_Static_assert(sizeof(rmtpp_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const rmtpp_settings *settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

enum { CELL_RNN, CELL_GRU };
static const char *const cell_list[] = {"rnn", "gru", NULL};

static const char *const *cell_names(void)
{
    return cell_list;
}

#define AT(member) .offset = offsetof(rmtpp_settings, member)

/* clang-format off */
static const lp_option options[] = {
    {.name = "time-unit", .type = LAPSE_OPTION_DURATION, AT(time_unit), .group = "Model", .stored = LP_STORED_FORWARD,
     .placeholder = "DURATION", .least = TIME_UNIT_LEAST, .most = TIME_UNIT_MOST, .rule = "mean gap of the training split",
     .advanced = true, .help = "time unit of the intensity of the next event"},
    {.name = "time-weight", .type = LAPSE_OPTION_NUMBER, AT(time_weight), .group = "Training",
     .stored = LP_STORED_TRAINING, .placeholder = "X", .least = 0, .most = 1000, .initial = "1", .advanced = true,
     .help = "weight of the time's negative log-likelihood in the loss"},
    {.name = "cell", .type = LAPSE_OPTION_CHOICE, AT(cell), .group = "Model", .stored = LP_STORED_FORWARD,
     .placeholder = "NAME", .choices = cell_names, .initial = "rnn", .advanced = true,
     .help = "recurrent unit: rnn (a plain layer with ReLU), or gru"},
    {0},
};
/* clang-format on */

/* The mean gap of the training split: with it the start of training, s and w near 0, is near the best intensity that depends on
 * nothing. A median would be far below the mean of heavy-tailed gaps. */
static double mean_gap(const lapse_dataset *dataset, const uint8_t *split)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            if (split[i] == LP_SPLIT_TRAIN) {
                sum += dataset->time[i] - dataset->time[i - 1];
                count++;
            }
    return sum > 0 ? fmin(fmax(sum / (double)count, TIME_UNIT_LEAST), TIME_UNIT_MOST) : 1;
}

static lapse_status resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error)
{
    rmtpp_settings *settings = (void *)config->settings.bytes;
    if (isnan(settings->time_unit))
        settings->time_unit = mean_gap(data->dataset, data->split);
    return lp_recurrent_resolve(config, data, error);
}

static void build(lp_builder *b)
{
    const rmtpp_settings *settings = settings_of(b->config);
    lp_value *x = lp_input_layer(b);
    for (int layer = 0; layer < settings->recurrent.layers; layer++) {
        lp_value *input = lp_dropout(b->graph, x, b->dropout);
        x = settings->cell == CELL_GRU ? lp_gru_layer(b->graph, "gru", layer, input, b->config->dims)
                                       : lp_rnn_layer(b->graph, "rnn", layer, input, b->config->dims);
    }
    lp_value *state = lp_at_targets(b, x);
    lp_output_layer(b, lp_target_lag(b, state));
    b->network->intensity = lp_layer(b->graph, "time", state, 1, NULL);
    b->network->intensity_slope = lp_graph_parameter(b->graph, SLOPE, 1, 1, LP_INIT_ZEROS, 0);
}

static lp_value *loss(lp_builder *b)
{
    const rmtpp_settings *settings = settings_of(b->config);
    lp_value *time = lp_time_loss(b->graph, b->network->intensity, b->network->intensity_slope,
                                  b->feeds[LP_FEED_TARGET_GAP], settings->time_unit);
    return lp_add(b->graph, lp_task_loss(b), lp_affine(b->graph, time, settings->time_weight, 0));
}

static lp_next_time next_time(const lapse_model *model, double intensity)
{
    const float *slope = lp_model_tensor_find(model, SLOPE)->data;
    return lp_next_time_gompertz(intensity, (double)*slope, settings_of(&model->config)->time_unit);
}

const lp_model_row lp_model_rmtpp = {
    .name = "rmtpp",
    .summary = "recurrent marked temporal point process: next event and its time",
    .own_time = true,
    .tasks = 1 << LP_TASK_CLASSIFY,
    .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options, options},
    .resolve = resolve,
    .validate = lp_recurrent_validate,
    .build = build,
    .loss = loss,
    .next_time = next_time};
