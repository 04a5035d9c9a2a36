/* session.c: the events of a live history.
 *
 * A session owns its events and their cached rows, which grow with the events, and nothing else. A network sees the last `context`
 * events as one window. What queries need besides belongs to the model (program.h) and to the thread (decoder.h).
 */
#include "serve/session.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(lp_field_number) };
_Static_assert(sizeof(float) == FIELD_SIZE, "categories and numbers have the same size");

/* Events that a session has space for at first. */
enum { FEWEST_EVENTS = 16 };

lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error)
{
    LP_REQUIRE(error, model, session);
    LP_TRY(lp_model_check_whole(model, NULL, error));
    lapse_session *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a session", sizeof *made);
    made->model = lp_model_share(model);
    *session = made;
    return LAPSE_OK;
}

lapse_status lp_session_hold(lapse_session *session, lapse_error *error)
{
    if (!session->decoder)
        LP_TRY(lp_decoder_borrow(session->model, &session->decoder, error));
    session->holders++;
    return LAPSE_OK;
}

void lp_session_release(lapse_session *session)
{
    LP_ASSERT(session->holders > 0 && session->decoder);
    if (--session->holders > 0)
        return;
    lp_decoder_return(session->decoder);
    if (session->times_decoder)
        lp_decoder_return(session->times_decoder);
    session->decoder = session->times_decoder = NULL;
}

lp_session_network lp_session_events(lapse_session *session)
{
    return (lp_session_network){session->decoder, &session->cache};
}

lapse_status lp_session_times(lapse_session *session, lp_session_network *network, lapse_error *error)
{
    const lapse_model *times = lp_model_of_times(session->model);
    LP_ASSERT(session->decoder && times);
    *network = lp_session_events(session);
    if (times == session->model)
        return LAPSE_OK;
    if (!session->times_decoder)
        LP_TRY(lp_decoder_borrow(times, &session->times_decoder, error));
    *network = (lp_session_network){session->times_decoder, &session->times_cache};
    return LAPSE_OK;
}

void lapse_session_free(lapse_session *session)
{
    if (!session)
        return;
    if (session->decoder)
        lp_decoder_return(session->decoder);
    if (session->times_decoder)
        lp_decoder_return(session->times_decoder);
    lp_row_cache_clear(&session->cache);
    lp_row_cache_clear(&session->times_cache);
    lp_free(session->times);
    lp_free(session->types);
    lp_free(session->gaps);
    for (int f = 0; session->fields && f < session->model->config.field_count; f++)
        lp_free(session->fields[f]);
    lp_free(session->fields);
    lapse_model_free(session->model);
    lp_free(session);
}

void lapse_session_clear(lapse_session *session)
{
    session->count = session->total = 0;
    session->sequence = 0;
    lp_row_cache_reset(&session->cache);
    lp_row_cache_reset(&session->times_cache);
}

static lapse_status read_fields(const lapse_session *session, const lapse_event *event, lp_field_number *out,
                                lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    if (event->field_count != config->field_count)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the event '%s' was given %d field%s, but the model sees %d of each%s%s%s", event->event,
                       event->field_count, event->field_count == 1 ? "" : "s", config->field_count,
                       config->field_count ? ", the first being '" : "",
                       config->field_count ? config->fields[0].name : "", config->field_count ? "'" : "");
    if (config->field_count > 0 && !event->fields)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the fields of the event '%s' are NULL", event->event);
    for (int f = 0; f < config->field_count; f++) {
        const lp_model_field *field = &config->fields[f];
        const lapse_value *value = &event->fields[f];
        if (field->type == LAPSE_FIELD_NUMBER) {
            if (isinf(value->number))
                return lp_fail(error, LAPSE_ERROR_INPUT, "the number '%s' of the event '%s' is infinite", field->name,
                               event->event);
            out[f].number = lp_model_standardize(field, value->number);
            continue;
        }
        const char *text = value->text ? value->text : "";
        out[f].category = (int32_t)lp_names_find(&field->categories, text);
        if (out[f].category >= 0)
            continue;
        if (!*text)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN,
                           "the event '%s' has no '%s', and the model has never seen one without it", event->event,
                           field->name);
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know '%s' in '%s'", text, field->name);
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ events ----- */

/* Grows an array of events. */
static bool grow(void *array, int64_t capacity, size_t size)
{
    void **block = array, *grown = lp_grow(*block, (size_t)capacity, size);
    if (grown)
        *block = grown;
    return grown != NULL;
}

lapse_status lp_session_reserve(lapse_session *session, int64_t events, lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    if (events <= session->capacity)
        return LAPSE_OK;
    int64_t capacity = session->capacity + session->capacity / 2;
    capacity = capacity > events ? capacity : events;
    capacity = capacity > FEWEST_EVENTS ? capacity : FEWEST_EVENTS;
    if (config->field_count > 0 && !session->fields)
        session->fields = lp_alloc((size_t)config->field_count, sizeof *session->fields);
    bool good = (session->fields || config->field_count == 0) &&
                grow(&session->times, capacity, sizeof *session->times) &&
                grow(&session->types, capacity, sizeof *session->types) &&
                (!lp_model_reads_gap(config) || grow(&session->gaps, capacity, sizeof *session->gaps));
    for (int f = 0; good && f < config->field_count; f++)
        good = grow(&session->fields[f], capacity, FIELD_SIZE);
    if (!good)
        return lp_fail_memory(error, "a session", (size_t)capacity * (size_t)(16 + 4 * config->field_count));
    session->capacity = capacity;
    return LAPSE_OK;
}

void lp_session_keep(lapse_session *session, int64_t events)
{
    int64_t first = session->count - events;
    if (first <= 0)
        return;
    memmove(session->times, session->times + first, (size_t)events * sizeof *session->times);
    memmove(session->types, session->types + first, (size_t)events * sizeof *session->types);
    if (lp_model_reads_gap(&session->model->config))
        memmove(session->gaps, session->gaps + first, (size_t)events * sizeof *session->gaps);
    for (int f = 0; f < session->model->config.field_count; f++)
        memmove(session->fields[f], (char *)session->fields[f] + first * FIELD_SIZE, (size_t)events * FIELD_SIZE);
    session->count = events;
    lp_row_cache_drop(&session->cache, first);
    lp_row_cache_drop(&session->times_cache, first);
}

lp_history lp_session_history(const lapse_session *session)
{
    return (lp_history){.count = session->count,
                        .times = session->times,
                        .types = session->types,
                        .fields = session->fields,
                        .gaps = lp_model_reads_gap(&session->model->config) ? session->gaps : NULL,
                        .sequence = session->sequence};
}

lp_session_mark lp_session_mark_of(const lapse_session *session)
{
    return (lp_session_mark){session->count, session->total, lp_row_cache_mark(&session->cache),
                             lp_row_cache_mark(&session->times_cache)};
}

void lp_session_return(lapse_session *session, lp_session_mark mark)
{
    LP_ASSERT(session->decoder && session->count >= mark.count);
    session->count = mark.count;
    session->total = mark.total;
    lp_row_cache_return(&session->cache, mark.rows);
    lp_row_cache_return(&session->times_cache, mark.times_rows);
}

lapse_status lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields,
                            lapse_error *error)
{
    LP_ASSERT(type >= 0 && type < session->model->config.event_types);
    LP_ASSERT(session->count == 0 || time >= session->times[session->count - 1]);
    LP_TRY(lp_session_reserve(session, session->count + 1, error));
    for (int f = 0; f < session->model->config.field_count; f++)
        memcpy((char *)session->fields[f] + session->count * FIELD_SIZE, &fields[f], FIELD_SIZE);
    if (lp_model_reads_gap(&session->model->config)) {
        double gap = session->count > 0 ? time - session->times[session->count - 1] : NAN;
        session->gaps[session->count] = lp_model_standardize_gap(&session->model->config.gap, gap);
    }
    session->times[session->count] = time;
    session->types[session->count++] = type;
    session->total++;
    return LAPSE_OK;
}

lapse_status lp_session_add_row(lapse_session *session, const lp_event_columns *columns, double time, uint64_t event,
                                lapse_error *error)
{
    lp_field_number fields[LP_FIELD_LIMIT];
    for (int f = 0; f < columns->field_count; f++)
        memcpy(&fields[f], (const char *)columns->field[f] + event * sizeof *fields, sizeof *fields);
    return lp_session_add(session, time, columns->type[event], fields, error);
}

lapse_status lp_session_read_event(const lapse_session *session, const lapse_event *event, double last, int32_t *id,
                                   lp_field_number *fields, lapse_error *error)
{
    LP_REQUIRE(error, event->event);
    const char *name = event->event;
    int64_t type = lapse_model_event_type_find(session->model, name);
    if (type < 0)
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know the %s '%s'",
                       session->model->config.task == LP_TASK_RECOMMEND ? "item" : "event", name);
    if (!isfinite(event->time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time of the event '%s' is not a number", name);
    if (event->time < last)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the event '%s' at %.3f s lies before the one appended last, at %.3f s", name, event->time,
                       last);
    *id = (int32_t)type;
    return read_fields(session, event, fields, error);
}

lapse_status lapse_session_append_event(lapse_session *session, const lapse_event *event, lapse_error *error)
{
    LP_REQUIRE(error, session, event);
    lp_field_number fields[LP_FIELD_LIMIT];
    int32_t type;
    LP_TRY(lp_session_read_event(session, event, lapse_session_last_time(session), &type, fields, error));
    return lp_session_add(session, event->time, type, fields, error);
}

int64_t lapse_session_count(const lapse_session *session)
{
    return session->total;
}

double lapse_session_last_time(const lapse_session *session)
{
    return session->count > 0 ? session->times[session->count - 1] : NAN;
}

lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error)
{
    LP_REQUIRE(error, session, event);
    return lapse_session_append_event(session, &(lapse_event){.time = time, .event = event}, error);
}
