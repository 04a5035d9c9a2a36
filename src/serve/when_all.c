/* when_all.c: the time of the next event of every sequence of a dataset, on several threads. Each thread has its own session. */
#include "backend/backend.h"
#include "base/threads.h"
#include "model/id_map.h"
#include "serve/session.h"

#include <math.h>
#include <stdlib.h>

enum { TASKS_PER_THREAD = 16 };

typedef struct job {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const lapse_when_options *options;
    lp_id_map id_map;
    double *start, *quantiles, *within, *type_within;
    lapse_session **sessions; /* [threads] */
    double **until;           /* [threads][horizon_count] */
    lapse_error *errors;      /* [task_count]: the first of each task */
    int task_count;
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

static lapse_status answer(const job *j, int number, int64_t sequence, lapse_error *error)
{
    const lapse_when_options *options = j->options;
    lapse_session *session = j->sessions[number];
    double *until = j->until[number];
    int64_t p = options->probability_count, h = options->horizon_count, types = j->model->config.event_types;
    double *type_within = j->type_within ? j->type_within + sequence * h * types : NULL;
    lapse_when when = {.now = NAN,
                       .probabilities = options->probabilities,
                       .probability_count = j->quantiles ? p : 0,
                       .quantiles = j->quantiles ? j->quantiles + sequence * p : NULL,
                       .times = until,
                       .time_count = j->within ? h : 0,
                       .cdf = j->within ? j->within + sequence * h : NULL};
    lp_session_read(session, j->dataset, &j->id_map.columns, sequence);
    fill_unknown(&j->start[sequence], 1);
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

static void answer_task(void *context, int task, int number)
{
    job *j = context;
    int64_t sequences = j->dataset->sequence_count, end = sequences * (task + 1) / j->task_count;
    lapse_status status = LAPSE_OK;
    for (int64_t i = sequences * task / j->task_count; i < end && status == LAPSE_OK; i++)
        status = answer(j, number, i, &j->errors[task]);
}

static lapse_status check(const job *j, lapse_error *error)
{
    if (!lp_model_predicts_time(j->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with --when");
    for (int64_t i = 0; i < j->options->horizon_count; i++)
        if (!(j->options->horizons[i] >= 0))
            return lp_fail(error, LAPSE_ERROR_INPUT, "the horizon %g s lies before now", j->options->horizons[i]);
    return LAPSE_OK;
}

static lapse_status answer_all(job *j, int threads, lapse_error *error)
{
    int64_t sequences = j->dataset->sequence_count, tasks = (int64_t)threads * TASKS_PER_THREAD;
    j->task_count = (int)(sequences < tasks ? sequences : tasks);
    j->sessions = lp_alloc((size_t)threads, sizeof *j->sessions);
    j->until = lp_alloc((size_t)threads, sizeof *j->until);
    j->errors = lp_alloc((size_t)j->task_count, sizeof *j->errors);
    bool good = j->sessions && j->until && j->errors;
    lapse_status status = good ? LAPSE_OK : lp_fail_memory(error, "predictions", (size_t)threads * sizeof *j->sessions);
    for (int i = 0; status == LAPSE_OK && i < threads; i++) {
        status = lapse_session_new(j->model, &j->sessions[i], error);
        j->until[i] = lp_alloc((size_t)j->options->horizon_count, sizeof **j->until);
        if (status == LAPSE_OK && !j->until[i])
            status = lp_fail_memory(error, "predictions", (size_t)j->options->horizon_count * sizeof **j->until);
    }
    if (status == LAPSE_OK)
        lp_threads_run(threads, j->task_count, answer_task, j);
    for (int task = 0; status == LAPSE_OK && task < j->task_count; task++) {
        status = j->errors[task].status;
        if (status != LAPSE_OK && error)
            *error = j->errors[task];
    }
    for (int i = 0; j->sessions && j->until && i < threads; i++) {
        lapse_session_free(j->sessions[i]);
        lp_free(j->until[i]);
    }
    lp_free(j->sessions);
    lp_free(j->until);
    lp_free(j->errors);
    return status;
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
             .dataset = histories,
             .options = options,
             .start = start,
             .quantiles = quantiles,
             .within = within,
             .type_within = type_within};
    int threads;
    LP_TRY(check(&j, error));
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    if (options->skip_unknown)
        LP_TRY(lp_id_map_init_lenient(&j.id_map, model, histories, error));
    else
        LP_TRY(lp_id_map_init(&j.id_map, model, histories, error));
    threads = lp_backend_find("cpu")->max_threads(lp_backend_find("cpu")->context, threads);
    lapse_status status = answer_all(&j, threads, error);
    lp_id_map_clear(&j.id_map);
    return status;
}
