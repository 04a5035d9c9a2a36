/* answering.c: see answering.h.
 *
 * A thread takes the requests that wait. It reads their subjects, acquires the histories of all of them in the cache, at one
 * position of the log, brings their sessions up to date, asks all questions of one model together, and writes the responses. */
#include "answering.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explaining.h"
#include "http.h"
#include "polling.h"

enum { RUN_REQUESTS = 64 };

typedef struct run {
    srv_worker *worker;
    srv_lineup lineup;
    srv_asked asked[RUN_REQUESTS];
    int count;
    const char **names; /* of the histories of all requests, each once */
    srv_cached **entries;
    int name_count;
    int *slots; /* [slot_count]: a hash table of indexes of names, -1: empty */
    int slot_count;
} run;

static bool alive(const srv_asked *a)
{
    return a->request->status == 0;
}

static void fail_problem(srv_asked *a)
{
    if (alive(a))
        srv_fail_problem(a->request);
}

/* ------------------------------------------------------------------------------------------- histories ------- */

/* The index of a name, which is added if it is new. */
static int name_index(run *u, const char *name)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    int slot = (int)((hash ^ hash >> 32) % (uint64_t)u->slot_count);
    for (; u->slots[slot] >= 0; slot = (slot + 1) % u->slot_count)
        if (strcmp(u->names[u->slots[slot]], name) == 0)
            return u->slots[slot];
    u->names[u->name_count] = name;
    return u->slots[slot] = u->name_count++;
}

/* The position, the catalogue and the models of another time. */
static bool pin(run *u, srv_asked *a)
{
    srv_worker *w = u->worker;
    srv_problem *problem = &a->request->problem;
    const json_t *as_of = json_object_get(a->json, "as_of");
    if (as_of && !a->pinned) {
        double time;
        if (!srv_time_read(as_of, "as_of", a->now, &time, problem))
            return false;
        if (time > a->now)
            return srv_refuse(problem, 400, "as_of", "as_of is in the future");
        if (!srv_store_position_at(&w->store, time, &a->position))
            return srv_refuse(problem, 503, NULL, "%s", w->store.message);
        a->pinned = true;
        a->now = a->model_time = time;
    }
    if (!a->pinned || a->position >= a->catalogue->position)
        return true;
    srv_catalogue_drop(a->catalogue);
    a->catalogue = NULL;
    return srv_catalogue_read(&w->store, a->position, &a->catalogue) ||
           srv_refuse(problem, 503, NULL, "%s", w->store.message);
}

static srv_model *find_model(run *u, const srv_asked *a, const char *name)
{
    srv_registry *registry = &u->worker->server->registry;
    if (!a->pinned)
        return srv_lineup_pick(&u->lineup, name);
    return srv_registry_find(registry,
                             isnan(a->model_time) ? a->models[0] : srv_registry_at(registry, name, a->model_time));
}

static bool acquire(run *u)
{
    size_t total = 0;
    for (int i = 0; i < u->count; i++)
        total += (size_t)u->asked[i].subject_count;
    u->slot_count = (int)total * 2 + 1;
    u->names = malloc((total + 1) * sizeof *u->names);
    u->entries = malloc((total + 1) * sizeof *u->entries);
    u->slots = malloc((size_t)u->slot_count * sizeof *u->slots);
    if (!u->names || !u->entries || !u->slots)
        return false;
    memset(u->slots, 0xFF, (size_t)u->slot_count * sizeof *u->slots);
    for (int i = 0; i < u->count; i++)
        for (int j = 0; alive(&u->asked[i]) && j < u->asked[i].subject_count; j++)
            if (u->asked[i].subjects[j].name && !u->asked[i].pinned && !json_object_get(u->asked[i].json, "as_of"))
                name_index(u, u->asked[i].subjects[j].name);
    int64_t position;
    srv_catalogue *catalogue;
    srv_cache_acquire(&u->worker->server->cache, u->names, u->name_count, u->entries, &position, &catalogue);
    for (int i = 0; i < u->count; i++) {
        if (!u->asked[i].pinned)
            u->asked[i].position = position;
        u->asked[i].catalogue = srv_catalogue_take(catalogue);
    }
    srv_catalogue_drop(catalogue);
    return true;
}

static void open_subjects(run *u, srv_asked *a)
{
    lapse_error error;
    uint64_t found = 0;
    bool replay = a->request->route->body == srv_replay_members;
    if (!pin(u, a)) {
        fail_problem(a);
        return;
    }
    for (int i = 0; i < a->subject_count; i++) {
        srv_subject *s = &a->subjects[i];
        srv_cached *entry = s->name && !a->pinned ? u->entries[name_index(u, s->name)] : NULL;
        s->model = find_model(u, a, s->name);
        if (!s->model) {
            srv_fail(a->request, 410, NULL, "the model of that time is gone: its file was changed or removed");
            return;
        }
        if (!srv_subject_open(u->worker, s, entry, a->position, &error)) {
            srv_fail_error(a->request, NULL, &error);
            return;
        }
        found = found * 31 + (s->found ? 2 : 1);
        if (a->pinned && s->trimmed > a->position)
            found = 0;
    }
    if (replay && found != a->found)
        srv_fail(a->request, 410, NULL, "events of that answer were erased");
    a->found = found;
}

/* ------------------------------------------------------------------------------------------- questions ------- */

/* Asks all questions of one model and target together. */
static void ask_model(run *u, const srv_model *model, const char *target, lapse_recommend_query *queries,
                      srv_question **questions)
{
    int64_t used = 0;
    lapse_error error;
    for (int i = 0; i < u->count; i++) {
        srv_asked *a = &u->asked[i];
        for (int j = 0; alive(a) && j < a->question_count; j++) {
            srv_question *q = &a->questions[j];
            const srv_view *view = srv_ask_view(a, q->subject->model);
            if (q->count < 0 || q->subject->model != model || strcmp(view->target, target) != 0)
                continue;
            questions[used] = q;
            queries[used++] = (lapse_recommend_query){.session = q->subject->session,
                                                      .time = q->at,
                                                      .top = q->top,
                                                      .best = q->best,
                                                      .filter = view->filtered ? &view->filter : NULL};
        }
    }
    if (!used)
        return;
    if (lapse_session_recommend_many(queries, used, target, &error) == LAPSE_OK) {
        for (int64_t i = 0; i < used; i++)
            questions[i]->count = queries[i].count;
        return;
    }
    for (int i = 0; i < u->count; i++)
        for (int j = 0; alive(&u->asked[i]) && j < u->asked[i].question_count; j++)
            if (u->asked[i].questions[j].subject->model == model) {
                srv_fail_error(u->asked[i].request, NULL, &error);
                break;
            }
}

static void ask_all(run *u)
{
    int64_t total = 0;
    for (int i = 0; i < u->count; i++)
        total += u->asked[i].question_count;
    lapse_recommend_query *queries = malloc(((size_t)total + 1) * sizeof *queries);
    srv_question **questions = malloc(((size_t)total + 1) * sizeof *questions);
    const srv_view *done[RUN_REQUESTS * 4];
    int done_count = 0;
    for (int i = 0; i < u->count; i++)
        for (int j = 0; alive(&u->asked[i]) && j < u->asked[i].view_count; j++) {
            const srv_view *view = &u->asked[i].views[j];
            bool again = false;
            for (int k = 0; k < done_count; k++)
                again |= done[k]->model == view->model && strcmp(done[k]->target, view->target) == 0;
            if (again)
                continue;
            done[done_count++] = view;
            if (queries && questions)
                ask_model(u, view->model, view->target, queries, questions);
            else
                srv_fail(u->asked[i].request, 503, NULL, "out of memory");
        }
    free(queries);
    free(questions);
}

static void begin(run *u, srv_request *r)
{
    srv_asked *a = &u->asked[u->count++];
    *a = (srv_asked){.request = r, .now = r->time};
    if (!srv_ask_begin(a) || !srv_ask_subjects(a))
        fail_problem(a);
}

static void answer_all(run *u)
{
    srv_worker *w = u->worker;
    bool polled = srv_poll(w->server, &w->store), whole = acquire(u);
    for (int i = 0; i < u->count; i++) {
        srv_asked *a = &u->asked[i];
        if (!whole || !polled)
            srv_fail(a->request, 503, NULL, "%s", polled ? "out of memory" : w->store.message);
        if (alive(a))
            open_subjects(u, a);
        if (alive(a) && !srv_ask_questions(a))
            fail_problem(a);
    }
    ask_all(u);
    for (int i = 0; i < u->count; i++) {
        if (alive(&u->asked[i]) && u->asked[i].explain)
            srv_explain(w, &u->asked[i]);
        if (alive(&u->asked[i]))
            srv_ask_write(&u->asked[i]);
    }
    for (int i = 0; whole && i < u->name_count; i++)
        if (u->entries[i])
            srv_cache_release(&w->server->cache, u->entries[i]);
}

static void end(run *u)
{
    free(u->names);
    free(u->entries);
    free(u->slots);
    srv_lineup_drop(&u->lineup);
    srv_worker_rest(u->worker);
}

static void answer_requests(srv_worker *w, srv_request *list)
{
    run u = {.worker = w, .lineup = srv_registry_lineup(&w->server->registry)};
    for (srv_request *r = list, *next; r; r = next) {
        next = r->next;
        if (!r->route->answer) {
            begin(&u, r);
            continue;
        }
        r->route->answer(w, r);
        srv_http_resume(r);
    }
    answer_all(&u);
    for (int i = 0; i < u.count; i++) {
        srv_request *r = u.asked[i].request;
        srv_ask_clear(&u.asked[i]);
        srv_http_resume(r);
    }
    end(&u);
}

void srv_answer_again(srv_worker *w, const char *token,
                      void (*use)(void *context, const srv_asked *asked, const char *event), void *context,
                      const char *event)
{
    static const srv_route replay = {.body = srv_replay_members};
    run *u = calloc(1, sizeof *u);
    srv_request r = {.server = w->server, .route = &replay, .json = json_pack("{s:s}", "answer", token)};
    if (u) {
        u->worker = w;
        u->lineup = srv_registry_lineup(&w->server->registry);
        begin(u, &r);
        answer_all(u);
        use(context, r.status == 200 ? &u->asked[0] : NULL, event);
        srv_ask_clear(&u->asked[0]);
        end(u);
    }
    free(u);
    json_decref(r.json);
    srv_text_clear(&r.out);
}

void *srv_answering_thread(void *worker)
{
    srv_worker *w = worker;
    srv_request *list;
    while ((list = srv_queue_take(&w->server->queues[SRV_ANSWER], RUN_REQUESTS)) != NULL)
        answer_requests(w, list);
    return NULL;
}
