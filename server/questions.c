/* questions.c: see questions.h. */
#include "questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "when_answers.h"

enum { PREDICTIONS_MAX = 2000000 };

/* clang-format off */
#define SUBJECT_MEMBERS \
    {.name = "history", .types = SRV_STRING | SRV_ARRAY, .element = SRV_STRING, .most = SRV_SUBJECTS_MAX, \
     .help = "name of a stored history, or several"}, \
    {.name = "events", .types = SRV_ARRAY, .element = SRV_OBJECT | SRV_ARRAY, .members = srv_event_members, \
     .most = SRV_EVENTS_MAX, .help = "instead: the history of a new user, or an array of such histories"}, \
    {.name = "at", .types = SRV_STRING | SRV_NUMBER | SRV_ARRAY, .element = SRV_STRING | SRV_NUMBER, \
     .most = SRV_TIMES_MAX, \
     .help = "query times: unix seconds, ISO 8601, now (default), +1h after the last event, sweeps 1h..30d/20"}, \
    {.name = "as_of", .types = SRV_STRING | SRV_NUMBER, \
     .help = "answer as it was at this time: the events that had arrived, and the model of that time"}, \
    {.name = "explain", .types = SRV_BOOL, .help = "the events that mattered for the first prediction (false)"}, \
    {.name = "target", .types = SRV_STRING, .help = "event or action; default: the first that the model predicts"}

const srv_member srv_predict_members[] = {
    SUBJECT_MEMBERS,
    {.name = "top", .types = SRV_WHOLE, .low = 0, .high = SRV_TOP_MAX, .help = "predictions of each answer (10); 0: all"},
    {.name = "unseen", .types = SRV_BOOL, .help = "without the event types of the history (false)"},
    {.name = "filter", .types = SRV_STRING, .most = 4096, .help = "expression over catalogue fields: items for which it is true"},
    {.name = "boost", .types = SRV_STRING, .most = 4096, .help = "expression over catalogue fields, added to the score"},
    {.name = "only", .types = SRV_ARRAY, .element = SRV_STRING, .most = SRV_TOP_MAX, .help = "no other event types than these"},
    {.name = "exclude", .types = SRV_ARRAY, .element = SRV_STRING, .most = SRV_TOP_MAX, .help = "none of these event types"},
    {.name = "strict", .types = SRV_BOOL, .help = "fewer predictions, rather than filling up with popular events (false)"},
    {0},
};

const srv_member srv_rank_members[] = {
    SUBJECT_MEMBERS,
    {.name = "candidates", .types = SRV_ARRAY, .element = SRV_STRING, .most = SRV_TOP_MAX, .required = true,
     .help = "event types or items to put in order"},
    {.name = "boost", .types = SRV_STRING, .most = 4096, .help = "expression over catalogue fields, added to the score"},
    {0},
};

const srv_member srv_when_members[] = {
    SUBJECT_MEMBERS,
    {.name = "within", .types = SRV_ARRAY, .element = SRV_STRING | SRV_NUMBER, .most = 64,
     .help = "durations after at, such as 7d: the chance of an event in each"},
    {.name = "top", .types = SRV_WHOLE, .low = 0, .high = 100, .help = "event types of each duration, the most probable first (0)"},
    {0},
};

const srv_member srv_replay_members[] = {
    {.name = "answer", .types = SRV_STRING, .required = true, .most = 1 << 17, .help = "the token of an answer"},
    {0},
};

static const srv_member reason_members[] = {
    {.name = "time", .types = SRV_NUMBER, .required = true},
    {.name = "event", .types = SRV_STRING, .required = true},
    {.name = "attention", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "weight of the last block, mean over heads"},
    {.name = "influence", .types = SRV_NUMBER | SRV_NULL, .required = true,
     .help = "score of the first prediction, less its score without the event"},
    {0},
};

static const char *const sources[] = {"model", "popular", "unknown", NULL};

static const srv_member prediction_members[] = {
    {.name = "event", .types = SRV_STRING, .required = true, .help = "event type, item or action"},
    {.name = "score", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "the model's score"},
    {.name = "probability", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "that the next event is this one"},
    {.name = "source", .types = SRV_STRING, .required = true, .choices = sources,
     .help = "model; popular: fills up; unknown: a candidate that the model does not know"},
    {0},
};

static const srv_member answer_members[] = {
    {.name = "history", .types = SRV_STRING | SRV_NULL, .required = true, .help = "its name; null: events of the request"},
    {.name = "events", .types = SRV_WHOLE, .required = true, .help = "of the history that the model knows"},
    {.name = "last", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "time of the last of them"},
    {.name = "at", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "query time, unix seconds"},
    {.name = "model", .types = SRV_STRING, .required = true, .help = "fingerprint of the model"},
    {.name = "predictions", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = prediction_members, .required = true},
    {.name = "problem", .types = SRV_STRING, .help = "why there are no predictions"},
    {.name = "reasons", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = reason_members,
     .help = "of explain: events by attention, the highest first"},
    {0},
};

const srv_member srv_predict_response[] = {
    {.name = "answers", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = answer_members, .required = true,
     .help = "one for each history and time"},
    {.name = "target", .types = SRV_STRING, .required = true},
    {.name = "answer", .types = SRV_STRING | SRV_NULL, .required = true,
     .help = "token for POST /v1/replay and for events; null: the request is too long for one"},
    {0},
};

const srv_member srv_replay_response[] = {
    {.name = "answers", .types = SRV_ARRAY, .element = SRV_OBJECT, .required = true, .help = "as in the first response"},
    {.name = "target", .types = SRV_STRING, .required = true},
    {.name = "answer", .types = SRV_STRING | SRV_NULL, .required = true, .help = "the same token"},
    {0},
};
/* clang-format on */

bool srv_ask_begin(srv_asked *a)
{
    srv_request *r = a->request;
    a->model_time = NAN;
    if (r->route->body != srv_replay_members) {
        a->json = json_incref(r->json);
        a->body = r->body.data;
        a->body_size = r->body.size;
        a->rank = r->route->body == srv_rank_members;
        a->when = r->route->body == srv_when_members;
        return true;
    }
    srv_token token;
    const char *text = json_string_value(json_object_get(r->json, "answer"));
    if (!srv_token_read(text, &token, &a->token))
        return srv_refuse(&r->problem, 400, "answer", "this is not the token of an answer");
    a->json = json_loadb(token.body, token.body_size, 0, NULL);
    a->rank = token.route == 1;
    a->when = token.route == 2;
    if (!srv_schema_check(a->json,
                          a->rank   ? srv_rank_members
                          : a->when ? srv_when_members
                                    : srv_predict_members,
                          &r->problem))
        return false;
    a->body = token.body;
    a->body_size = token.body_size;
    a->pinned = true;
    a->position = token.position;
    a->now = token.now;
    a->found = token.found;
    a->model_count = token.model_count;
    memcpy(a->models, token.models, sizeof a->models);
    a->model_time = token.model_count > 1 ? token.now : NAN;
    return true;
}

/* ------------------------------------------------------------------------------------------- subjects -------- */

bool srv_name_check(const char *name, const char *field, srv_problem *problem)
{
    if (!*name)
        return srv_refuse(problem, 400, field, "%s is empty", field);
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            return srv_refuse(problem, 400, field, "%s has a control character", field);
    return true;
}

static bool read_events(const json_t *array, const char *path, double now, srv_events *events, srv_problem *problem)
{
    size_t i;
    json_t *json;
    if (json_array_size(array) > SRV_EVENTS_MAX)
        return srv_refuse(problem, 400, path, "%s has more than %d events", path, SRV_EVENTS_MAX);
    json_array_foreach(array, i, json)
    {
        char field[200];
        srv_event_parts parts;
        snprintf(field, sizeof field, "%.150s[%zu]", path, i);
        if (!json_is_object(json))
            return srv_refuse(problem, 400, field, "%s must be an object: an event", field);
        if (!srv_event_read(json, field, now, &parts, problem))
            return false;
        bool whole = srv_events_append(events, parts.time, (int64_t)i + 1, parts.id, parts.event, parts.fields);
        free(parts.fields);
        if (!whole)
            return srv_refuse(problem, 503, NULL, "out of memory");
    }
    srv_events_sort(events, true);
    return true;
}

static bool inline_subjects(srv_asked *a, const json_t *events)
{
    srv_problem *problem = &a->request->problem;
    bool many = json_is_array(json_array_get(events, 0));
    size_t count = many ? json_array_size(events) : 1;
    if (json_array_size(events) == 0)
        return srv_refuse(problem, 400, "events", "events is empty");
    if (count > SRV_SUBJECTS_MAX)
        return srv_refuse(problem, 400, "events", "more than %d histories in one request", SRV_SUBJECTS_MAX);
    a->subjects = calloc(count, sizeof *a->subjects);
    if (!a->subjects)
        return srv_refuse(problem, 503, NULL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        char path[32] = "events";
        const json_t *one = many ? json_array_get(events, i) : events;
        if (many)
            snprintf(path, sizeof path, "events[%zu]", i);
        if (!json_is_array(one))
            return srv_refuse(problem, 400, path, "%s must be an array of events, as the first is", path);
        srv_subject *s = &a->subjects[a->subject_count++];
        s->found = true;
        if (!read_events(one, path, a->now, &s->own, problem))
            return false;
    }
    return true;
}

bool srv_ask_subjects(srv_asked *a)
{
    const json_t *history = json_object_get(a->json, "history"), *events = json_object_get(a->json, "events");
    srv_problem *problem = &a->request->problem;
    if (history && events)
        return srv_refuse(problem, 400, "events", "a request has history or events, not both");
    if (events)
        return inline_subjects(a, events);
    if (!history)
        return srv_refuse(problem, 400, "history",
                          "history is missing: the name of a history, or events for a new one");
    bool many = json_is_array(history);
    size_t count = many ? json_array_size(history) : 1;
    if (count == 0)
        return srv_refuse(problem, 400, "history", "history is empty");
    a->subjects = calloc(count, sizeof *a->subjects);
    if (!a->subjects)
        return srv_refuse(problem, 503, NULL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        char path[32] = "history";
        const char *name = json_string_value(many ? json_array_get(history, i) : history);
        if (many)
            snprintf(path, sizeof path, "history[%zu]", i);
        if (!srv_name_check(name, path, problem))
            return false;
        a->subjects[a->subject_count++].name = name;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- questions ------- */

srv_view *srv_ask_view(srv_asked *a, srv_model *model)
{
    for (int i = 0; i < a->view_count; i++)
        if (a->views[i].model == model)
            return &a->views[i];
    return NULL;
}

/* The ids of names; NULL: there is no such member. Names that the model does not know are left out. */
static bool read_ids(const json_t *names, const lapse_model *model, int64_t **ids, int64_t *count)
{
    size_t i;
    json_t *name;
    *count = 0;
    if (!names)
        return true;
    *ids = malloc((json_array_size(names) + 1) * sizeof **ids);
    json_array_foreach(names, i, name)
    {
        int64_t id = *ids ? lapse_model_event_type_find(model, json_string_value(name)) : -1;
        if (id >= 0)
            (*ids)[(*count)++] = id;
    }
    return *ids != NULL;
}

static bool read_filter(srv_asked *a, srv_view *v)
{
    const json_t *json = a->json, *only = json_object_get(json, a->rank ? "candidates" : "only"),
                 *exclude = json_object_get(json, "exclude");
    srv_problem *problem = &a->request->problem;
    const lapse_model *model = v->model->model;
    lapse_item_filter *f = &v->filter;
    if (!read_ids(only, model, &v->only, &f->only_count) || !read_ids(exclude, model, &v->exclude, &f->exclude_count))
        return srv_refuse(problem, 503, NULL, "out of memory");
    f->unseen = json_is_true(json_object_get(json, "unseen"));
    f->only = v->only;
    f->exclude = v->exclude;
    const char *filter = json_string_value(json_object_get(json, "filter")),
               *boost = json_string_value(json_object_get(json, "boost"));
    if ((filter || boost || !a->rank) &&
        !srv_catalogue_select(a->catalogue, v->model, filter, boost, &v->selection, problem))
        return false;
    if (v->selection) {
        f->only_set = a->rank ? NULL : v->selection->only;
        f->offset = v->selection->offset;
    }
    v->nothing = only && f->only_count == 0;
    v->filtered = f->unseen || only || exclude || f->only_set || f->offset;
    if (v->filtered && strcmp(v->target, "event") != 0 && (only || exclude || filter || boost || f->unseen))
        return srv_refuse(problem, 400, "target", "filters are about the target event");
    v->filtered = v->filtered && strcmp(v->target, "event") == 0;
    return true;
}

static bool add_view(srv_asked *a, srv_model *model)
{
    srv_request *r = a->request;
    const char *target = json_string_value(json_object_get(a->json, "target"));
    if (srv_ask_view(a, model))
        return true;
    if (a->view_count == (int)(sizeof a->views / sizeof *a->views))
        return srv_refuse(&r->problem, 400, NULL, "a request about histories of more than %d models", a->view_count);
    srv_view *v = &a->views[a->view_count++];
    *v = (srv_view){.model = model, .target = lapse_model_target(model->model, 0)};
    for (int i = 1; target && v->target && strcmp(target, v->target) != 0; i++)
        v->target = lapse_model_target(model->model, i);
    if (!v->target)
        return srv_refuse(&r->problem, 400, "target", "the model does not predict the target '%.40s'", target);
    return read_filter(a, v);
}

static void ask(srv_asked *a, srv_subject *s, const srv_when *when, int64_t *used)
{
    srv_question *q = &a->questions[a->question_count++];
    const srv_view *view = srv_ask_view(a, s->model);
    int64_t classes = lapse_model_target_size(s->model->model, view->target);
    q->subject = s;
    q->at = when->relative ? s->last + when->seconds : when->seconds;
    q->top = a->top == 0 || a->top > classes ? classes : a->top;
    q->best = a->best + *used;
    *used += q->top;
    if (!s->found)
        q->problem = "there is no history of this name";
    else if (s->known == 0)
        q->problem = "the model knows no event of this history";
    else if (!(q->at >= s->last))
        q->problem = "the query time is before the last event";
    q->count = q->problem || view->nothing || a->when ? -1 : 0;
}

bool srv_ask_questions(srv_asked *a)
{
    srv_request *r = a->request;
    srv_times times = {0};
    const json_t *top = json_object_get(a->json, "top");
    int64_t most = 0, used = 0;
    a->top = top ? json_integer_value(top) : a->rank ? 0 : SRV_TOP_DEFAULT;
    a->explain = json_is_true(json_object_get(a->json, "explain"));
    a->strict = json_is_true(json_object_get(a->json, "strict"));
    bool good = (!a->when || srv_when_read(a)) &&
                srv_times_read(json_object_get(a->json, "at"), "at", a->now, &times, &r->problem);
    for (int i = 0; good && i < a->subject_count; i++) {
        good = add_view(a, a->subjects[i].model);
        int64_t classes =
            good ? lapse_model_target_size(a->subjects[i].model->model, srv_ask_view(a, a->subjects[i].model)->target)
                 : 0;
        most += times.count * (a->top == 0 || a->top > classes ? classes : a->top);
    }
    if (good && most > PREDICTIONS_MAX)
        good = srv_refuse(&r->problem, 400, "top", "%lld predictions are too many for one request: at most %d",
                          (long long)most, PREDICTIONS_MAX);
    a->questions = good ? calloc((size_t)times.count * (size_t)a->subject_count + 1, sizeof *a->questions) : NULL;
    a->best = good ? malloc(((size_t)most + 1) * sizeof *a->best) : NULL;
    if (good && (!a->questions || !a->best))
        good = srv_refuse(&r->problem, 503, NULL, "out of memory");
    for (int i = 0; good && i < a->subject_count; i++)
        for (int j = 0; j < times.count; j++)
            ask(a, &a->subjects[i], &times.items[j], &used);
    srv_times_clear(&times);
    return good;
}

/* ------------------------------------------------------------------------------------------- responses ------- */

static void write_prediction(srv_text *out, const char *event, double score, double probability, const char *source)
{
    srv_text_open(out, '{');
    srv_text_member(out, "event", event);
    srv_text_member_number(out, "score", score);
    srv_text_member_number(out, "probability", probability);
    srv_text_member(out, "source", source);
    srv_text_close(out, '}');
}

static bool in_array(const json_t *array, const char *name)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (strcmp(json_string_value(json_array_get(array, i)), name) == 0)
            return true;
    return false;
}

/* Whether a popular event may fill up an answer. */
static bool may_fill(const srv_asked *a, const srv_view *v, const srv_question *q, const char *name)
{
    const json_t *json = a->json, *only = json_object_get(json, "only");
    int64_t id = lapse_model_event_type_find(v->model->model, name);
    if ((only && !in_array(only, name)) || in_array(json_object_get(json, "exclude"), name))
        return false;
    if (v->selection && (id < 0 || !(v->selection->only[id / 64] >> (id % 64) & 1)))
        return false;
    for (int64_t i = 0; v->filter.unseen && i < q->subject->events->count; i++)
        if (strcmp(q->subject->events->items[i].text + q->subject->events->items[i].name, name) == 0)
            return false;
    for (int64_t k = 0; k < q->count; k++)
        if (q->best[k].item == id)
            return false;
    return true;
}

/* Popular events after the predictions; of candidates, those that the model does not know. */
static void fill_up(srv_text *out, const srv_asked *a, const srv_view *v, const srv_question *q)
{
    const json_t *candidates = json_object_get(a->json, "candidates");
    for (size_t i = 0; a->rank && i < json_array_size(candidates); i++) {
        const char *name = json_string_value(json_array_get(candidates, i));
        if (q->count < 0 || lapse_model_event_type_find(v->model->model, name) < 0)
            write_prediction(out, name, NAN, NAN, "unknown");
    }
    if (a->rank || a->strict || strcmp(v->target, "event") != 0)
        return;
    int64_t filled = q->count > 0 ? q->count : 0;
    for (int i = 0; i < a->catalogue->popular_count && filled < q->top; i++)
        if (may_fill(a, v, q, a->catalogue->popular[i])) {
            write_prediction(out, a->catalogue->popular[i], NAN, NAN, "popular");
            filled++;
        }
}

static void write_answer(srv_text *out, srv_asked *a, const srv_question *q)
{
    const srv_subject *s = q->subject;
    const srv_view *view = srv_ask_view(a, s->model);
    srv_text_open(out, '{');
    srv_text_name(out, "history");
    if (s->name)
        srv_text_quote(out, s->name);
    else
        srv_text_add(out, "null");
    srv_text_member_whole(out, "events", s->known);
    srv_text_member_number(out, "last", s->last);
    srv_text_member_number(out, "at", q->at);
    srv_text_member(out, "model", s->model->fingerprint_text);
    if (a->when) {
        if (q->problem)
            srv_text_member(out, "problem", q->problem);
        else if (!srv_when_write(a, q, out))
            return;
        srv_text_close(out, '}');
        return;
    }
    srv_text_name(out, "predictions");
    srv_text_open(out, '[');
    for (int64_t k = 0; k < q->count; k++)
        write_prediction(out, lapse_model_target_name(s->model->model, view->target, q->best[k].item), q->best[k].score,
                         q->best[k].probability, "model");
    fill_up(out, a, view, q);
    srv_text_close(out, ']');
    if (q->problem)
        srv_text_member(out, "problem", q->problem);
    if (a->explain) {
        srv_text_name(out, "reasons");
        srv_text_open(out, '[');
        for (int i = 0; i < q->reason_count; i++) {
            srv_text_open(out, '{');
            srv_text_member_number(out, "time", q->reasons[i].time);
            srv_text_member(out, "event", q->reasons[i].event);
            srv_text_member_number(out, "attention", q->reasons[i].attention);
            srv_text_member_number(out, "influence", q->reasons[i].influence);
            srv_text_close(out, '}');
        }
        srv_text_close(out, ']');
    }
    srv_text_close(out, '}');
}

static void write_token(srv_asked *a)
{
    srv_text *out = &a->request->out;
    srv_token token = {.route = a->when ? 2 : a->rank,
                       .position = a->position,
                       .now = a->now,
                       .found = a->found,
                       .model_count = a->view_count,
                       .body = a->body,
                       .body_size = a->body_size};
    for (int i = 0; i < a->view_count; i++)
        token.models[i] = a->views[i].model->fingerprint;
    srv_text_name(out, "answer");
    if (a->body_size > SRV_TOKEN_BODY) {
        srv_text_add(out, "null");
        return;
    }
    srv_text_bytes(out, "\"", 1);
    srv_token_write(out, &token);
    srv_text_bytes(out, "\"", 1);
}

void srv_ask_write(srv_asked *a)
{
    srv_text *out = &a->request->out;
    srv_text_open(out, '{');
    srv_text_name(out, "answers");
    srv_text_open(out, '[');
    for (int i = 0; i < a->question_count; i++) {
        write_answer(out, a, &a->questions[i]);
        if (a->request->status != 0)
            return;
    }
    srv_text_close(out, ']');
    srv_text_member(out, "target", a->when ? "time" : a->views[0].target);
    write_token(a);
    srv_text_close(out, '}');
    a->request->status = 200;
}

void srv_ask_clear(srv_asked *a)
{
    for (int i = 0; i < a->subject_count; i++)
        srv_subject_close(&a->subjects[i]);
    for (int i = 0; i < a->view_count; i++) {
        srv_selection_drop(a->views[i].selection);
        free(a->views[i].only);
        free(a->views[i].exclude);
    }
    srv_catalogue_drop(a->catalogue);
    for (int i = 0; i < a->question_count; i++)
        free(a->questions[i].reasons);
    json_decref(a->json);
    srv_text_clear(&a->token);
    free(a->horizons);
    free(a->subjects);
    free(a->questions);
    free(a->best);
}
