/* time_evaluate.c: lapse_time_evaluate: scores of a model's times beside those of baselines, on the same events. */
#include "base/threads.h"
#include "evaluate/evaluator.h"
#include "model/field_statistics.h"

#include <string.h>

bool lapse_model_predicts_time(const lapse_model *model)
{
    return model && lp_model_predicts_time(model);
}

static int64_t sequences_of(const lp_evaluator *evaluator)
{
    int64_t count = 0;
    for (int64_t i = 0; i < evaluator->case_count; i++)
        count += i == 0 || evaluator->time.cases[i].sequence != evaluator->time.cases[i - 1].sequence;
    return count;
}

static lapse_status score_baselines(const lp_evaluator *evaluator, const uint8_t *split, int bootstrap,
                                    lapse_time_scores *scores, lapse_error *error)
{
    lp_time_case *scored = lp_alloc((size_t)evaluator->case_count, sizeof *scored);
    lapse_status status =
        scored ? LAPSE_OK : lp_fail_memory(error, "the baselines", (size_t)evaluator->case_count * sizeof *scored);
    for (int b = 0; status == LAPSE_OK && lp_time_baselines[b]; b++) {
        lapse_time_score *score = &scores->scores[scores->count];
        status =
            lp_time_baseline_score(lp_time_baselines[b], evaluator->targets.dataset, split, scores->floor,
                                   evaluator->model->config.when_span, evaluator->time.cases, evaluator->case_count, evaluator->threads, scored, error);
        if (status == LAPSE_OK)
            status = lp_time_score_make(scored, evaluator->case_count, scores->unit, bootstrap, score, error);
        score->name = lp_time_baseline_name(lp_time_baselines[b]);
        scores->count += status == LAPSE_OK;
    }
    lp_free(scored);
    return status;
}

static lapse_status evaluate(lp_evaluator *evaluator, const uint8_t *split, int bootstrap, lapse_time_scores *scores,
                             lapse_error *error)
{
    evaluator->time.whole = true;
    LP_TRY(lp_evaluator_run_model(evaluator, error));
    *scores = (lapse_time_scores){.cases = evaluator->case_count, .floor = evaluator->time.floor, .count = 1};
    scores->sequences = sequences_of(evaluator);
    scores->unit = lp_time_unit(evaluator->time.cases, evaluator->case_count, scores->floor, &scores->unit_name);
    LP_TRY(lp_time_score_make(evaluator->time.cases, evaluator->case_count, scores->unit, bootstrap, &scores->scores[0],
                              error));
    scores->scores[0].name = evaluator->model->config.row->name;
    return split ? score_baselines(evaluator, split, bootstrap, scores, error) : LAPSE_OK;
}

lapse_status lapse_time_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_evaluate_options *options, lapse_time_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, scores);
    LP_REQUIRE(error, options->split);
    uint8_t *split;
    lp_split wanted;
    lp_target target;
    const char *events;
    const lapse_model *times = lp_model_of_times(model);
    if (!times)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model does not predict the time of the next event: train it with " LP_FLAG("--when"));
    const lp_backend *backend;
    LP_TRY(lp_evaluator_device(model, options->device, &backend, error));
    int threads;
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    LP_TRY(lp_evaluator_target(model, options->target, &target, &events, error));
    LP_TRY(lp_evaluator_split(model, dataset, options->split, events, &split, &wanted, error));
    lp_evaluator evaluator;
    lapse_status status = lp_evaluator_init(&evaluator, backend, times, dataset, split, wanted, threads, error);
    if (status == LAPSE_OK) {
        status = lp_evaluator_on_ranks(&evaluator, options->comm, error);
        if (status == LAPSE_OK)
            status = evaluate(&evaluator, wanted == LP_SPLIT_COUNT ? NULL : split, options->bootstrap, scores, error);
        lp_evaluator_clear(&evaluator);
    }
    if (status == LAPSE_OK)
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
    lp_free(split);
    return status;
}
