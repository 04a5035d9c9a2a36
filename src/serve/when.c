/* when.c: questions to a session about the time of its next event, and draws of it.
 *
 * The law of the time is queried once, at the time of the last event; all answers are computed from it. The type at a time is an ordinary
 * query at that time.
 */
#include "base/finite.h"
#include "model/when_head.h"
#include "serve/session.h"

#include <math.h>
#include <string.h>

void lapse_when_default(lapse_when *when)
{
    *when = (lapse_when){.now = NAN};
}

/* The law from now on. *now: NaN is replaced by the time of the last event. */
static lapse_status law_from(lapse_session *session, double *now, lp_next_time *law, lapse_error *error)
{
    if (!lp_model_predicts_time(session->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with " LP_FLAG("--when"));
    if (session->count == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the history is empty: append at least one event before the query");
    double last = session->times[session->count - 1];
    if (isnan(*now))
        *now = last;
    if (!isfinite(*now) || *now < last)
        return lp_fail(error, LAPSE_ERROR_INPUT, "now, %.3f s, lies before the last event, at %.3f s", *now, last);
    LP_TRY(lp_session_law(session, law, error));
    *law = lp_next_time_after(*law, *now - last);
    return LAPSE_OK;
}

static lapse_status answer_when(lapse_session *session, const lapse_when *when, lapse_error *error)
{
    lp_next_time law;
    double now = when->now;
    LP_TRY(law_from(session, &now, &law, error));
    for (int64_t i = 0; i < when->probability_count; i++) {
        if (!(when->probabilities[i] >= 0 && when->probabilities[i] <= 1))
            return lp_fail(error, LAPSE_ERROR_USAGE, "the probability %g of a quantile is not between 0 and 1",
                           when->probabilities[i]);
        when->quantiles[i] = now + lp_next_time_quantile(&law, when->probabilities[i]);
    }
    if (when->alive)
        *when->alive = lp_next_time_cdf(&law, session->model->config.when_span);
    if (when->mean)
        *when->mean = now + lp_next_time_mean(&law, session->model->config.when_span);
    for (int64_t i = 0; i < when->time_count; i++) {
        if (!(when->times[i] >= now))
            return lp_fail(error, LAPSE_ERROR_INPUT, "the time %.3f s lies before now, %.3f s", when->times[i], now);
        if (when->cdf)
            when->cdf[i] = lp_next_time_cdf(&law, when->times[i] - now);
        if (when->density)
            when->density[i] = exp(lp_next_time_log_density(&law, when->times[i] - now));
    }
    return LAPSE_OK;
}

lapse_status lapse_session_when(lapse_session *session, const lapse_when *when, lapse_error *error)
{
    LP_REQUIRE(error, session, when);
    if (when->probability_count > 0)
        LP_REQUIRE(error, when->probabilities, when->quantiles);
    if (when->time_count > 0)
        LP_REQUIRE(error, when->times);
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = answer_when(session, when, error);
    lp_session_release(session);
    return status;
}

static lapse_status within(lapse_session *session, double now, double until, double *probabilities, lapse_error *error)
{
    lp_next_time law;
    enum { NODES = LP_WITHIN_NODES };
    double start = now, time[NODES];
    LP_TRY(law_from(session, &start, &law, error));
    if (!(until >= start))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the horizon, %.3f s, lies before now, %.3f s", until, start);
    if (!lp_model_predicts(&session->model->config, LP_TARGET_EVENT))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict the event, but the action");
    size_t types = (size_t)session->model->config.event_types, rows = (size_t)lp_output_rows(session->model, NODES);
    double mass = lp_next_time_cdf(&law, until - start);
    for (int i = 0; i < NODES; i++)
        time[i] = fmin(start + lp_next_time_quantile(&law, mass * (i + 0.5) / NODES), until);
    double *each = lp_alloc(rows * types, sizeof *each);
    if (!each)
        return lp_fail_memory(error, "probabilities", rows * types * sizeof *each);
    memset(probabilities, 0, types * sizeof *probabilities);
    lapse_status status = LAPSE_OK;
    for (int done = 0; done < NODES && status == LAPSE_OK; done += (int)rows) {
        int count = NODES - done < (int)rows ? NODES - done : (int)rows;
        status = lp_session_probabilities_at(session, count, time + done, each, error);
        for (size_t k = 0; status == LAPSE_OK && k < (size_t)count * types; k++)
            probabilities[k % types] += mass / NODES * each[k];
    }
    lp_free(each);
    return status;
}

lapse_status lapse_session_within(lapse_session *session, double now, double until, double *probabilities,
                                  lapse_error *error)
{
    LP_REQUIRE(error, session, probabilities);
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = within(session, now, until, probabilities, error);
    lp_session_release(session);
    return status;
}

int64_t lp_draw_type(const double *probabilities, int64_t count, lp_random *random)
{
    double u = lp_random_uniform(random), sum = 0;
    int64_t k = 0;
    while (k + 1 < count && (sum += probabilities[k]) < u)
        k++;
    return k;
}

static lapse_status sample(lapse_session *session, double now, uint64_t seed, uint64_t draw, double *time,
                           int64_t *event, lapse_error *error)
{
    lp_next_time law;
    double start = now;
    LP_TRY(law_from(session, &start, &law, error));
    if (!lp_model_predicts(&session->model->config, LP_TARGET_EVENT))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict the event, but the action");
    lp_random random = lp_random_start(seed, LP_PURPOSE_FORECAST, 0);
    random.element = draw << 16;
    *time = start + lp_next_time_draw(&law, &random);
    *event = -1;
    if (!isfinite(*time))
        return LAPSE_OK;
    size_t types = (size_t)session->model->config.event_types;
    double *probabilities = lp_alloc(types, sizeof *probabilities);
    if (!probabilities)
        return lp_fail_memory(error, "probabilities", types * sizeof *probabilities);
    lapse_status status = lp_session_probabilities(session, *time, probabilities, error);
    if (status == LAPSE_OK)
        *event = lp_draw_type(probabilities, (int64_t)types, &random);
    lp_free(probabilities);
    return status;
}

lapse_status lapse_session_sample(lapse_session *session, double now, uint64_t seed, uint64_t draw, double *time,
                                  int64_t *event, lapse_error *error)
{
    LP_REQUIRE(error, session, time, event);
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = sample(session, now, seed, draw, time, event, error);
    lp_session_release(session);
    return status;
}
