/* session_pool.c: sessions of several threads, and ranges of queries for them. */
#include "serve/session_pool.h"
#include "backend/backend.h"
#include "base/threads.h"

enum { RANGES_PER_THREAD = 32 };

lapse_status lp_session_pool_open(lp_session_pool *pool, const lapse_model *model, const lapse_dataset *dataset,
                                  int threads, bool skip_unknown, lapse_error *error)
{
    const lp_backend *cpu = lp_backend_find("cpu");
    *pool = (lp_session_pool){.dataset = dataset};
    LP_TRY(lp_model_check_whole(model, NULL, error));
    LP_TRY(lp_threads_resolve(threads, &threads, error));
    pool->threads = cpu->max_threads(cpu->context, threads);
    lapse_status status = skip_unknown ? lp_id_map_init_lenient(&pool->id_map, model, dataset, error)
                                       : lp_id_map_init(&pool->id_map, model, dataset, error);
    if (status != LAPSE_OK)
        return status;
    pool->sessions = lp_alloc((size_t)pool->threads, sizeof *pool->sessions);
    if (!pool->sessions)
        status = lp_fail_memory(error, "sessions", (size_t)pool->threads * sizeof *pool->sessions);
    for (int i = 0; status == LAPSE_OK && i < pool->threads; i++) {
        status = lapse_session_new(model, &pool->sessions[i], error);
        if (status == LAPSE_OK)
            status = lp_session_hold(pool->sessions[i], error);
    }
    if (status != LAPSE_OK)
        lp_session_pool_close(pool);
    return status;
}

void lp_session_pool_close(lp_session_pool *pool)
{
    for (int i = 0; pool->sessions && i < pool->threads; i++)
        lapse_session_free(pool->sessions[i]);
    lp_free(pool->sessions);
    lp_id_map_clear(&pool->id_map);
    *pool = (lp_session_pool){0};
}

typedef struct ranges {
    lp_session_task task;
    void *context;
    int64_t count;
    int range_count;
    lapse_error *errors; /* [range_count] */
} ranges;

static void run_range(void *context, int range, int thread)
{
    const ranges *r = context;
    int64_t first = r->count * range / r->range_count, end = r->count * (range + 1) / r->range_count;
    r->task(r->context, first, end, thread, &r->errors[range]);
}

lapse_status lp_session_pool_run(const lp_session_pool *pool, int64_t count, lp_session_task task, void *context,
                                 lapse_error *error)
{
    int64_t most = (int64_t)pool->threads * RANGES_PER_THREAD;
    ranges r = {.task = task, .context = context, .count = count, .range_count = (int)(count < most ? count : most)};
    r.errors = lp_alloc((size_t)r.range_count, sizeof *r.errors);
    if (!r.errors)
        return lp_fail_memory(error, "predictions", (size_t)r.range_count * sizeof *r.errors);
    lp_threads_run(pool->threads, r.range_count, run_range, &r);
    lapse_status status = LAPSE_OK;
    for (int i = 0; status == LAPSE_OK && i < r.range_count; i++) {
        status = r.errors[i].status;
        if (status != LAPSE_OK && error)
            *error = r.errors[i];
    }
    lp_free(r.errors);
    return status;
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

lapse_status lp_session_pool_read(const lp_session_pool *pool, int thread, int64_t sequence, int64_t from, int64_t to,
                                  lapse_error *error)
{
    const lp_event_columns *columns = &pool->id_map.columns;
    const lapse_dataset *dataset = pool->dataset;
    lapse_session *session = pool->sessions[thread];
    if (from == 0)
        lapse_session_clear(session);
    session->sequence = columns->sequences_known ? (int32_t)sequence + 1 : 0;
    uint64_t start = dataset->start[sequence];
    for (uint64_t i = start + (uint64_t)from; i < start + (uint64_t)to; i++)
        if (is_known(session->model, columns, i))
            LP_TRY(lp_session_add_row(session, columns, dataset->time[i], i, error));
    return LAPSE_OK;
}
