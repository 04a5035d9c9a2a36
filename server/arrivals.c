/* arrivals.c: see arrivals.h. */
#include "arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "questions.h"

enum { FIELDS_BYTES = 8192, PROBLEMS_SHOWN = 512 };

static const char *const statuses[] = {"stored", "duplicate", "error", NULL};

static const srv_member status_members[] = {
    {.name = "status", .types = SRV_STRING, .required = true, .choices = statuses},
    {.name = "detail", .types = SRV_STRING, .help = "what is wrong with the event"},
    {.name = "field", .types = SRV_STRING, .help = "its member that is wrong"},
    {0},
};

const srv_member srv_events_response[] = {
    {.name = "events",
     .types = SRV_ARRAY,
     .element = SRV_OBJECT,
     .members = status_members,
     .required = true,
     .help = "one for each event, in the order of the request"},
    {.name = "stored", .types = SRV_WHOLE, .required = true},
    {.name = "duplicates", .types = SRV_WHOLE, .required = true},
    {.name = "errors", .types = SRV_WHOLE, .required = true},
    {.name = "position", .types = SRV_WHOLE, .required = true, .help = "of the log, after these events"},
    {0},
};

/* ---------------------------------------------------------------------------------------------- parsing ------ */

void srv_arrivals_free(void *arrivals)
{
    srv_arrivals *a = arrivals;
    if (!a)
        return;
    for (int64_t i = 0; i < a->count; i++) {
        free(a->items[i].parts.fields);
        free(a->items[i].problem);
        json_decref(a->json[i]);
    }
    free(a->items);
    free(a->json);
    free(a);
}

static srv_arrival *add(srv_arrivals *a, json_t *json)
{
    if ((a->count & (a->count - 1)) == 0) { /* full at every power of two */
        size_t capacity = a->count ? (size_t)a->count * 2 : 1;
        srv_arrival *items = realloc(a->items, capacity * sizeof *items);
        if (items)
            a->items = items;
        json_t **all = realloc(a->json, capacity * sizeof *all);
        if (all)
            a->json = all;
        if (!items || !all)
            return NULL;
    }
    a->json[a->count] = json;
    a->items[a->count] = (srv_arrival){0};
    return &a->items[a->count++];
}

static bool check(const json_t *json, const char *path, double now, srv_event_parts *parts, srv_problem *problem)
{
    if (!json_is_object(json))
        return srv_refuse(problem, 400, path, "an event must be a JSON object");
    if (!srv_schema_check(json, srv_event_members, problem) || !srv_event_read(json, "", now, parts, problem))
        return false;
    if (!parts->history)
        return srv_refuse(problem, 400, "history", "history is missing");
    if (parts->fields && strlen(parts->fields) > FIELDS_BYTES)
        return srv_refuse(problem, 400, "fields", "the fields have more than %d bytes", FIELDS_BYTES);
    for (const char *at = parts->id; *at; at++)
        if ((unsigned char)*at < 0x20)
            return srv_refuse(problem, 400, "id", "id has a control character");
    return srv_name_check(parts->history, "history", problem) && srv_name_check(parts->event, "event", problem);
}

/* Reads an event; takes over the reference. */
static bool read_one(srv_request *r, srv_arrivals *a, json_t *json, const json_error_t *error)
{
    srv_problem problem;
    srv_arrival *item = add(a, json);
    if (!item) {
        json_decref(json);
        return srv_refuse(&r->problem, 503, NULL, "out of memory");
    }
    bool good = json ? check(json, "", r->time, &item->parts, &problem)
                     : srv_refuse(&problem, 400, NULL, "the line is not JSON: %s", error->text);
    if (!good && (item->problem = malloc(sizeof problem)))
        *item->problem = problem;
    if (!good && !item->problem)
        return srv_refuse(&r->problem, 503, NULL, "out of memory");
    return a->count <= SRV_EVENTS_MAX ||
           srv_refuse(&r->problem, 400, NULL, "a request has at most %d events", SRV_EVENTS_MAX);
}

static bool read_lines(srv_request *r, srv_arrivals *a)
{
    const char *at = r->body.data, *end = at + r->body.size;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((line ? line : end) - at), blank = 0;
        json_error_t error;
        while (blank < size && strchr(" \t\r", at[blank]))
            blank++;
        if (blank < size && !read_one(r, a, json_loadb(at, size, JSON_REJECT_DUPLICATES, &error), &error))
            return false;
        at += size + 1;
    }
    return true;
}

static bool read_body(srv_request *r, srv_arrivals *a)
{
    json_error_t error;
    json_t *body = r->body.size ? json_loadb(r->body.data, r->body.size, JSON_REJECT_DUPLICATES, &error) : NULL;
    bool good = true;
    if (json_is_array(body)) {
        for (size_t i = 0; good && i < json_array_size(body); i++)
            good = read_one(r, a, json_incref(json_array_get(body, i)), NULL);
        json_decref(body);
        if (good && a->count == 0)
            good = srv_refuse(&r->problem, 400, NULL, "the array of events is empty");
    } else if (body) {
        good = read_one(r, a, body, NULL);
    } else if (r->body.size && memchr(r->body.data, '\n', r->body.size) && r->body.data[0] == '{') {
        good = read_lines(r, a);
    } else {
        srv_refuse(&r->problem, 400, NULL, "the body is not JSON: %s", r->body.size ? error.text : "it is empty");
        r->problem.position = r->body.size ? error.position : 0;
        return false;
    }
    if (good && a->count == 1 && a->items[0].problem) {
        r->problem = *a->items[0].problem;
        return false;
    }
    return good;
}

void srv_events_parse(srv_request *r)
{
    srv_arrivals *a = calloc(1, sizeof *a);
    r->extra = a;
    r->extra_free = srv_arrivals_free;
    if (a ? !read_body(r, a) : !srv_refuse(&r->problem, 503, NULL, "out of memory"))
        srv_fail_problem(r);
}

/* -------------------------------------------------------------------------------------------- committing ----- */

void srv_events_respond(srv_request *r)
{
    const srv_arrivals *a = r->extra;
    int64_t counts[3] = {0};
    srv_text_open(&r->out, '{');
    srv_text_name(&r->out, "events");
    srv_text_open(&r->out, '[');
    for (int64_t i = 0; i < a->count; i++) {
        const srv_arrival *item = &a->items[i];
        int status = item->problem ? 2 : item->duplicate ? 1 : 0;
        counts[status]++;
        srv_text_open(&r->out, '{');
        srv_text_member(&r->out, "status", statuses[status]);
        if (item->problem && counts[2] <= PROBLEMS_SHOWN) {
            srv_text_member(&r->out, "detail", item->problem->detail);
            if (item->problem->field[0])
                srv_text_member(&r->out, "field", item->problem->field);
        }
        srv_text_close(&r->out, '}');
    }
    srv_text_close(&r->out, ']');
    srv_text_member_whole(&r->out, "stored", counts[0]);
    srv_text_member_whole(&r->out, "duplicates", counts[1]);
    srv_text_member_whole(&r->out, "errors", counts[2]);
    srv_text_member_whole(&r->out, "position", a->position);
    srv_text_close(&r->out, '}');
    r->status = 200;
}

void srv_events_commit(srv_server *server, srv_request *const *requests, int count)
{
    int64_t total = 0, position = 0;
    for (int i = 0; i < count; i++)
        total += ((const srv_arrivals *)requests[i]->extra)->count;
    srv_new_event *events = calloc((size_t)total + 1, sizeof *events);
    total = 0;
    for (int i = 0; events && i < count; i++) {
        const srv_arrivals *a = requests[i]->extra;
        for (int64_t j = 0; j < a->count; j++) {
            const srv_event_parts *p = &a->items[j].parts;
            if (!a->items[j].problem)
                events[total++] = (srv_new_event){.history = p->history,
                                                  .id = p->id,
                                                  .event = p->event,
                                                  .fields = p->fields,
                                                  .answer = p->answer,
                                                  .time = p->time};
        }
    }
    bool good = events && srv_store_write(&server->store, events, total, srv_now(), &position);
    if (good && !server->store.engine->shared) /* otherwise the next query polls */
        srv_cache_push(&server->cache, events, total, position);
    total = 0;
    for (int i = 0; i < count; i++) {
        srv_arrivals *a = requests[i]->extra;
        if (!good)
            srv_fail(requests[i], 503, NULL, "%s", events ? server->store.message : "out of memory");
        a->position = position;
        for (int64_t j = 0; events && j < a->count; j++)
            if (!a->items[j].problem) {
                a->items[j].duplicate = events[total].duplicate;
                free(events[total++].root);
            }
    }
    free(events);
}
