/* predict.c: many queries about the sequences of a dataset, on several threads.
 *
 * Each thread has its own session and takes one sequence after another: it appends the events, then each query costs one row.
 * Threads share nothing that changes, so the predictions do not depend on their number.
 *
 * A catalogue may be far larger than a cache, and reading it once per query would be most of the work. So the states of a
 * recommender are collected and scored together against one tile of the catalogue after another.
 */
#include "backend/backend.h"
#include "base/finite.h"
#include "base/threads.h"
#include "model/id_map.h"
#include "serve/session.h"
#include "serve/top_k.h"

#include <math.h>
#include <string.h>

/* Tasks per thread: enough to balance the load. */
enum { TASKS_PER_THREAD = 16 };

/* Queries whose states are scored together, and items of a tile. */
enum { CASES = 32, TILE = 512 };

/* The state of one thread. */
typedef struct worker {
    lapse_session *session;
    float *states, *scores; /* [CASES x dims], [CASES x TILE]; of a network that recommends; owned */
    int64_t query[CASES];   /* indices of the queries that the states belong to */
    int cases;
} worker;

typedef struct job {
    const lapse_model *model;
    const lapse_dataset *dataset;
    lp_id_map id_map;
    const lapse_query *queries;
    int64_t query_count;
    const lapse_predict_options *options;
    const char *target;
    lapse_recommendation *best;
    int64_t *counts;
    int task_count;
    bool unseen, ranks;  /* items of the history are left out; the model is a network that ranks */
    worker *workers;     /* [threads] */
    lapse_error *errors; /* [task_count]: the first of each task */
} job;

void lapse_predict_options_default(lapse_predict_options *options)
{
    *options = (lapse_predict_options){.top = 10};
}

/* Whether the model knows the event type and the categories of an event. */
static bool is_known(const lapse_model *model, const lp_event_columns *columns, uint64_t event)
{
    bool known = columns->type[event] >= 0;
    for (int f = 0; f < columns->field_count; f++)
        known = known && (model->config.fields[f].type == LAPSE_FIELD_NUMBER ||
                          ((const int32_t *)columns->field[f])[event] >= 0);
    return known;
}

void lp_session_read(lapse_session *session, const lapse_dataset *dataset, const lp_event_columns *columns,
                     int64_t sequence)
{
    lapse_session_clear(session);
    lp_decoder_set_sequence(&session->decoder, columns->sequences_known ? (int32_t)sequence + 1 : 0);
    for (uint64_t i = dataset->start[sequence]; i < dataset->start[sequence + 1]; i++)
        if (is_known(session->model, columns, i))
            lp_session_add_row(session, columns, dataset->time[i], i);
}

static int64_t task_begin(const job *j, int task)
{
    /* Queries about one sequence stay in one task. */
    int64_t at = (int64_t)((double)j->query_count * task / j->task_count);
    while (at > 0 && at < j->query_count && j->queries[at].sequence == j->queries[at - 1].sequence)
        at++;
    return at;
}

/* ------------------------------------------------------------------------------------- states by tiles ------- */

/* The sequence of a query, for has_had. */
typedef struct queried {
    const job *job;
    int64_t sequence;
} queried;

static bool has_had(const void *context, int64_t item)
{
    const queried *a = context;
    const uint64_t *start = a->job->dataset->start + a->sequence;
    const int32_t *type = a->job->id_map.columns.type;
    for (uint64_t i = start[0]; i < start[1]; i++)
        if (type[i] == item)
            return true;
    return false;
}

/* log(exp a + exp b) */
static double log_add(double a, double b)
{
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* Scores the states that a thread has collected. */
static lapse_status score_states(const job *j, worker *w, lapse_error *error)
{
    const lapse_model *model = j->model;
    const lp_network *network = &w->session->decoder.network;
    const float *table = model->parameters + network->items->offset, *bias = model->parameters + network->bias->offset;
    const lp_ranking_kernels *kernels = lp_backend_ranking(lp_backend_find("cpu"));
    int dims = model->config.dims, items = model->config.event_types;
    lp_top_k top[CASES];
    double all[CASES] = {0};
    for (int c = 0; c < w->cases; c++)
        top[c] = (lp_top_k){.best = j->best + w->query[c] * j->options->top, .most = j->options->top};
    for (int first = 0; first < items; first += TILE) {
        int count = items - first < TILE ? items - first : TILE;
        kernels->scores(w->cases, count, dims, w->states, table + (size_t)first * (size_t)dims, bias + first,
                        w->scores);
        for (int c = 0; c < w->cases; c++) {
            const float *scores = w->scores + (size_t)c * (size_t)count;
            queried a = {j, j->queries[w->query[c]].sequence};
            lp_top_k_offer(&top[c], scores, count, first, j->unseen ? has_had : NULL, &a);
            double sum = kernels->log_sum(count, scores);
            all[c] = first ? log_add(all[c], sum) : sum;
        }
    }
    for (int c = 0; c < w->cases; c++) {
        lp_top_k_sort(&top[c]);
        j->counts[w->query[c]] = top[c].size;
        for (int64_t i = 0; i < top[c].size; i++)
            top[c].best[i].probability = exp(top[c].best[i].score - all[c]);
    }
    bool finite = lp_all_finite_double(all, (size_t)w->cases);
    w->cases = 0;
    return finite ? LAPSE_OK : lp_model_fail_infinite(model, error);
}

/* ------------------------------------------------------------------------------------------------- tasks ----- */

static lapse_status predict(const job *j, worker *w, int64_t q, lapse_error *error)
{
    const lapse_predict_options *options = j->options;
    double time = j->queries[q].time;
    j->counts[q] = -1;
    if (w->session->count == 0)
        return LAPSE_OK;
    if (!j->ranks)
        return lp_session_best(w->session, time, j->target, options->top, j->unseen, j->best + q * options->top,
                               &j->counts[q], error);
    LP_TRY(lp_session_state(w->session, time, w->states + (size_t)w->cases * (size_t)j->model->config.dims, error));
    w->query[w->cases++] = q;
    return w->cases == CASES ? score_states(j, w, error) : LAPSE_OK;
}

static void predict_task(void *context, int task, int number)
{
    job *j = context;
    worker *w = &j->workers[number];
    int64_t first = task_begin(j, task), end = task + 1 < j->task_count ? task_begin(j, task + 1) : j->query_count;
    lapse_status status = LAPSE_OK;
    w->cases = 0;
    for (int64_t q = first; q < end && status == LAPSE_OK; q++) {
        const lapse_query *query = &j->queries[q];
        if (q == first || query->sequence != query[-1].sequence)
            lp_session_read(w->session, j->dataset, &j->id_map.columns, query->sequence);
        status = predict(j, w, q, &j->errors[task]);
    }
    if (w->cases && status == LAPSE_OK)
        score_states(j, w, &j->errors[task]);
}

static lapse_status check(job *j, lapse_error *error)
{
    const lapse_predict_options *options = j->options;
    lp_target target = lp_model_target_find(j->model, options->target);
    if (target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", options->target,
                       lapse_model_target(j->model, 0));
    j->target = lp_predict_names[target];
    j->unseen = options->unseen && target == LP_TARGET_EVENT;
    j->ranks = lp_model_ranks(&j->model->config);
    if (options->top < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "top is %lld; it must be at least 1", (long long)options->top);
    for (int64_t q = 0; q < j->query_count; q++)
        if (j->queries[q].sequence < 0 || j->queries[q].sequence >= j->dataset->sequence_count)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "query %lld is about sequence %lld; sequences are numbered 0 to %lld", (long long)q,
                           (long long)j->queries[q].sequence, (long long)j->dataset->sequence_count - 1);
    return LAPSE_OK;
}

static lapse_status make_worker(const job *j, worker *w, lapse_error *error)
{
    size_t dims = (size_t)j->model->config.dims;
    LP_TRY(lapse_session_new(j->model, &w->session, error));
    if (!j->ranks)
        return LAPSE_OK;
    w->states = lp_alloc(CASES * dims, sizeof *w->states);
    w->scores = lp_alloc((size_t)CASES * TILE, sizeof *w->scores);
    return w->states && w->scores ? LAPSE_OK
                                  : lp_fail_memory(error, "predictions", (size_t)CASES * (dims + TILE) * sizeof(float));
}

/* Workers for all threads, then all tasks; the error is that of the first task that has one. */
static lapse_status predict_all(job *j, int threads, lapse_error *error)
{
    j->task_count =
        (int)(j->query_count < (int64_t)threads * TASKS_PER_THREAD ? j->query_count : threads * TASKS_PER_THREAD);
    j->workers = lp_alloc((size_t)threads, sizeof *j->workers);
    j->errors = lp_alloc((size_t)j->task_count, sizeof *j->errors);
    lapse_status status = j->workers && j->errors
                              ? LAPSE_OK
                              : lp_fail_memory(error, "predictions", (size_t)j->task_count * sizeof *j->errors);
    for (int i = 0; status == LAPSE_OK && i < threads; i++)
        status = make_worker(j, &j->workers[i], error);
    if (status == LAPSE_OK)
        lp_threads_run(threads, j->task_count, predict_task, j);
    for (int task = 0; status == LAPSE_OK && task < j->task_count; task++) {
        status = j->errors[task].status;
        if (status != LAPSE_OK && error)
            *error = j->errors[task];
    }
    for (int i = 0; j->workers && i < threads; i++) {
        lapse_session_free(j->workers[i].session);
        lp_free(j->workers[i].states);
        lp_free(j->workers[i].scores);
    }
    lp_free(j->workers);
    lp_free(j->errors);
    return status;
}

lapse_status lapse_predict_all(const lapse_model *model, const lapse_dataset *histories, const lapse_query *queries,
                               int64_t query_count, const lapse_predict_options *options, lapse_recommendation *best,
                               int64_t *counts, lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options);
    if (query_count < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the number of queries is %lld", (long long)query_count);
    if (query_count > 0)
        LP_REQUIRE(error, queries, best, counts);
    job j = {.model = model,
             .dataset = histories,
             .queries = queries,
             .query_count = query_count,
             .options = options,
             .best = best,
             .counts = counts};
    int threads;
    LP_TRY(check(&j, error));
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    if (options->skip_unknown)
        LP_TRY(lp_id_map_init_lenient(&j.id_map, model, histories, error));
    else
        LP_TRY(lp_id_map_init(&j.id_map, model, histories, error));
    threads = lp_backend_find("cpu")->max_threads(lp_backend_find("cpu")->context, threads);
    lapse_status status = predict_all(&j, threads, error);
    lp_id_map_clear(&j.id_map);
    return status;
}
