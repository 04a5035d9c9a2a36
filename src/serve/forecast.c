/* forecast.c: futures of the sequences of a dataset, drawn event by event, on several threads (session_pool.h).
 *
 * A thread takes one sequence after another. Its events are appended to a session once; each future starts from there, and the session
 * returns to that state for the next one (lp_session_return). So a drawn event costs two queries of one row: its type, and the time of
 * the event after it. The first event's law is common to all futures.
 *
 * The numbers of a future are those of (seed, sequence, number of the future), so threads do not change it.
 */
#include "data/dataset/gap_quantile.h"
#include "model/when_head.h"
#include "serve/session_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws of one future: its random numbers lie in a range of their own. */
enum { DRAWS_BITS = 24 };

/* Events of one future, at most: a law whose times are all 0 would never reach the horizon. */
enum { MAX_EVENTS = 100000 };

typedef struct worker {
    double *probabilities; /* [types] */
    double *first_law;     /* [lp_time_law_size]: the law of the first event, which other queries would overwrite */
    double *counts;        /* [samples]: events of each future */
    int32_t *seen;         /* [types]: number of the future that had the type last, from 1 */
} worker;

typedef struct job {
    const lapse_model *model;
    const lapse_forecast_options *options;
    lp_session_pool pool;
    lapse_forecasts *out;
    worker *workers; /* [threads] */
} job;

void lapse_forecast_options_default(lapse_forecast_options *options)
{
    *options = (lapse_forecast_options){.horizon = 7 * 86400.0, .now = NAN, .samples = 500, .seed = 1};
}

void lapse_forecasts_clear(lapse_forecasts *forecasts)
{
    if (!forecasts)
        return;
    lp_free(forecasts->samples);
    lp_free(forecasts->count);
    lp_free(forecasts->low);
    lp_free(forecasts->high);
    lp_free(forecasts->any);
    lp_free(forecasts->type_expected);
    lp_free(forecasts->type_any);
    *forecasts = (lapse_forecasts){0};
}

static lapse_session *read_sequence(const job *j, int thread, int64_t sequence)
{
    lapse_session *session = lp_session_pool_read(&j->pool, thread, sequence);
    lp_session_compact(session);
    return session;
}

/* Draws one future from the session's state, which it leaves changed. first: the law of its first event, from now on. */
static lapse_status draw_future(const job *j, worker *w, lapse_session *session, int64_t sequence, int64_t sample,
                                double now, lp_next_time first, lapse_error *error)
{
    const lapse_forecast_options *options = j->options;
    int64_t types = j->model->config.event_types;
    lp_next_time law = first;
    lp_random random = lp_random_start(options->seed, LP_PURPOSE_FORECAST, 1 + (uint32_t)sequence);
    random.element = (uint64_t)sample << DRAWS_BITS;
    double time = now, end = now + options->horizon;
    for (int events = 0; events < MAX_EVENTS; events++) {
        time += lp_next_time_draw(&law, &random);
        if (!(time <= end))
            return LAPSE_OK;
        LP_TRY(lp_session_probabilities(session, time, w->probabilities, error));
        int64_t type = lp_draw_type(w->probabilities, types, &random);
        w->counts[sample]++;
        j->out->type_expected[sequence * types + type]++;
        if (w->seen[type] != (int32_t)sample + 1)
            j->out->type_any[sequence * types + type]++;
        w->seen[type] = (int32_t)sample + 1;
        lp_session_add(session, time, (int32_t)type, NULL);
        LP_TRY(lp_session_law(session, &law, error));
    }
    return LAPSE_OK;
}

/* Turns the sums over futures into means, and the counts into quantiles. */
static void finish(const job *j, worker *w, int64_t sequence)
{
    lapse_forecasts *out = j->out;
    int64_t samples = j->options->samples, types = out->type_count;
    double n = (double)samples;
    for (int64_t s = 0; s < samples; s++) {
        out->count[sequence] += w->counts[s] / n;
        out->any[sequence] += (w->counts[s] > 0) / n;
    }
    for (int64_t k = sequence * types; k < (sequence + 1) * types; k++) {
        out->type_expected[k] /= n;
        out->type_any[k] /= n;
    }
    qsort(w->counts, (size_t)samples, sizeof *w->counts, lp_compare_numbers);
    out->low[sequence] = w->counts[(int64_t)(0.1 * (n - 1) + 0.5)];
    out->high[sequence] = w->counts[(int64_t)(0.9 * (n - 1) + 0.5)];
    out->samples[sequence] = samples;
}

static lapse_status forecast_sequence(const job *j, int thread, int64_t sequence, lapse_error *error)
{
    const lapse_forecast_options *options = j->options;
    worker *w = &j->workers[thread];
    lapse_session *session = read_sequence(j, thread, sequence);
    if (session->count == 0)
        return LAPSE_OK;
    double last = session->times[session->count - 1], now = fmax(last, options->now); /* last, if now is NaN */
    lp_next_time law;
    LP_TRY(lp_session_law(session, &law, error));
    size_t numbers = lp_time_law_size(j->model, session->decoder.samples);
    memcpy(w->first_law, session->time_memory, numbers * sizeof *w->first_law);
    if (law.law == &lp_law_mixture)
        law = lp_next_time_mixture(law.count, w->first_law, w->first_law + law.count, w->first_law + 2 * law.count);
    law = lp_next_time_after(law, now - last);
    lp_session_mark mark = lp_session_mark_of(session);
    memset(w->counts, 0, (size_t)options->samples * sizeof *w->counts);
    memset(w->seen, 0, (size_t)j->out->type_count * sizeof *w->seen);
    for (int64_t sample = 0; sample < options->samples; sample++) {
        int64_t room = session->capacity - session->count;
        LP_TRY(draw_future(j, w, session, sequence, sample, now, law, error));
        if (w->counts[sample] <= (double)room) {
            lp_session_return(session, mark);
            continue;
        }
        /* The session has dropped events: the next future starts from a new one. */
        read_sequence(j, thread, sequence);
        lp_next_time again;
        LP_TRY(lp_session_law(session, &again, error));
    }
    finish(j, w, sequence);
    return LAPSE_OK;
}

static lapse_status forecast_range(void *context, int64_t first, int64_t end, int thread, lapse_error *error)
{
    for (int64_t i = first; i < end; i++)
        LP_TRY(forecast_sequence(context, thread, i, error));
    return LAPSE_OK;
}

static lapse_status check(const job *j, lapse_error *error)
{
    const lp_model_config *config = &j->model->config;
    const lapse_forecast_options *options = j->options;
    if (!lp_model_predicts_time(j->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with --when");
    if (config->field_count > 0)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the model reads the field '%s' of events, which a drawn event does not have: train a model on a "
            "dataset without fields",
            config->fields[0].name);
    if (!(options->horizon > 0) || isinf(options->horizon))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the horizon is %g s; it must be above 0", options->horizon);
    if (options->samples < 1 || options->samples > 1000000)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%lld samples are not between 1 and 1,000,000",
                       (long long)options->samples);
    return LAPSE_OK;
}

static lapse_status make_workers(job *j, lapse_error *error)
{
    size_t types = (size_t)j->model->config.event_types, samples = (size_t)j->options->samples;
    size_t law = lp_time_law_size(j->model, j->pool.sessions[0]->decoder.samples);
    j->workers = lp_alloc((size_t)j->pool.threads, sizeof *j->workers);
    if (!j->workers)
        return lp_fail_memory(error, "a forecast", (size_t)j->pool.threads * sizeof *j->workers);
    for (int i = 0; i < j->pool.threads; i++) {
        worker *w = &j->workers[i];
        w->probabilities = lp_alloc(types, sizeof *w->probabilities);
        w->first_law = lp_alloc(law, sizeof *w->first_law);
        w->counts = lp_alloc(samples, sizeof *w->counts);
        w->seen = lp_alloc(types, sizeof *w->seen);
        if (!w->probabilities || !w->first_law || !w->counts || !w->seen)
            return lp_fail_memory(error, "a forecast", (types + law + samples) * sizeof(double));
    }
    return LAPSE_OK;
}

static void free_workers(job *j)
{
    for (int i = 0; j->workers && i < j->pool.threads; i++) {
        lp_free(j->workers[i].probabilities);
        lp_free(j->workers[i].first_law);
        lp_free(j->workers[i].counts);
        lp_free(j->workers[i].seen);
    }
    lp_free(j->workers);
}

static lapse_status make_results(const job *j, lapse_error *error)
{
    lapse_forecasts *out = j->out;
    size_t sequences = (size_t)j->pool.dataset->sequence_count, types = (size_t)j->model->config.event_types;
    *out = (lapse_forecasts){.sequence_count = (int64_t)sequences,
                             .type_count = (int64_t)types,
                             .now = j->options->now,
                             .horizon = j->options->horizon};
    out->samples = lp_alloc(sequences, sizeof *out->samples);
    out->count = lp_alloc(sequences, sizeof *out->count);
    out->low = lp_alloc(sequences, sizeof *out->low);
    out->high = lp_alloc(sequences, sizeof *out->high);
    out->any = lp_alloc(sequences, sizeof *out->any);
    out->type_expected = lp_alloc(sequences * types, sizeof *out->type_expected);
    out->type_any = lp_alloc(sequences * types, sizeof *out->type_any);
    if (out->samples && out->count && out->low && out->high && out->any && out->type_expected && out->type_any)
        return LAPSE_OK;
    return lp_fail_memory(error, "a forecast", 2 * sequences * types * sizeof(double));
}

lapse_status lapse_forecast(const lapse_model *model, const lapse_dataset *histories,
                            const lapse_forecast_options *options, lapse_forecasts *forecasts, lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options, forecasts);
    job j = {.model = model, .options = options, .out = forecasts};
    LP_TRY(check(&j, error));
    LP_TRY(lp_session_pool_open(&j.pool, model, histories, options->threads, options->skip_unknown, error));
    lapse_status status = make_results(&j, error);
    if (status == LAPSE_OK)
        status = make_workers(&j, error);
    if (status == LAPSE_OK)
        status = lp_session_pool_run(&j.pool, histories->sequence_count, forecast_range, &j, error);
    if (status != LAPSE_OK)
        lapse_forecasts_clear(forecasts);
    free_workers(&j);
    lp_session_pool_close(&j.pool);
    return status;
}
