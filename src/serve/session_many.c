/* session_many.c: queries about many sessions of one model, and whole histories.
 *
 * Queries about different sessions are the rows of one run: products of matrices instead of products of vectors, and one pass over the
 * item vectors. The bits of a row do not depend on the others.
 */
#include "base/assert.h"
#include "base/finite.h"
#include "serve/item_filter.h"
#include "serve/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ checks ----- */

/* The session and time of a query, of either type. */
typedef lapse_session_query (*query_at)(const void *queries, int64_t index);

static lapse_session_query of_queries(const void *queries, int64_t index)
{
    return ((const lapse_session_query *)queries)[index];
}

static lapse_session_query of_recommend(const void *queries, int64_t index)
{
    const lapse_recommend_query *query = (const lapse_recommend_query *)queries + index;
    return (lapse_session_query){query->session, query->time};
}

/* Puts the index of a query before the message. */
static lapse_status fail_query(lapse_status status, int64_t index, lapse_error *error)
{
    char message[sizeof error->message];
    if (status != LAPSE_OK && error) {
        memcpy(message, error->message, sizeof message);
        snprintf(error->message, sizeof error->message, "query %lld: %.*s", (long long)index, (int)sizeof message - 32,
                 message);
    }
    return status;
}

static lapse_status check_queries(const void *queries, query_at at, int64_t count, const char *target, bool states,
                                  lapse_error *error)
{
    const lapse_session *first = at(queries, 0).session;
    for (int64_t q = 0; q < count; q++) {
        lapse_session_query query = at(queries, q);
        lp_target number;
        if (!query.session)
            return lp_fail(error, LAPSE_ERROR_USAGE, "the session of query %lld is NULL", (long long)q);
        if (query.session->model != first->model)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "the session of query %lld is of another model than that of query 0", (long long)q);
        lapse_status status = states ? lp_session_check_state(query.session, query.time, error)
                                     : lp_session_check(query.session, query.time, target, &number, error);
        LP_TRY(fail_query(status, q, error));
    }
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------------- runs ----- */

/* Rows of a run, at most; those of a program may be fewer. */
enum { MOST_ROWS = 128 };

/* Runs the network for the first of the queries first .. end - 1 that are about different sessions, *count of them; their rows of the
 * answer begin with first_row. */
static lapse_status run_once(lp_decoder *decoder, const void *queries, query_at at, int64_t first, int64_t end,
                             lp_target target, int first_row, double *output, int *count, lapse_error *error)
{
    lp_row_cache *caches[MOST_ROWS];
    lp_history histories[MOST_ROWS];
    double times[MOST_ROWS];
    int rows = 0, most = decoder->program->rows - first_row;
    for (int64_t q = first; q < end && rows < MOST_ROWS && rows < most; q++, rows++) {
        lapse_session *session = at(queries, q).session;
        if (session->in_run)
            break;
        session->in_run = true;
        caches[rows] = &session->cache;
        histories[rows] = lp_session_history(session);
        times[rows] = at(queries, q).time;
    }
    for (int64_t q = first; q < first + rows; q++)
        at(queries, q).session->in_run = false;
    *count = rows = lp_decoder_most(decoder, rows, histories);
    LP_ASSERT(rows > 0);
    lp_answer_begin(&decoder->answer, decoder->program, target, first_row, rows, output);
    if (rows == 1)
        return lp_decoder_query(decoder, caches[0], &histories[0], times[0], error);
    return lp_decoder_query_many(decoder, rows, caches, histories, times, error);
}

/* The same for as many queries as the answer has rows. A recommender's states are of several runs, because reading the catalogue takes
 * more rows than reading the network's weights. */
static lapse_status run(lp_decoder *decoder, const void *queries, query_at at, int64_t first, int64_t end,
                        lp_target target, double *output, int *count, lapse_error *error)
{
    const lp_model_config *config = &decoder->program->model->config;
    size_t size = output ? (size_t)lp_model_target_size(config, target) : 0;
    int rows;
    *count = 0;
    do {
        double *to = output ? output + (size_t)*count * size : NULL;
        LP_TRY(run_once(decoder, queries, at, first + *count, end, target, *count, to, &rows, error));
        *count += rows;
    } while (lp_model_ranks(config) && first + *count < end && *count < decoder->program->rows);
    if (lp_model_ranks(config))
        lp_answer_join(&decoder->answer, *count, output);
    return LAPSE_OK;
}

/* Whether queries about many sessions can be the rows of one run. */
static bool run_together(const lapse_model *model)
{
    const lp_model_config *config = &model->config;
    return lp_model_is_network(config) && config->row->incremental && config->row->incremental(config);
}

/* ----------------------------------------------------------------------------------------------- queries ----- */

static lapse_status predict_together(lp_decoder *decoder, const lapse_session_query *queries, int64_t count,
                                     lp_target target, double *probabilities, lapse_error *error)
{
    size_t size = (size_t)lp_model_target_size(&decoder->program->model->config, target);
    int rows;
    for (int64_t q = 0; q < count; q += rows) {
        LP_TRY(run(decoder, queries, of_queries, q, count, target, probabilities + (size_t)q * size, &rows, error));
        LP_TRY(lp_answer_finish(&decoder->answer, decoder->program, error));
    }
    return LAPSE_OK;
}

lapse_status lapse_session_predict_many(const lapse_session_query *queries, int64_t count, const char *target,
                                        double *probabilities, lapse_error *error)
{
    if (count < 1)
        return LAPSE_OK;
    LP_REQUIRE(error, queries, probabilities);
    LP_TRY(check_queries(queries, of_queries, count, target, false, error));
    const lapse_model *model = queries->session->model;
    lp_target number = lp_model_target_find(model, target);
    size_t size = (size_t)lp_model_target_size(&model->config, number);
    for (int64_t q = 0; q < count && !run_together(model); q++)
        LP_TRY(lapse_session_predict_target(queries[q].session, queries[q].time, lp_predict_names[number],
                                            probabilities + (size_t)q * size, error));
    if (!run_together(model))
        return LAPSE_OK;
    lp_decoder *decoder;
    LP_TRY(lp_decoder_borrow(model, &decoder, error));
    lapse_status status = predict_together(decoder, queries, count, number, probabilities, error);
    lp_decoder_return(decoder);
    return status;
}

/* Chooses the best of each row of a run. */
static lapse_status choose(lp_decoder *decoder, lapse_recommend_query *queries, int rows, lapse_error *error)
{
    lp_answer *answer = &decoder->answer;
    size_t size = (size_t)lp_model_target_size(&decoder->program->model->config, answer->target);
    bool ranks = lp_model_ranks(&decoder->program->model->config);
    if (!ranks)
        LP_TRY(lp_answer_finish(answer, decoder->program, error));
    for (int first = 0, count; first < rows; first += count) {
        count = rows - first < answer->score_rows ? rows - first : answer->score_rows;
        if (ranks)
            LP_TRY(lp_answer_score(answer, decoder->program, first, count, error));
        else
            memcpy(answer->scores, answer->logits + (size_t)first * size, (size_t)count * size * sizeof(float));
        for (int i = 0; i < count; i++) {
            lapse_recommend_query *query = &queries[first + i];
            lp_session_select(query->session, answer, answer->scores + (size_t)i * size, query->filter, query->top,
                              query->best, &query->count);
        }
    }
    return LAPSE_OK;
}

static lapse_status recommend_together(lp_decoder *decoder, lapse_recommend_query *queries, int64_t count,
                                       lp_target target, lapse_error *error)
{
    int rows;
    for (int64_t q = 0; q < count; q += rows) {
        LP_TRY(run(decoder, queries, of_recommend, q, count, target, NULL, &rows, error));
        LP_TRY(choose(decoder, queries + q, rows, error));
    }
    return LAPSE_OK;
}

static lapse_status check_recommend(const lapse_recommend_query *queries, int64_t count, const char *target,
                                    lapse_error *error)
{
    LP_TRY(check_queries(queries, of_recommend, count, target, false, error));
    for (int64_t q = 0; q < count; q++) {
        const lapse_recommend_query *query = &queries[q];
        if (query->top < 1)
            return lp_fail(error, LAPSE_ERROR_USAGE, "top of query %lld is %lld; it must be at least 1", (long long)q,
                           (long long)query->top);
        if (!query->best)
            return lp_fail(error, LAPSE_ERROR_USAGE, "best of query %lld is NULL", (long long)q);
        if (query->filter && lp_model_target_find(query->session->model, target) != LP_TARGET_EVENT)
            return lp_fail(error, LAPSE_ERROR_USAGE, "query %lld has a filter, which only the target event can have",
                           (long long)q);
        LP_TRY(fail_query(lp_item_filter_check(query->filter, query->session->model, error), q, error));
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
    const lapse_model *model = queries->session->model;
    bool together = run_together(model) && !lp_model_has_probabilities(model);
    for (int64_t q = 0; q < count && !together; q++)
        LP_TRY(lp_session_best(queries[q].session, queries[q].time, target, queries[q].top, queries[q].filter,
                               queries[q].best, &queries[q].count, error));
    if (!together)
        return LAPSE_OK;
    lp_decoder *decoder;
    LP_TRY(lp_decoder_borrow(model, &decoder, error));
    lapse_status status = recommend_together(decoder, queries, count, lp_model_target_find(model, target), error);
    lp_decoder_return(decoder);
    return status;
}

static lapse_status read_states(lp_decoder *decoder, const lapse_session_query *queries, int64_t count, float *states,
                                lapse_error *error)
{
    size_t dims = (size_t)lp_model_state_dims(&decoder->program->model->config);
    int rows;
    for (int64_t q = 0; q < count; q += rows) {
        LP_TRY(run(decoder, queries, of_queries, q, count, LP_TARGET_EVENT, NULL, &rows, error));
        memcpy(states + (size_t)q * dims, decoder->answer.state, (size_t)rows * dims * sizeof *states);
    }
    bool finite = lp_all_finite(states, (size_t)count * dims);
    return finite ? LAPSE_OK : lp_model_fail_infinite(decoder->program->model, error);
}

lapse_status lapse_session_state_many(const lapse_session_query *queries, int64_t count, float *states,
                                      lapse_error *error)
{
    if (count < 1)
        return LAPSE_OK;
    LP_REQUIRE(error, queries, states);
    LP_TRY(check_queries(queries, of_queries, count, NULL, true, error));
    const lapse_model *model = queries->session->model;
    size_t dims = (size_t)lp_model_state_dims(&model->config);
    for (int64_t q = 0; q < count && !run_together(model); q++)
        LP_TRY(lapse_session_state(queries[q].session, queries[q].time, states + (size_t)q * dims, error));
    if (!run_together(model))
        return LAPSE_OK;
    lp_decoder *decoder;
    LP_TRY(lp_decoder_borrow(model, &decoder, error));
    lapse_status status = read_states(decoder, queries, count, states, error);
    lp_decoder_return(decoder);
    return status;
}

/* ---------------------------------------------------------------------------------------------- vectors ------ */

/* Whether scores are products of states and item vectors. */
static bool has_products(const lapse_model *model)
{
    return lp_model_ranks(&model->config) && lp_model_score_rule(&model->config) == LP_SCORE_PRODUCT;
}

int lapse_model_state_dims(const lapse_model *model)
{
    return has_products(model) ? lp_model_state_dims(&model->config) : 0;
}

const float *lapse_model_item_vectors(const lapse_model *model)
{
    return has_products(model) ? model->parameters + model->network.items->offset : NULL;
}

const float *lapse_model_item_biases(const lapse_model *model)
{
    return has_products(model) ? model->parameters + model->network.bias->offset : NULL;
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
