/* session.c: a live history that can be asked about any time.
 *
 * The history is the last `context` events, or the `order` that a Markov chain looks back, if that is more. A network is
 * asked with the last `context` of them as one window whose last moment is the one asked about; with a sampled encoding
 * once for each draw that the model keeps, and the answer is their mean.
 */
#include "model/runner.h"

#include <math.h>
#include <string.h>

struct lapse_session {
    const lapse_model *model;
    int64_t count, capacity; /* events in times and kinds; room for twice what is kept, so that moving down is rare */
    double *times;
    int32_t *kinds;
    void **fields; /* field_count of them, each like kinds: int32_t of a category, float of a number */
    lp_network network;
    lp_batch batch;
    lp_runner runner;
    lp_target target;      /* asked for */
    double *probabilities; /* where the shard's answer goes */
};

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(float) };

static lapse_status prepare(lapse_session *session, lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    /* A chain looks back as far as its order, whatever the context. */
    int kept = config->row->build || config->context > config->order ? config->context : config->order;
    session->capacity = 2 * (int64_t)kept;
    session->times = lp_alloc((size_t)session->capacity, sizeof *session->times);
    session->kinds = lp_alloc((size_t)session->capacity, sizeof *session->kinds);
    session->fields = lp_alloc((size_t)config->field_count, sizeof *session->fields);
    bool good = session->times && session->kinds && session->fields;
    for (int f = 0; good && f < config->field_count; f++)
        good = (session->fields[f] = lp_alloc((size_t)session->capacity, FIELD_SIZE)) != NULL;
    if (!good)
        return lp_fail_memory(error, "a session", (size_t)session->capacity * (size_t)(12 + 4 * config->field_count));
    if (!config->row->build)
        return LAPSE_OK;
    LP_TRY(lp_network_build(&session->network, config, false, error));
    LP_TRY(lp_batch_init(&session->batch, 1, config->context, 1, config->field_count, error));
    return lp_runner_init(&session->runner, lp_backend_find("cpu"), &session->network, &session->batch, 1, error);
}

lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error)
{
    lapse_session *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a session", sizeof *made);
    made->model = model;
    lapse_status status = prepare(made, error);
    if (status != LAPSE_OK) {
        lapse_session_free(made);
        return status;
    }
    *session = made;
    return LAPSE_OK;
}

void lapse_session_free(lapse_session *session)
{
    if (!session)
        return;
    lp_runner_clear(&session->runner);
    lp_batch_clear(&session->batch);
    lp_graph_clear(&session->network.graph);
    lp_free(session->times);
    lp_free(session->kinds);
    for (int f = 0; session->fields && f < session->model->config.field_count; f++)
        lp_free(session->fields[f]);
    lp_free(session->fields);
    lp_free(session);
}

void lapse_session_clear(lapse_session *session)
{
    session->count = 0;
}

/* The fields of an event in the model's numbers. */
typedef union field_number {
    int32_t category;
    float number;
} field_number;
_Static_assert(sizeof(field_number) == FIELD_SIZE, "categories and numbers take the same room");

static lapse_status read_fields(const lapse_session *session, const lapse_event *event, field_number *out,
                                lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    if (event->field_count != config->field_count)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the event '%s' was given %d field%s, but the model sees %d of each%s%s%s", event->event,
                       event->field_count, event->field_count == 1 ? "" : "s", config->field_count,
                       config->field_count ? ", the first being '" : "",
                       config->field_count ? config->fields[0].name : "", config->field_count ? "'" : "");
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

static void keep_newest(lapse_session *session)
{
    int64_t kept = session->capacity / 2, first = session->count - kept;
    memmove(session->times, session->times + first, (size_t)kept * sizeof *session->times);
    memmove(session->kinds, session->kinds + first, (size_t)kept * sizeof *session->kinds);
    for (int f = 0; f < session->model->config.field_count; f++)
        memmove(session->fields[f], (char *)session->fields[f] + first * FIELD_SIZE, (size_t)kept * FIELD_SIZE);
    session->count = kept;
}

lapse_status lapse_session_append_event(lapse_session *session, const lapse_event *event, lapse_error *error)
{
    field_number fields[LP_FIELD_LIMIT];
    const char *name = event->event;
    int64_t kind = lapse_model_kind_find(session->model, name);
    if (kind < 0)
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know the event '%s'", name);
    if (!isfinite(event->time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time of the event '%s' is not a number", name);
    if (session->count > 0 && event->time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the event '%s' at %.3f s lies before the one appended last, at %.3f s", name, event->time,
                       session->times[session->count - 1]);
    LP_TRY(read_fields(session, event, fields, error));
    if (session->count == session->capacity)
        keep_newest(session);
    for (int f = 0; f < event->field_count; f++)
        memcpy((char *)session->fields[f] + session->count * FIELD_SIZE, &fields[f], FIELD_SIZE);
    session->times[session->count] = event->time;
    session->kinds[session->count++] = (int32_t)kind;
    return LAPSE_OK;
}

lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error)
{
    return lapse_session_append_event(session, &(lapse_event){.time = time, .event = event}, error);
}

/* The last context events as one window, asked about `time`. */
static void fill(lapse_session *session, double time)
{
    const lp_model_config *config = &session->model->config;
    lp_batch *batch = &session->batch;
    int count = session->count < config->context ? (int)session->count : config->context;
    const double *times = session->times + session->count - count;
    const int32_t *kinds = session->kinds + session->count - count;
    double last = config->target_known ? time : times[count - 1];
    for (int f = 0; f < config->field_count; f++)
        memcpy(batch->field[f], (char *)session->fields[f] + (session->count - count) * FIELD_SIZE,
               (size_t)count * FIELD_SIZE);
    for (int t = 0; t < count; t++) {
        double next = t + 1 < count ? times[t + 1] : time;
        batch->kind[t] = kinds[t];
        batch->position[t] = t;
        batch->time[t] = times[t] - last;
        batch->until[t] = (config->target_known ? next : times[t]) - last;
    }
    batch->windows = 1;
    batch->tokens = count;
    batch->segment[0] = 0;
    batch->segment[1] = count;
    batch->shard_window[1] = 1;
    batch->shard_token[1] = count;
    batch->asked[0] = count - 1;
    batch->shard_asked[1] = batch->targets = 1;
}

static void take_answer(void *context, int shard, const lp_outcome *outcome)
{
    (void)shard;
    lapse_session *session = context;
    const lp_model_config *config = &session->model->config;
    int size = lp_model_target_size(config, session->target);
    lp_softmax_add(outcome->logits[session->target], size, 1.0 / config->draws, session->probabilities);
}

lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    return lapse_session_predict_target(session, time, "event", probabilities, error);
}

lapse_status lapse_session_predict_target(lapse_session *session, double time, const char *target,
                                          double *probabilities, lapse_error *error)
{
    const lapse_model *model = session->model;
    session->target = lp_model_target_find(model, target);
    if (session->target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", target,
                       lapse_model_target(model, 0));
    if (session->count == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the history is empty: append at least one event before asking");
    if (!isfinite(time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time asked about is not a number");
    if (time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time asked about, %.3f s, lies before the last event, at %.3f s",
                       time, session->times[session->count - 1]);
    if (!model->config.row->build) {
        double asked = model->config.target_known ? time : session->times[session->count - 1];
        model->config.row->answer(model, &(lp_question){session->kinds, session->count, asked}, probabilities);
        return LAPSE_OK;
    }
    fill(session, time);
    session->probabilities = probabilities;
    memset(probabilities, 0, (size_t)lp_model_target_size(&model->config, session->target) * sizeof *probabilities);
    for (int draw = 0; draw < model->config.draws; draw++)
        lp_runner_run(&session->runner, &(lp_pass){.batch = &session->batch,
                                                   .parameters = model->parameters,
                                                   .draw = draw,
                                                   .on_shard = take_answer,
                                                   .context = session});
    return LAPSE_OK;
}
