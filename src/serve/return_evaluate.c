/* return_evaluate.c: lapse_return_evaluate: the histories of a split are cut at an origin; the model and the baselines say who comes back
 * within a horizon and how often; what the data has after the origin decides. */
#include "base/threads.h"
#include "data/dataset/split.h"
#include "evaluate/evaluator.h"
#include "evaluate/returns.h"
#include "model/when_head.h"

#include <math.h>
#include <string.h>

void lapse_return_options_default(lapse_return_options *options)
{
    *options = (lapse_return_options){.split = "test", .now = NAN, .samples = 20, .bootstrap = 1000};
}

typedef struct returns {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const lapse_return_options *options;
    lapse_return_scores *out;
    uint8_t *split;
    bool divided;   /* sequences have events before and after the origin in different splits, or the split is "all" */
    double longest; /* horizon */
    lp_return_case *cases, *known, *fit; /* scored; those BG/NBD is fitted to, and logistic regression */
    int64_t count, known_count, fit_count;
    lapse_dataset *cut;      /* the cases' histories up to the origin */
    double *chance, *within; /* [cases]; [cases x horizons] */
} returns;

/* ---------------------------------------------------------------------------------------- the data, cut off ---- */

static double last_time(const lapse_dataset *dataset)
{
    double last = -INFINITY;
    for (int64_t i = 0; i < dataset->event_count; i++)
        last = fmax(last, dataset->time[i]);
    return last;
}

/* Sets the origin, and what baselines are fitted to. */
static lapse_status find_origin(returns *r, lapse_error *error)
{
    lp_split wanted;
    double end = last_time(r->dataset), begin = NAN;
    char last[64], now[64];
    LP_TRY(lp_evaluator_split(r->model, r->dataset, r->options->split, "", &r->split, &wanted, error));
    r->out->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
    r->divided = wanted == LP_SPLIT_COUNT;
    if (wanted != LP_SPLIT_COUNT && wanted > LP_SPLIT_TRAIN)
        LP_TRY(lp_split_end(r->dataset, r->model->split_by, r->split, (lp_split)(wanted - 1), &begin, error));
    for (int64_t s = 0; wanted != LP_SPLIT_COUNT && s < r->dataset->sequence_count && !r->divided; s++)
        r->divided = r->split[r->dataset->start[s]] != r->split[r->dataset->start[s + 1] - 1];
    r->out->now = !isnan(r->options->now)                  ? r->options->now
                  : r->divided && wanted != LP_SPLIT_COUNT ? begin
                                                           : end - r->longest;
    if (!(r->out->now + 0.99 * r->longest <= end)) /* the last event comes a little before the end of the observation */
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the data ends on %s, less than the longest " LP_OPTION("--within") " after %s: give a shorter one, or "
                                                                                "an earlier " LP_OPTION("--now"),
            lapse_time_format(end, last, sizeof last), lapse_time_format(r->out->now, now, sizeof now));
    bool all = r->divided;
    LP_TRY(
        lp_return_cases(r->dataset, r->split, all ? LP_SPLIT_COUNT : wanted, r->out->now, &r->cases, &r->count, error));
    LP_TRY(lp_return_cases(r->dataset, r->split, all ? LP_SPLIT_COUNT : LP_SPLIT_TRAIN, r->out->now, &r->known,
                           &r->known_count, error));
    if (r->count == 0 || r->known_count == 0)
        return lp_fail(error, LAPSE_ERROR_INPUT, "no history of the split '%s' has an event before %s", r->out->split,
                       lapse_time_format(r->out->now, now, sizeof now));
    return LAPSE_OK;
}

/* The histories as they were at the origin. */
static lapse_status cut_histories(returns *r, lapse_error *error)
{
    int64_t *sequences = lp_alloc((size_t)r->count, 2 * sizeof *sequences), *seen = sequences + r->count;
    if (!sequences)
        return lp_fail_memory(error, "the histories", (size_t)r->count * 2 * sizeof *sequences);
    for (int64_t i = 0; i < r->count; i++) {
        sequences[i] = r->cases[i].sequence;
        seen[i] = r->cases[i].seen;
    }
    lapse_status status = lp_dataset_select(r->dataset, sequences, seen, r->count, &r->cut, error);
    lp_free(sequences);
    return status;
}

/* ------------------------------------------------------------------------------------------------- chances ----- */

static lapse_status ask_model(returns *r, lapse_error *error)
{
    lapse_when_options options;
    lapse_when_options_default(&options);
    options.now = r->out->now;
    options.horizons = r->options->horizons;
    options.horizon_count = r->options->horizon_count;
    options.threads = r->options->threads;
    options.skip_unknown = true;
    size_t numbers = (size_t)r->count * (size_t)options.horizon_count;
    r->within = lp_alloc(numbers, sizeof *r->within);
    r->chance = lp_alloc((size_t)r->count, sizeof *r->chance);
    if (!r->within || !r->chance)
        return lp_fail_memory(error, "the chances", numbers * sizeof *r->within);
    LP_TRY(lapse_when_all(r->model, r->cut, &options, r->chance, NULL, r->within, NULL,
                          error)); /* chance: for the starts */
    for (size_t i = 0; i < numbers; i++)
        if (isnan(r->within[i]))
            r->within[i] = 0.5; /* the model knows no event of the history */
    return LAPSE_OK;
}

/* The rows of one horizon: the model, and baselines that are fitted for it. */
static lapse_status score_horizon(returns *r, const lp_bg_nbd *bg_nbd, int h, lapse_error *error)
{
    static const char *const names[] = {NULL, "constant", "logistic", "bg/nbd"};
    lapse_return_horizon *horizon = &r->out->horizons[h];
    int bootstrap = r->options->bootstrap;
    double share = 0, seconds = r->options->horizons[h], origin = r->divided ? r->out->now - seconds : r->out->now;
    horizon->seconds = seconds;
    lp_free(r->fit);
    r->fit = NULL;
    LP_TRY(lp_return_cases(r->dataset, r->split, r->divided ? LP_SPLIT_COUNT : LP_SPLIT_TRAIN, origin, &r->fit,
                           &r->fit_count, error));
    for (int64_t i = 0; i < r->fit_count; i++)
        share += (r->fit[i].next <= seconds) / (double)r->fit_count;
    lp_return_logistic logistic = lp_return_logistic_fit(r->fit, r->fit_count, seconds);
    for (int row = 0; row < 4; row++) {
        for (int64_t i = 0; i < r->count; i++)
            r->chance[i] = row == 0   ? r->within[i * r->options->horizon_count + h]
                           : row == 1 ? share
                           : row == 2 ? lp_return_logistic_chance(&logistic, &r->cases[i])
                                      : lp_bg_nbd_chance(bg_nbd, &r->cases[i], seconds);
        horizon->scores[row].name = row ? names[row] : r->model->config.row->name;
        LP_TRY(lp_return_score_make(r->cases, r->chance, r->count, seconds, bootstrap, &horizon->scores[row], error));
        if (row == 0)
            LP_TRY(lp_return_groups(r->cases, r->chance, r->count, horizon, error));
    }
    for (int64_t i = 0; i < r->count; i++)
        horizon->returned += r->cases[i].next <= seconds;
    return LAPSE_OK;
}

/* ---------------------------------------------------------------------------------------- numbers of events ---- */

static lapse_status count_events(returns *r, const lp_bg_nbd *bg_nbd, lapse_error *error)
{
    enum { STEPS = LAPSE_RETURN_STEPS };
    lapse_forecast_options options;
    lapse_forecasts made;
    lapse_forecast_options_default(&options);
    options.horizon = r->longest;
    options.now = r->out->now;
    options.samples = r->options->samples;
    options.steps = STEPS;
    options.skip_unknown = true;
    options.threads = r->options->threads;
    LP_TRY(lapse_forecast(r->model, r->cut, &options, &made, error));
    r->out->step_count = STEPS;
    for (int k = 0; k < STEPS; k++) {
        lapse_return_step *step = &r->out->steps[k];
        *step = (lapse_return_step){.seconds = r->longest * (k + 1) / STEPS, .expected = k ? step[-1].expected : 0};
        for (int64_t i = 0; i < r->count; i++) {
            step->expected += made.step_expected[i * STEPS + k];
            step->bg_nbd += lp_bg_nbd_events(bg_nbd, &r->cases[i], step->seconds);
            int64_t sequence = r->cases[i].sequence;
            for (int64_t e = (int64_t)r->dataset->start[sequence] + r->cases[i].seen;
                 e < (int64_t)r->dataset->start[sequence + 1] && r->dataset->time[e] <= r->out->now + step->seconds;
                 e++)
                step->observed++;
        }
    }
    lapse_forecasts_clear(&made);
    return LAPSE_OK;
}

static lapse_status evaluate(returns *r, lapse_error *error)
{
    const lapse_return_options *options = r->options;
    if (!lp_model_predicts_time(r->model))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with " LP_FLAG("--when"));
    if (options->horizon_count < 1 || options->horizon_count > LAPSE_RETURN_HORIZONS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%d horizons are not between 1 and %d", options->horizon_count,
                       LAPSE_RETURN_HORIZONS);
    for (int h = 0; h < options->horizon_count; h++) {
        if (!(options->horizons[h] > 0))
            return lp_fail(error, LAPSE_ERROR_USAGE, "the horizon is %g s; it must be above 0", options->horizons[h]);
        r->longest = fmax(r->longest, options->horizons[h]);
    }
    LP_TRY(find_origin(r, error));
    r->out->cases = r->count;
    r->out->horizon_count = options->horizon_count;
    LP_TRY(cut_histories(r, error));
    LP_TRY(ask_model(r, error));
    lp_bg_nbd bg_nbd = lp_bg_nbd_fit(r->known, r->known_count);
    for (int h = 0; h < options->horizon_count; h++)
        LP_TRY(score_horizon(r, &bg_nbd, h, error));
    if (options->samples > 0 && lp_model_predicts(&r->model->config, LP_TARGET_EVENT))
        LP_TRY(count_events(r, &bg_nbd, error));
    return LAPSE_OK;
}

lapse_status lapse_return_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                   const lapse_return_options *options, lapse_return_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, scores);
    LP_REQUIRE(error, options->split, options->horizons);
    returns r = {.model = model, .dataset = dataset, .options = options, .out = scores};
    *scores = (lapse_return_scores){0};
    lapse_status status = evaluate(&r, error);
    lapse_dataset_close(r.cut);
    lp_free(r.split);
    lp_free(r.cases);
    lp_free(r.known);
    lp_free(r.fit);
    lp_free(r.within);
    lp_free(r.chance);
    return status;
}
