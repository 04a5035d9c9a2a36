/* event_list.c: see event_list.h. */
#include "event_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query_times.h"

const srv_member srv_event_members[] = {
    {.name = "history", .types = SRV_STRING, .help = "name of the history; required except in events of a prediction"},
    {.name = "time", .types = SRV_STRING | SRV_NUMBER, .required = true, .help = "unix seconds, ISO 8601 or now"},
    {.name = "event", .types = SRV_STRING, .required = true, .help = "event type or item"},
    {.name = "id", .types = SRV_STRING, .help = "of the event: one that is sent twice counts once"},
    {.name = "action", .types = SRV_STRING, .help = "the action, for models that read one"},
    {.name = "fields", .types = SRV_OBJECT, .help = "the other fields that the model reads, by name"},
    {.name = "answer", .types = SRV_STRING, .most = 1 << 16, .help = "token of the answer that led to this event"},
    {0},
};

void srv_events_clear(srv_events *events)
{
    for (int64_t i = 0; i < events->count; i++)
        free(events->items[i].text);
    free(events->items);
    *events = (srv_events){0};
}

static int compare(const srv_event *a, const srv_event *b)
{
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    int order = strcmp(a->text, b->text);
    if (order == 0)
        order = strcmp(a->text + a->name, b->text + b->name);
    return order ? order : strcmp(a->text + a->fields, b->text + b->fields);
}

static bool make_event(srv_event *event, const char *id, const char *name, const char *fields)
{
    size_t sizes[3] = {strlen(id) + 1, strlen(name) + 1, strlen(fields) + 1};
    event->text = malloc(sizes[0] + sizes[1] + sizes[2]);
    if (!event->text)
        return false;
    event->name = (uint32_t)sizes[0];
    event->fields = (uint32_t)(sizes[0] + sizes[1]);
    memcpy(event->text, id, sizes[0]);
    memcpy(event->text + event->name, name, sizes[1]);
    memcpy(event->text + event->fields, fields, sizes[2]);
    return true;
}

bool srv_events_append(srv_events *events, double time, int64_t position, const char *id, const char *name,
                       const char *fields)
{
    srv_event event = {.time = time, .position = position};
    if (events->count == events->capacity) {
        int64_t capacity = events->capacity ? events->capacity * 2 : 16;
        srv_event *items = realloc(events->items, sizeof *items * (size_t)capacity);
        if (!items)
            return false;
        events->items = items;
        events->capacity = capacity;
    }
    if (!make_event(&event, id ? id : "", name, fields ? fields : ""))
        return false;
    events->items[events->count++] = event;
    events->bytes += (int64_t)(event.fields + strlen(event.text + event.fields) + 1);
    return true;
}

bool srv_events_insert(srv_events *events, double time, int64_t position, const char *id, const char *name,
                       const char *fields)
{
    if (!srv_events_append(events, time, position, id, name, fields))
        return false;
    srv_event event = events->items[events->count - 1];
    int64_t low = 0, high = events->count - 1;
    if (high > 0 && compare(&events->items[high - 1], &event) <= 0)
        low = high;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare(&events->items[middle], &event) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(events->items + low + 1, events->items + low, sizeof event * (size_t)(events->count - 1 - low));
    events->items[low] = event;
    return true;
}

static int compare_items(const void *a, const void *b)
{
    return compare(a, b);
}

/* By id, then by position: the first of equal ids arrived first. */
static int compare_ids(const void *a, const void *b)
{
    const srv_event *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->position > y->position) - (x->position < y->position);
}

void srv_events_sort(srv_events *events, bool unique)
{
    if (unique) {
        int64_t kept = 0;
        qsort(events->items, (size_t)events->count, sizeof *events->items, compare_ids);
        for (int64_t i = 0; i < events->count; i++)
            if (kept && *events->items[i].text && strcmp(events->items[kept - 1].text, events->items[i].text) == 0)
                free(events->items[i].text);
            else
                events->items[kept++] = events->items[i];
        events->count = kept;
    }
    for (int64_t i = 1; i < events->count; i++)
        if (compare(&events->items[i - 1], &events->items[i]) > 0) {
            qsort(events->items, (size_t)events->count, sizeof *events->items, compare_items);
            break;
        }
}

/* The action is the field "action". */
bool srv_event_read(const json_t *json, const char *path, double now, srv_event_parts *parts, srv_problem *problem)
{
    char field[200];
    *parts = (srv_event_parts){0};
    snprintf(field, sizeof field, "%s%stime", path, *path ? "." : "");
    if (!srv_time_read(json_object_get(json, "time"), field, now, &parts->time, problem))
        return false;
    const char *id = json_string_value(json_object_get(json, "id"));
    parts->id = id ? id : "";
    parts->history = json_string_value(json_object_get(json, "history"));
    parts->event = json_string_value(json_object_get(json, "event"));
    parts->answer = json_string_value(json_object_get(json, "answer"));
    json_t *fields = json_object_get(json, "fields"), *action = json_object_get(json, "action");
    if (!fields && !action)
        return true;
    json_t *all = fields ? json_copy(fields) : json_object();
    if (action && all)
        json_object_set(all, "action", action);
    const char *name;
    json_t *value;
    json_object_foreach(all, name, value) if (!json_is_string(value) && !json_is_number(value) && !json_is_null(value))
    {
        snprintf(field, sizeof field, "%s%sfields.%.40s", path, *path ? "." : "", name);
        json_decref(all);
        return srv_refuse(problem, 400, field, "%s must be a string, a number or null", field);
    }
    parts->fields = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    return parts->fields || srv_refuse(problem, 503, NULL, "out of memory");
}

/* ---------------------------------------------------------------------------------------------- sessions ----- */

enum { FIELD_LIMIT = 64 };

/* The values of an event's fields, in the model's order. *json owns their text. */
static bool read_fields(const lapse_model *model, const char *text, lapse_value *values, int *count, json_t **json)
{
    lapse_field field;
    *json = *text ? json_loads(text, 0, NULL) : NULL;
    for (*count = 0; *count < FIELD_LIMIT && lapse_model_field(model, *count, &field); (*count)++) {
        const json_t *value = *json ? json_object_get(*json, field.name) : NULL;
        if (!value && *json && field.type == LAPSE_FIELD_ACTION)
            value = json_object_get(*json, "action");
        lapse_value *out = &values[*count];
        *out = (lapse_value){NULL, json_is_number(value) ? json_number_value(value) : NAN};
        if (field.type == LAPSE_FIELD_NUMBER)
            continue;
        out->text = json_string_value(value);
        if (lapse_model_category_find(model, *count, out->text ? out->text : "") < 0)
            return false;
    }
    return true;
}

typedef struct model_events {
    lapse_event *events;
    lapse_value *values;
    json_t **json;
    int64_t count;
} model_events;

static void clear_model_events(model_events *m)
{
    for (int64_t i = 0; m->json && i < m->count; i++)
        json_decref(m->json[i]);
    free(m->events);
    free(m->values);
    free(m->json);
}

lapse_status srv_events_sync(const srv_events *events, const lapse_model *model, lapse_session *session, int64_t *known,
                             double *last, lapse_error *error)
{
    lapse_field field;
    int columns = 0;
    while (columns < FIELD_LIMIT && lapse_model_field(model, columns, &field))
        columns++;
    size_t most = (size_t)events->count + 1;
    model_events m = {.events = malloc(most * sizeof *m.events)};
    if (columns) {
        m.values = malloc(most * (size_t)columns * sizeof *m.values);
        m.json = calloc(most, sizeof *m.json);
    }
    lapse_status status = LAPSE_ERROR_MEMORY;
    *known = 0;
    *last = NAN;
    if (m.events && (!columns || (m.values && m.json))) {
        for (int64_t i = 0; i < events->count; i++) {
            const srv_event *e = &events->items[i];
            int count = 0;
            if (lapse_model_event_type_find(model, e->text + e->name) < 0)
                continue;
            lapse_value *values = columns ? m.values + m.count * columns : NULL;
            if (columns && !read_fields(model, e->text + e->fields, values, &count, &m.json[m.count])) {
                json_decref(m.json[m.count]);
                m.json[m.count] = NULL;
                continue;
            }
            m.events[m.count++] = (lapse_event){e->time, e->text + e->name, values, count};
            *last = e->time;
        }
        *known = m.count;
        status = lapse_session_sync(session, m.events, m.count, NULL, error);
    } else {
        *error = (lapse_error){.status = status, .message = "out of memory"};
    }
    clear_model_events(&m);
    return status;
}
