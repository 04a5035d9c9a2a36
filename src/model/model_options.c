/* model_options.c: the options that all models share, by member of lp_model_config, and walking all options of a model. */
#include "model/model_options.h"

#include "data/dataset/target_events.h"

#include <stddef.h>
#include <string.h>

const char *const lp_predict_names[] = {"event", "action", "both", NULL};
const char *const lp_task_names[] = {"classify", "recommend", NULL};
const char *const lp_output_names[] = {"shared", "separate", NULL};

#define NAMES(function, list)                \
    static const char *const *function(void) \
    {                                        \
        return list;                         \
    }
static const char *const target_time_list[] = {"known", "unknown", NULL};
static const char *const switch_list[] = {"off", "on", NULL};
static const char *const censoring_list[] = {"off", "on", "auto", NULL};
static const char *const background_list[] = {"none", "constant", "week", NULL};
NAMES(task_names, lp_task_names)
NAMES(predict_names, lp_predict_names)
NAMES(loss_names, lp_loss_names)
NAMES(output_names, lp_output_names)
NAMES(negative_names, lp_negative_names)
NAMES(target_time_names, target_time_list)
NAMES(switch_names, switch_list)
NAMES(censoring_names, censoring_list)
NAMES(background_names, background_list)

/* ---- when an option has an effect ---- */

static bool is_network(const void *settings)
{
    return lp_model_is_network(settings);
}

static bool has_fields(const void *settings)
{
    const lp_model_config *config = settings;
    return lp_model_is_network(config) && config->field_count > 0;
}

static bool has_categories(const void *settings)
{
    const lp_model_config *config = settings;
    return lp_model_is_network(config) && config->category_count > 0;
}

static bool can_learn_when(const void *settings)
{
    const lp_model_config *config = settings;
    return lp_model_is_network(config) && !config->row->own_time;
}

static bool learns_when(const void *settings)
{
    return can_learn_when(settings) && ((const lp_model_config *)settings)->when;
}

static bool predicts_time(const void *settings)
{
    const lp_model_config *config = settings;
    return learns_when(config) || config->row->next_time;
}

static bool ranks(const void *settings)
{
    return lp_model_ranks(settings);
}

static bool samples_items(const void *settings)
{
    return lp_model_is_network(settings) && lp_model_samples_items(settings);
}

static bool counts_negatives(const void *settings)
{
    return samples_items(settings) &&
           (lp_model_samples_by_target(settings) || ((const lp_model_config *)settings)->negatives != LP_NEGATIVES_IN_BATCH);
}

static bool samples_by_popularity(const void *settings)
{
    return samples_items(settings) && ((const lp_model_config *)settings)->negatives == LP_NEGATIVES_POPULARITY;
}

static bool samples_by_target(const void *settings)
{
    return lp_model_is_network(settings) && lp_model_samples_by_target(settings);
}

static bool regularizes_scores(const void *settings)
{
    return samples_items(settings) && lp_model_loss(settings)->regularized;
}

#define LOSS_HELP(id, kernel, name, popular, count, regularized, help) ", " name " (" help ")"
#define NEGATIVES_HELP(id, kernel, name, popular, count, regularized, help) ", " #count " for " name
#define AT(member) .offset = offsetof(lp_model_config, member)
#define FORWARD .group = "Model", .stored = LP_STORED_FORWARD
#define TRAINING .group = "Training", .stored = LP_STORED_TRAINING

/* clang-format off */
const lp_option lp_model_options[] = {
    {.name = "task", .type = LAPSE_OPTION_CHOICE, AT(task), FORWARD, .placeholder = "NAME", .choices = task_names,
     .initial = "classify",
     .help = "task: classify predicts which of a few event types comes next, recommend ranks a catalogue of items; a "
     "model with one task needs no --task"},
    {.name = "target-time", .type = LAPSE_OPTION_CHOICE, AT(target_time), FORWARD, .placeholder = "RULE",
     .choices = target_time_names, .initial = "known",
     .help = "target time: known conditions on the time of the predicted event, unknown on the last event's time"},
    {.name = "context", .type = LAPSE_OPTION_INTEGER, AT(context), FORWARD, .placeholder = "N", .least = 1,
     .most = 4096, .rule = "chosen from the data", .help = "context length: past events that the model sees"},
    {.name = "dims", .type = LAPSE_OPTION_INTEGER, AT(dims), FORWARD, .placeholder = "N", .least = 1, .most = 4096,
     .rule = "chosen from the data", .applies = is_network, .help = "embedding and hidden dimensions"},
    {.name = "dropout", .type = LAPSE_OPTION_NUMBER, AT(dropout), FORWARD, .placeholder = "RATE", .least = 0,
     .most = 0.9, .initial = "0.3", .applies = is_network, .help = "dropout rate, 0 to 0.9"},
    {.name = "gap-input", .type = LAPSE_OPTION_CHOICE, AT(gap_input), FORWARD, .placeholder = "SWITCH",
     .choices = switch_names, .rule = "on for attention with an encoding of lags, lstm, gru4rec without a preset, rnn-attention and rmtpp; otherwise off", .absent = "off",
     .applies = is_network, .advanced = true,
     .help = "gap input: each event's vector includes the time since the event before it, on or off"},
    {.name = "when", .type = LAPSE_OPTION_FLAG, AT(when), FORWARD, .initial = "false", .absent = "false",
     .applies = can_learn_when,
     .help = "learn the time of the next event too: a mixture of log-normals, by a second network of the same architecture, "
     "which is trained after that of the events"},
    {.name = "when-background", .type = LAPSE_OPTION_CHOICE, AT(when_background), FORWARD, .placeholder = "NAME",
     .choices = background_names, .initial = "week", .absent = "none", .applies = learns_when,
     .help = "background of the time of the next event (--when), a Poisson process beside the mixture whose rate depends on the "
     "history: none, constant, or week: its rate follows the hour of the week, in UTC, by a profile of the training split"},
    {.name = "when-components", .type = LAPSE_OPTION_INTEGER, AT(when_components), FORWARD, .placeholder = "N",
     .least = 1, .most = 64, .initial = "16", .applies = learns_when, .advanced = true,
     .help = "number of log-normals of the mixture (--when), 1 to 64"},
    {.name = "when-floor", .type = LAPSE_OPTION_DURATION, AT(when_floor), FORWARD, .placeholder = "DURATION",
     .least = 1e-30, .most = 1e30, .rule = "0.1 % quantile of the positive gaps of the training split",
     .applies = predicts_time, .advanced = true,
     .help = "shortest gap that the likelihood of times knows (--when, and the evaluation of rmtpp): shorter ones, and events at "
     "the same time, count as this"},
    {.name = "predict", .type = LAPSE_OPTION_CHOICE, AT(predict), FORWARD, .placeholder = "TARGET",
     .choices = predict_names, .initial = "event", .applies = has_fields, .advanced = true,
     .help = "prediction target: the event, its action (the column of --action at import), or both"},
    {.name = "target", .type = LAPSE_OPTION_TEXT, AT(target), FORWARD, .placeholder = "action=NAME",
     .initial = "all", .absent = "",
     .help = "target events: only events with this action are predicted, such as action=view, the others are context"},
    {.name = "field-dims", .type = LAPSE_OPTION_INTEGER, AT(field_dims), .group = "Model", .placeholder = "N",
     .stored = LP_STORED_TRAINING, .least = 0, .most = 4096, .initial = "0", .applies = has_categories,
     .advanced = true,
     .help = "embedding dimensions of each categorical field; 0 chooses them by the number of categories"},
    {.name = "item-output", .type = LAPSE_OPTION_CHOICE, AT(output), FORWARD, .placeholder = "NAME",
     .choices = output_names, .rule = "separate for caser, otherwise shared", .applies = ranks, .advanced = true,
     .help = "output item vectors: shared with the input embedding (tied weights), or separate"},

    {.name = "loss", .type = LAPSE_OPTION_CHOICE, AT(loss), TRAINING, .placeholder = "NAME", .choices = loss_names,
     .rule = "bce for sasrec and caser, bpr for transrec, that of --preset for gru4rec, otherwise by the size of the catalogue",
     .applies = ranks,
     .help = "loss function: softmax (cross-entropy over the catalogue), sampled-softmax (over a sample of it), or over "
     "negatives of each target" LP_SAMPLED_LOSSES(LOSS_HELP)},
    {.name = "censoring", .type = LAPSE_OPTION_CHOICE, AT(censoring), TRAINING, .placeholder = "RULE",
     .choices = censoring_names, .initial = "auto", .applies = predicts_time,
     .help = "right censoring (--when, rmtpp): the gap after the last event of a sequence is still open at the end of the data, "
     "and counts as at least that long; so histories can end for good. off learns only gaps that have ended, and overstates "
     "the chance of a return. auto is on where sequences share an end of observation"},
    {.name = "negatives", .type = LAPSE_OPTION_CHOICE, AT(negatives), TRAINING, .placeholder = "NAME",
     .choices = negative_names, .rule = "popularity for losses of hard negatives, otherwise uniform", .applies = samples_items, .advanced = true,
     .help = "negative sampling distribution: uniform, popularity, or in-batch (items of the batch: other targets of the shard)"},
    {.name = "negative-count", .type = LAPSE_OPTION_INTEGER, AT(negative_count), TRAINING, .placeholder = "N",
     .least = 0, .most = 10000, .rule = "1000 for sampled-softmax" LP_SAMPLED_LOSSES(NEGATIVES_HELP) "; 3 for caser", .applies = counts_negatives,
     .advanced = true, .help = "negative samples per step (sampled-softmax), or per positive (other losses)"},
    {.name = "popularity-power", .type = LAPSE_OPTION_NUMBER, AT(popularity_power), TRAINING, .placeholder = "X",
     .least = 0, .most = 10, .initial = "0.75", .applies = samples_by_popularity, .advanced = true,
     .help = "exponent of an item's count when negatives are sampled by popularity"},
    {.name = "negatives-unseen", .type = LAPSE_OPTION_FLAG, AT(negatives_unseen), TRAINING, .initial = "false",
     .applies = samples_by_target, .advanced = true,
     .help = "exclude the items of the sequence from its negatives, as transrec always does; not with sampled-softmax"},
    {.name = "score-regularization", .type = LAPSE_OPTION_NUMBER, AT(score_regularization), TRAINING, .placeholder = "X",
     .least = 0, .most = 1000, .initial = "1", .absent = "1", .applies = regularizes_scores, .advanced = true,
     .help = "strength of the regularization of the negatives' scores (bpr-max)"},
    {0},
};
/* clang-format on */

void lp_model_options_walk(const lp_model_config *config, lp_on_option on_option, void *context)
{
    const lp_option *const *table = config->row->options;
    for (const lp_option *option = lp_model_options; option->name; option++)
        on_option(context, option, config);
    for (; *table; table++)
        for (const lp_option *option = *table; option->name; option++)
            on_option(context, option, config->settings.bytes);
}

bool lp_model_has_option(const lp_model_row *row, const char *name)
{
    for (const lp_option *const *table = row->options; *table; table++)
        if (lp_options_find(*table, name))
            return true;
    return lp_options_find(lp_model_options, name) != NULL;
}

void lp_model_settings_default(const lp_model_row *row, lp_model_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    for (const lp_option *const *table = row->options; *table; table++)
        lp_options_default(*table, settings->bytes);
}

lapse_status lp_model_config_check(const lp_model_config *config, lapse_error *error)
{
    LP_TRY(lp_options_check(lp_model_options, config, error));
    for (const lp_option *const *table = config->row->options; *table; table++)
        LP_TRY(lp_options_check(*table, config->settings.bytes, error));
    return lp_model_config_validate(config, error);
}

lapse_status lp_model_config_validate(const lp_model_config *config, lapse_error *error)
{
    if (config->when && !lp_model_is_network(config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' counts events and does not learn when: " LP_FLAG("--when") " needs a network",
                       config->row->name);
    if (config->when && config->row->own_time)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' predicts the time of the next event by itself: train it without " LP_FLAG("--when"),
                       config->row->name);
    if (config->censoring == LP_CENSORING_ON && !predicts_time(config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_OPTION("--censoring") " needs a model of the time of the next event: train with " LP_FLAG("--when")
                       ", or " LP_OPTION("--model rmtpp"));
    if (config->censoring == LP_CENSORING_ON && lp_target_events_action(config->target))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_OPTION("--censoring") " cannot be combined with " LP_OPTION("--target %.80s")
                       ": the times of these events alone are learned, and a gap that is still open may end with any event",
                       config->target);
    return config->row->validate ? config->row->validate(config, error) : LAPSE_OK;
}
