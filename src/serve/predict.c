/* predict.c: many queries about the sequences of a dataset, on several threads (session_pool.h).
 *
 * A thread takes one sequence after another: it appends the events, then each query costs one row.
 *
 * A catalogue may be far larger than a cache, and reading it once per query would be most of the work. So the states of a
 * recommender are collected and scored together against one tile of the catalogue after another.
 */
#include "backend/backend.h"
#include "base/finite.h"
#include "lapse_lab.h"
#include "serve/session_pool.h"
#include "serve/top_k.h"

#include <math.h>
#include <string.h>

/* Queries whose states are scored together, and items of a tile. */
enum { CASES = 32, TILE = 512 };

/* The state of one thread. */
typedef struct worker {
    float *states, *scores; /* [CASES x dims], [CASES x TILE]; of a network that recommends; owned */
    int64_t query[CASES];   /* indices of the queries that the states belong to */
    int cases;
} worker;

typedef struct job {
    const lapse_model *model;
    lp_session_pool pool;
    const lapse_query *queries;
    const int64_t *events; /* [query_count]: of its sequence that a query is about; NULL: all */
    int64_t query_count;
    const lapse_predict_options *options;
    const char *target;
    lapse_recommendation *best;
    int64_t *counts;
    bool unseen, ranks; /* items of the history are left out; the model is a network that ranks */
    worker *workers;    /* [threads] */
} job;

void lapse_predict_options_default(lapse_predict_options *options)
{
    *options = (lapse_predict_options){.top = 10};
}

/* The first query from `at` on that is about another sequence than the one before: queries about one sequence stay together. */
static int64_t next_sequence(const job *j, int64_t at)
{
    while (at > 0 && at < j->query_count && j->queries[at].sequence == j->queries[at - 1].sequence)
        at++;
    return at;
}

/* ------------------------------------------------------------------------------------- states by tiles ------- */

/* The number of events that a query is about. */
static int64_t events_of(const job *j, int64_t q)
{
    return j->events ? j->events[q] : lp_session_pool_events(&j->pool, j->queries[q].sequence);
}

/* Leaves the items that the history of a query has had out of the scores of a tile. */
static void leave_out_seen(const job *j, int64_t q, int first, int count, float *scores)
{
    uint64_t start = j->pool.dataset->start[j->queries[q].sequence];
    const int32_t *type = j->pool.id_map.columns.type;
    for (uint64_t i = start; i < start + (uint64_t)events_of(j, q); i++)
        if (type[i] >= first && type[i] < first + count)
            scores[type[i] - first] = NAN;
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
    const lp_network *network = &model->network;
    const float *table = model->parameters + network->items->offset, *bias = model->parameters + network->bias->offset;
    const lp_ranking_kernels *kernels = lp_backend_ranking(lp_backend_find("cpu"));
    int dims = lp_model_state_dims(&model->config), items = model->config.event_types;
    lp_top_k top[CASES];
    double all[CASES] = {0};
    for (int c = 0; c < w->cases; c++)
        top[c] = (lp_top_k){.best = j->best + w->query[c] * j->options->top, .most = j->options->top};
    for (int first = 0; first < items; first += TILE) {
        int count = items - first < TILE ? items - first : TILE;
        lp_item_scores(kernels, lp_model_score_rule(&model->config), w->cases, count, dims, w->states,
                       table + (size_t)first * (size_t)dims, bias + first, w->scores);
        for (int c = 0; c < w->cases; c++) {
            float *scores = w->scores + (size_t)c * (size_t)count;
            double sum = kernels->log_sum(count, scores);
            all[c] = first ? log_add(all[c], sum) : sum;
            if (j->unseen)
                leave_out_seen(j, w->query[c], first, count, scores);
            lp_top_k_offer(&top[c], scores, count, first);
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

static lapse_status predict(const job *j, worker *w, lapse_session *session, int64_t q, lapse_error *error)
{
    const lapse_predict_options *options = j->options;
    double time = j->queries[q].time;
    j->counts[q] = -1;
    if (session->count == 0)
        return LAPSE_OK;
    if (!j->ranks)
        return lp_session_best(session, time, j->target, options->top, &(lapse_item_filter){.unseen = j->unseen},
                               j->best + q * options->top, &j->counts[q], error);
    size_t dims = (size_t)lp_model_state_dims(&j->model->config);
    float *state = w->states + (size_t)w->cases * dims;
    LP_TRY(lp_session_state(session, time, state, error));
    if (options->states)
        memcpy(options->states + (size_t)q * dims, state, dims * sizeof *state);
    w->query[w->cases++] = q;
    return w->cases == CASES ? score_states(j, w, error) : LAPSE_OK;
}

static lapse_status predict_range(void *context, int64_t first, int64_t end, int thread, lapse_error *error)
{
    job *j = context;
    worker *w = &j->workers[thread];
    lapse_session *session = j->pool.sessions[thread];
    first = next_sequence(j, first);
    end = next_sequence(j, end);
    w->cases = 0;
    int64_t read = 0;
    for (int64_t q = first; q < end; q++) {
        const lapse_query *query = &j->queries[q];
        int64_t events = events_of(j, q);
        bool more = q > first && query->sequence == query[-1].sequence && events >= read;
        LP_TRY(lp_session_pool_read(&j->pool, thread, query->sequence, more ? read : 0, events, error));
        read = events;
        LP_TRY(predict(j, w, session, q, error));
    }
    return w->cases ? score_states(j, w, error) : LAPSE_OK;
}

static lapse_status check(job *j, const lapse_dataset *histories, lapse_error *error)
{
    const lapse_predict_options *options = j->options;
    lp_target target = lp_model_target_find(j->model, options->target);
    if (target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", options->target,
                       lapse_model_target(j->model, 0));
    j->target = lp_predict_names[target];
    j->unseen = options->unseen && target == LP_TARGET_EVENT;
    j->ranks = lp_model_ranks(&j->model->config);
    if (options->states && !j->ranks)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' has no states: train a network with " LP_OPTION("--task recommend"),
                       j->model->config.row->name);
    if (options->top < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "top is %lld; it must be at least 1", (long long)options->top);
    for (int64_t q = 0; q < j->query_count; q++)
        if (j->queries[q].sequence < 0 || j->queries[q].sequence >= histories->sequence_count)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "query %lld is about sequence %lld; sequences are numbered 0 to %lld", (long long)q,
                           (long long)j->queries[q].sequence, (long long)histories->sequence_count - 1);
    for (int64_t q = 0; j->events && q < j->query_count; q++) {
        const uint64_t *start = histories->start + j->queries[q].sequence;
        if (j->events[q] < 0 || (uint64_t)j->events[q] > start[1] - start[0])
            return lp_fail(error, LAPSE_ERROR_USAGE, "query %lld is about %lld events of a sequence that has %llu",
                           (long long)q, (long long)j->events[q], (unsigned long long)(start[1] - start[0]));
    }
    return LAPSE_OK;
}

static lapse_status make_workers(job *j, lapse_error *error)
{
    size_t dims = (size_t)lp_model_state_dims(&j->model->config), size = CASES * (dims + TILE) * sizeof(float);
    j->workers = lp_alloc((size_t)j->pool.threads, sizeof *j->workers);
    if (!j->workers)
        return lp_fail_memory(error, "predictions", (size_t)j->pool.threads * sizeof *j->workers);
    for (int i = 0; j->ranks && i < j->pool.threads; i++) {
        worker *w = &j->workers[i];
        w->states = lp_alloc(CASES * dims, sizeof *w->states);
        w->scores = lp_alloc((size_t)CASES * TILE, sizeof *w->scores);
        if (!w->states || !w->scores)
            return lp_fail_memory(error, "predictions", size);
    }
    return LAPSE_OK;
}

static void free_workers(job *j)
{
    for (int i = 0; j->workers && i < j->pool.threads; i++) {
        lp_free(j->workers[i].states);
        lp_free(j->workers[i].scores);
    }
    lp_free(j->workers);
}

/* events: NULL for whole sequences. */
static lapse_status predict_queries(const lapse_model *model, const lapse_dataset *histories,
                                    const lapse_query *queries, const int64_t *events, int64_t query_count,
                                    const lapse_predict_options *options, lapse_recommendation *best, int64_t *counts,
                                    lapse_error *error)
{
    if (query_count < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the number of queries is %lld", (long long)query_count);
    job j = {.model = model,
             .queries = queries,
             .events = events,
             .query_count = query_count,
             .options = options,
             .best = best,
             .counts = counts};
    LP_TRY(check(&j, histories, error));
    LP_TRY(lp_session_pool_open(&j.pool, model, histories, options->threads, options->skip_unknown, error));
    lapse_status status = make_workers(&j, error);
    if (status == LAPSE_OK)
        status = lp_session_pool_run(&j.pool, query_count, predict_range, &j, error);
    free_workers(&j);
    lp_session_pool_close(&j.pool);
    return status;
}

lapse_status lapse_predict_all(const lapse_model *model, const lapse_dataset *histories, const lapse_query *queries,
                               int64_t query_count, const lapse_predict_options *options, lapse_recommendation *best,
                               int64_t *counts, lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options);
    if (query_count > 0)
        LP_REQUIRE(error, queries, best, counts);
    return predict_queries(model, histories, queries, NULL, query_count, options, best, counts, error);
}

lapse_status lapse_predict_prefixes(const lapse_model *model, const lapse_dataset *histories,
                                    const lapse_query *queries, const int64_t *events, int64_t query_count,
                                    const lapse_predict_options *options, lapse_recommendation *best, int64_t *counts,
                                    lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options);
    if (query_count > 0)
        LP_REQUIRE(error, queries, best, counts);
    return predict_queries(model, histories, queries, events, query_count, options, best, counts, error);
}
