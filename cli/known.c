/* known.c: see known.h. Each name is looked up once, not once per event. */
#include "known.h"

#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "lookup.h"

/* Number of events of each event type (field -1) or of each category of a field: [names]. The caller frees it. */
static int64_t *count_events(const lapse_dataset *history, int field, int64_t names)
{
    int64_t *events = calloc((size_t)names + 1, sizeof *events);
    for (int64_t i = 0; events && i < lapse_dataset_sequence_count(history); i++) {
        const double *times, *numbers;
        const int32_t *types, *categories;
        int64_t count;
        lapse_dataset_sequence(history, i, &times, &types, &count);
        categories = types;
        if (field >= 0)
            lapse_dataset_field_values(history, field, i, &categories, &numbers);
        for (int64_t j = 0; j < count; j++)
            events[categories[j]]++;
    }
    return events;
}

/* The unknown names of one vocabulary, for the message. */
typedef struct unknown_names {
    char list[1024];
    size_t used;
    int64_t names, events;
} unknown_names;

static void add_unknown(unknown_names *unknown, const char *name, int64_t events)
{
    enum { LISTED = 5 };
    unknown->events += events;
    if (unknown->names++ < LISTED && unknown->used < sizeof unknown->list)
        unknown->used += (size_t)snprintf(unknown->list + unknown->used, sizeof unknown->list - unknown->used,
                                          "%s'%.100s' (%s)", unknown->used ? ", " : "", name, cli_count(events).text);
    else if (unknown->names == LISTED + 1 && unknown->used < sizeof unknown->list)
        unknown->used += (size_t)snprintf(unknown->list + unknown->used, sizeof unknown->list - unknown->used, ", ...");
}

static int report_unknown(const unknown_names *unknown, const char *file, const char *field, bool skip)
{
    const char *end = skip ? "; skipped" : "; --unknown skip skips them";
    if (unknown->names == 0)
        return CLI_DONE;
    if (field)
        cli_note("%s: %s %s of '%s' that the model does not know: %s%s", file,
                 cli_plural(unknown->events, "event has", "events have").text,
                 cli_plural(unknown->names, "value", "values").text, field, unknown->list, end);
    else
        cli_note("%s: %s of %s that the model does not know: %s%s", file,
                 cli_plural(unknown->events, "event is", "events are").text,
                 cli_plural(unknown->names, "event type", "event types").text, unknown->list, end);
    return skip ? CLI_DONE : CLI_FAILED;
}

static int find_types(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip)
{
    unknown_names unknown = {.used = 0};
    int64_t types = lapse_dataset_event_type_count(history), *events = count_events(history, -1, types);
    if (!events)
        return cli_fail("out of memory");
    for (int64_t type = 0; type < types; type++) {
        const char *name = lapse_dataset_event_type_name(history, type);
        if (lapse_model_event_type_find(model, name) < 0)
            add_unknown(&unknown, name, events[type]);
    }
    free(events);
    return report_unknown(&unknown, file, NULL, skip);
}

/* The index of the history's field that is a field of a model, or -1. There is one action at most, whose column may have
 * any name. */
static int history_field(const lapse_dataset *history, const lapse_field *wanted, lapse_field *found)
{
    for (int f = 0; lapse_dataset_field(history, f, found); f++)
        if (found->type == wanted->type &&
            (wanted->type == LAPSE_FIELD_ACTION || strcmp(found->name, wanted->name) == 0))
            return f;
    return -1;
}

/* Looks up the values of the model's field number `field`. */
static int find_categories(int field, const lapse_field *wanted, const lapse_model *model, const lapse_dataset *history,
                           const char *file, bool skip)
{
    unknown_names unknown = {.used = 0};
    lapse_field about;
    int column = history_field(history, wanted, &about);
    if (column < 0)
        return CLI_DONE;
    int64_t *events = count_events(history, column, about.category_count);
    if (!events)
        return cli_fail("out of memory");
    for (int64_t i = 0; i < about.category_count; i++) {
        const char *name = lapse_dataset_category_name(history, column, i);
        if (lapse_model_category_find(model, field, name) < 0)
            add_unknown(&unknown, name, events[i]);
    }
    free(events);
    return report_unknown(&unknown, file, about.name, skip);
}

int cli_known_find(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip)
{
    lapse_field field;
    int result = find_types(model, history, file, skip);
    for (int f = 0; lapse_model_field(model, f, &field); f++) {
        int found =
            field.type == LAPSE_FIELD_NUMBER ? CLI_DONE : find_categories(f, &field, model, history, file, skip);
        result = result == CLI_DONE ? found : result;
    }
    return result;
}

void cli_censoring_warn(const lapse_model *model)
{
    const char *rule = cli_model_property(model, "train.censoring");
    if (lapse_model_predicts_time(model) && (!rule || strcmp(rule, "on") != 0))
        cli_note("the chances are too high for histories that end for good or were cut off: the model was trained with "
                 "--censoring off. Train it with --censoring on, and --split-by sequence, time or session");
}

void cli_unanswered_add(cli_unanswered *unanswered, int64_t sequence, bool answered)
{
    unanswered->total++;
    if (!answered && unanswered->count++ == 0)
        unanswered->first = sequence;
}

int cli_unanswered_report(const cli_unanswered *unanswered, const lapse_dataset *history)
{
    if (unanswered->count == 0)
        return CLI_DONE;
    if (unanswered->count == unanswered->total)
        return cli_fail("no prediction: no history has an event that the model knows");
    cli_note("skipped %s without an event that the model knows, the first '%.200s'",
             cli_plural(unanswered->count, "history", "histories").text,
             lapse_dataset_sequence_name(history, unanswered->first));
    return CLI_DONE;
}
