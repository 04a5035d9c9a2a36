/* session.c: a live history that can be asked about any time.
 *
 * The history is the last events, at least as many as the model looks at. An answer takes them through the network as
 * one window whose last moment is the one asked about.
 */
#include "model/runner.h"

#include <math.h>
#include <string.h>

struct lapse_session {
    const lapse_model *model;
    int64_t count, capacity; /* events in times and kinds; room for twice what is kept, so that moving down is rare */
    double *times;
    int32_t *kinds;
    lp_network network;
    lp_batch batch;
    lp_runner runner;
    double *probabilities; /* where the shard's answer goes */
};

static lapse_status prepare(lapse_session *session, lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    /* A chain looks back as far as its order, whatever the context. */
    int kept = config->row->build || config->context > config->order ? config->context : config->order;
    session->capacity = 2 * (int64_t)kept;
    session->times = lp_alloc((size_t)session->capacity, sizeof *session->times);
    session->kinds = lp_alloc((size_t)session->capacity, sizeof *session->kinds);
    if (!session->times || !session->kinds)
        return lp_fail_memory(error, "a session", (size_t)session->capacity * 12);
    if (!config->row->build)
        return LAPSE_OK;
    LP_TRY(lp_network_build(&session->network, config, false, error));
    LP_TRY(lp_batch_init(&session->batch, 1, config->context, 1, error));
    return lp_runner_init(&session->runner, "cpu", &session->network, &session->batch, 1, error);
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
    lp_free(session);
}

void lapse_session_clear(lapse_session *session)
{
    session->count = 0;
}

lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error)
{
    int64_t kind = lapse_model_kind_find(session->model, event);
    if (kind < 0)
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know the event '%s'", event);
    if (!isfinite(time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time of the event '%s' is not a number", event);
    if (session->count > 0 && time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT, "the event '%s' at %.3f s lies before the one appended last, at %.3f s",
                       event, time, session->times[session->count - 1]);
    if (session->count == session->capacity) {
        int64_t kept = session->capacity / 2;
        memmove(session->times, session->times + session->count - kept, (size_t)kept * sizeof *session->times);
        memmove(session->kinds, session->kinds + session->count - kept, (size_t)kept * sizeof *session->kinds);
        session->count = kept;
    }
    session->times[session->count] = time;
    session->kinds[session->count++] = (int32_t)kind;
    return LAPSE_OK;
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
}

static void take_answer(void *context, int shard, const float *logits)
{
    (void)shard;
    lapse_session *session = context;
    int kinds = session->model->config.kinds;
    const float *row = logits + (size_t)(session->batch.tokens - 1) * (size_t)kinds;
    double largest = row[0], sum = 0;
    for (int i = 1; i < kinds; i++)
        largest = row[i] > largest ? row[i] : largest;
    for (int i = 0; i < kinds; i++)
        sum += session->probabilities[i] = exp(row[i] - largest);
    for (int i = 0; i < kinds; i++)
        session->probabilities[i] /= sum;
}

lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    const lapse_model *model = session->model;
    if (session->count == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the history is empty: append at least one event before asking");
    if (!isfinite(time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time asked about is not a number");
    if (time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time asked about, %.3f s, lies before the last event, at %.3f s",
                       time, session->times[session->count - 1]);
    if (!model->config.row->build) {
        model->config.row->answer(model, session->kinds, session->count, probabilities);
        return LAPSE_OK;
    }
    fill(session, time);
    session->probabilities = probabilities;
    lp_runner_run(&session->runner, &(lp_pass){.batch = &session->batch,
                                               .parameters = model->parameters,
                                               .on_shard = take_answer,
                                               .context = session});
    return LAPSE_OK;
}
