/* forecast.c: futures of the sequences of a dataset, drawn event by event, on several threads (session_pool.h).
 *
 * A thread takes one sequence after another. Its events are appended to a session once. Its futures are branches of this history
 * (branches.h), drawn together: the times of the next events of all futures, their types by one query, and by another the laws of the
 * times after them. The first event's law is common to all futures. A future with more events than a branch holds is drawn to
 * its end alone, with these events as part of the history.
 *
 * The numbers of a future are those of (seed, sequence, number of the future), so threads do not change it.
 */
#include "data/dataset/gap_quantile.h"
#include "model/when_head.h"
#include "serve/branches.h"
#include "serve/session_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws of one future: its random numbers lie in a range of their own. */
enum { DRAWS_BITS = 24 };

/* Events of one future, at most: a law whose times are all 0 would never reach the horizon. */
enum { MAX_EVENTS = 100000 };

/* Futures that are drawn together, at most: enough rows for products of matrices. */
enum { TOGETHER = 128, SEEN_WORDS = TOGETHER / 64 };

/* A future, in the branch of the same index. */
typedef struct future {
    lp_random random;
    double time;  /* of its next event */
    int64_t type; /* of the event that its branch has no space for */
    int events;
} future;

typedef struct worker {
    lp_branches branches;
    double *probabilities; /* [futures drawn together x types] */
    double *first_law;     /* [lp_time_law_size]: the law of the first event, which other queries would overwrite */
    double *counts;        /* [samples]: events of each future */
    uint64_t *seen;        /* [types x SEEN_WORDS]: a bit for each future that has had the type */
    future futures[TOGETHER];
    int32_t active[TOGETHER], full[TOGETHER]; /* futures to draw further; those whose branch has no space */
    double times[TOGETHER];                   /* of the next events of `active` */
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

static lapse_status read_sequence(const job *j, int thread, int64_t sequence, lapse_error *error)
{
    LP_TRY(lp_session_pool_read(&j->pool, thread, sequence, error));
    return lp_session_keep(j->pool.sessions[thread], lp_branches_history(j->model), error);
}

/* Draws the type of the next event of a future and counts it. */
static void draw_type(const job *j, worker *w, int64_t sequence, int32_t number, const double *probabilities)
{
    int64_t types = j->model->config.event_types;
    future *f = &w->futures[number];
    f->type = lp_draw_type(probabilities, types, &f->random);
    f->events++;
    j->out->type_expected[sequence * types + f->type]++;
    uint64_t *seen = &w->seen[f->type * SEEN_WORDS + number / 64], bit = UINT64_C(1) << (number % 64);
    if (!(*seen & bit))
        j->out->type_any[sequence * types + f->type]++;
    *seen |= bit;
}

/* Draws the times of the next events of w->active[0 .. count-1]. Returns how many come until `end`; they are active then. */
static lapse_status draw_times(worker *w, double end, int *count, lapse_error *error)
{
    int rows = *count;
    *count = 0;
    LP_TRY(lp_branches_laws(&w->branches, rows, w->active, error));
    for (int i = 0; i < rows; i++) {
        future *f = &w->futures[w->active[i]];
        lp_next_time law = lp_branches_law(&w->branches, i);
        f->time += lp_next_time_draw(&law, &f->random);
        if (f->time <= end)
            w->active[(*count)++] = w->active[i];
    }
    return LAPSE_OK;
}

/* Draws w->active[0 .. count-1], whose next times are known, until the horizon or until their branches have no space for an event:
 * full[0 .. *full_count-1]. */
static lapse_status draw_active(const job *j, worker *w, int64_t sequence, double end, int count, int32_t *full,
                                int *full_count, lapse_error *error)
{
    *full_count = 0;
    int64_t types = j->model->config.event_types;
    while (count > 0) {
        int rows = count;
        for (int i = 0; i < rows; i++)
            w->times[i] = w->futures[w->active[i]].time;
        LP_TRY(lp_branches_types(&w->branches, rows, w->active, w->times, w->probabilities, error));
        count = 0;
        for (int i = 0; i < rows; i++) {
            int32_t number = w->active[i];
            future *f = &w->futures[number];
            draw_type(j, w, sequence, number, w->probabilities + i * types);
            if (f->events == MAX_EVENTS)
                continue;
            if (!lp_branches_has_space(&w->branches, number)) {
                full[(*full_count)++] = number;
                continue;
            }
            lp_branches_add(&w->branches, number, (int32_t)f->type);
            w->active[count++] = number;
        }
        if (count > 0)
            LP_TRY(draw_times(w, end, &count, error));
    }
    return LAPSE_OK;
}

/* Draws a future to its end, alone: the events of its branch become part of the session's history. */
static lapse_status draw_alone(const job *j, worker *w, int64_t sequence, double end, int32_t number,
                               lapse_error *error)
{
    for (int full = 1; full > 0;) {
        int count = 1;
        LP_TRY(lp_branches_commit(&w->branches, number, (int32_t)w->futures[number].type, error));
        w->active[0] = number;
        LP_TRY(draw_times(w, end, &count, error));
        LP_TRY(draw_active(j, w, sequence, end, count, &number, &full, error));
    }
    return LAPSE_OK;
}

/* Draws futures first .. first + count - 1 of the history that the session has. *moved: its history is another one now. */
static lapse_status draw_futures(const job *j, int thread, int64_t sequence, int64_t first, int count, double now,
                                 const lp_next_time *law, bool *moved, lapse_error *error)
{
    worker *w = &j->workers[thread];
    double end = now + j->options->horizon;
    int active = 0, full;
    memset(w->seen, 0, (size_t)j->out->type_count * SEEN_WORDS * sizeof *w->seen);
    for (int i = 0; i < count; i++) {
        future *f = &w->futures[i];
        *f = (future){.random = lp_random_start(j->options->seed, LP_PURPOSE_FORECAST, 1 + (uint32_t)sequence)};
        f->random.element = (uint64_t)(first + i) << DRAWS_BITS;
        f->time = now + lp_next_time_draw(law, &f->random);
        lp_branches_reset(&w->branches, i);
        if (f->time <= end)
            w->active[active++] = i;
    }
    LP_TRY(draw_active(j, w, sequence, end, active, w->full, &full, error));
    *moved = full > 0;
    for (int i = 0; i < full; i++) {
        if (i > 0)
            LP_TRY(read_sequence(j, thread, sequence, error));
        LP_TRY(draw_alone(j, w, sequence, end, w->full[i], error));
    }
    for (int i = 0; i < count; i++)
        w->counts[first + i] = w->futures[i].events;
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
    lapse_session *session = j->pool.sessions[thread];
    LP_TRY(read_sequence(j, thread, sequence, error));
    if (session->count == 0)
        return LAPSE_OK;
    double last = session->times[session->count - 1], now = fmax(last, options->now); /* last, if now is NaN */
    lp_next_time law;
    LP_TRY(lp_session_law(session, &law, error));
    law = lp_next_time_after(lp_next_time_copy(law, w->first_law), now - last);
    int64_t limit = w->branches.rows.branches;
    int64_t groups = (options->samples + limit - 1) / limit;
    bool moved = false;
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = options->samples * g / groups, end = options->samples * (g + 1) / groups;
        if (moved)
            LP_TRY(read_sequence(j, thread, sequence, error));
        LP_TRY(draw_futures(j, thread, sequence, first, (int)(end - first), now, &law, &moved, error));
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
    size_t law = lp_time_law_size(j->model, j->pool.sessions[0]->decoder->program->samples);
    size_t branches = (size_t)lp_output_rows(j->model, TOGETHER);
    j->workers = lp_alloc((size_t)j->pool.threads, sizeof *j->workers);
    if (!j->workers)
        return lp_fail_memory(error, "a forecast", (size_t)j->pool.threads * sizeof *j->workers);
    for (int i = 0; i < j->pool.threads; i++) {
        worker *w = &j->workers[i];
        LP_TRY(lp_branches_init(&w->branches, j->pool.sessions[i], TOGETHER, error));
        w->probabilities = lp_alloc(branches * types, sizeof *w->probabilities);
        w->first_law = lp_alloc(law, sizeof *w->first_law);
        w->counts = lp_alloc(samples, sizeof *w->counts);
        w->seen = lp_alloc(types * SEEN_WORDS, sizeof *w->seen);
        if (!w->probabilities || !w->first_law || !w->counts || !w->seen)
            return lp_fail_memory(error, "a forecast", (branches * types + law + samples) * sizeof(double));
    }
    return LAPSE_OK;
}

static void free_workers(job *j)
{
    for (int i = 0; j->workers && i < j->pool.threads; i++) {
        lp_branches_clear(&j->workers[i].branches);
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
