/* forecast.c: futures of the sequences of a dataset, drawn event by event, on several threads (session_pool.h).
 *
 * A thread takes one sequence after another. Its events are appended to a session once. Its futures are branches of this history
 * (branches.h), drawn together: the times of the next events of all futures, their types by one query, and by another the laws of the
 * times after them. The first event's law is common to all futures. A future with more events than a branch holds is drawn to
 * its end alone, with these events as part of the history.
 *
 * The numbers of a future are those of (seed, sequence, number of the future), so threads do not change it.
 *
 * Events until a horizon may be billions. So a few short futures of some sequences come first (estimate), which say how many events
 * and how much time the forecast takes. It can be stopped between two events; the futures of a group count only if all have ended,
 * because those that end first are the short ones.
 */
#include "serve/forecast.h"

#include "base/clock.h"
#include "data/dataset/gap_quantile.h"
#include "model/when_head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The estimate: sequences, futures of each and seconds, at most. */
enum { TRIAL_SEQUENCES = 32, TRIAL_FUTURES = 16 };
#define TRIAL_SECONDS 1.0
#define REPORT_SECONDS 0.1

/* Sequences that the estimate counts as, beside those that are finished. */
#define TRIAL_WEIGHT 4.0

void lapse_forecast_options_default(lapse_forecast_options *options)
{
    *options = (lapse_forecast_options){
        .horizon = 7 * 86400.0, .now = NAN, .samples = 500, .seed = 1, .max_events = 100000000};
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
    lp_free(forecasts->step_expected);
    *forecasts = (lapse_forecasts){0};
}

lapse_status lp_forecast_read(const lp_forecast_job *j, int thread, int64_t sequence, lapse_error *error)
{
    LP_TRY(lp_session_pool_read(&j->pool, thread, sequence, 0, lp_session_pool_events(&j->pool, sequence), error));
    lp_session_keep(j->pool.sessions[thread], lp_branches_history(j->model));
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------- progress ----- */

/* Reports how far the forecast is, unless another thread does so or has just done. */
static void report(lp_forecast_job *j)
{
    if (!j->options->on_progress || pthread_mutex_trylock(&j->watch) != 0)
        return;
    double clock = lp_clock_seconds();
    if (clock - j->reported >= REPORT_SECONDS) {
        double finished = (double)atomic_load(&j->finished), all = (double)j->out->sequence_count;
        double mean =
            (j->expected * TRIAL_WEIGHT + (double)atomic_load(&j->finished_events)) / (TRIAL_WEIGHT + finished);
        lapse_forecast_progress p = {.sequences = (int64_t)finished,
                                     .sequence_count = j->out->sequence_count,
                                     .events = (double)atomic_load(&j->events),
                                     .seconds = clock - j->start};
        p.events_expected = fmax((double)atomic_load(&j->finished_events) + (all - finished) * mean, p.events);
        /* A future without events costs a draw too. */
        double samples = (double)j->options->samples, work = p.events + finished * samples;
        p.seconds_left = p.seconds * (p.events_expected + all * samples - work) / fmax(work, 1);
        j->reported = clock;
        if (!j->options->on_progress(&p, j->options->context))
            atomic_store(&j->stop, true);
    }
    pthread_mutex_unlock(&j->watch);
}

/* Counts events that were drawn. Returns whether to leave the group unfinished. */
bool lp_forecast_count(lp_forecast_job *j, lp_future_worker *w, int rows)
{
    if (j->trial) {
        w->stopped = lp_clock_seconds() > j->trial_end;
        return w->stopped;
    }
    int64_t events = atomic_fetch_add(&j->events, rows) + rows;
    if (j->options->max_events > 0 && events >= j->options->max_events)
        atomic_store(&j->stop, true);
    report(j);
    w->stopped = atomic_load(&j->stop);
    return w->stopped;
}

/* Turns the sums over futures into means, and the counts into quantiles. */
static void finish(const lp_forecast_job *j, lp_future_worker *w, int64_t sequence, int64_t samples)
{
    lapse_forecasts *out = j->out;
    int64_t types = out->type_count;
    double n = (double)samples;
    for (int64_t s = 0; s < samples; s++) {
        out->count[sequence] += w->counts[s] / n;
        out->any[sequence] += (w->counts[s] > 0) / n;
    }
    for (int64_t k = sequence * types; k < (sequence + 1) * types; k++) {
        out->type_expected[k] /= n;
        out->type_any[k] /= n;
    }
    for (int64_t k = sequence * j->options->steps; k < (sequence + 1) * j->options->steps; k++)
        out->step_expected[k] /= n;
    qsort(w->counts, (size_t)samples, sizeof *w->counts, lp_compare_numbers);
    out->low[sequence] = w->counts[(int64_t)(0.1 * (n - 1) + 0.5)];
    out->high[sequence] = w->counts[(int64_t)(0.9 * (n - 1) + 0.5)];
    out->samples[sequence] = samples;
}

/* Reads a sequence into the thread's session. Returns false if the model knows none of its events; otherwise *now is the time that its
 * futures begin at, and *law that of their first events. */
static lapse_status begin_sequence(const lp_forecast_job *j, int thread, int64_t sequence, bool *known, double *now,
                                   lp_next_time *law, lapse_error *error)
{
    lapse_session *session = j->pool.sessions[thread];
    LP_TRY(lp_forecast_read(j, thread, sequence, error));
    *known = session->count > 0;
    if (!*known)
        return LAPSE_OK;
    double last = session->times[session->count - 1];
    *now = fmax(last, j->options->now); /* last, if now is NaN */
    LP_TRY(lp_session_law(session, law, error));
    *law = lp_next_time_after(lp_next_time_copy(*law, j->workers[thread].first_law), *now - last);
    return LAPSE_OK;
}

/* The number of futures that are drawn together. */
static int64_t group_size(const lp_forecast_job *j, int thread)
{
    return j->workers[thread].branches.rows.branches;
}

static lapse_status forecast_sequence(lp_forecast_job *j, int thread, int64_t sequence, lapse_error *error)
{
    lp_future_worker *w = &j->workers[thread];
    bool known, moved = false;
    double now;
    lp_next_time law;
    LP_TRY(begin_sequence(j, thread, sequence, &known, &now, &law, error));
    if (!known)
        return LAPSE_OK;
    int64_t samples = j->options->samples, drawn = 0;
    int64_t limit = group_size(j, thread), groups = (samples + limit - 1) / limit;
    for (int64_t g = 0; g < groups && !atomic_load(&j->stop); g++) {
        int64_t end = samples * (g + 1) / groups;
        if (moved)
            LP_TRY(lp_forecast_read(j, thread, sequence, error));
        LP_TRY(lp_futures_draw(j, thread, sequence, drawn, (int)(end - drawn), now, &law, &moved, error));
        if (w->stopped)
            break;
        drawn = end;
    }
    if (drawn == samples) {
        double events = 0;
        for (int64_t s = 0; s < samples; s++)
            events += w->counts[s];
        atomic_fetch_add(&j->finished_events, (int64_t)events);
        atomic_fetch_add(&j->finished, 1);
    }
    j->out->samples[sequence] = -1;
    if (drawn > 0)
        finish(j, w, sequence, drawn);
    report(j);
    return LAPSE_OK;
}

static lapse_status forecast_range(void *context, int64_t first, int64_t end, int thread, lapse_error *error)
{
    lp_forecast_job *j = context;
    for (int64_t i = first; i < end; i++) {
        if (atomic_load(&j->stop))
            j->out->samples[i] = -1;
        else
            LP_TRY(forecast_sequence(j, thread, i, error));
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------- estimate ----- */

/* Events of a future, from those of a trial: all its futures give the rate at which those that were cut go on. */
static double trial_events(const lp_forecast_job *j, const lp_future_worker *w, int count, double now)
{
    double horizon = j->options->horizon, events = 0, covered = 0, cut = 0, rest = 0;
    for (int i = 0; i < count; i++) {
        const lp_future *f = &w->futures[i];
        double time = fmin(f->time - now, horizon);
        events += f->events;
        covered += time;
        if (f->cut || (w->stopped && time < horizon)) {
            cut++;
            rest += horizon - time;
        }
    }
    double more = cut > 0 ? fmin(events * rest / covered, cut * LP_FUTURE_EVENTS) : 0; /* covered may be 0 */
    return (events + more) / count;
}

/* Estimates the number of events of a sequence. *per_second: events that a thread draws. */
static lapse_status estimate(lp_forecast_job *j, double *per_second, lapse_error *error)
{
    int64_t sequences = j->out->sequence_count, limit = group_size(j, 0);
    int64_t trials = sequences < TRIAL_SEQUENCES ? sequences : TRIAL_SEQUENCES, tried = 0;
    int count = (int)(limit < TRIAL_FUTURES ? limit : TRIAL_FUTURES);
    double begun = lp_clock_seconds(), sum = 0, events = 0;
    count = j->options->samples < count ? (int)j->options->samples : count;
    j->trial = true;
    j->trial_end = begun + TRIAL_SECONDS;
    for (int64_t i = 0; i < trials && (tried == 0 || lp_clock_seconds() < j->trial_end); i++) {
        int64_t sequence = sequences * i / trials;
        bool known, moved;
        double now;
        lp_next_time law;
        LP_TRY(begin_sequence(j, 0, sequence, &known, &now, &law, error));
        if (!known)
            continue;
        LP_TRY(lp_futures_draw(j, 0, sequence, 0, count, now, &law, &moved, error));
        sum += trial_events(j, &j->workers[0], count, now);
        for (int f = 0; f < count; f++)
            events += j->workers[0].futures[f].events;
        tried++;
    }
    j->trial = false;
    j->expected = tried > 0 ? sum / (double)tried * (double)j->options->samples : 0;
    *per_second = events / fmax(lp_clock_seconds() - begun, 1e-9);
    return LAPSE_OK;
}

/* "1,234,567" or "1.2e+12" */
static void format_count(double count, char text[48])
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%.0f", count), used = 0;
    if (count >= 1e12) {
        snprintf(text, 48, "%.1e", count);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        text[used++] = digits[i];
        if (i + 1 < length && (length - i - 1) % 3 == 0)
            text[used++] = ',';
    }
    text[used] = 0;
}

static lapse_status check_estimate(lp_forecast_job *j, lapse_error *error)
{
    double per_second, most = (double)j->options->max_events, sequences = (double)j->out->sequence_count;
    if (most == 0 && !j->options->on_progress)
        return LAPSE_OK;
    LP_TRY(estimate(j, &per_second, error));
    double all = j->expected * sequences;
    if (most == 0 || all <= most)
        return LAPSE_OK;
    char count[48], each[48], limit[48], time[64];
    double seconds = all / fmax(per_second * j->pool.threads, 1e-9);
    format_count(all, count);
    format_count(j->expected / (double)j->options->samples, each);
    format_count(most, limit);
    lapse_duration_format(seconds, time, sizeof time);
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the forecast would draw about %s events, %s in each of %lld futures of %lld histories, which takes "
                   "about %s; the "
                   "limit is %s. Give a shorter " LP_OPTION("--horizon") ", fewer " LP_OPTION(
                       "--samples") ", or a higher " LP_OPTION("--max-events"),
                   count, each, (long long)j->options->samples, (long long)j->out->sequence_count, time, limit);
}

static lapse_status check(const lp_forecast_job *j, lapse_error *error)
{
    const lapse_forecast_options *options = j->options;
    if (!lp_model_predicts_time(j->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with " LP_FLAG("--when"));
    if (!(options->horizon > 0) || isinf(options->horizon))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the horizon is %g s; it must be above 0", options->horizon);
    if (options->max_events < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "max_events is %lld; it must be at least 1, or 0 for no limit",
                       (long long)options->max_events);
    if (options->samples < 1 || options->samples > 1000000)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%lld samples are not between 1 and 1,000,000",
                       (long long)options->samples);
    if (options->steps < 0 || options->steps > 1000)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%d steps are not between 0 and 1000", options->steps);
    return LAPSE_OK;
}

static lapse_status make_workers(lp_forecast_job *j, lapse_error *error)
{
    size_t types = (size_t)j->model->config.event_types, samples = (size_t)j->options->samples;
    const lapse_model *times = lp_model_of_times(j->model);
    size_t law = lp_time_law_size(times, lp_network_samples(&times->network));
    size_t branches = (size_t)lp_output_rows(j->model, LP_FUTURES);
    j->workers = lp_alloc((size_t)j->pool.threads, sizeof *j->workers);
    if (!j->workers)
        return lp_fail_memory(error, "a forecast", (size_t)j->pool.threads * sizeof *j->workers);
    for (int i = 0; i < j->pool.threads; i++) {
        lp_future_worker *w = &j->workers[i];
        LP_TRY(lp_branches_init(&w->branches, j->pool.sessions[i], LP_FUTURES, error));
        w->probabilities = lp_alloc(branches * types, sizeof *w->probabilities);
        w->first_law = lp_alloc(law, sizeof *w->first_law);
        w->counts = lp_alloc(samples, sizeof *w->counts);
        w->touched = lp_alloc(types, sizeof *w->touched);
        w->drawn = lp_alloc(types, sizeof *w->drawn);
        w->steps = lp_alloc((size_t)j->options->steps + 1, sizeof *w->steps);
        w->seen = lp_alloc(types * LP_SEEN_WORDS, sizeof *w->seen);
        if (!w->probabilities || !w->first_law || !w->counts || !w->touched || !w->drawn || !w->steps || !w->seen)
            return lp_fail_memory(error, "a forecast", (branches * types + law + samples) * sizeof(double));
    }
    return LAPSE_OK;
}

static void free_workers(lp_forecast_job *j)
{
    for (int i = 0; j->workers && i < j->pool.threads; i++) {
        lp_branches_clear(&j->workers[i].branches);
        lp_free(j->workers[i].probabilities);
        lp_free(j->workers[i].first_law);
        lp_free(j->workers[i].counts);
        lp_free(j->workers[i].touched);
        lp_free(j->workers[i].drawn);
        lp_free(j->workers[i].steps);
        lp_free(j->workers[i].seen);
    }
    lp_free(j->workers);
}

static lapse_status make_results(const lp_forecast_job *j, lapse_error *error)
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
    if (j->options->steps > 0)
        out->step_expected = lp_alloc(sequences * (size_t)j->options->steps, sizeof *out->step_expected);
    if (j->options->steps > 0 && !out->step_expected)
        return lp_fail_memory(error, "a forecast", sequences * (size_t)j->options->steps * sizeof(double));
    if (out->samples && out->count && out->low && out->high && out->any && out->type_expected && out->type_any)
        return LAPSE_OK;
    return lp_fail_memory(error, "a forecast", 2 * sequences * types * sizeof(double));
}

lapse_status lapse_forecast(const lapse_model *model, const lapse_dataset *histories,
                            const lapse_forecast_options *options, lapse_forecasts *forecasts, lapse_error *error)
{
    LP_REQUIRE(error, model, histories, options, forecasts);
    lp_forecast_job j = {.model = model, .options = options, .out = forecasts, .watch = PTHREAD_MUTEX_INITIALIZER};
    LP_TRY(check(&j, error));
    LP_TRY(lp_session_pool_open(&j.pool, model, histories, options->threads, options->skip_unknown, error));
    lapse_status status = make_results(&j, error);
    if (status == LAPSE_OK)
        status = make_workers(&j, error);
    if (status == LAPSE_OK)
        status = check_estimate(&j, error);
    j.start = lp_clock_seconds();
    j.reported = j.start - REPORT_SECONDS;
    if (status == LAPSE_OK)
        status = lp_session_pool_run(&j.pool, histories->sequence_count, forecast_range, &j, error);
    for (int64_t i = 0; status == LAPSE_OK && i < forecasts->sequence_count; i++)
        forecasts->partial |= forecasts->samples[i] != 0 && forecasts->samples[i] != options->samples;
    forecasts->cut = atomic_load(&j.cut);
    if (status != LAPSE_OK)
        lapse_forecasts_clear(forecasts);
    free_workers(&j);
    lp_session_pool_close(&j.pool);
    return status;
}
