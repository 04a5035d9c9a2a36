/* compare.c: a model's scores beside those of the baselines of its task, on the same cases.
 *
 * The baselines are fitted to the model's training split. Differences are paired case by case, so their intervals are
 * narrower than those of the scores themselves. */
#include "base/threads.h"
#include "data/dataset/fingerprint.h"
#include "model/model_options.h"
#include "evaluate/bootstrap.h"
#include "evaluate/outcomes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits a comparison of recommenders to a second or two: scores computed per model, but at least MIN_CASES cases. */
enum { MAX_SCORES = 200000000, MIN_CASES = 500 };

typedef struct comparing {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const uint8_t *split;
    lp_split wanted;
    lp_target target;
    int threads, metrics;
    lapse_comm *comm;
    const lp_backend *backend;
} comparing;

/* The most cases of a recommender's comparison; where there are more, a sample is compared. */
static int64_t most_cases(const lapse_model *model)
{
    int64_t cases = (int64_t)MAX_SCORES / model->types.count;
    return cases > MIN_CASES ? cases : MIN_CASES;
}

static lapse_status score(const comparing *c, const lapse_model *model, const lapse_dataset *dataset,
                          const lp_backend *backend, lp_target target, lp_outcomes *out, lapse_error *error)
{
    lp_outcome_setup setup = {.model = model,
                              .dataset = dataset,
                              .split = c->split,
                              .wanted = c->wanted,
                              .target = target,
                              .backend = backend,
                              .threads = c->threads,
                              .comm = c->comm,
                              .protocol = LP_PROTOCOL_UNSEEN,
                              .max_cases = most_cases(c->model),
                              .seed = c->model->seed};
    return lp_outcomes_make(&setup, out, error);
}

/* ---------------------------------------------------------------------------------------------- baselines ---- */

typedef struct baseline_row {
    const char *name, *model, *order;
    lp_task task;
} baseline_row;

static const baseline_row baselines[] = {
    {"majority", "majority", NULL, LP_TASK_CLASSIFY},        {"markov 1", "markov", "1", LP_TASK_CLASSIFY},
    {"markov 2", "markov", "2", LP_TASK_CLASSIFY},           {"markov 3", "markov", "3", LP_TASK_CLASSIFY},
    {"popularity", "popularity", NULL, LP_TASK_RECOMMEND},   {"recency", "recency", NULL, LP_TASK_RECOMMEND},
    {"item-markov", "item-markov", NULL, LP_TASK_RECOMMEND},
};
enum { BASELINES = sizeof baselines / sizeof *baselines };
_Static_assert(1 + BASELINES <= LAPSE_COMPARED_LIMIT, "rows of a comparison");

/* The dataset as a baseline of this target sees it: actions become the event types. */
static lapse_dataset view_of(const comparing *c)
{
    lapse_dataset view = *c->dataset;
    if (c->target == LP_TARGET_ACTION) {
        view.types = c->dataset->fields[0].categories;
        view.type = c->dataset->fields[0].category;
    }
    view.field_count = 0;
    return view;
}

static lapse_status fit(const comparing *c, const baseline_row *row, const lapse_dataset *view, lapse_model **model,
                        lapse_error *error)
{
    lp_model_config config = {.row = lp_model_row_find(row->model)};
    const lp_names *names = lp_model_target_names(c->model, c->target);
    lp_options_default(lp_model_options, &config);
    lp_model_settings_default(config.row, &config.settings);
    config.task = c->model->config.task;
    config.target_time = c->model->config.target_time;
    config.context = c->model->config.context;
    config.event_types = (int)names->count;
    if (row->order)
        LP_TRY(
            lp_option_set(lp_options_find(config.row->options[0], "order"), config.settings.bytes, row->order, error));
    LP_TRY(lp_model_new(&config, names, model, error));
    return config.row->fit(*model, &(lp_fit_data){view, c->split}, error);
}

static lapse_status score_baseline(const comparing *c, const baseline_row *row, lp_outcomes *out, lapse_error *error)
{
    lapse_dataset view = view_of(c);
    lapse_model *model = NULL;
    lapse_status status = fit(c, row, &view, &model, error);
    if (status == LAPSE_OK)
        status = score(c, model, &view, lp_backend_find("cpu"), LP_TARGET_EVENT, out, error);
    lapse_model_free(model);
    return status;
}

/* --------------------------------------------------------------------------------------------- comparing ----- */

/* Fills a row: its metrics, and the differences of the model's metrics from them. */
static lapse_status fill(const comparing *c, const lp_outcomes *model, const lp_outcomes *other, int bootstrap,
                         lapse_compared *row, int64_t *sequences, lapse_error *error)
{
    int metrics = c->metrics, width = 1 + 2 * metrics;
    double *parts = lp_alloc((size_t)other->count, (size_t)width * sizeof *parts), *part = NULL;
    double total[1 + 2 * LP_OUTCOME_METRICS] = {0}, low[2 * LP_OUTCOME_METRICS], high[2 * LP_OUTCOME_METRICS];
    if (!parts)
        return lp_fail_memory(error, "a comparison", (size_t)other->count * (size_t)width * sizeof *parts);
    *sequences = 0;
    for (int64_t i = 0; i < other->count; i++) {
        if (i == 0 || other->sequence[i] != other->sequence[i - 1])
            part = parts + (size_t)width * (size_t)(*sequences)++;
        part[0] += 1;
        total[0] += 1;
        for (int m = 0; m < metrics; m++) {
            int64_t at = i * other->metrics + m;
            double value = other->values[at], difference = model->values[at] - value;
            part[1 + m] += value;
            part[1 + metrics + m] += difference;
            total[1 + m] += value;
            total[1 + metrics + m] += difference;
        }
    }
    for (int m = 0; m < 2 * metrics; m++)
        low[m] = high[m] = total[1 + m] / total[0];
    lapse_status status = bootstrap > 0
                              ? lp_bootstrap(parts, *sequences, 2 * metrics, bootstrap, c->threads, low, high, error)
                              : LAPSE_OK;
    for (int m = 0; m < metrics; m++) {
        row->metrics[m] = (lapse_mean){total[1 + m] / total[0], low[m], high[m]};
        row->differences[m] = (lapse_mean){total[1 + metrics + m] / total[0], low[metrics + m], high[metrics + m]};
    }
    lp_free(parts);
    return status;
}

/* model: its outcomes; without any, they are computed here. */
static lapse_status compare(const comparing *c, int bootstrap, lp_outcomes *model, lapse_comparison *out,
                            lapse_error *error)
{
    lp_outcomes other = {0};
    const lp_model_config *config = &c->model->config;
    lapse_status status =
        model->count > 0 ? LAPSE_OK : score(c, c->model, c->dataset, c->backend, c->target, model, error);
    if (status == LAPSE_OK)
        status = fill(c, model, model, bootstrap, &out->rows[0], &out->sequences, error);
    snprintf(out->rows[0].name, sizeof out->rows[0].name, "%s", config->row->name);
    out->row_count = 1;
    for (int b = 0; status == LAPSE_OK && b < BASELINES; b++) {
        lapse_compared *row = &out->rows[out->row_count];
        if ((int)baselines[b].task != config->task)
            continue;
        status = score_baseline(c, &baselines[b], &other, error);
        if (status == LAPSE_OK)
            status = fill(c, model, &other, bootstrap, row, &out->sequences, error);
        lp_outcomes_clear(&other);
        snprintf(row->name, sizeof row->name, "%s", baselines[b].name);
        bool better = lp_metric_better(lp_metric_first((lp_task)config->task), row->metrics[0].mean,
                                       out->rows[out->best].metrics[0].mean);
        if (out->best == 0 || better)
            out->best = out->row_count;
        out->row_count++;
    }
    out->cases = model->count;
    out->case_total = model->total;
    return status;
}

static lapse_status compare_model(const lapse_model *model, const lapse_dataset *dataset,
                                  const lapse_evaluate_options *options, lp_outcomes *outcomes,
                                  lapse_comparison *comparison, lapse_error *error)
{
    uint8_t *split;
    const char *events;
    const lp_model_config *config = &model->config;
    comparing c = {.model = model, .dataset = dataset, .comm = options->comm};
    lp_metric_column columns[LP_METRIC_COLUMNS];
    *comparison = (lapse_comparison){0};
    if (!lp_model_is_network(config))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' is a baseline; networks are compared with baselines",
                       config->row->name);
    LP_TRY(lp_evaluator_target(model, options->target, &c.target, &events, error));
    if (lp_dataset_fingerprint(dataset) != model->fingerprint)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "this is not the dataset the model was trained on, and baselines are fitted to its training "
                       "split");
    LP_TRY(lp_evaluator_device(model, options->device, &c.backend, error));
    LP_TRY(lp_threads_resolve(options->threads, &c.threads, error));
    LP_TRY(lp_evaluator_split(model, dataset, strcmp(options->split, "all") == 0 ? "train" : options->split, events,
                              &split, &c.wanted, error));
    if (strcmp(options->split, "all") == 0)
        c.wanted = LP_SPLIT_COUNT;
    c.split = split;
    for (int i = 0; i < lp_metric_columns(config, columns); i++)
        if (columns[i].target == c.target)
            comparison->metric_names[c.metrics++] = lp_metric_names[columns[i].metric];
    comparison->metric_count = c.metrics;
    comparison->target = lp_predict_names[c.target];
    comparison->split = c.wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(c.wanted);
    lapse_status status = compare(&c, options->bootstrap, outcomes, comparison, error);
    lp_free(split);
    return status;
}

lapse_status lapse_compare(const lapse_model *model, const lapse_dataset *dataset,
                           const lapse_evaluate_options *options, lapse_comparison *comparison, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, comparison);
    lp_outcomes outcomes = {0};
    lapse_status status = compare_model(model, dataset, options, &outcomes, comparison, error);
    lp_outcomes_clear(&outcomes);
    return status;
}

lapse_status lapse_rank_compare(const lapse_model *model, const lapse_dataset *dataset,
                                const lapse_rank_options *options, lapse_rank_scores *scores,
                                lapse_comparison *comparison, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, scores, comparison);
    LP_REQUIRE(error, options->split, options->cutoffs);
    lp_outcomes outcomes = {0};
    LP_TRY(lp_rank_evaluate_outcomes(model, dataset, options, scores, &outcomes, error));
    if (outcomes.count < outcomes.total || outcomes.total > most_cases(model)) /* a comparison has another sample */
        lp_outcomes_clear(&outcomes);
    lapse_evaluate_options same = {.split = options->split,
                                   .bootstrap = options->bootstrap,
                                   .threads = options->threads,
                                   .comm = options->comm,
                                   .device = options->device,
                                   .target = options->target};
    lapse_status status = compare_model(model, dataset, &same, &outcomes, comparison, error);
    lp_outcomes_clear(&outcomes);
    if (status != LAPSE_OK)
        lapse_rank_scores_clear(scores);
    return status;
}
