/* law_time.c: the best possible scores of the time of the next event, and expected numbers of events: those of the law that generated a simulation. */
#include "base/threads.h"
#include "data/dataset/target_events.h"
#include "evaluate/evaluator.h"
#include "model/field_statistics.h"
#include "simulate/law.h"

#include <math.h>

enum { TASKS = 64 };

/* ------------------------------------------------------------------------------------------------- scores ----- */

/* A position of a user's history: the context of the law's function. */
typedef struct position {
    const lapse_simulation *simulation;
    int64_t user, known; /* the user's first events */
} position;

static void next_time(const void *context, double t, double *log_density, double *log_survival)
{
    const position *at = context;
    lp_law_time law = lp_simulation_next_time(at->simulation, at->user, at->known, t);
    *log_density = law.log_density;
    *log_survival = law.log_survival;
}

typedef struct scoring {
    const lapse_simulation *simulation;
    const lapse_dataset *dataset;
    const int64_t *event; /* of each of the dataset's events: the same event of the simulation */
    double floor, span;
    lp_time_case *cases;
    int64_t count;
} scoring;

static void score_task(void *context, int task, int worker)
{
    (void)worker;
    const scoring *s = context;
    int64_t end = s->count * (task + 1) / TASKS;
    for (int64_t i = s->count * task / TASKS; i < end; i++) {
        lp_time_case *one = &s->cases[i];
        int64_t user = lp_law_user(s->simulation, s->dataset, one->sequence);
        position at = {s->simulation, user, s->event[one->event] - s->simulation->start[user]};
        lp_next_time law = lp_next_time_function(next_time, &at);
        *one = lp_time_case_of(&law, one->sequence, one->event, one->gap, s->floor, s->span);
    }
}

/* The law is that of the user's next event, whatever it is. */
static lapse_status check_gaps(const scoring *s, lapse_error *error)
{
    for (int64_t i = 0; i < s->count; i++) {
        const lp_time_case *one = &s->cases[i];
        if (s->event[one->event] != s->event[one->event - 1] + 1)
            return lp_fail(
                error, LAPSE_ERROR_INPUT,
                "sequence '%s' of the dataset lacks events of the simulation, and the law of the time is that of all "
                "events: import them all, in whole sequences",
                lp_names_get(&s->dataset->sequences, one->sequence));
    }
    return LAPSE_OK;
}

/* The cases of the evaluator, without their scores. */
static void list_cases(const lp_evaluator *evaluator, scoring *s)
{
    const lapse_dataset *dataset = s->dataset;
    for (int64_t q = 0; q < dataset->sequence_count; q++)
        for (int64_t event = (int64_t)dataset->start[q] + 1; event < (int64_t)dataset->start[q + 1]; event++)
            if (lp_targets_include(&evaluator->targets, event))
                s->cases[s->count++] = (lp_time_case){
                    .sequence = q, .event = event, .gap = dataset->time[event] - dataset->time[event - 1]};
}

static lapse_status score(const lp_evaluator *evaluator, scoring *s, int bootstrap, lapse_time_scores *scores,
                          lapse_error *error)
{
    LP_TRY(check_gaps(s, error));
    lp_threads_run(evaluator->threads, TASKS, score_task, s);
    *scores = (lapse_time_scores){.cases = s->count, .floor = s->floor, .count = 1};
    for (int64_t i = 0; i < s->count; i++)
        scores->sequences += i == 0 || s->cases[i].sequence != s->cases[i - 1].sequence;
    scores->unit = lp_time_unit(s->cases, s->count, s->floor, &scores->unit_name);
    scores->scores[0].name = "law";
    return lp_time_score_make(s->cases, s->count, scores->unit, bootstrap, &scores->scores[0], error);
}

static lapse_status time_evaluate(lp_evaluator *evaluator, scoring *s, int bootstrap, lapse_time_scores *scores,
                                  lapse_error *error)
{
    int64_t *event = NULL;
    lapse_status status = lp_law_find_events(s->simulation, s->dataset, &event, error);
    s->event = event;
    s->cases = lp_alloc((size_t)s->dataset->event_count, sizeof *s->cases);
    if (status == LAPSE_OK && !s->cases)
        status = lp_fail_memory(error, "the scores of the law", (size_t)s->dataset->event_count * sizeof *s->cases);
    if (status == LAPSE_OK) {
        list_cases(evaluator, s);
        status = score(evaluator, s, bootstrap, scores, error);
    }
    lp_free(event);
    lp_free(s->cases);
    return status;
}

/* Seconds from the first event to the last one. */
static double span_of(const lapse_dataset *dataset)
{
    double first = INFINITY, last = -INFINITY;
    for (int64_t i = 0; i < dataset->event_count; i++) {
        first = fmin(first, dataset->time[i]);
        last = fmax(last, dataset->time[i]);
    }
    return last - first;
}

lapse_status lapse_simulation_time_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                            const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                            lapse_time_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, simulation, model, dataset, options, scores);
    LP_REQUIRE(error, options->split);
    uint8_t *split;
    lp_split wanted;
    lp_target target;
    const char *events;
    int threads;
    LP_TRY(lp_simulation_require_next_time(simulation, error));
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    LP_TRY(lp_evaluator_target(model, options->target, &target, &events, error));
    if (lp_target_events_action(events))
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the law of the time is that of all events, and the targets are events with one action: score all targets");
    LP_TRY(lp_evaluator_split(model, dataset, options->split, events, &split, &wanted, error));
    const lapse_model *times = lp_model_of_times(model);
    lp_evaluator evaluator = {0};
    lapse_status status = lp_evaluator_init(&evaluator, lp_backend_find("cpu"), times ? times : model, dataset, split,
                                            wanted, threads, error);
    scoring s = {
        .simulation = simulation, .dataset = dataset, .floor = model->config.when_floor, .span = span_of(dataset)};
    if (status == LAPSE_OK && !model->config.when && wanted != LP_SPLIT_COUNT)
        status = lp_when_floor(dataset, split, &s.floor, error);
    if (status == LAPSE_OK)
        status = time_evaluate(&evaluator, &s, options->bootstrap, scores, error);
    if (status == LAPSE_OK)
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
    lp_evaluator_clear(&evaluator);
    lp_free(split);
    return status;
}

/* ------------------------------------------------------------------------------------------------ futures ----- */

/* Random numbers of one future lie in a range of their own. */
enum { DRAWS_BITS = 24 };

typedef struct drawing {
    const lapse_simulation *simulation;
    const lapse_dataset *dataset;
    const int64_t *event;
    const lapse_forecast_options *options;
    lp_future *futures; /* [threads] */
    double *count;
    bool failed[TASKS]; /* out of memory */
} drawing;

static bool draw_sequence(const drawing *d, lp_future *future, int64_t sequence)
{
    const lapse_simulation *simulation = d->simulation;
    const lapse_forecast_options *options = d->options;
    int64_t last = (int64_t)d->dataset->start[sequence + 1] - 1, user = lp_law_user(simulation, d->dataset, sequence);
    int64_t known = d->event[last] + 1 - simulation->start[user], sum = 0;
    double now = fmax(d->dataset->time[last], options->now); /* last, if now is NaN */
    for (int64_t sample = 0; sample < options->samples; sample++) {
        lp_random random = lp_random_start(options->seed, LP_PURPOSE_FORECAST, 1 + (uint32_t)sequence);
        random.element = (uint64_t)sample << DRAWS_BITS;
        if (!lp_simulation_future(simulation, user, known, now, now + options->horizon, &random, future))
            return false;
        sum += future->count;
    }
    d->count[sequence] = (double)sum / (double)options->samples;
    return true;
}

static void draw_task(void *context, int task, int worker)
{
    drawing *d = context;
    int64_t sequences = d->dataset->sequence_count, end = sequences * (task + 1) / TASKS;
    for (int64_t s = sequences * task / TASKS; s < end && !d->failed[task]; s++)
        d->failed[task] = !draw_sequence(d, &d->futures[worker], s);
}

static lapse_status draw(drawing *d, int threads, lapse_error *error)
{
    lapse_status status = LAPSE_OK;
    d->futures = lp_alloc((size_t)threads, sizeof *d->futures);
    if (!d->futures)
        return lp_fail_memory(error, "futures of the law", (size_t)threads * sizeof *d->futures);
    lp_threads_run(threads, TASKS, draw_task, d);
    for (int task = 0; status == LAPSE_OK && task < TASKS; task++)
        if (d->failed[task])
            status = lp_fail_memory(error, "futures of the law", sizeof *d->futures);
    for (int i = 0; i < threads; i++)
        lp_future_clear(&d->futures[i]);
    lp_free(d->futures);
    return status;
}

lapse_status lapse_simulation_forecast(const lapse_simulation *simulation, const lapse_dataset *histories,
                                       const lapse_forecast_options *options, double *count, lapse_error *error)
{
    LP_REQUIRE(error, simulation, histories, options, count);
    drawing d = {.simulation = simulation, .dataset = histories, .options = options, .count = count};
    int threads;
    int64_t *event = NULL;
    LP_TRY(lp_simulation_require_future(simulation, error));
    if (!(options->horizon > 0) || isinf(options->horizon) || options->samples < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the horizon is %g s with %lld samples; both must be above 0",
                       options->horizon, (long long)options->samples);
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    lapse_status status = lp_law_find_events(simulation, histories, &event, error);
    d.event = event;
    if (status == LAPSE_OK)
        status = draw(&d, threads, error);
    lp_free(event);
    return status;
}
