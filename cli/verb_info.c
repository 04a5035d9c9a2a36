/* verb_info.c: `lapse info`: metadata of a dataset, a model or item vectors. The file type is detected by content, not by
 * name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table.h"
#include "verb.h"

typedef struct info_settings {
    const char *file;
    bool types, json;
} info_settings;

/* An open file: exactly one member is set. */
typedef struct subject {
    lapse_dataset *dataset;
    lapse_model *model;
    lapse_vectors *vectors;
} subject;

static const char *type_of(const subject *about)
{
    return about->model ? "model" : about->vectors ? "item vectors" : "dataset";
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

static int print_text(const subject *about, const info_settings *s)
{
    cli_table table = {.align = "ll"};
    const char *name, *value;
    cli_table_add(&table, "file");
    cli_table_add(&table, "%s (%s)", s->file, type_of(about));
    for (int i = 0; property(about, i, &name, &value); i++) {
        cli_table_add(&table, "%s", name);
        cli_table_add(&table, "%s", value);
    }
    bool whole = cli_table_print(&table, stdout, 0);
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

/* A safetensors file begins with the header size (8 bytes, little-endian) and the header's opening brace. */
static int looks_like_model(const char *path, bool *model)
{
    unsigned char first[9];
    struct stat found;
    /* Without O_NONBLOCK, open waits for the writer of a FIFO. */
    int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0)
        return cli_fail("%s: cannot open: %s", path, strerror(errno));
    bool regular = fstat(handle, &found) == 0 && S_ISREG(found.st_mode);
    ssize_t got = regular ? read(handle, first, sizeof first) : 0;
    int failed = errno;
    close(handle);
    if (!regular)
        return cli_fail("%s: this is not a regular file", path);
    if (got < 0)
        return cli_fail("%s: cannot read: %s", path, strerror(failed));
    *model = got == (ssize_t)sizeof first && first[8] == '{' && first[7] == 0;
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    const info_settings *s = settings;
    subject about = {NULL, NULL, NULL};
    bool model = false;
    lapse_error error;
    (void)call;
    int result = looks_like_model(s->file, &model);
    if (result != CLI_DONE)
        return result;
    lapse_status status =
        model ? lapse_model_load(s->file, &about.model, &error) : lapse_dataset_open(s->file, &about.dataset, &error);
    if (status == LAPSE_ERROR_FORMAT && model) {
        lapse_error reason;
        lapse_status found = lapse_vectors_load(s->file, &about.vectors, &reason);
        if (found != LAPSE_ERROR_FORMAT) { /* otherwise it is neither, and the first reason is shown */
            status = found;
            error = reason;
        }
    }
    if (status != LAPSE_OK)
        return cli_error(&error);
    result = s->json ? print_json(&about, s) : print_text(&about, s);
    lapse_dataset_close(about.dataset);
    lapse_model_free(about.model);
    lapse_vectors_free(about.vectors);
    return result;
}

static const cli_argument arguments[] = {
    {"FILE", offsetof(info_settings, file), "dataset, model or item-vector file", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "event-types", .type = CLI_FLAG, .offset = offsetof(info_settings, types),
     .help = "list of event types (of items, for item vectors)"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(info_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse info events.lapse --event-types", "lapse info model.safetensors --json",
                                       NULL};

const cli_verb cli_verb_info = {
    .name = "info",
    .summary = "describe a dataset, model or item-vector file",
    .description =
        "Verifies a dataset, model or item-vector file and prints its metadata: source, sizes, settings, split "
        "and scores.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(info_settings),
    .run = run,
};
