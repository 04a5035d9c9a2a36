/* rank_evaluate.c: lapse_rank_evaluate: ranking metrics of a model on a split. */
#include "base/threads.h"
#include "evaluate/outcomes.h"
#include "evaluate/rank_scores.h"

#include <string.h>

enum { MAX_CUTOFFS = 32 };

void lapse_rank_options_default(lapse_rank_options *options)
{
    static const int cutoffs[] = {5, 10};
    *options = (lapse_rank_options){.split = "test",
                                    .cutoffs = cutoffs,
                                    .cutoff_count = 2,
                                    .negatives = 100,
                                    .negative_seed = 1,
                                    .bootstrap = 1000,
                                    .device = "cpu"};
}

static lapse_status check_options(const lapse_model *model, const lapse_rank_options *options, lapse_error *error)
{
    if (options->cutoff_count < 1 || options->cutoff_count > MAX_CUTOFFS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "cutoffs are 1 to %d numbers, not %d", MAX_CUTOFFS,
                       options->cutoff_count);
    for (int k = 0; k < options->cutoff_count; k++)
        if (options->cutoffs[k] < 1)
            return lp_fail(error, LAPSE_ERROR_USAGE, "a cutoff is a rank from 1, not %d", options->cutoffs[k]);
    if (options->negatives < 0 || options->negatives > LP_RANK_NEGATIVES_LIMIT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "negatives is %d, but must be 0 to %d", options->negatives,
                       LP_RANK_NEGATIVES_LIMIT);
    if (options->cases < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "cases is %lld, but must be 0 (all of them) or more",
                       (long long)options->cases);
    if (!lp_model_predicts(&model->config, LP_TARGET_EVENT))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model predicts the action, and only events are ranked");
    if (lp_model_is_network(&model->config) && model->config.task != LP_TASK_RECOMMEND)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the model is a classifier: ranking metrics need a model of the task 'recommend', or a baseline");
    return LAPSE_OK;
}

typedef struct rank_view {
    const lapse_model *model;
    const lapse_dataset *dataset;
    lp_id_map id_map;
    uint8_t *split;        /* of each event, as in lp_targets */
    int64_t *counts;       /* [items]: training targets of each item, or all targets of the dataset */
    bool trained;          /* the counts are of training events */
    lp_outcomes *outcomes; /* of a network, for the caller; NULL: none */
} rank_view;

/* Counts the training targets of each item, or all targets where the training split is not known. */
static lapse_status count_items(rank_view *view, const char *events, lapse_error *error)
{
    const lapse_dataset *dataset = view->dataset;
    uint8_t *split;
    lp_split train;
    lapse_status known = lp_evaluator_split(view->model, dataset, "train", events, &split, &train, error);
    if (known == LAPSE_ERROR_MEMORY)
        return known;
    view->trained = known == LAPSE_OK;
    view->counts = lp_alloc((size_t)view->model->types.count, sizeof *view->counts);
    for (int64_t event = 0; view->counts && event < dataset->event_count; event++)
        if (view->trained ? split[event] == LP_SPLIT_TRAIN : lp_split_includes(view->split, LP_SPLIT_COUNT, event))
            view->counts[view->id_map.columns.type[event]]++;
    lp_free(split);
    return view->counts
               ? LAPSE_OK
               : lp_fail_memory(error, "the counts of items", (size_t)view->model->types.count * sizeof *view->counts);
}

static lapse_status view_open(rank_view *view, const lapse_rank_options *options, lp_split *wanted, lapse_error *error)
{
    lp_target target;
    const char *events;
    LP_TRY(lp_evaluator_target(view->model, options->target, &target, &events, error));
    if (target != LP_TARGET_EVENT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "only events are ranked, not the action");
    LP_TRY(lp_evaluator_split(view->model, view->dataset, options->split, events, &view->split, wanted, error));
    LP_TRY(lp_id_map_init(&view->id_map, view->model, view->dataset, error));
    return count_items(view, events, error);
}

static void view_close(rank_view *view)
{
    lp_id_map_clear(&view->id_map);
    lp_free(view->split);
    lp_free(view->counts);
}

static void score_baseline(void *context, const lp_rank_case *rank_case, double *scores)
{
    const rank_view *view = context;
    lp_baseline_predict(view->model, view->dataset, view->id_map.columns.type,
                        (int64_t)view->dataset->start[rank_case->sequence], rank_case->event, scores);
}

/* What scores all items at a case; NULL: the model does. */
typedef struct rank_rows {
    lp_rank_row score;
    void *context;
} rank_rows;

static lapse_status rank_by_rows(rank_view *view, const lp_ranking_setup *setup, rank_rows rows,
                                 const lapse_rank_options *options, lapse_rank_scores *scores, lapse_error *error)
{
    lp_ranking ranking;
    LP_TRY(lp_ranking_init(&ranking, setup, error));
    lapse_status status = LAPSE_OK;
    if (ranking.case_count == 0)
        status = lp_fail(error, LAPSE_ERROR_INPUT, "there is nothing to rank: no sequence has a second event%s%s%s",
                         setup->wanted == LP_SPLIT_COUNT ? "" : " in the split '",
                         setup->wanted == LP_SPLIT_COUNT ? "" : lp_split_name(setup->wanted),
                         setup->wanted == LP_SPLIT_COUNT ? "" : "'");
    if (status == LAPSE_OK) {
        lp_ranking_rows(&ranking, rows.score, rows.context);
        status = lp_rank_scores_make(&ranking, view->counts, options, scores, error);
    }
    lp_ranking_clear(&ranking);
    return status;
}

/* Computes the states of all cases, window by window, then the ranks. */
static lapse_status rank_network(const rank_view *view, const lp_ranking_setup *setup,
                                 const lapse_rank_options *options, lapse_rank_scores *scores, lapse_error *error)
{
    const lp_backend *backend;
    lp_evaluator evaluator;
    LP_TRY(lp_evaluator_device(view->model, options->device, &backend, error));
    LP_TRY(lp_evaluator_init_ranked(&evaluator, backend, view->model, view->dataset, view->split, setup->wanted,
                                    setup->threads, setup, error));
    lapse_status status = lp_evaluator_on_ranks(&evaluator, options->comm, error);
    if (status == LAPSE_OK)
        status = lp_evaluator_run_model(&evaluator, error);
    if (status == LAPSE_OK)
        status = lp_rank_scores_make(&evaluator.ranking, view->counts, options, scores, error);
    if (status == LAPSE_OK && view->outcomes) {
        status = lp_outcomes_take(&evaluator.ranking, LP_PROTOCOL_UNSEEN, view->outcomes, error);
        if (status != LAPSE_OK)
            lapse_rank_scores_clear(scores);
    }
    lp_evaluator_clear(&evaluator);
    return status;
}

/* view: model, dataset and outcomes. threads: of the rows. */
static lapse_status rank(rank_view view, rank_rows rows, int threads, const lapse_rank_options *options,
                         lapse_rank_scores *scores, lapse_error *error)
{
    const lapse_model *model = view.model;
    LP_TRY(check_options(model, options, error));
    lp_split wanted = LP_SPLIT_COUNT;
    lapse_status status = view_open(&view, options, &wanted, error);
    if (status == LAPSE_OK) {
        lp_ranking_setup setup = {.dataset = view.dataset,
                                  .type = view.id_map.columns.type,
                                  .items = model->types.count,
                                  .split = view.split,
                                  .wanted = wanted,
                                  .max_cases = options->cases,
                                  .negatives = options->negatives,
                                  .counts = view.counts,
                                  .seed = options->negative_seed,
                                  .threads = threads};
        if (!rows.score && !lp_model_is_network(&model->config))
            rows = (rank_rows){score_baseline, &view};
        status = rows.score ? rank_by_rows(&view, &setup, rows, options, scores, error)
                            : rank_network(&view, &setup, options, scores, error);
    }
    if (status == LAPSE_OK) {
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = lp_model_target_time(model);
        scores->popularity = view.trained ? "training" : "dataset";
    }
    view_close(&view);
    return status;
}

lapse_status lp_rank_evaluate_outcomes(const lapse_model *model, const lapse_dataset *dataset,
                                       const lapse_rank_options *options, lapse_rank_scores *scores,
                                       lp_outcomes *outcomes, lapse_error *error)
{
    int threads;
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    rank_view view = {.model = model, .dataset = dataset, .outcomes = outcomes};
    return rank(view, (rank_rows){0}, threads, options, scores, error);
}

lapse_status lapse_rank_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_rank_options *options, lapse_rank_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, scores);
    LP_REQUIRE(error, options->split, options->cutoffs);
    return lp_rank_evaluate_outcomes(model, dataset, options, scores, NULL, error);
}

lapse_status lp_rank_evaluate_rows(const lapse_model *model, const lapse_dataset *dataset,
                                   const lapse_rank_options *options, lp_rank_row score, void *context,
                                   lapse_rank_scores *scores, lapse_error *error)
{
    rank_view view = {.model = model, .dataset = dataset};
    return rank(view, (rank_rows){score, context}, 1, options, scores, error);
}
