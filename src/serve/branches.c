/* branches.c: continuations of a session's history that are queried together. */
#include "serve/branches.h"

#include "base/finite.h"
#include "model/when_head.h"

#include <math.h>
#include <string.h>

/* Events of a branch, at most: more than most futures have. */
enum { MOST_EVENTS = 32 };

/* Events of a branch: a quarter of the context, so that the history has at least three quarters of it. */
static int branch_events(const lapse_model *model)
{
    int quarter = model->config.context / 4;
    return quarter < MOST_EVENTS ? quarter : MOST_EVENTS;
}

int64_t lp_branches_history(const lapse_model *model)
{
    return model->config.context - branch_events(model);
}

lapse_status lp_branches_init(lp_branches *b, lapse_session *session, int count, lapse_error *error)
{
    int most = lp_output_rows(session->model, count);
    size_t branches = (size_t)most, events = branches * (size_t)branch_events(session->model);
    *b = (lp_branches){.session = session};
    lp_session_network times;
    LP_TRY(lp_session_times(session, &times, error));
    LP_TRY(lp_branch_rows_init(&b->rows, session->decoder->program, most, branch_events(session->model), error));
    if (session->model->times &&
        lp_branch_rows_init(&b->times_rows, times.decoder->program, most, branch_events(session->model), error)) {
        lp_branches_clear(b);
        return LAPSE_ERROR_MEMORY;
    }
    b->length = lp_alloc(branches, sizeof *b->length);
    b->times = lp_alloc(events, sizeof *b->times);
    b->types = lp_alloc(events, sizeof *b->types);
    b->sources = lp_alloc(events, sizeof *b->sources);
    b->gaps = lp_alloc(events, sizeof *b->gaps);
    b->query_time = lp_alloc(branches, sizeof *b->query_time);
    b->first = lp_alloc(branches, sizeof *b->first);
    b->row_length = lp_alloc(branches, sizeof *b->row_length);
    b->row_type = lp_alloc(branches, sizeof *b->row_type);
    b->row_source = lp_alloc(branches, sizeof *b->row_source);
    b->row_event_time = lp_alloc(branches, sizeof *b->row_event_time);
    b->row_time = lp_alloc(branches, sizeof *b->row_time);
    b->row_gap = lp_alloc(branches, sizeof *b->row_gap);
    if (b->length && b->times && b->types && b->sources && b->gaps && b->query_time && b->first && b->row_length &&
        b->row_type && b->row_source && b->row_event_time && b->row_time && b->row_gap)
        return LAPSE_OK;
    lp_branches_clear(b);
    return lp_fail_memory(error, "branches of a history", (events + branches) * sizeof(double));
}

void lp_branches_clear(lp_branches *b)
{
    lp_branch_rows_clear(&b->rows);
    lp_branch_rows_clear(&b->times_rows);
    lp_free(b->length);
    lp_free(b->times);
    lp_free(b->types);
    lp_free(b->sources);
    lp_free(b->gaps);
    lp_free(b->query_time);
    lp_free(b->first);
    lp_free(b->row_length);
    lp_free(b->row_type);
    lp_free(b->row_source);
    lp_free(b->row_event_time);
    lp_free(b->row_time);
    lp_free(b->row_gap);
    *b = (lp_branches){0};
}

void lp_branches_reset(lp_branches *b, int branch)
{
    b->length[branch] = 0;
}

/* The index of a branch's newest event in times, types and gaps; -1: it is the history's last. */
static int64_t newest(const lp_branches *b, int branch)
{
    return b->length[branch] > 0 ? (int64_t)branch * b->rows.events + b->length[branch] - 1 : -1;
}

static double last_time(const lp_branches *b, int branch)
{
    int64_t at = newest(b, branch);
    return at < 0 ? b->session->times[b->session->count - 1] : b->times[at];
}

/* The event of the session's history whose fields an event of this type has, after those of a branch. */
static int32_t source_of(const lp_branches *b, int branch, int32_t type)
{
    const lapse_session *session = b->session;
    int64_t first = (int64_t)branch * b->rows.events, last = newest(b, branch), event = session->count - 1;
    for (int64_t at = last; at >= first && session->model->config.field_count > 0; at--)
        if (b->types[at] == type)
            return b->sources[at];
    while (event >= 0 && session->types[event] != type && session->model->config.field_count > 0)
        event--;
    return event >= 0 ? (int32_t)event : last < 0 ? (int32_t)(session->count - 1) : b->sources[last];
}

/* Appends an event to the session. */
static lapse_status append(lp_branches *b, double time, int32_t type, int32_t source, lapse_error *error)
{
    lp_field_number fields[LP_FIELD_LIMIT];
    lapse_session *session = b->session;
    for (int f = 0; f < session->model->config.field_count; f++)
        memcpy(&fields[f], (const char *)session->fields[f] + (size_t)source * sizeof *fields, sizeof *fields);
    return lp_session_add(session, time, type, fields, error);
}

/* Queries a model that runs the whole window: the session has the events of the branch for the time of the query. */
static lapse_status query_window(lp_branches *b, lp_session_network network, int row, int branch, double *probabilities,
                                 lapse_error *error)
{
    lapse_session *session = b->session;
    lp_session_mark mark = lp_session_mark_of(session);
    size_t first = (size_t)branch * (size_t)b->rows.events;
    LP_TRY(lp_session_reserve(session, session->count + b->length[branch], error));
    for (int32_t i = 0; i < b->length[branch]; i++)
        LP_TRY(
            append(b, b->times[first + (size_t)i], b->types[first + (size_t)i], b->sources[first + (size_t)i], error));
    lapse_status status = lp_session_branch(session, network, b->row_time[row], row, probabilities, error);
    lp_session_return(session, mark);
    return status;
}

/* Queries `count` branches at row_time. */
static lapse_status query_rows(lp_branches *b, lp_session_network network, lp_branch_rows *rows, int count,
                               const int32_t *branch, double *probabilities, lapse_error *error)
{
    lapse_session *session = b->session;
    size_t types = (size_t)session->model->config.event_types;
    bool gaps = lp_model_reads_gap(&session->model->config);
    for (int i = 0; i < count; i++) {
        int64_t at = newest(b, branch[i]), last = session->count - 1;
        b->row_length[i] = b->length[branch[i]];
        b->row_event_time[i] = at < 0 ? session->times[last] : b->times[at];
        b->row_source[i] = at < 0 ? (int32_t)last : b->sources[at];
        b->row_type[i] = at < 0 ? session->types[last] : b->types[at];
        if (gaps)
            b->row_gap[i] = at < 0 ? session->gaps[last] : b->gaps[at];
    }
    lp_branch_query query = {.count = count,
                             .branch = branch,
                             .length = b->row_length,
                             .event_time = b->row_event_time,
                             .type = b->row_type,
                             .source = b->row_source,
                             .gap = gaps ? b->row_gap : NULL,
                             .time = b->row_time};
    if (network.decoder->program->incremental)
        return lp_session_branches(session, network, rows, &query, probabilities, error);
    for (int i = 0; i < count; i++)
        LP_TRY(query_window(b, network, i, branch[i], probabilities ? probabilities + (size_t)i * types : NULL, error));
    return LAPSE_OK;
}

lapse_status lp_branches_types(lp_branches *b, int count, const int32_t *branch, const double *time,
                               double *probabilities, lapse_error *error)
{
    memcpy(b->row_time, time, (size_t)count * sizeof *time);
    for (int i = 0; i < count; i++)
        b->query_time[branch[i]] = time[i];
    return query_rows(b, lp_session_events(b->session), &b->rows, count, branch, probabilities, error);
}

/* A branch of one event attends to the history's last, whose row in a network of times is that of a query without the event. */
static lapse_status query_last(lp_branches *b, lp_session_network times, int count, const int32_t *branch,
                               lapse_error *error)
{
    int last = 0;
    for (int i = 0; i < count; i++)
        if (b->length[branch[i]] == 1)
            b->first[last++] = branch[i];
    for (int i = 0; i < last; i++)
        b->length[b->first[i]] = 0;
    lapse_status status = last > 0 ? query_rows(b, times, &b->times_rows, last, b->first, NULL, error) : LAPSE_OK;
    for (int i = 0; i < last; i++)
        b->length[b->first[i]] = 1;
    return status;
}

lapse_status lp_branches_laws(lp_branches *b, int count, const int32_t *branch, lapse_error *error)
{
    lp_session_network times;
    LP_TRY(lp_session_times(b->session, &times, error));
    const lapse_model *model = times.decoder->program->model;
    bool own = model != b->session->model;
    size_t width = (size_t)times.decoder->program->samples * (size_t)lp_network_time(&model->network)->cols;
    if (own && times.decoder->program->incremental)
        LP_TRY(query_last(b, times, count, branch, error));
    for (int i = 0; i < count; i++)
        b->row_time[i] = last_time(b, branch[i]);
    LP_TRY(query_rows(b, times, own ? &b->times_rows : &b->rows, count, branch, NULL, error));
    b->laws = &times.decoder->answer;
    bool finite = lp_all_finite(b->laws->time_outputs, (size_t)count * width);
    return finite ? LAPSE_OK : lp_model_fail_infinite(b->session->model, error);
}

lp_next_time lp_branches_law(const lp_branches *b, int row)
{
    const lapse_model *model = lp_model_of_times(b->session->model);
    int samples = lp_network_samples(&model->network);
    size_t width = (size_t)samples * (size_t)lp_network_time(&model->network)->cols;
    return lp_time_law_of(model, b->row_time[row], b->laws->time_outputs + (size_t)row * width, samples,
                          b->laws->time_memory);
}

bool lp_branches_has_space(const lp_branches *b, int branch)
{
    const lapse_session *session = b->session;
    return b->length[branch] < b->rows.events && session->count + b->length[branch] < session->model->config.context;
}

void lp_branches_add(lp_branches *b, int branch, int32_t type)
{
    double time = b->query_time[branch], before = last_time(b, branch);
    int32_t source = source_of(b, branch, type);
    b->length[branch]++;
    int64_t at = newest(b, branch);
    b->times[at] = time;
    b->types[at] = type;
    b->sources[at] = source;
    b->gaps[at] = lp_model_standardize_gap(&b->session->model->config.gap, time - before);
}

lapse_status lp_branches_commit(lp_branches *b, int branch, int32_t type, lapse_error *error)
{
    lapse_session *session = b->session;
    size_t first = (size_t)branch * (size_t)b->rows.events;
    int32_t source = source_of(b, branch, type);
    for (int32_t i = 0; i < b->length[branch]; i++)
        LP_TRY(
            append(b, b->times[first + (size_t)i], b->types[first + (size_t)i], b->sources[first + (size_t)i], error));
    LP_TRY(append(b, b->query_time[branch], type, source, error));
    lp_branches_reset(b, branch);
    lp_session_keep(session, lp_branches_history(session->model));
    return LAPSE_OK;
}
