/* train_options.c: the table of the run's options, access to all options by name, and resolving them: choosing from the data what
 * the caller left unset, and checking everything.
 */
#include "train/train_options.h"

#include "backend/backend.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/comm.h"
#include "data/dataset/gap_quantile.h"
#include "data/dataset/target_events.h"
#include "model/metric.h"
#include "model/model_file.h"
#include "model/model_options.h"
#include "model/field_statistics.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A catalogue up to this size is trained with the full softmax by default. */
enum { FULL_SOFTMAX_ITEMS = 20000 };

/* ------------------------------------------------------------------------------------ the run's options ------ */

static const char *const window_list[] = {"all", "last", "each", NULL}, *const schedule_list[] = {"constant", "cosine",
                                                                                                  NULL},
                         *const size_list[] = {"small", "base", "large", NULL};

static const char *const *model_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)lp_models, names);
}

static const char *const *window_names(void)
{
    return window_list;
}

static const char *const *schedule_names(void)
{
    return schedule_list;
}

static const char *const *size_names(void)
{
    return size_list;
}

const char *const *lapse_task_names(void)
{
    return lp_task_names;
}

const char *const *lapse_device_names(void)
{
    return lp_device_names();
}

const char *const *lapse_precision_names(void)
{
    return lp_precision_names;
}

static const char *const *select_names(void)
{
    static const char *names[LP_METRIC_TIME_LOSS + 1]; /* of the targets; the network of times has one metric */
    memcpy(names, lp_metric_names, LP_METRIC_TIME_LOSS * sizeof *names);
    return names;
}

static bool trains(const void *settings)
{
    return lp_models[((const lp_run_settings *)settings)->model]->build != NULL;
}

static bool has_precisions(const void *settings)
{
    int device = ((const lp_run_settings *)settings)->device;
    return trains(settings) && device < LP_DEVICES && lp_devices[device].precisions;
}

/* Item tables in parts: listed only where it is set. */
static bool divides(const void *settings)
{
    return trains(settings) && ((const lp_run_settings *)settings)->shard_items;
}

#define AT(member) .offset = offsetof(lp_run_settings, member)
#define TRAINING .group = "Training", .applies = trains, .stored = LP_STORED_TRAINING
#define RUN .group = "Run"

/* clang-format off */
const lp_option lp_run_options[] = {
    {.name = "model", .type = LAPSE_OPTION_CHOICE, AT(model), .group = "Model", .placeholder = "NAME",
     .choices = model_names, .initial = "attention", .help = "model architecture, or a baseline"},
    {.name = "size", .type = LAPSE_OPTION_CHOICE, AT(size), .group = "Model", .applies = trains,
     .stored = LP_STORED_TRAINING, .placeholder = "NAME", .choices = size_names,
     .rule = "small to recommend from fewer than 20 events per item, otherwise base",
     .help = "network size: small, base or large sets dims, and blocks and heads of attention, which win over it where they "
     "are given; large takes several times as long"},
    {.name = "learning-rate", .type = LAPSE_OPTION_NUMBER, AT(learning_rate), TRAINING, .placeholder = "X",
     .least = 1e-12, .most = 10, .rule = "0.001, or 0.002 with fewer than 640 training windows", .help = "learning rate of Adam"},
    {.name = "schedule", .type = LAPSE_OPTION_CHOICE, AT(schedule), TRAINING, .placeholder = "NAME",
     .choices = schedule_names, .initial = "constant", .advanced = true,
     .help = "learning-rate schedule: constant, or cosine annealing to 0 over all epochs"},
    {.name = "beta1", .type = LAPSE_OPTION_NUMBER, AT(beta1), TRAINING, .placeholder = "X", .least = 0,
     .most = 0.999999, .initial = "0.9", .advanced = true,
     .help = "Adam's beta1: decay rate of the mean of gradients"},
    {.name = "beta2", .type = LAPSE_OPTION_NUMBER, AT(beta2), TRAINING, .placeholder = "X", .least = 0,
     .most = 0.999999, .initial = "0.98", .advanced = true,
     .help = "Adam's beta2: decay rate of the mean of squared gradients"},
    {.name = "l2", .type = LAPSE_OPTION_NUMBER, AT(l2), TRAINING, .placeholder = "X", .least = 0, .most = 1e6,
     .initial = "0", .advanced = true, .help = "L2 regularization strength, added to the gradient"},
    {.name = "clip", .type = LAPSE_OPTION_NUMBER, AT(clip), TRAINING, .placeholder = "NORM", .least = 0, .most = 1e12,
     .initial = "5", .advanced = true, .help = "gradient clipping by global norm; 0 disables it"},
    {.name = "ema-decay", .type = LAPSE_OPTION_NUMBER, AT(ema_decay), TRAINING, .placeholder = "X", .least = 0,
     .most = 0.999, .rule = "0.9 to recommend from 100,000 events on, otherwise 0", .advanced = true,
     .help = "decay of an exponential moving average (EMA) of the parameters over epochs, which is validated and saved "
     "in place of the newest ones; 0 disables it"},
    {.name = "batch", .type = LAPSE_OPTION_INTEGER, AT(batch), TRAINING, .placeholder = "N", .least = 1,
     .most = 1 << 20, .rule = "chosen from the data", .help = "batch size, in windows of events"},
    {.name = "epochs", .type = LAPSE_OPTION_INTEGER, AT(epochs), TRAINING, .placeholder = "N", .least = 1, .most = 1e6,
     .initial = "100", .help = "maximum number of epochs"},
    {.name = "patience", .type = LAPSE_OPTION_INTEGER, AT(patience), TRAINING, .placeholder = "N", .least = 1,
     .most = 1e6, .rule = "15 with ema-decay, otherwise 10",
     .help = "early-stopping patience: epochs without a better validation score"},
    {.name = "select", .type = LAPSE_OPTION_CHOICE, AT(select), TRAINING, .placeholder = "METRIC",
     .choices = select_names, .rule = "log-loss, or ndcg@10 for recommend", .advanced = true,
     .help = "validation metric that selects the best epoch: log-loss or accuracy, for the task recommend ndcg@10, "
     "hit@10 or mrr; the network of times (--when) has a best epoch of its own, by its loss"},
    {.name = "windows", .type = LAPSE_OPTION_CHOICE, AT(windows), TRAINING, .placeholder = "NAME",
     .choices = window_names, .initial = "all", .advanced = true,
     .help = "training windows: all of a history, the last window of one longer than the context, or each event's own "
     "window, which ends at its target (slow; exact lags for an MLP of keys and values)"},
    {.name = "item-vectors", .type = LAPSE_OPTION_FILE, AT(item_vectors), TRAINING, .placeholder = "FILE",
     .initial = "", .advanced = true,
     .help = "pre-trained item vectors of `lapse pretrain`, the initial item embedding of a recommender; items that "
     "only the file has can be recommended too"},

    {.name = "split-by", .type = LAPSE_OPTION_CHOICE, AT(split_by), RUN, .placeholder = "RULE",
     .choices = lapse_split_by_names, .rule = "column where the dataset has one, otherwise by the task",
     .help = "train/validation/test split: by a column of the source, by sequence at random, leave-one-out, by the "
     "start time of sequences, or by that of sessions (events up to 30 minutes apart)"},
    {.name = "seed", .type = LAPSE_OPTION_SEED, AT(seed), RUN, .placeholder = "N", .initial = "1",
     .help = "random seed of the split by sequence, the initial parameters, dropout and shuffling"},
    {.name = "device", .type = LAPSE_OPTION_CHOICE, AT(device), RUN, .placeholder = "DEVICE",
     .choices = lapse_device_names, .initial = "cpu", .applies = trains,
     .help = "device: cpu, cuda (an NVIDIA GPU), or auto (a GPU where one can be used)"},
    {.name = "precision", .type = LAPSE_OPTION_CHOICE, AT(precision), RUN, .placeholder = "NAME",
     .choices = lapse_precision_names, .rule = "bf16 on a GPU, fp32 on the CPU", .applies = has_precisions, .advanced = true,
     .help = "precision of matrix products on a GPU; the CPU's are fp32"},
    {.name = "threads", .type = LAPSE_OPTION_INTEGER, AT(threads), RUN, .placeholder = "N", .least = 1,
     .most = LP_THREADS_MAX, .rule = "all cores", .help = "number of threads; does not change the result"},
    {.name = "shards", .type = LAPSE_OPTION_INTEGER, AT(shards), RUN, .placeholder = "N", .least = 1, .most = 4096,
     .initial = "16", .applies = trains, .stored = LP_STORED_TRAINING, .advanced = true,
     .help = "number of shards of a batch, whose gradients are summed in order; changes the last bits of the result"},
    {.name = "shard-items", .type = LAPSE_OPTION_FLAG, AT(shard_items), RUN, .initial = "false", .applies = divides,
     .advanced = true,
     .help = "divide the item tables of a recommender and their optimizer state by rows among the ranks of mpirun, each "
     "of which then has memory for its part; does not change the result"},
    {.name = "checkpoint", .type = LAPSE_OPTION_FILE, AT(checkpoint), RUN, .placeholder = "FILE", .initial = "",
     .applies = trains, .advanced = true, .output = true,
     .help = "checkpoint file for --resume, deleted when training completes; \"none\" disables checkpoints; by default "
     "MODEL.checkpoint"},
    {.name = "checkpoint-every", .type = LAPSE_OPTION_DURATION, AT(checkpoint_seconds), RUN,
     .placeholder = "DURATION", .least = 0, .most = 1e9, .initial = "30", .applies = trains, .advanced = true,
     .help = "minimum time between two checkpoints, such as 30s"},
    {.name = "resume", .type = LAPSE_OPTION_FLAG, AT(resume), RUN, .initial = "false", .applies = trains,
     .help = "resume from the checkpoint, if it exists"},
    {0},
};
/* clang-format on */

/* ------------------------------------------------------------------------------------- options by name ------- */

/* Every option once, by name: shared ones of models, their own, then the run's, in the order of the help's groups. */
static const lp_option *listed[LP_TRAIN_OPTION_LIMIT];
static int listed_count;
static pthread_once_t listed_once = PTHREAD_ONCE_INIT;

static void list_option(const lp_option *option)
{
    for (int i = 0; i < listed_count; i++)
        if (strcmp(listed[i]->name, option->name) == 0)
            return;
    LP_ASSERT(listed_count < LP_TRAIN_OPTION_LIMIT);
    listed[listed_count++] = option;
}

static void list_table(const lp_option *table, const char *group)
{
    for (; table->name; table++)
        if (strcmp(table->group, group) == 0)
            list_option(table);
}

static void list_all(void)
{
    static const char *const groups[] = {"Model", "Training", "Run"};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        list_table(lp_run_options, groups[g]);
        list_table(lp_model_options, groups[g]);
        for (int m = 0; lp_models[m]; m++)
            for (const lp_option *const *table = lp_models[m]->options; *table; table++)
                list_table(*table, groups[g]);
    }
}

static int listed_index(const char *name)
{
    pthread_once(&listed_once, list_all);
    for (int i = 0; i < listed_count; i++)
        if (strcmp(listed[i]->name, name) == 0)
            return i;
    return -1;
}

bool lapse_train_option(int index, lapse_option *option)
{
    pthread_once(&listed_once, list_all);
    if (index < 0 || index >= listed_count)
        return false;
    *option = lp_option_describe(listed[index]);
    return true;
}

bool lapse_train_option_find(const char *name, lapse_option *option)
{
    return lapse_train_option(listed_index(name), option);
}

bool lapse_model_has_option(const char *model, const char *name)
{
    const lp_model_row *row = lp_model_row_find(model);
    return row && (lp_options_find(lp_run_options, name) || lp_model_has_option(row, name));
}

void lp_train_options_default(lapse_train_options *options)
{
    memset(options, 0, sizeof *options);
    lp_options_default(lp_run_options, &options->run);
    lp_options_default(lp_model_options, &options->model);
    for (int m = 0; lp_models[m] && m < LP_ROW_NAMES; m++)
        lp_model_settings_default(lp_models[m], &options->own[m]);
}

lapse_status lapse_train_options_new(lapse_train_options **options, lapse_error *error)
{
    LP_REQUIRE(error, options);
    lapse_train_options *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "training options", sizeof *made);
    lp_train_options_default(made);
    *options = made;
    return LAPSE_OK;
}

void lapse_train_options_free(lapse_train_options *options)
{
    lp_free(options);
}

/* An option of this name that an options struct holds, and the settings it lies in. The chosen model's own options come first. */
typedef struct located {
    const lp_option *option;
    void *settings;
} located;

static located locate_own(lapse_train_options *options, int model, const char *name)
{
    for (const lp_option *const *table = lp_models[model]->options; *table; table++) {
        const lp_option *option = lp_options_find(*table, name);
        if (option)
            return (located){option, options->own[model].bytes};
    }
    return (located){0};
}

static located locate_shared(lapse_train_options *options, const char *name)
{
    const lp_option *option = lp_options_find(lp_run_options, name);
    if (option)
        return (located){option, &options->run};
    return (located){lp_options_find(lp_model_options, name), &options->model};
}

static located locate(const lapse_train_options *options, const char *name)
{
    lapse_train_options *writable = (lapse_train_options *)(uintptr_t)options;
    located found = locate_shared(writable, name);
    if (!found.option)
        found = locate_own(writable, options->run.model, name);
    for (int m = 0; !found.option && lp_models[m]; m++)
        found = locate_own(writable, m, name);
    return found;
}

lapse_status lapse_train_options_set(lapse_train_options *options, const char *name, const char *value,
                                     lapse_error *error)
{
    LP_REQUIRE(error, options, name, value);
    located found = locate_shared(options, name);
    if (found.option)
        LP_TRY(lp_option_set(found.option, found.settings, value, error));
    for (int m = 0; lp_models[m]; m++) {
        located own = locate_own(options, m, name);
        if (own.option)
            LP_TRY(lp_option_set(own.option, own.settings, value, error));
        found = own.option ? own : found;
    }
    if (!found.option)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no training option '%.80s'", name);
    options->given[listed_index(name)] = true;
    return LAPSE_OK;
}

const char *lapse_train_options_get(const lapse_train_options *options, const char *name, char *out, size_t out_size)
{
    char text[LP_OPTION_TEXT_SIZE];
    located found = locate(options, name);
    if (!found.option || !out_size)
        return NULL;
    lp_option_text(found.option, found.settings, text);
    size_t length = strlen(text) < out_size ? strlen(text) : out_size - 1;
    memcpy(out, text, length);
    out[length] = 0;
    return out;
}

bool lapse_train_options_apply(const lapse_train_options *options, const char *name)
{
    located found = locate(options, name);
    if (!found.option)
        return false;
    char text[LP_OPTION_TEXT_SIZE];
    bool text_value = found.option->type == LAPSE_OPTION_FILE || found.option->type == LAPSE_OPTION_TEXT;
    if (text_value && !*lp_option_text(found.option, found.settings, text))
        return false;
    bool shared = lp_options_find(lp_run_options, name) || lp_options_find(lp_model_options, name);
    if (!shared && !lp_model_has_option(lp_models[options->run.model], name))
        return false;
    lapse_train_options copy;
    if (found.settings == &options->model && !options->model.row) { /* not resolved yet */
        copy = *options;
        copy.model.row = lp_models[copy.run.model];
        return lp_option_applies(found.option, &copy.model);
    }
    return lp_option_applies(found.option, found.settings);
}

const char *lapse_train_options_reason(const lapse_train_options *options, const char *name)
{
    if (strcmp(name, "device") == 0)
        return options->device_reason;
    if (strcmp(name, "size") == 0)
        return options->size_reason;
    return strcmp(name, "censoring") == 0 ? options->censoring_reason : "";
}

bool lp_train_option_chosen(const lapse_train_options *options, const char *name)
{
    int index = listed_index(name);
    return index >= 0 && (options->given[index] || options->earlier[index]);
}

bool lp_train_option_given(const lapse_train_options *options, const char *name)
{
    int index = listed_index(name);
    return index >= 0 && options->given[index];
}

void lp_train_option_withdraw(lapse_train_options *options, const char *name)
{
    int index = listed_index(name);
    if (index >= 0)
        options->given[index] = false;
}

/* --------------------------------------------------------------------------------- an earlier run's options ---- */

/* The dataset must have the fields that the model reads. */
static lapse_status check_fields(const lapse_model *model, const lapse_dataset *dataset, lapse_error *error)
{
    static const char *const flags[] = {"--action", "--field", "--number"};
    for (int f = 0; f < model->config.field_count; f++) {
        const lp_model_field *field = &model->config.fields[f];
        bool found = false;
        for (int i = 0; i < dataset->field_count && !found; i++)
            found = dataset->fields[i].type == field->type && strcmp(dataset->fields[i].name, field->name) == 0;
        if (!found)
            return lp_fail(
                error, LAPSE_ERROR_INPUT,
                "the model reads the field '%.80s' (%s), and the dataset does not have it: import it with " LP_OPTION(
                    "%s %.80s"),
                field->name, lp_field_type_name(field->type), flags[field->type], field->name);
    }
    return LAPSE_OK;
}

/* The value of an option in the model's run; NULL: it is not known, or it belongs to the model's task and not to this
 * run's. */
static const char *earlier_value(const lapse_train_options *options, const lapse_model *model, const lp_option *option)
{
    bool other_task = options->given[listed_index("task")] && options->model.task != model->config.task;
    bool of_task = strcmp(option->name, "select") == 0 ||
                   (option->stored == LP_STORED_TRAINING && lp_options_find(lp_model_options, option->name) == option);
    bool by_size = strcmp(option->name, "dims") == 0 || strcmp(option->name, "blocks") == 0 || strcmp(option->name, "heads") == 0;
    if ((other_task && of_task) || (by_size && options->given[listed_index("size")]))
        return NULL;
    if (strcmp(option->name, "model") == 0)
        return model->config.row->name;
    if (strcmp(option->name, "seed") == 0)
        return lp_model_property_find(model, "seed");
    if (strcmp(option->name, "split-by") == 0)
        return lp_split_rule_name(model->split_by);
    return lp_model_option_text(model, option);
}

lapse_status lapse_train_options_like(lapse_train_options *options, const lapse_model *model,
                                      const lapse_dataset *dataset, lapse_error *error)
{
    LP_REQUIRE(error, options, model, dataset);
    pthread_once(&listed_once, list_all);
    LP_TRY(check_fields(model, dataset, error));
    for (int i = 0; i < listed_count; i++) {
        const char *value = options->given[i] ? NULL : earlier_value(options, model, listed[i]);
        if (!value)
            continue;
        LP_TRY(lapse_train_options_set(options, listed[i]->name, value, error));
        options->given[i] = false; /* a model without this option does not refuse it */
        options->earlier[i] = true;
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------- resolving ------- */

/* Refuses options that the caller set and the chosen model does not have. */
static lapse_status check_given(const lapse_train_options *options, lapse_error *error)
{
    const lp_model_row *row = lp_models[options->run.model];
    for (int i = 0; i < listed_count; i++)
        if (options->given[i] && !lapse_model_has_option(row->name, listed[i]->name))
            return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' has no option " LP_OPTION("--%s"), row->name,
                           listed[i]->name);
    return LAPSE_OK;
}

/* A model for one task alone needs no --task. */
static void resolve_task(lapse_train_options *options)
{
    lp_model_config *config = &options->model;
    for (int task = 0; !options->given[listed_index("task")] && lp_task_names[task]; task++)
        if (config->row->tasks == 1 << task)
            config->task = (lp_task)task;
}

static lapse_status check_loss(const lapse_train_options *options, lapse_error *error)
{
    const lp_model_config *config = &options->model;
    bool recommend = config->task == LP_TASK_RECOMMEND;
    if (!(config->row->tasks >> config->task & 1))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' cannot be trained for the task %s", config->row->name,
                       lp_task_names[config->task]);
    if (!recommend && config->loss != LP_UNSET && config->loss != LP_LOSS_SOFTMAX)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the loss '%s' belongs to the task recommend; classify uses softmax",
                       lp_loss_names[config->loss]);
    if (recommend && config->predict != LP_PREDICT_EVENT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the task recommend predicts the event; it cannot predict '%s'",
                       lp_predict_names[config->predict]);
    if (config->loss != LP_UNSET && lp_model_samples_items(config) && !lp_model_samples_by_target(config) &&
        config->negatives_unseen)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "all targets of a step share the negatives of %s, so " LP_FLAG(
                           "--negatives-unseen") " needs a loss that samples "
                                                 "negatives for each target, such as bce",
                       lp_loss_names[config->loss]);
    return LAPSE_OK;
}

static lapse_status check_predict(const lapse_dataset *dataset, const lp_model_config *config, lapse_error *error)
{
    if (config->predict == LP_PREDICT_EVENT)
        return LAPSE_OK;
    if (dataset->field_count == 0 || dataset->fields[0].type != LAPSE_FIELD_ACTION)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the action cannot be predicted, because the dataset has none: import it with " LP_OPTION(
                           "--action COLUMN"));
    if (!lp_model_is_network(config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' predicts events only; to predict the action, import the data with " LP_OPTION(
                           "--event '%s'"),
                       config->row->name, dataset->fields[0].name);
    return LAPSE_OK;
}

/* The validation metric belongs to the task. */
static lapse_status resolve_select(lapse_train_options *options, lapse_error *error)
{
    const lp_model_config *config = &options->model;
    int *select = &options->run.select;
    if (*select == LP_UNSET)
        *select = lp_metric_default(config);
    if (lp_metric_exists(config, (lp_metric)*select))
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the task %s has no validation metric '%s'; " LP_OPTION("--select") " takes %s",
                   lp_task_names[config->task], lp_metric_names[*select],
                   config->task == LP_TASK_CLASSIFY ? "log-loss or accuracy" : "ndcg@10, hit@10 or mrr");
}

/* Opens the device. A batch is one shard where the backend adds none. Baselines run on the CPU. */
static lapse_status resolve_device(lapse_train_options *options, lapse_error *error)
{
    lp_run_settings *run = &options->run;
    const lp_backend *backend;
    if (!lp_model_is_network(&options->model))
        run->device = 0;
    LP_TRY(lp_backend_open(lp_device_names()[run->device], &backend, error));
    bool automatic = run->device == LP_DEVICES;
    run->device = lp_device_of(backend);
    if (automatic && run->device == 0)
        snprintf(options->device_reason, sizeof options->device_reason, "no GPU can be used: %s", lapse_device_found());
    if (!backend->reduce && options->comm)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            LP_OPTION("--device %s") " trains in one process; several ranks train with " LP_OPTION("--device cpu"),
            backend->name);
    if (!backend->reduce)
        run->shards = 1;
    if (run->precision == LP_UNSET)
        run->precision = lp_devices[run->device].precision;
    return LAPSE_OK;
}

/* Reads the item vectors; their width is the default of dims. */
static lapse_status resolve_vectors(lapse_train_options *options, lapse_vectors **vectors, lapse_error *error)
{
    lp_model_config *config = &options->model;
    if (!*options->run.item_vectors)
        return LAPSE_OK;
    if (config->task != LP_TASK_RECOMMEND)
        return lp_fail(error, LAPSE_ERROR_USAGE, "item vectors are for the task recommend, not for %s",
                       lp_task_names[config->task]);
    if (!lp_model_is_network(config))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' counts items and has no item vectors to initialize",
                       config->row->name);
    LP_TRY(lapse_vectors_load(options->run.item_vectors, vectors, error));
    if (config->dims == LP_UNSET)
        config->dims = (*vectors)->dims;
    return LAPSE_OK;
}

static void resolve_loss(lp_model_config *config, int64_t items)
{
    bool recommend = config->task == LP_TASK_RECOMMEND;
    if (config->output == LP_UNSET)
        config->output = LP_OUTPUT_SHARED;
    if (config->loss == LP_UNSET)
        config->loss = recommend && items > FULL_SOFTMAX_ITEMS ? LP_LOSS_SAMPLED_SOFTMAX : LP_LOSS_SOFTMAX;
    const lp_loss_row *loss = lp_model_loss(config);
    if (config->negatives == LP_UNSET)
        config->negatives = loss->popular ? LP_NEGATIVES_POPULARITY : LP_NEGATIVES_UNIFORM;
    bool in_batch = config->negatives == LP_NEGATIVES_IN_BATCH && !lp_model_samples_by_target(config);
    if (!lp_model_samples_items(config) || in_batch)
        config->negative_count = 0;
    else if (config->negative_count == LP_UNSET || config->negative_count == 0)
        config->negative_count = loss->negatives;
}

static lapse_status check_divided(const lapse_train_options *options, lapse_error *error)
{
    const lp_run_settings *run = &options->run;
    const lp_model_config *config = &options->model;
    if (!lp_model_is_network(config) || config->task != LP_TASK_RECOMMEND || !lp_model_samples_items(config))
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            LP_FLAG("--shard-items") " needs a network with " LP_OPTION(
                "--task recommend") " and a loss that samples items, such as " LP_OPTION("--loss sampled-softmax") ": "
                                                                                                                   "oth"
                                                                                                                   "ers"
                                                                                                                   " re"
                                                                                                                   "ad "
                                                                                                                   "who"
                                                                                                                   "le "
                                                                                                                   "tab"
                                                                                                                   "les"
                                                                                                                   " in"
                                                                                                                   " ev"
                                                                                                                   "ery"
                                                                                                                   " st"
                                                                                                                   "e"
                                                                                                                   "p");
    if (!lp_devices[run->device].host)
        return lp_fail(error, LAPSE_ERROR_USAGE, LP_FLAG("--shard-items") " needs " LP_OPTION("--device cpu"));
    if (*run->item_vectors)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_FLAG("--shard-items") " cannot be combined with " LP_OPTION("--item-vectors FILE"));
    return LAPSE_OK;
}

static lapse_status resolve_from_data(lapse_train_options *options, const lapse_dataset *dataset,
                                      const lp_resolved *resolved, lapse_error *error)
{
    lp_model_config *config = &options->model;
    lp_run_settings *run = &options->run;
    int64_t items = dataset->types.count;
    if (resolved->vectors && resolved->vectors->count > items)
        items = resolved->vectors->count;
    LP_TRY(lp_length_resolve(options, dataset, error));
    lp_size_resolve(options, dataset);
    if (config->row->defaults && config->task == LP_TASK_RECOMMEND)
        config->row->defaults(config);
    resolve_loss(config, items);
    if (lp_dataset_relative(dataset) && /* times since a start of their own have no hours of a week */
        !lp_train_option_given(options, "when-background"))
        config->when_background = LP_BACKGROUND_CONSTANT;
    if (run->threads == LP_UNSET)
        run->threads = lapse_comm_threads(options->comm);
    if (config->row->resolve)
        LP_TRY(config->row->resolve(config, &(lp_fit_data){dataset, resolved->split}, error));
    if (config->gap_input == LP_UNSET)
        config->gap_input = 0;
    if ((config->when || config->row->next_time) && isnan(config->when_floor))
        LP_TRY(lp_when_floor(dataset, resolved->split, &config->when_floor, error));
    LP_TRY(lp_censoring_resolve(options, dataset, resolved->split, error));
    LP_TRY(lp_options_check(lp_run_options, run, error));
    if (run->shard_items)
        LP_TRY(check_divided(options, error));
    return lp_model_config_check(config, error);
}

static lapse_status resolve(lapse_train_options *options, const lapse_dataset *dataset, lp_resolved *resolved,
                            lapse_error *error)
{
    lp_model_config *config = &options->model;
    lp_run_settings *run = &options->run;
    int32_t action;
    config->row = lp_models[run->model];
    config->settings = options->own[run->model];
    config->event_types = (int)dataset->types.count;
    config->field_count = lp_model_is_network(config) ? dataset->field_count : 0;
    config->category_count = 0;
    for (int f = 0; f < config->field_count; f++)
        config->category_count += dataset->fields[f].type != LAPSE_FIELD_NUMBER;
    if (strcmp(run->checkpoint, "none") == 0)
        run->checkpoint[0] = 0;
    resolve_task(options);
    LP_TRY(check_given(options, error));
    LP_TRY(check_predict(dataset, config, error));
    if (strcmp(config->target, "all") == 0)
        config->target[0] = 0;
    LP_TRY(lp_target_events_find(dataset, config->target, &action, error));
    LP_TRY(check_loss(options, error));
    LP_TRY(resolve_select(options, error));
    LP_TRY(resolve_device(options, error));
    LP_TRY(resolve_vectors(options, &resolved->vectors, error));
    if (run->split_by == LP_UNSET)
        run->split_by = lp_name_index(lp_split_rule_name(lp_split_rule_default(dataset, lp_task_names[config->task])),
                                      lapse_split_by_names());
    LP_TRY(lp_split_make(dataset, lp_split_rule_find(lapse_split_by_names()[run->split_by]), run->seed,
                         &resolved->split, error));
    LP_TRY(resolve_from_data(options, dataset, resolved, error));
    LP_TRY(lp_size_describe(options, &(lp_fit_data){dataset, resolved->split}, error));
    options->own[run->model] = config->settings;
    return LAPSE_OK;
}

lapse_status lp_train_options_resolve(lapse_train_options *options, const lapse_dataset *dataset, lp_resolved *resolved,
                                      lapse_error *error)
{
    *resolved = (lp_resolved){0};
    lapse_status status = resolve(options, dataset, resolved, error);
    if (status != LAPSE_OK) {
        lp_free(resolved->split);
        lapse_vectors_free(resolved->vectors);
        *resolved = (lp_resolved){0};
    }
    return status;
}

void lapse_train_options_set_comm(lapse_train_options *options, lapse_comm *comm)
{
    if (options)
        options->comm = lapse_comm_size(comm) > 1 ? comm : NULL;
}
