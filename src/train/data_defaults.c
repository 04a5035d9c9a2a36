/* data_defaults.c: what the size of the data chooses: context, batch, learning rate, averaging, and the size of the network.
 *
 * docs/notes/defaults.md has the measurements. */
#include "data/dataset/gap_quantile.h"
#include "model/model_options.h"
#include "train/train_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_CONTEXT_MOST = 200, EVENTS_PER_ITEM = 20 };

/* Steps per epoch that the batch aims at. With fewer training windows than FEW_WINDOWS batches are smaller and steps larger, so that
 * there are as many steps in fewer epochs. */
enum { STEPS = 80, FEW_WINDOWS = 640 };

/* Events of a recommender from which on averaged parameters pay: on fewer they are as good and take longer. */
enum { AVERAGED_EVENTS = 100000 };

/* ------------------------------------------------------------------------------------------ length of a run ---- */

/* About 80 steps per epoch, between 8 and 128 windows. */
static int default_batch(double windows)
{
    int batch = (int)fmin(windows / STEPS / 16, 8) * 16;
    return batch >= 16 ? batch : windows < FEW_WINDOWS ? 8 : 16;
}

lapse_status lp_length_resolve(lapse_train_options *options, const lapse_dataset *dataset, lapse_error *error)
{
    lp_model_config *config = &options->model;
    lp_run_settings *run = &options->run;
    double length;
    if (config->context == LP_UNSET) { /* 95 % of the sequences fit into it */
        LP_TRY(lp_length_quantile(dataset, 0.95, &length, error));
        config->context = (int)fmin(fmax(length, 8), DEFAULT_CONTEXT_MOST);
    }
    double windows = 0.8 * (double)(dataset->sequence_count + dataset->event_count / config->context);
    if (run->batch == LP_UNSET)
        run->batch = default_batch(windows);
    if (isnan(run->learning_rate))
        run->learning_rate = windows < FEW_WINDOWS ? 0.002 : 0.001;
    if (isnan(run->ema_decay))
        run->ema_decay = config->task == LP_TASK_RECOMMEND && dataset->event_count >= AVERAGED_EVENTS ? 0.9 : 0;
    if (run->patience == LP_UNSET)
        run->patience = run->ema_decay > 0 ? 15 : 10;
    return LAPSE_OK;
}

/* --------------------------------------------------------------------------------------- size of the network ---- */

/* Of attention, in its table: another number is the caller's. */
enum { DEFAULT_BLOCKS = 2 };

typedef struct size_row {
    int dims, blocks, heads;
} size_row;

static const size_row sizes[][3] = {
    [LP_TASK_CLASSIFY] = {{32, 1, 2}, {64, 2, 2}, {128, 3, 8}},
    [LP_TASK_RECOMMEND] = {{64, 2, 2}, {128, 3, 2}, {256, 3, 8}},
};

/* The model's own option of whole numbers; NULL: it has none. */
static int *own_number(lp_model_config *config, const char *name)
{
    for (const lp_option *const *table = config->row->options; *table; table++) {
        const lp_option *option = lp_options_find(*table, name);
        if (option)
            return (int *)(void *)(config->settings.bytes + option->offset);
    }
    return NULL;
}

/* Models whose heads are a rule's: those of others are part of a published form, as are their blocks. */
static bool has_sizes(const lp_model_config *config)
{
    for (const lp_option *const *table = config->row->options; *table; table++) {
        const lp_option *option = lp_options_find(*table, "heads");
        if (option)
            return !option->initial;
    }
    return false;
}

static void apply(lp_model_config *config, const size_row *row, lp_sized sized)
{
    if (sized.dims)
        config->dims = row->dims;
    if (sized.blocks)
        *own_number(config, "blocks") = row->blocks;
    if (!sized.heads)
        return;
    int *heads = own_number(config, "heads");
    for (*heads = row->heads; config->dims % *heads != 0;)
        *heads /= 2;
}

void lp_size_resolve(lapse_train_options *options, const lapse_dataset *dataset)
{
    lp_run_settings *run = &options->run;
    lp_model_config *config = &options->model;
    bool few = config->task == LP_TASK_RECOMMEND && dataset->event_count < EVENTS_PER_ITEM * dataset->types.count;
    bool attends = has_sizes(config);
    if (run->size == LP_UNSET)
        run->size = few ? LP_SIZE_SMALL : LP_SIZE_BASE;
    lp_sized before = options->sized; /* of options that are resolved again */
    options->sized =
        (lp_sized){.dims = config->dims == LP_UNSET || (before.dims && !lp_train_option_given(options, "dims")),
                   .blocks = attends && !lp_train_option_chosen(options, "blocks") &&
                             (before.blocks || *own_number(config, "blocks") == DEFAULT_BLOCKS),
                   .heads = attends && (*own_number(config, "heads") == LP_UNSET ||
                                        (before.heads && !lp_train_option_given(options, "heads")))};
    apply(config, &sizes[config->task][run->size], options->sized);
}

/* Operations of a training step with one window of the whole context. Fields and further targets cost little. */
static lapse_status count_flop(const lp_model_config *config, double *flop, lapse_error *error)
{
    lp_network network;
    lp_model_config bare = *config;
    int64_t context = config->context, items = config->negative_count + context;
    lp_extent extent = {.pairs = context * (context + 1) / 2, .longest = config->context};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = extent.rows[LP_ROWS_LABELS] = context;
    extent.rows[LP_ROWS_ITEMS] = items < config->event_types ? items : config->event_types;
    bare.field_count = 0;
    bare.predict = LP_PREDICT_EVENT;
    *flop = 0;
    LP_TRY(lp_network_build(&network, &bare, true, error));
    for (int i = 0; i < network.graph.node_count; i++)
        *flop += network.graph.nodes[i]->op->cost(network.graph.nodes[i], &extent).flop;
    lp_graph_clear(&network.graph);
    return LAPSE_OK;
}

lapse_status lp_size_describe(lapse_train_options *options, const lp_fit_data *data, lapse_error *error)
{
    lp_model_config next = options->model;
    lp_sized sized = options->sized;
    lp_size size = (lp_size)options->run.size;
    double now, then;
    if (!lp_model_is_network(&next) || size == LP_SIZE_LARGE || !(sized.dims || sized.blocks || sized.heads))
        return LAPSE_OK;
    apply(&next, &sizes[next.task][size + 1], sized);
    if (next.row->resolve)
        LP_TRY(next.row->resolve(&next, data, error));
    LP_TRY(count_flop(&options->model, &now, error));
    LP_TRY(count_flop(&next, &then, error));
    snprintf(options->size_reason, sizeof options->size_reason,
             LP_OPTION("--size %s") " takes about %.2g times the operations of a step",
             size == LP_SIZE_SMALL ? "base" : "large", then / now);
    return LAPSE_OK;
}
