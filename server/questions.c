/* questions.c: see questions.h. */
#include "questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PREDICTIONS_MAX = 2000000 };

/* clang-format off */
const srv_member srv_predict_members[] = {
    {.name = "history", .types = SRV_STRING | SRV_ARRAY, .element = SRV_STRING, .most = SRV_SUBJECTS_MAX,
     .help = "name of a stored history, or several"},
    {.name = "events", .types = SRV_ARRAY, .element = SRV_OBJECT | SRV_ARRAY, .members = srv_event_members,
     .most = SRV_EVENTS_MAX, .help = "instead: the history of a new user, or an array of such histories"},
    {.name = "at", .types = SRV_STRING | SRV_NUMBER | SRV_ARRAY, .element = SRV_STRING | SRV_NUMBER,
     .most = SRV_TIMES_MAX,
     .help = "query times: unix seconds, ISO 8601, now (default), +1h after the last event, sweeps 1h..30d/20"},
    {.name = "target", .types = SRV_STRING, .help = "event or action; default: the first that the model predicts"},
    {.name = "top", .types = SRV_WHOLE, .low = 0, .high = SRV_TOP_MAX, .help = "predictions of each answer (10); 0: all"},
    {.name = "unseen", .types = SRV_BOOL, .help = "without the event types of the history (false)"},
    {0},
};

static const srv_member prediction_members[] = {
    {.name = "event", .types = SRV_STRING, .required = true, .help = "event type, item or action"},
    {.name = "score", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "the model's score"},
    {.name = "probability", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "that the next event is this one"},
    {.name = "source", .types = SRV_STRING, .required = true, .help = "model"},
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
    {0},
};

const srv_member srv_predict_response[] = {
    {.name = "answers", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = answer_members, .required = true,
     .help = "one for each history and time"},
    {.name = "target", .types = SRV_STRING, .required = true},
    {0},
};
/* clang-format on */

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
    json_array_foreach (array, i, json) {
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
    const json_t *history = json_object_get(a->request->json, "history"),
                 *events = json_object_get(a->request->json, "events");
    srv_problem *problem = &a->request->problem;
    if (history && events)
        return srv_refuse(problem, 400, "events", "a request has history or events, not both");
    if (events)
        return inline_subjects(a, events);
    if (!history)
        return srv_refuse(problem, 400, "history", "history is missing: the name of a history, or events for a new one");
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

static bool add_view(srv_asked *a, srv_model *model)
{
    srv_request *r = a->request;
    const char *target = json_string_value(json_object_get(r->json, "target"));
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
    v->filter.unseen = v->filtered = json_is_true(json_object_get(r->json, "unseen"));
    if (v->filtered && strcmp(v->target, "event") != 0)
        return srv_refuse(&r->problem, 400, "unseen", "filters are about the target event");
    return true;
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
    q->count = q->problem ? -1 : 0;
}

bool srv_ask_questions(srv_asked *a)
{
    srv_request *r = a->request;
    srv_times times = {0};
    const json_t *top = json_object_get(r->json, "top");
    int64_t most = 0, used = 0;
    a->top = top ? json_integer_value(top) : SRV_TOP_DEFAULT;
    bool good = srv_times_read(json_object_get(r->json, "at"), "at", a->now, &times, &r->problem);
    for (int i = 0; good && i < a->subject_count; i++) {
        good = add_view(a, a->subjects[i].model);
        int64_t classes = good ? lapse_model_target_size(a->subjects[i].model->model,
                                                         srv_ask_view(a, a->subjects[i].model)->target)
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

static void write_answer(srv_text *out, srv_asked *a, const srv_question *q)
{
    const srv_subject *s = q->subject;
    const char *target = srv_ask_view(a, s->model)->target;
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
    srv_text_name(out, "predictions");
    srv_text_open(out, '[');
    for (int64_t k = 0; k < q->count; k++) {
        srv_text_open(out, '{');
        srv_text_member(out, "event", lapse_model_target_name(s->model->model, target, q->best[k].item));
        srv_text_member_number(out, "score", q->best[k].score);
        srv_text_member_number(out, "probability", q->best[k].probability);
        srv_text_member(out, "source", "model");
        srv_text_close(out, '}');
    }
    srv_text_close(out, ']');
    if (q->problem)
        srv_text_member(out, "problem", q->problem);
    srv_text_close(out, '}');
}

void srv_ask_write(srv_asked *a)
{
    srv_text *out = &a->request->out;
    srv_text_open(out, '{');
    srv_text_name(out, "answers");
    srv_text_open(out, '[');
    for (int i = 0; i < a->question_count; i++)
        write_answer(out, a, &a->questions[i]);
    srv_text_close(out, ']');
    srv_text_member(out, "target", a->views[0].target);
    srv_text_close(out, '}');
    a->request->status = 200;
}

void srv_ask_clear(srv_asked *a)
{
    for (int i = 0; i < a->subject_count; i++)
        srv_subject_close(&a->subjects[i]);
    free(a->subjects);
    free(a->questions);
    free(a->best);
}
