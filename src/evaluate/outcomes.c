/* outcomes.c: see outcomes.h. */
#include "evaluate/outcomes.h"

static lapse_status reserve(lp_outcomes *out, int64_t count, int metrics, lapse_error *error)
{
    out->count = out->total = count;
    out->metrics = metrics;
    out->sequence = lp_alloc((size_t)count, sizeof *out->sequence);
    out->values = lp_alloc((size_t)count * (size_t)metrics, sizeof *out->values);
    if (out->sequence && out->values)
        return LAPSE_OK;
    lp_outcomes_clear(out);
    return lp_fail_memory(error, "the scores of cases", (size_t)count * (size_t)(1 + metrics) * sizeof *out->values);
}

static lapse_status take_cases(const lp_case *cases, int64_t count, lp_outcomes *out, lapse_error *error)
{
    LP_TRY(reserve(out, count, 2, error));
    for (int64_t i = 0; i < count; i++) {
        out->sequence[i] = cases[i].sequence;
        out->values[2 * i] = cases[i].loss;
        out->values[2 * i + 1] = cases[i].target == cases[i].predicted;
    }
    return LAPSE_OK;
}

lapse_status lp_outcomes_take(const lp_ranking *ranking, lp_protocol protocol, lp_outcomes *out, lapse_error *error)
{
    LP_TRY(reserve(out, ranking->case_count, LP_OUTCOME_METRICS, error));
    out->total = ranking->case_total;
    for (int64_t i = 0; i < ranking->case_count; i++) {
        int32_t rank = ranking->results[i].rank[protocol];
        double *values = out->values + LP_OUTCOME_METRICS * i;
        out->sequence[i] = ranking->cases[i].sequence;
        values[0] = lp_rank_gain(rank, LP_METRIC_CUTOFF);
        values[1] = rank <= LP_METRIC_CUTOFF;
        values[2] = 1.0 / rank;
        values[3] = lp_rank_gain(rank, LP_METRIC_CUTOFF / 2);
        values[4] = rank <= LP_METRIC_CUTOFF / 2;
    }
    return LAPSE_OK;
}

static lapse_status run_evaluator(const lp_outcome_setup *setup, const lp_ranking_setup *ranked, lp_outcomes *out,
                                  lapse_error *error)
{
    lp_evaluator evaluator;
    if (ranked)
        LP_TRY(lp_evaluator_init_ranked(&evaluator, setup->backend, setup->model, setup->dataset, setup->split,
                                        setup->wanted, setup->threads, ranked, error));
    else
        LP_TRY(lp_evaluator_init(&evaluator, setup->backend, setup->model, setup->dataset, setup->split, setup->wanted,
                                 setup->threads, error));
    lapse_status status = lp_evaluator_on_ranks(&evaluator, setup->comm, error);
    if (status == LAPSE_OK)
        status = lp_evaluator_run_model(&evaluator, error);
    if (status == LAPSE_OK)
        status = ranked ? lp_outcomes_take(&evaluator.ranking, setup->protocol, out, error)
                        : take_cases(evaluator.predictions[setup->target].cases, evaluator.case_count, out, error);
    lp_evaluator_clear(&evaluator);
    return status;
}

typedef struct rank_view {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const int32_t *type;
} rank_view;

static void score_row(void *context, const lp_rank_case *rank_case, double *scores)
{
    const rank_view *view = context;
    lp_baseline_predict(view->model, view->dataset, view->type, (int64_t)view->dataset->start[rank_case->sequence],
                        rank_case->event, scores);
}

static lapse_status rank_baseline(const lp_outcome_setup *setup, const lp_ranking_setup *ranked, lp_outcomes *out,
                                  lapse_error *error)
{
    lp_ranking ranking;
    LP_TRY(lp_ranking_init(&ranking, ranked, error));
    lp_ranking_rows(&ranking, score_row, &(rank_view){setup->model, setup->dataset, ranked->type});
    lapse_status status = lp_outcomes_take(&ranking, setup->protocol, out, error);
    lp_ranking_clear(&ranking);
    return status;
}

/* Occurrences in training, for negatives by popularity. */
static void count_items(const lp_outcome_setup *setup, const int32_t *type, int64_t *counts)
{
    for (int64_t event = 0; event < setup->dataset->event_count; event++)
        if (setup->split[event] == LP_SPLIT_TRAIN)
            counts[type[event]]++;
}

static lapse_status rank(const lp_outcome_setup *setup, lp_outcomes *out, lapse_error *error)
{
    int64_t items = setup->model->types.count;
    lp_id_map map;
    LP_TRY(lp_id_map_init(&map, setup->model, setup->dataset, error));
    int64_t *counts = lp_alloc((size_t)items, sizeof *counts);
    lapse_status status =
        counts ? LAPSE_OK : lp_fail_memory(error, "the counts of items", (size_t)items * sizeof *counts);
    if (status == LAPSE_OK) {
        count_items(setup, map.columns.type, counts);
        lp_ranking_setup ranked = {.dataset = setup->dataset,
                                   .type = map.columns.type,
                                   .items = items,
                                   .split = setup->split,
                                   .wanted = setup->wanted,
                                   .max_cases = setup->max_cases,
                                   .negatives = setup->negatives,
                                   .counts = counts,
                                   .seed = setup->seed,
                                   .threads = setup->threads};
        status = lp_model_is_network(&setup->model->config) ? run_evaluator(setup, &ranked, out, error)
                                                            : rank_baseline(setup, &ranked, out, error);
    }
    lp_free(counts);
    lp_id_map_clear(&map);
    return status;
}

lapse_status lp_outcomes_make(const lp_outcome_setup *setup, lp_outcomes *outcomes, lapse_error *error)
{
    *outcomes = (lp_outcomes){0};
    return setup->model->config.task == LP_TASK_RECOMMEND ? rank(setup, outcomes, error)
                                                          : run_evaluator(setup, NULL, outcomes, error);
}

void lp_outcomes_clear(lp_outcomes *outcomes)
{
    lp_free(outcomes->sequence);
    lp_free(outcomes->values);
    *outcomes = (lp_outcomes){0};
}
