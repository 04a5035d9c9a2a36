/* train_options.c: training options: their defaults, what the data suggests, and whether they can be.
 *
 * Periods start geometrically between two lengths of time that the training split suggests: from the shorter gaps
 * between neighbouring events to twice the time that a context spans, so that the slowest wave never repeats within
 * what the model sees.
 */
#include "train/train_options.h"

#include "base/text.h"
#include "backend/backend.h"
#include "base/threads.h"
#include "data/dataset/split.h"
#include "model/vectors.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 18 }; /* gaps looked at, at most */

void lapse_train_options_default(lapse_train_options *options)
{
    *options = (lapse_train_options){
        .task = "classify",
        .negatives = "uniform",
        .popularity_power = 0.75,
        .output = "shared",
        .windows = "all",
        .model = "attention",
        .encoding = "mercer",
        .projection = "linear",
        .combine = "concatenate",
        .target_time = "known",
        .predict = "event",
        .period_init = "geometric",
        .inverse_cdf = "mlp-residual",
        .dropout = -1,
        .learning_rate = 0.001,
        .schedule = "constant",
        .beta1 = 0.9,
        .beta2 = 0.98,
        .clip = 5,
        .epochs = 100,
        .patience = 10,
        .seed = 1,
        .shards = 16,
        .device = "cpu",
        .precision = "fp32",
        .checkpoint_seconds = 30,
    };
}

/* The names of the tables' rows, listed at the first question, whichever thread asks it. */
enum { MOST_NAMES = 31 };
static const char *model_names[MOST_NAMES + 1], *encoding_names[MOST_NAMES + 1], *period_init_names[MOST_NAMES + 1],
    *inverse_cdf_names[MOST_NAMES + 1];
static pthread_once_t listed = PTHREAD_ONCE_INIT;

static void list_names(void)
{
    for (int i = 0; i < MOST_NAMES && lp_models[i]; i++)
        model_names[i] = lp_models[i]->name;
    for (int i = 0; i < MOST_NAMES && lp_encodings[i]; i++)
        encoding_names[i] = lp_encodings[i]->name;
    for (int i = 0; i < MOST_NAMES && lp_period_inits[i]; i++)
        period_init_names[i] = lp_period_inits[i]->name;
    for (int i = 0; i < MOST_NAMES && lp_inverse_cdfs[i]; i++)
        inverse_cdf_names[i] = lp_inverse_cdfs[i]->name;
}

const char *const *lapse_task_names(void)
{
    return lp_task_names;
}

const char *const *lapse_loss_names(void)
{
    return lp_loss_names;
}

const char *const *lapse_negative_names(void)
{
    return lp_negative_names;
}

const char *const *lapse_output_names(void)
{
    return lp_output_names;
}

const char *const *lapse_schedule_names(void)
{
    static const char *const names[] = {"constant", "cosine", NULL};
    return names;
}

const char *const *lapse_window_names(void)
{
    static const char *const names[] = {"all", "last", NULL};
    return names;
}

const char *const *lapse_device_names(void)
{
    static const char *const names[] = {"cpu", "cuda", "auto", NULL};
    return names;
}

const char *const *lapse_precision_names(void)
{
    return lp_precision_names;
}

const char *const *lapse_model_names(void)
{
    pthread_once(&listed, list_names);
    return model_names;
}

const char *const *lapse_encoding_names(void)
{
    pthread_once(&listed, list_names);
    return encoding_names;
}

const char *const *lapse_predict_names(void)
{
    return lp_predict_names;
}

const char *const *lapse_period_init_names(void)
{
    pthread_once(&listed, list_names);
    return period_init_names;
}

const char *const *lapse_inverse_cdf_names(void)
{
    pthread_once(&listed, list_names);
    return inverse_cdf_names;
}

const char *const *lapse_projection_names(void)
{
    return lp_projection_names;
}

const char *const *lapse_combine_names(void)
{
    return lp_combine_names;
}

/* ------------------------------------------------------------------------------------ what the data says ----- */

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantile of the positive lengths of time between training events that are `apart` places apart (fewer where the
 * sequence is shorter), in the sorted sample; 0 if there is none. */
static double span_quantile(const lapse_dataset *dataset, const uint8_t *split, int apart, double share, double *sample)
{
    int64_t step = dataset->event_count / SAMPLE + 1;
    int64_t count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t start = (int64_t)dataset->start[s], end = (int64_t)dataset->start[s + 1];
        for (int64_t event = start + 1 + s % step; event < end && count < SAMPLE; event += step) {
            int64_t from = event - apart > start ? event - apart : start;
            double span = dataset->time[event] - dataset->time[from];
            if (split[event] == LP_SPLIT_TRAIN && span > 0)
                sample[count++] = span;
        }
    }
    if (count == 0)
        return 0;
    qsort(sample, (size_t)count, sizeof *sample, compare_double);
    return sample[(int64_t)(share * (double)(count - 1))];
}

enum { WHOLE_CATALOGUE = 20000 };

/* A catalogue that fits in cache is learned as a whole; of a larger one a sample is. */
static void suggest_loss(const lapse_dataset *dataset, lapse_train_options *options)
{
    enum { NEGATIVES = 1000 };
    if (!options->loss)
        options->loss = lp_loss_names[dataset->types.count <= WHOLE_CATALOGUE || strcmp(options->task, "classify") == 0
                                          ? LP_LOSS_SOFTMAX
                                          : LP_LOSS_SAMPLED_SOFTMAX];
    bool drawn = strcmp(options->loss, lp_loss_names[LP_LOSS_SOFTMAX]) != 0 &&
                 strcmp(options->negatives, lp_negative_names[LP_NEGATIVES_IN_BATCH]) != 0;
    if (!drawn)
        options->negative_count = 0;
    else if (options->negative_count == 0)
        options->negative_count = strcmp(options->loss, lp_loss_names[LP_LOSS_BCE]) == 0 ? 1 : NEGATIVES;
}

/* Events the 95 % of sequences have, between 8 and `most`. */
static int suggest_context(const lapse_dataset *dataset, int most, double *sample)
{
    int64_t step = dataset->sequence_count / SAMPLE + 1, count = 0;
    for (int64_t s = 0; s < dataset->sequence_count && count < SAMPLE; s += step)
        sample[count++] = (double)(dataset->start[s + 1] - dataset->start[s] - 1);
    qsort(sample, (size_t)count, sizeof *sample, compare_double);
    double length = sample[(int64_t)(0.95 * (double)(count - 1))];
    return length < 8 ? 8 : length > most ? most : (int)length;
}

/* Small enough for some 80 steps an epoch, between 16 and 128 windows. */
static int suggest_batch(const lapse_dataset *dataset, int context)
{
    int64_t windows = dataset->sequence_count + dataset->event_count / context;
    int64_t batch = windows * 8 / 10 / 80 / 16 * 16;
    return batch < 16 ? 16 : batch > 128 ? 128 : (int)batch;
}

static lapse_status suggest(const lapse_dataset *dataset, const uint8_t *split, const lp_encoding *encoding,
                            lapse_train_options *options, double *sample)
{
    bool recommend = strcmp(options->task, "recommend") == 0;
    if (options->context == 0)
        options->context = suggest_context(dataset, recommend ? 200 : 100, sample);
    if (options->dims == 0)
        options->dims = dataset->types.count <= 100 ? 32 : 64;
    if (options->blocks == 0)
        options->blocks = recommend ? 2 : 1;
    suggest_loss(dataset, options);
    if (options->heads == 0)
        options->heads = 1;
    if (options->periods == 0)
        options->periods = encoding->default_periods;
    if (options->harmonics == 0)
        options->harmonics = encoding->default_harmonics;
    if (options->hidden == 0)
        options->hidden = 256;
    if (options->draws == 0)
        options->draws = 1;
    if (options->dropout < 0)
        options->dropout = 0.2;
    if (options->order == 0)
        options->order = 1;
    if (options->batch == 0)
        options->batch = suggest_batch(dataset, options->context);
    if (options->threads == 0)
        options->threads = lp_threads_available();
    if (options->period_min <= 0) {
        double gap = span_quantile(dataset, split, 1, 0.05, sample);
        options->period_min = gap > 0 ? gap : 1;
    }
    if (options->period_max <= 0) {
        double span = 2 * span_quantile(dataset, split, options->context, 0.95, sample);
        options->period_max = span > options->period_min ? span : options->period_min * 1000;
    }
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------- what can be used ----- */

static lapse_status choose(const char *option, const char *value, const char *const *names, lapse_error *error)
{
    char list[200] = "";
    if (lp_name_index(value, names) >= 0)
        return LAPSE_OK;
    for (int i = 0; names[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return lp_fail(error, LAPSE_ERROR_USAGE, "%s cannot be '%s'; it can be one of: %s", option, value ? value : "",
                   list);
}

typedef struct range {
    const char *option;
    double value, least, most;
} range;

static lapse_status check_ranges(const lapse_train_options *options, lapse_error *error)
{
    const range ranges[] = {
        {"dims", options->dims, 1, 4096},
        {"blocks", options->blocks, 1, 3},
        {"heads", options->heads, 1, 4},
        {"context", options->context, 1, 4096},
        {"periods", options->periods, 0, 4096},
        {"harmonics", options->harmonics, 0, 256},
        {"hidden", options->hidden, 1, 4096},
        {"draws", options->draws, 1, 1000},
        {"dropout", options->dropout, 0, 0.9},
        {"order", options->order, 1, 3},
        {"negative-count", options->negative_count, 0, 10000},
        {"popularity-power", options->popularity_power, 0, 10},
        {"field-dims", options->field_dims, 0, 4096},
        {"learning-rate", options->learning_rate, 1e-12, 10},
        {"beta1", options->beta1, 0, 0.999999},
        {"beta2", options->beta2, 0, 0.999999},
        {"l2", options->l2, 0, 1e6},
        {"clip", options->clip, 0, 1e12},
        {"batch", options->batch, 1, 1 << 20},
        {"epochs", options->epochs, 1, 1e6},
        {"patience", options->patience, 1, 1e6},
        {"shards", options->shards, 1, 4096},
        {"threads", options->threads, 1, 4096},
        {"checkpoint-every", options->checkpoint_seconds, 0, 1e9},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most))
            return lp_fail(error, LAPSE_ERROR_USAGE, "%s cannot be %g; it can be from %g to %g", ranges[i].option,
                           ranges[i].value, ranges[i].least, ranges[i].most);
    if (options->dims % options->heads)
        return lp_fail(error, LAPSE_ERROR_USAGE, "heads (%d) must divide dims (%d)", options->heads, options->dims);
    if (!isfinite(options->period_min) || !isfinite(options->period_max))
        return lp_fail(error, LAPSE_ERROR_USAGE, "period-min (%g s) and period-max (%g s) must be finite",
                       options->period_min, options->period_max);
    if (!(options->period_max >= options->period_min))
        return lp_fail(error, LAPSE_ERROR_USAGE, "period-max (%g s) is shorter than period-min (%g s)",
                       options->period_max, options->period_min);
    return LAPSE_OK;
}

static lapse_status check_choices(const lapse_train_options *options, lapse_error *error)
{
    static const char *const target_times[] = {"known", "unknown", NULL};
    LP_TRY(choose("task", options->task, lapse_task_names(), error));
    LP_TRY(choose("model", options->model, lapse_model_names(), error));
    if (options->loss)
        LP_TRY(choose("loss", options->loss, lp_loss_names, error));
    LP_TRY(choose("negatives", options->negatives, lp_negative_names, error));
    LP_TRY(choose("output", options->output, lp_output_names, error));
    LP_TRY(choose("windows", options->windows, lapse_window_names(), error));
    LP_TRY(choose("schedule", options->schedule, lapse_schedule_names(), error));
    LP_TRY(choose("encoding", options->encoding, lapse_encoding_names(), error));
    LP_TRY(choose("predict", options->predict, lp_predict_names, error));
    LP_TRY(choose("period-init", options->period_init, lapse_period_init_names(), error));
    LP_TRY(choose("inverse-cdf", options->inverse_cdf, lapse_inverse_cdf_names(), error));
    LP_TRY(choose("projection", options->projection, lp_projection_names, error));
    LP_TRY(choose("combine", options->combine, lp_combine_names, error));
    if (options->split_by)
        LP_TRY(choose("split-by", options->split_by, lapse_split_by_names(), error));
    LP_TRY(choose("device", options->device, lapse_device_names(), error));
    LP_TRY(choose("precision", options->precision, lp_precision_names, error));
    return choose("target-time", options->target_time, target_times, error);
}

/* Whether the loss belongs to the task, and the negatives to the loss. */
static lapse_status check_loss(const lapse_train_options *options, lapse_error *error)
{
    bool recommend = strcmp(options->task, "recommend") == 0;
    const char *loss = options->loss ? options->loss : "softmax";
    if (!recommend && strcmp(loss, "softmax") != 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the loss '%s' is one of the task recommend; classify has softmax",
                       loss);
    if (recommend && strcmp(options->predict, "event") != 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the task recommend predicts the event; it cannot predict '%s'",
                       options->predict);
    if (strcmp(loss, "bce") == 0 && strcmp(options->negatives, "in-batch") == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the loss bce draws negatives for each event: uniform or popularity; in-batch negatives go with "
                       "sampled-softmax");
    if (strcmp(loss, "sampled-softmax") == 0 && options->negatives_unseen)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the negatives of sampled-softmax are shared by all events of a step, so that they cannot be unseen by "
            "each; bce has negatives of its own for each");
    return LAPSE_OK;
}

/* Whether there are items that could start from vectors; dims 0 becomes theirs, and all their items are the catalogue. */
static lapse_status check_item_vectors(lapse_train_options *options, lapse_error *error)
{
    lapse_vectors *vectors;
    if (!options->item_vectors)
        return LAPSE_OK;
    if (strcmp(options->task, "recommend") != 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "item vectors are for the task recommend, not for %s", options->task);
    if (!lp_model_row_find(options->model)->build)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' counts items and has no vectors to start from",
                       options->model);
    LP_TRY(lapse_vectors_load(options->item_vectors, &vectors, error));
    if (options->dims == 0)
        options->dims = lapse_vectors_dims(vectors);
    if (!options->loss && lapse_vectors_count(vectors) > WHOLE_CATALOGUE)
        options->loss = lp_loss_names[LP_LOSS_SAMPLED_SOFTMAX];
    lapse_vectors_free(vectors);
    return LAPSE_OK;
}

/* Whether there is an action to predict, and a model that can. */
static lapse_status check_predict(const lapse_dataset *dataset, const lapse_train_options *options, lapse_error *error)
{
    if (strcmp(options->predict, "event") == 0)
        return LAPSE_OK;
    if (dataset->field_count == 0 || dataset->fields[0].type != LAPSE_FIELD_ACTION)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the action cannot be predicted, since the dataset has none: import it with --action COLUMN");
    if (!lp_model_row_find(options->model)->build)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' predicts events only; for the action import the data with --event '%s'",
                       options->model, dataset->fields[0].name);
    return LAPSE_OK;
}

/* The device that there is; a batch is one shard where it is not the CPU. Models that count need none. */
static lapse_status find_device(lapse_train_options *options, lapse_error *error)
{
    const lp_backend *backend;
    if (!lp_model_row_find(options->model)->build)
        options->device = "cpu";
    LP_TRY(lp_backend_open(options->device, &backend, error));
    options->device = backend->host ? "cpu" : "cuda";
    if (!backend->host)
        options->shards = 1;
    return LAPSE_OK;
}

lapse_status lp_train_options_split(const lapse_dataset *dataset, lapse_train_options *options, uint8_t **split,
                                    lapse_error *error)
{
    LP_TRY(check_choices(options, error));
    LP_TRY(check_predict(dataset, options, error));
    LP_TRY(check_loss(options, error));
    LP_TRY(find_device(options, error));
    LP_TRY(check_item_vectors(options, error));
    if (!options->split_by)
        options->split_by = lp_split_rule_name(lp_split_rule_default(dataset, options->task));
    LP_TRY(lp_split_make(dataset, lp_split_rule_find(options->split_by), options->seed, split, error));
    double *sample = lp_alloc(SAMPLE, sizeof *sample);
    lapse_status status = sample ? LAPSE_OK : lp_fail_memory(error, "looking at the data", SAMPLE * sizeof *sample);
    if (status == LAPSE_OK)
        status = suggest(dataset, *split, lp_encoding_find(options->encoding), options, sample);
    lp_free(sample);
    if (status == LAPSE_OK)
        status = check_ranges(options, error);
    if (status != LAPSE_OK) {
        lp_free(*split);
        *split = NULL;
    }
    return status;
}

lapse_status lapse_train_options_resolve(const lapse_dataset *dataset, lapse_train_options *options, lapse_error *error)
{
    uint8_t *split;
    lapse_train_options resolved = *options;
    LP_TRY(lp_train_options_split(dataset, &resolved, &split, error));
    lp_free(split);
    *options = resolved;
    return LAPSE_OK;
}
