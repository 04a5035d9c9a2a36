/* session_many.c: queries about many sessions of one model, and whole histories. */
#include "serve/item_filter.h"
#include "serve/session.h"

#include <math.h>
#include <string.h>

/* Checks that a session is of the same model as the first. */
static lapse_status check_session(const lapse_session *first, const lapse_session *session, int64_t index,
                                  lapse_error *error)
{
    if (!session)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the session of query %lld is NULL", (long long)index);
    if (session->model != first->model)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the session of query %lld is of another model than that of query 0",
                       (long long)index);
    return LAPSE_OK;
}

static lapse_status check_queries(const lapse_session_query *queries, int64_t count, lapse_error *error)
{
    for (int64_t q = 0; q < count; q++)
        LP_TRY(check_session(queries[0].session, queries[q].session, q, error));
    return LAPSE_OK;
}

lapse_status lapse_session_predict_many(const lapse_session_query *queries, int64_t count, const char *target,
                                        double *probabilities, lapse_error *error)
{
    if (count < 1)
        return LAPSE_OK;
    LP_REQUIRE(error, queries, probabilities);
    LP_TRY(check_queries(queries, count, error));
    if (!target)
        target = lapse_model_target(queries->session->model, 0);
    size_t size = (size_t)lapse_model_target_size(queries->session->model, target);
    for (int64_t q = 0; q < count; q++)
        LP_TRY(lapse_session_predict_target(queries[q].session, queries[q].time, target,
                                            probabilities + (size_t)q * size, error));
    return LAPSE_OK;
}

static lapse_status check_recommend(const lapse_recommend_query *queries, int64_t count, const char *target,
                                    lapse_error *error)
{
    for (int64_t q = 0; q < count; q++) {
        const lapse_recommend_query *query = &queries[q];
        LP_TRY(check_session(queries[0].session, query->session, q, error));
        if (query->top < 1)
            return lp_fail(error, LAPSE_ERROR_USAGE, "top of query %lld is %lld; it must be at least 1", (long long)q,
                           (long long)query->top);
        if (!query->best)
            return lp_fail(error, LAPSE_ERROR_USAGE, "best of query %lld is NULL", (long long)q);
        if (query->filter && lp_model_target_find(query->session->model, target) != LP_TARGET_EVENT)
            return lp_fail(error, LAPSE_ERROR_USAGE, "query %lld has a filter, which only the target event can have",
                           (long long)q);
        LP_TRY(lp_item_filter_check(query->filter, query->session->model, error));
    }
    return LAPSE_OK;
}

lapse_status lapse_session_recommend_many(lapse_recommend_query *queries, int64_t count, const char *target,
                                          lapse_error *error)
{
    if (count < 1)
        return LAPSE_OK;
    LP_REQUIRE(error, queries);
    LP_TRY(check_recommend(queries, count, target, error));
    for (int64_t q = 0; q < count; q++)
        LP_TRY(lp_session_best(queries[q].session, queries[q].time, target, queries[q].top, queries[q].filter,
                               queries[q].best, &queries[q].count, error));
    return LAPSE_OK;
}

lapse_status lapse_session_state_many(const lapse_session_query *queries, int64_t count, float *states,
                                      lapse_error *error)
{
    if (count < 1)
        return LAPSE_OK;
    LP_REQUIRE(error, queries, states);
    LP_TRY(check_queries(queries, count, error));
    size_t dims = (size_t)lapse_model_state_dims(queries->session->model);
    for (int64_t q = 0; q < count; q++)
        LP_TRY(lapse_session_state(queries[q].session, queries[q].time, states + (size_t)q * dims, error));
    return LAPSE_OK;
}

/* ---------------------------------------------------------------------------------------------- vectors ------ */

int lapse_model_state_dims(const lapse_model *model)
{
    return lp_model_ranks(&model->config) ? model->config.dims : 0;
}

const float *lapse_model_item_vectors(const lapse_model *model)
{
    return lp_model_ranks(&model->config) ? model->parameters + model->network.items->offset : NULL;
}

const float *lapse_model_item_biases(const lapse_model *model)
{
    return lp_model_ranks(&model->config) ? model->parameters + model->network.bias->offset : NULL;
}

/* ------------------------------------------------------------------------------------------ whole history ---- */

/* Events of a caller in the model's ids. */
typedef struct event_list {
    int64_t count;
    double *times;
    int32_t *types;
    lp_field_number *fields; /* [count x field_count] */
} event_list;

static void clear_list(event_list *list)
{
    lp_free(list->times);
    lp_free(list->types);
    lp_free(list->fields);
}

static lapse_status read_list(const lapse_session *session, const lapse_event *events, int64_t count, event_list *list,
                              lapse_error *error)
{
    size_t n = (size_t)count, columns = (size_t)session->model->config.field_count;
    *list = (event_list){.count = count,
                         .times = lp_alloc_raw(n, sizeof *list->times),
                         .types = lp_alloc_raw(n, sizeof *list->types),
                         .fields = lp_alloc_raw(n * columns, sizeof *list->fields)};
    if (!list->times || !list->types || !list->fields)
        return lp_fail_memory(error, "events", n * (12 + 4 * columns));
    for (int64_t i = 0; i < count; i++) {
        lp_field_number fields[LP_FIELD_LIMIT];
        double last = i ? list->times[i - 1] : NAN;
        LP_TRY(lp_session_read_event(session, &events[i], last, &list->types[i], fields, error));
        list->times[i] = events[i].time;
        memcpy(list->fields + (size_t)i * columns, fields, columns * sizeof *fields);
    }
    return LAPSE_OK;
}

/* Events at the start that the session has too. */
static int64_t common_prefix(const lapse_session *session, const event_list *list)
{
    size_t columns = (size_t)session->model->config.field_count;
    int64_t i = 0;
    for (; i < list->count && i < session->count; i++) {
        bool same = session->types[i] == list->types[i] &&
                    memcmp(&session->times[i], &list->times[i], sizeof list->times[i]) == 0;
        for (size_t f = 0; same && f < columns; f++)
            same = memcmp((const char *)session->fields[f] + (size_t)i * sizeof *list->fields,
                          &list->fields[(size_t)i * columns + f], sizeof *list->fields) == 0;
        if (!same)
            break;
    }
    return i;
}

lapse_status lapse_session_sync(lapse_session *session, const lapse_event *events, int64_t count, int64_t *reused,
                                lapse_error *error)
{
    LP_REQUIRE(error, session);
    if (count < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the number of events is %lld", (long long)count);
    if (count > 0)
        LP_REQUIRE(error, events);
    event_list list;
    lapse_status status = read_list(session, events, count, &list, error);
    if (status == LAPSE_OK)
        status = lp_session_reserve(session, count, error);
    if (status == LAPSE_OK) {
        size_t columns = (size_t)session->model->config.field_count;
        int64_t prefix = session->total == session->count ? common_prefix(session, &list) : 0;
        if (prefix < session->count) {
            lapse_session_clear(session);
            prefix = 0;
        }
        for (int64_t i = prefix; i < count && status == LAPSE_OK; i++)
            status = lp_session_add(session, list.times[i], list.types[i], list.fields + (size_t)i * columns, error);
        if (reused)
            *reused = prefix;
    }
    clear_list(&list);
    return status;
}
