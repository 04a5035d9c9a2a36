/* known.c: see known.h. Names are looked up once each, not once an event. */
#include "known.h"

#include <math.h>
#include <stdlib.h>

#include "console.h"

/* How the events of a history use one list of names: its kinds (field -1), or the categories of a field. */
static int64_t *count_events(const lapse_dataset *history, int field, int64_t names)
{
    int64_t *events = calloc((size_t)names + 1, sizeof *events);
    for (int64_t i = 0; events && i < lapse_dataset_sequence_count(history); i++) {
        const double *times, *numbers;
        const int32_t *kinds, *categories;
        int64_t count;
        lapse_dataset_sequence(history, i, &times, &kinds, &count);
        categories = kinds;
        if (field >= 0)
            lapse_dataset_field_values(history, field, i, &categories, &numbers);
        for (int64_t j = 0; j < count; j++)
            events[categories[j]]++;
    }
    return events;
}

/* The names of one list that are unknown, for the message. */
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

static int say_unknown(const unknown_names *unknown, const char *file, const char *field, bool skip)
{
    const char *end = skip ? "; skipped" : "; --unknown skip leaves them out";
    if (unknown->names == 0)
        return CLI_DONE;
    if (field)
        cli_note("%s: %s %s of '%s' the model does not know: %s%s", file,
                 cli_plural(unknown->events, "event has", "events have").text,
                 cli_plural(unknown->names, "value", "values").text, field, unknown->list, end);
    else
        cli_note("%s: %s of %s the model does not know: %s%s", file,
                 cli_plural(unknown->events, "event is", "events are").text,
                 cli_plural(unknown->names, "kind", "kinds").text, unknown->list, end);
    return skip ? CLI_DONE : CLI_FAILED;
}

static int find_kinds(cli_known *known, const lapse_model *model, const lapse_dataset *history, const char *file,
                      bool skip)
{
    unknown_names unknown = {.used = 0};
    int64_t kinds = lapse_dataset_kind_count(history), *events = count_events(history, -1, kinds);
    known->kinds = calloc((size_t)kinds + 1, sizeof *known->kinds);
    if (!events || !known->kinds) {
        free(events);
        return cli_fail("out of memory");
    }
    for (int64_t kind = 0; kind < kinds; kind++) {
        const char *name = lapse_dataset_kind_name(history, kind);
        known->kinds[kind] = lapse_model_kind_find(model, name) >= 0;
        if (!known->kinds[kind])
            add_unknown(&unknown, name, events[kind]);
    }
    free(events);
    return say_unknown(&unknown, file, NULL, skip);
}

static int find_categories(cli_known *known, int field, const lapse_model *model, const lapse_dataset *history,
                           const char *file, bool skip)
{
    unknown_names unknown = {.used = 0};
    lapse_field about;
    lapse_dataset_field(history, field, &about);
    int64_t *events = count_events(history, field, about.category_count);
    bool *list = known->categories[field] = calloc((size_t)about.category_count + 1, sizeof *list);
    if (!events || !list) {
        free(events);
        return cli_fail("out of memory");
    }
    for (int64_t i = 0; i < about.category_count; i++) {
        const char *name = lapse_dataset_category_name(history, field, i);
        list[i] = lapse_model_category_find(model, field, name) >= 0;
        if (!list[i])
            add_unknown(&unknown, name, events[i]);
    }
    free(events);
    return say_unknown(&unknown, file, about.name, skip);
}

int cli_known_find(cli_known *known, const lapse_model *model, const lapse_dataset *history, const char *file,
                   bool skip)
{
    lapse_field field;
    while (lapse_model_field(model, known->field_count, &field))
        known->field_count++;
    known->categories = calloc((size_t)known->field_count + 1, sizeof *known->categories);
    if (!known->categories)
        return cli_fail("out of memory");
    int result = find_kinds(known, model, history, file, skip);
    for (int f = 0; f < known->field_count; f++) {
        lapse_model_field(model, f, &field);
        int found = field.type == LAPSE_FIELD_NUMBER ? CLI_DONE : find_categories(known, f, model, history, file, skip);
        result = result == CLI_DONE ? found : result;
    }
    return result;
}

void cli_known_clear(cli_known *known)
{
    for (int f = 0; known->categories && f < known->field_count; f++)
        free(known->categories[f]);
    free(known->categories);
    free(known->kinds);
}

/* The fields of event `place` of a sequence; false where one of them is unknown to the model. */
static bool read_fields(const cli_known *known, const lapse_dataset *history, int64_t sequence, int64_t place,
                        lapse_value *values)
{
    for (int f = 0; f < known->field_count; f++) {
        const int32_t *categories;
        const double *numbers;
        lapse_dataset_field_values(history, f, sequence, &categories, &numbers);
        if (categories && !known->categories[f][categories[place]])
            return false;
        values[f].text = categories ? lapse_dataset_category_name(history, f, categories[place]) : NULL;
        values[f].number = numbers ? numbers[place] : NAN;
    }
    return true;
}

lapse_status cli_known_append(const cli_known *known, lapse_session *session, const lapse_dataset *history,
                              int64_t sequence, int64_t *appended, double *last, lapse_error *error)
{
    const double *times;
    const int32_t *kinds;
    int64_t count;
    lapse_status status = LAPSE_OK;
    lapse_value *values = calloc((size_t)known->field_count + 1, sizeof *values);
    lapse_session_clear(session);
    lapse_dataset_sequence(history, sequence, &times, &kinds, &count);
    *appended = 0;
    *last = times[count - 1];
    if (!values) {
        snprintf(error->message, sizeof error->message, "out of memory");
        error->file[0] = 0;
        return error->status = LAPSE_ERROR_MEMORY;
    }
    for (int64_t i = 0; i < count && status == LAPSE_OK; i++) {
        if (!known->kinds[kinds[i]] || !read_fields(known, history, sequence, i, values))
            continue;
        lapse_event event = {times[i], lapse_dataset_kind_name(history, kinds[i]), values, known->field_count};
        status = lapse_session_append_event(session, &event, error);
        *appended += status == LAPSE_OK;
    }
    free(values);
    return status;
}
