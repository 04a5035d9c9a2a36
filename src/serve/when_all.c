/* when_all.c: the time of the next event of every sequence of a dataset, on several threads. */
#include "base/clock.h"
#include "serve/session_pool.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define REPORT_SECONDS 0.1

typedef struct job {
    const lapse_model *model;
    const lapse_when_options *options;
    lp_session_pool pool;
    double *start, *quantiles, *within, *type_within;
    double *until;          /* [threads x horizon_count] */
    pthread_mutex_t watch;  /* held by the thread that reports; guards `reported` */
    double begun, reported; /* by lp_clock_seconds */
    atomic_bool stop;
    _Atomic int64_t done; /* sequences */
} job;

void lapse_when_options_default(lapse_when_options *options)
{
    *options = (lapse_when_options){.now = NAN};
}

static void fill_unknown(double *out, int64_t count)
{
    for (int64_t i = 0; out && i < count; i++)
        out[i] = NAN;
}

static lapse_status answer(const job *j, int thread, int64_t sequence, lapse_error *error)
{
    const lapse_when_options *options = j->options;
    lapse_session *session = j->pool.sessions[thread];
    LP_TRY(lp_session_pool_read(&j->pool, thread, sequence, 0, lp_session_pool_events(&j->pool, sequence), error));
    double *until = j->until + thread * options->horizon_count;
    int64_t p = options->probability_count, h = options->horizon_count, types = j->model->config.event_types;
    bool typed = options->type_sequences == 0 || sequence < options->type_sequences;
    double *type_within = j->type_within && typed ? j->type_within + sequence * h * types : NULL;
    lapse_when when = {.now = NAN,
                       .probabilities = options->probabilities,
                       .probability_count = j->quantiles ? p : 0,
                       .quantiles = j->quantiles ? j->quantiles + sequence * p : NULL,
                       .times = until,
                       .time_count = j->within ? h : 0,
                       .cdf = j->within ? j->within + sequence * h : NULL,
                       .alive = options->alive ? options->alive + sequence : NULL,
                       .mean = options->mean ? options->mean + sequence : NULL};
    fill_unknown(&j->start[sequence], 1);
    fill_unknown(when.alive, 1);
    fill_unknown(when.mean, 1);
    fill_unknown(when.quantiles, p);
    fill_unknown(when.cdf, h);
    fill_unknown(type_within, h * types);
    if (session->count == 0)
        return LAPSE_OK;
    when.now = fmax(session->times[session->count - 1], options->now); /* the last event, if now is NaN */
    j->start[sequence] = when.now;
    for (int64_t i = 0; i < h; i++)
        until[i] = when.now + options->horizons[i];
    LP_TRY(lapse_session_when(session, &when, error));
    for (int64_t i = 0; type_within && i < h; i++)
        LP_TRY(lapse_session_within(session, when.now, until[i], type_within + i * types, error));
    return LAPSE_OK;
}

/* Counts a sequence, and reports unless another thread does so or has just done. */
static lapse_status report(job *j, lapse_error *error)
{
    int64_t done = atomic_fetch_add(&j->done, 1) + 1, all = j->pool.dataset->sequence_count;
    if (j->options->on_progress && pthread_mutex_trylock(&j->watch) == 0) {
        double clock = lp_clock_seconds(), seconds = clock - j->begun;
        if (clock - j->reported >= REPORT_SECONDS) {
            lapse_forecast_progress p = {.sequences = done,
                                         .sequence_count = all,
                                         .seconds = seconds,
                                         .seconds_left = seconds * (double)(all - done) / (double)done};
            j->reported = clock;
            if (!j->options->on_progress(&p, j->options->context))
                atomic_store(&j->stop, true);
        }
        pthread_mutex_unlock(&j->watch);
    }
    return atomic_load(&j->stop) ? lp_fail(error, LAPSE_ERROR_USAGE, "stopped after %lld of %lld sequences",
                                           (long long)done, (long long)all)
                                 : LAPSE_OK;
}

static lapse_status answer_range(void *context, int64_t first, int64_t end, int thread, lapse_error *error)
{
    for (int64_t i = first; i < end; i++) {
        LP_TRY(answer(context, thread, i, error));
        LP_TRY(report(context, error));
    }
    return LAPSE_OK;
}

static lapse_status check(const job *j, lapse_error *error)
{
    if (!lp_model_predicts_time(j->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with " LP_FLAG("--when"));
    for (int64_t i = 0; i < j->options->horizon_count; i++)
        if (!(j->options->horizons[i] >= 0))
            return lp_fail(error, LAPSE_ERROR_INPUT, "the horizon %g s lies before now", j->options->horizons[i]);
    return LAPSE_OK;
}

lapse_status lapse_when_all(const lapse_model *model, const lapse_dataset *histories, const lapse_when_options *options,
                            double *start, double *quantiles, double *within, double *type_within, lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options, start);
    if (options->probability_count > 0)
        LP_REQUIRE(error, options->probabilities);
    if (options->horizon_count > 0)
        LP_REQUIRE(error, options->horizons);
    job j = {.model = model,
             .options = options,
             .start = start,
             .quantiles = quantiles,
             .within = within,
             .type_within = type_within,
             .watch = PTHREAD_MUTEX_INITIALIZER,
             .begun = lp_clock_seconds()};
    j.reported = j.begun;
    LP_TRY(check(&j, error));
    LP_TRY(lp_session_pool_open(&j.pool, model, histories, options->threads, options->skip_unknown, error));
    size_t numbers = (size_t)j.pool.threads * (size_t)options->horizon_count;
    j.until = lp_alloc(numbers, sizeof *j.until);
    lapse_status status = j.until ? LAPSE_OK : lp_fail_memory(error, "predictions", numbers * sizeof *j.until);
    if (status == LAPSE_OK)
        status = lp_session_pool_run(&j.pool, histories->sequence_count, answer_range, &j, error);
    lp_free(j.until);
    lp_session_pool_close(&j.pool);
    return status;
}
