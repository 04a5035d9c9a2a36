/* answering.c: see answering.h.
 *
 * A thread takes the requests that wait, prepares each (its subjects: histories with their sessions; its questions: a subject
 * at a time), answers all questions together, and writes the responses. */
#include "answering.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "event_list.h"
#include "http.h"
#include "query_times.h"

enum { RUN_REQUESTS = 64, TOP_DEFAULT = 10, TOP_MAX = 10000, SUBJECTS_MAX = 1000, EVENTS_MAX = 10000, QUESTIONS_MAX = 10000 };

/* A history, and the session that has its events. */
typedef struct subject {
    const char *name; /* of the request; NULL: inline events */
    srv_events events;
    lapse_session *session;
    int64_t known; /* events that the model knows */
    double last;
} subject;

typedef struct question {
    subject *subject;
    double at;
    lapse_recommendation *best; /* [top]; owned by the prepared request */
    int64_t count;              /* -1: the subject has no event that the model knows, or `at` is before the last */
} question;

typedef struct prepared {
    srv_request *request;
    const char *target;
    int64_t top, classes;
    lapse_item_filter filter;
    subject *subjects;
    int subject_count;
    question *questions;
    int question_count;
    lapse_recommendation *best;
} prepared;

/* What a thread keeps from run to run. */
typedef struct worker {
    srv_server *server;
    lapse_session **scratch; /* sessions of inline histories */
    int scratch_count, scratch_used;
} worker;

const srv_member srv_predict_members[] = {
    {.name = "events", .types = SRV_ARRAY, .element = SRV_OBJECT | SRV_ARRAY, .members = srv_event_members,
     .most = EVENTS_MAX, .help = "the history of a new user: events, or an array of such arrays"},
    {.name = "at", .types = SRV_STRING | SRV_NUMBER | SRV_ARRAY, .element = SRV_STRING | SRV_NUMBER,
     .most = SRV_TIMES_MAX,
     .help = "query times: unix seconds, ISO 8601, now (default), +1h after the last event, sweeps 1h..30d/20"},
    {.name = "target", .types = SRV_STRING, .help = "event or action; default: the first that the model predicts"},
    {.name = "top", .types = SRV_WHOLE, .low = 0, .high = TOP_MAX, .help = "predictions of each answer (10); 0: all"},
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
    {.name = "at", .types = SRV_NUMBER, .required = true, .help = "query time, unix seconds"},
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

/* ------------------------------------------------------------------------------------------- subjects -------- */

static bool read_events(const json_t *array, const char *path, double now, srv_events *events, srv_problem *problem)
{
    size_t i;
    json_t *json;
    if (json_array_size(array) > EVENTS_MAX)
        return srv_refuse(problem, 400, path, "%s has more than %d events", path, EVENTS_MAX);
    json_array_foreach (array, i, json) {
        char field[200];
        srv_event_parts parts;
        snprintf(field, sizeof field, "%.150s[%zu]", path, i);
        if (!json_is_object(json))
            return srv_refuse(problem, 400, field, "%s must be an object: an event", field);
        if (!srv_event_read(json, field, now, &parts, problem))
            return false;
        bool whole = srv_events_has(events, parts.id) ||
                     srv_events_insert(events, parts.time, 0, parts.id, parts.event, parts.fields);
        free(parts.fields);
        if (!whole)
            return srv_refuse(problem, 503, NULL, "out of memory");
    }
    return true;
}

/* The next session for a history that is not kept. */
static lapse_session *take_scratch(worker *w, lapse_error *error)
{
    if (w->scratch_used == w->scratch_count) {
        lapse_session **scratch = realloc(w->scratch, sizeof *scratch * (size_t)(w->scratch_count + 1));
        if (!scratch) {
            *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
            return NULL;
        }
        w->scratch = scratch;
        if (lapse_session_new(w->server->model, &w->scratch[w->scratch_count], error) != LAPSE_OK)
            return NULL;
        w->scratch_count++;
    }
    return w->scratch[w->scratch_used++];
}

static bool open_subject(worker *w, prepared *p, subject *s)
{
    lapse_error error;
    s->session = take_scratch(w, &error);
    if (s->session &&
        srv_events_sync(&s->events, 0, w->server->model, s->session, &s->known, &s->last, &error) == LAPSE_OK)
        return true;
    srv_fail_error(p->request, NULL, &error);
    return false;
}

static bool open_subjects(worker *w, prepared *p)
{
    srv_request *r = p->request;
    const json_t *events = json_object_get(r->json, "events");
    if (json_array_size(events) == 0)
        return srv_refuse(&r->problem, 400, "events", "events is missing or empty");
    bool many = json_is_array(json_array_get(events, 0));
    size_t count = many ? json_array_size(events) : 1;
    if (count > SUBJECTS_MAX)
        return srv_refuse(&r->problem, 400, "events", "more than %d histories in one request", SUBJECTS_MAX);
    p->subjects = calloc(count, sizeof *p->subjects);
    if (!p->subjects)
        return srv_refuse(&r->problem, 503, NULL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        char path[32] = "events";
        const json_t *one = many ? json_array_get(events, i) : events;
        if (many)
            snprintf(path, sizeof path, "events[%zu]", i);
        if (!json_is_array(one))
            return srv_refuse(&r->problem, 400, path, "%s must be an array of events, as the first is", path);
        subject *s = &p->subjects[p->subject_count++];
        if (!read_events(one, path, r->time, &s->events, &r->problem) || !open_subject(w, p, s))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- questions ------- */

static bool read_settings(prepared *p)
{
    srv_request *r = p->request;
    const lapse_model *model = r->server->model;
    const char *target = json_string_value(json_object_get(r->json, "target"));
    const json_t *top = json_object_get(r->json, "top");
    p->target = lapse_model_target(model, 0);
    for (int i = 1; target && p->target && strcmp(target, p->target) != 0; i++)
        p->target = lapse_model_target(model, i);
    if (!p->target)
        return srv_refuse(&r->problem, 400, "target", "the model does not predict the target '%.40s'", target);
    p->classes = lapse_model_target_size(model, p->target);
    p->top = top ? json_integer_value(top) : TOP_DEFAULT;
    if (p->top == 0 || p->top > p->classes)
        p->top = p->classes;
    p->filter.unseen = json_is_true(json_object_get(r->json, "unseen"));
    if (p->filter.unseen && strcmp(p->target, "event") != 0)
        return srv_refuse(&r->problem, 400, "unseen", "unseen is about the target event");
    return true;
}

static bool ask(prepared *p)
{
    srv_request *r = p->request;
    srv_times times = {0};
    bool whole = srv_times_read(json_object_get(r->json, "at"), "at", r->time, &times, &r->problem);
    int64_t most = (int64_t)times.count * p->subject_count;
    if (whole && most * p->top > (int64_t)QUESTIONS_MAX * TOP_DEFAULT * 10)
        whole = srv_refuse(&r->problem, 400, "at", "%lld answers of %lld predictions are too many for one request",
                           (long long)most, (long long)p->top);
    p->questions = whole ? calloc((size_t)most + 1, sizeof *p->questions) : NULL;
    p->best = whole ? calloc((size_t)(most * p->top) + 1, sizeof *p->best) : NULL;
    if (whole && (!p->questions || !p->best))
        whole = srv_refuse(&r->problem, 503, NULL, "out of memory");
    for (int i = 0; whole && i < p->subject_count; i++)
        for (int j = 0; j < times.count; j++) {
            subject *s = &p->subjects[i];
            question *q = &p->questions[p->question_count];
            q->subject = s;
            q->at = times.items[j].relative ? s->last + times.items[j].seconds : times.items[j].seconds;
            q->best = p->best + p->question_count++ * p->top;
            q->count = s->known == 0 || !(q->at >= s->last) ? -1 : 0;
        }
    srv_times_clear(&times);
    return whole;
}

static void prepare(worker *w, prepared *p)
{
    srv_request *r = p->request;
    if (!(read_settings(p) && open_subjects(w, p) && ask(p)) && r->status == 0)
        srv_fail_problem(r);
}

/* All questions of all requests with the same target. */
static void run_questions(prepared *all, int count, const char *target)
{
    int64_t total = 0, used = 0;
    for (int i = 0; i < count; i++)
        total += all[i].question_count;
    lapse_recommend_query *queries = calloc((size_t)total + 1, sizeof *queries);
    question **asked = calloc((size_t)total + 1, sizeof *asked);
    lapse_error error = {.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
    bool whole = queries && asked;
    for (int i = 0; whole && i < count; i++) {
        prepared *p = &all[i];
        if (p->request->status != 0 || strcmp(p->target, target) != 0)
            continue;
        for (int j = 0; j < p->question_count; j++) {
            question *q = &p->questions[j];
            if (q->count < 0)
                continue;
            asked[used] = q;
            queries[used++] = (lapse_recommend_query){
                .session = q->subject->session, .time = q->at, .top = p->top, .best = q->best,
                .filter = p->filter.unseen ? &p->filter : NULL};
        }
    }
    if (whole && used)
        whole = lapse_session_recommend_many(queries, used, target, &error) == LAPSE_OK;
    for (int64_t i = 0; whole && i < used; i++)
        asked[i]->count = queries[i].count;
    for (int i = 0; !whole && i < count; i++)
        if (all[i].request->status == 0 && strcmp(all[i].target, target) == 0)
            srv_fail_error(all[i].request, NULL, &error);
    free(queries);
    free(asked);
}

/* ------------------------------------------------------------------------------------------- responses ------- */

static void write_answer(srv_text *out, const prepared *p, const question *q)
{
    const subject *s = q->subject;
    srv_text_open(out, '{');
    srv_text_name(out, "history");
    if (s->name)
        srv_text_quote(out, s->name);
    else
        srv_text_add(out, "null");
    srv_text_member_whole(out, "events", s->known);
    srv_text_member_number(out, "last", s->last);
    srv_text_member_number(out, "at", q->at);
    srv_text_name(out, "predictions");
    srv_text_open(out, '[');
    for (int64_t k = 0; k < q->count; k++) {
        srv_text_open(out, '{');
        srv_text_member(out, "event", lapse_model_target_name(p->request->server->model, p->target, q->best[k].item));
        srv_text_member_number(out, "score", q->best[k].score);
        srv_text_member_number(out, "probability", q->best[k].probability);
        srv_text_member(out, "source", "model");
        srv_text_close(out, '}');
    }
    srv_text_close(out, ']');
    if (q->count < 0)
        srv_text_member(out, "problem", s->known == 0 ? "the model knows no event of this history"
                                                      : "the query time is before the last event");
    srv_text_close(out, '}');
}

static void write_response(const prepared *p)
{
    srv_request *r = p->request;
    srv_text_open(&r->out, '{');
    srv_text_name(&r->out, "answers");
    srv_text_open(&r->out, '[');
    for (int i = 0; i < p->question_count; i++)
        write_answer(&r->out, p, &p->questions[i]);
    srv_text_close(&r->out, ']');
    srv_text_member(&r->out, "target", p->target);
    srv_text_close(&r->out, '}');
    r->status = 200;
}

static void clear_prepared(prepared *p)
{
    for (int i = 0; i < p->subject_count; i++)
        srv_events_clear(&p->subjects[i].events);
    free(p->subjects);
    free(p->questions);
    free(p->best);
}

static void answer_requests(worker *w, srv_request *list)
{
    prepared all[RUN_REQUESTS] = {0};
    int count = 0;
    w->scratch_used = 0;
    for (srv_request *r = list; r; r = r->next) {
        all[count].request = r;
        prepare(w, &all[count++]);
    }
    const char *target;
    for (int i = 0; (target = lapse_model_target(w->server->model, i)) != NULL; i++)
        run_questions(all, count, target);
    for (int i = 0; i < count; i++) {
        srv_request *r = all[i].request;
        if (r->status == 0)
            write_response(&all[i]);
        clear_prepared(&all[i]);
        srv_http_resume(r);
    }
}

void *srv_answering_thread(void *server)
{
    worker w = {.server = server};
    srv_request *list;
    while ((list = srv_queue_take(&w.server->queues[SRV_ANSWER], RUN_REQUESTS)) != NULL)
        answer_requests(&w, list);
    for (int i = 0; i < w.scratch_count; i++)
        lapse_session_free(w.scratch[i]);
    free(w.scratch);
    return NULL;
}
