/* verb_info.c: `lapse info`: metadata of events, a model or item vectors. The file type is detected by content, not by
 * name. */
#include <stdlib.h>
#include <string.h>

#include "baseline_table.h"
#include "csv_cell.h"
#include "epoch_table.h"
#include "events.h"
#include "model_card.h"
#include "table.h"
#include "vector_file.h"
#include "verb.h"

typedef struct info_settings {
    const char *file, *item_vectors;
    cli_columns columns;
    bool types, history, all, json;
} info_settings;

/* An open file: one of the pointers is set. */
typedef struct subject {
    bool text; /* the dataset was imported from text */
    lapse_dataset *dataset;
    lapse_model *model;
    lapse_vectors *vectors;
} subject;

static const char *type_of(const subject *about)
{
    return about->model ? "model" : about->vectors ? "item vectors" : about->text ? "events in text" : "dataset";
}

static bool property(const subject *about, int index, const char **name, const char **value)
{
    return about->model     ? lapse_model_property(about->model, index, name, value)
           : about->vectors ? lapse_vectors_property(about->vectors, index, name, value)
                            : lapse_dataset_property(about->dataset, index, name, value);
}

static int64_t type_count(const subject *about)
{
    return about->model     ? lapse_model_event_type_count(about->model)
           : about->vectors ? lapse_vectors_count(about->vectors)
                            : lapse_dataset_event_type_count(about->dataset);
}

static const char *type_name(const subject *about, int64_t type)
{
    return about->model     ? lapse_model_event_type_name(about->model, type)
           : about->vectors ? lapse_vectors_name(about->vectors, type)
                            : lapse_dataset_event_type_name(about->dataset, type);
}

/* Fills *events with the number of events of each event type of a dataset, or with NULL for models and item vectors. The
 * caller frees it. False: out of memory. */
static bool count_events(const subject *about, int64_t **events)
{
    *events = about->dataset ? calloc((size_t)type_count(about) + 1, sizeof **events) : NULL;
    if (!*events)
        return !about->dataset;
    for (int64_t i = 0; i < lapse_dataset_sequence_count(about->dataset); i++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(about->dataset, i, &times, &types, &count);
        for (int64_t j = 0; j < count; j++)
            (*events)[types[j]]++;
    }
    return true;
}

/* Scores have tables of their own. */
static bool is_score(const subject *about, const char *name)
{
    lapse_epoch epoch;
    return about->model && lapse_model_history(about->model, 0, &epoch) &&
           (strncmp(name, "score.valid.", 12) == 0 || strncmp(name, "score.test.", 11) == 0 ||
            strncmp(name, "baseline.", 9) == 0);
}

/* Every property by its key. */
static bool print_properties(const subject *about, const char *file)
{
    cli_table table = {.align = "ll"};
    const char *name, *value;
    cli_table_add(&table, "file");
    cli_table_add(&table, "%s (%s)", file, type_of(about));
    for (int i = 0; property(about, i, &name, &value); i++)
        if (!is_score(about, name)) {
            cli_table_add(&table, "%s", name);
            cli_table_add(&table, "%s", value);
        }
    return cli_table_print(&table, stdout, 0);
}

static int print_text(const subject *about, const info_settings *s)
{
    cli_table table = {.align = "ll"};
    bool whole = about->model && !s->all ? cli_model_card_print(stdout, s->file, about->model)
                                         : print_properties(about, s->file);
    if (about->model) {
        whole = cli_history_print(stdout, about->model, s->history) && whole;
        whole = cli_recorded_print(stdout, about->model) && whole;
    }
    int64_t *events = NULL;
    if (!s->types || !whole || !count_events(about, &events))
        return whole && !s->types ? CLI_DONE : cli_fail("out of memory");
    fputc('\n', stdout);
    table.align = events ? "lrr" : "l";
    cli_table_add(&table, "%s", about->vectors ? "item" : "event type");
    if (events) {
        cli_table_add(&table, "events");
        cli_table_add(&table, "fraction");
    }
    for (int64_t type = 0; type < type_count(about); type++) {
        cli_table_add(&table, "%s", type_name(about, type));
        if (events) {
            double all = (double)lapse_dataset_event_count(about->dataset);
            cli_table_add(&table, "%s", cli_count(events[type]).text);
            cli_table_add(&table, "%s", cli_percent((double)events[type] / all, 2).text);
        }
    }
    free(events);
    return cli_table_print(&table, stdout, 0) ? CLI_DONE : cli_fail("out of memory");
}

static int print_json(const subject *about, const info_settings *s)
{
    cli_json json = {.file = stdout};
    const char *name, *value;
    int64_t *events = NULL;
    if (s->types && !count_events(about, &events))
        return cli_fail("out of memory");
    cli_json_object(&json, NULL);
    cli_json_text(&json, "file", s->file);
    cli_json_text(&json, "type", type_of(about));
    cli_json_object(&json, "properties");
    for (int i = 0; property(about, i, &name, &value); i++)
        cli_json_text(&json, name, value);
    cli_json_end(&json, '}');
    if (about->model)
        cli_history_json(&json, about->model, NULL);
    if (s->types) {
        cli_json_array(&json, about->vectors ? "items" : "event_types");
        for (int64_t type = 0; type < type_count(about); type++) {
            cli_json_object(&json, NULL);
            cli_json_text(&json, "name", type_name(about, type));
            if (events)
                cli_json_whole(&json, "events", events[type]);
            cli_json_end(&json, '}');
        }
        cli_json_end(&json, ']');
        free(events);
    }
    cli_json_end(&json, '}');
    return CLI_DONE;
}

/* Item vectors are a safetensors file too. */
static int open_tensors(const info_settings *s, subject *about)
{
    lapse_error error;
    int result = cli_columns_refuse(s->file, &s->columns);
    if (result != CLI_DONE)
        return result;
    lapse_status status = lapse_model_load(s->file, &about->model, &error);
    if (status == LAPSE_ERROR_FORMAT) {
        lapse_error reason;
        lapse_status found = lapse_vectors_load(s->file, &about->vectors, &reason);
        if (found != LAPSE_ERROR_FORMAT) { /* otherwise it is neither, and the first reason is shown */
            status = found;
            error = reason;
        }
    }
    return status == LAPSE_OK ? CLI_DONE : cli_error(&error);
}

static void print_item(const void *context, int64_t row, FILE *file)
{
    cli_csv_field(file, lapse_model_event_type_name(context, row), false);
}

/* --vectors: the item vectors of a recommender. */
static int write_vectors(const info_settings *s, const lapse_model *model)
{
    if (!model || lapse_model_state_dims(model) == 0)
        return cli_fail("%s has no item vectors that --vectors could write: a network trained with --task recommend does",
                        s->file);
    cli_vector_table table = {.count = lapse_model_event_type_count(model),
                              .dims = lapse_model_state_dims(model),
                              .vectors = lapse_model_item_vectors(model),
                              .last = lapse_model_item_biases(model),
                              .columns = "item",
                              .last_column = "bias",
                              .label = print_item,
                              .context = model};
    return cli_vector_file_write(s->item_vectors, &table);
}

static int run(void *settings, const cli_call *call)
{
    info_settings *s = settings;
    subject about = {.text = false};
    cli_file_form form;
    if (s->item_vectors && !cli_vector_file_known(s->item_vectors))
        return cli_usage(call->verb, "--vectors %s: the name of the file ends in .csv or .npy", s->item_vectors);
    int result = cli_file_form_find(s->file, &form);
    if (result != CLI_DONE)
        return result;
    about.text = form == CLI_FORM_TEXT;
    result = form == CLI_FORM_TENSORS ? open_tensors(s, &about)
                                      : cli_events_open(s->file, &s->columns, NULL, &about.dataset);
    if (result == CLI_DONE && s->item_vectors)
        result = write_vectors(s, about.model);
    else if (result == CLI_DONE)
        result = s->json ? print_json(&about, s) : print_text(&about, s);
    lapse_dataset_close(about.dataset);
    lapse_model_free(about.model);
    lapse_vectors_free(about.vectors);
    return result;
}

static void defaults(void *settings)
{
    cli_columns_default(&((info_settings *)settings)->columns);
}

static const cli_argument arguments[] = {
    {"FILE", offsetof(info_settings, file),
     "dataset, model or item-vector file, or events in text; - is standard input", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "event-types", .type = CLI_FLAG, .offset = offsetof(info_settings, types),
     .help = "list of event types (of items, for item vectors)"},
    {.name = "history", .type = CLI_FLAG, .offset = offsetof(info_settings, history),
     .help = "table of all epochs of a model's training run, below the chart"},
    {.name = "all", .type = CLI_FLAG, .offset = offsetof(info_settings, all),
     .help = "every setting of a model by its key, instead of the card"},
    {.name = "vectors", .type = CLI_TEXT, .offset = offsetof(info_settings, item_vectors), .placeholder = "FILE",
     .help = "file for the item vectors of a recommender, .csv or .npy, instead of the metadata: rows in the order of item "
             "ids, the last number being the item's bias. The product with a vector of `lapse predict --vectors` is the score",
     .unset = "none", .file = CLI_OUTPUT_FILE},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(info_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(info_settings, columns)};

static const char *const examples[] = {"lapse info events.lapse --event-types", "lapse info events.csv",
                                       "lapse info model.safetensors --json", NULL};

const cli_verb cli_verb_info = {
    .name = "info",
    .summary = "describe events, a model or item vectors",
    .description =
        "Verifies a dataset, model or item-vector file, or events in text, and prints its metadata: source, sizes, "
        "settings and split. For a model it prints a card (--all: all its settings by their keys), the history of its "
        "training run as a chart, and its scores beside those "
        "of baselines.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(info_settings),
    .defaults = defaults,
    .run = run,
};
