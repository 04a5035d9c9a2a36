/* law.c: the best possible scores: those of the law a simulation was drawn from. */
#include "data/simulate.h"
#include "train/evaluator.h"

#include <math.h>

typedef struct law_view {
    const lapse_simulation *simulation;
    int32_t *number;       /* of each of the law's kinds in the model; owned */
    double *probabilities; /* of each of the law's kinds; owned */
} law_view;

static lapse_status number_kinds(law_view *view, const lapse_model *model, lapse_error *error)
{
    const lp_law *law = &view->simulation->law;
    view->number = lp_alloc((size_t)law->kind_count, sizeof *view->number);
    view->probabilities = lp_alloc((size_t)law->kind_count, sizeof *view->probabilities);
    if (!view->number || !view->probabilities)
        return lp_fail_memory(error, "the law's answers", (size_t)law->kind_count * 12);
    for (int32_t i = 0; i < law->kind_count; i++)
        view->number[i] = (int32_t)lapse_model_kind_find(model, law->kinds[i].name);
    return LAPSE_OK;
}

/* The law's answer to event `place` of a user, as a case. */
static lapse_status ask(const law_view *view, int64_t user, int64_t place, int32_t target, lp_case *answer,
                        lapse_error *error)
{
    const lapse_simulation *simulation = view->simulation;
    lp_simulation_probabilities(simulation, user, simulation->start[user] + place, view->probabilities);
    int32_t best = 0, chosen = -1;
    for (int32_t i = 0; i < simulation->law.kind_count; i++) {
        best = view->probabilities[i] > view->probabilities[best] ? i : best;
        if (view->number[i] == target)
            chosen = i;
    }
    if (chosen < 0 || view->number[best] < 0)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the dataset's events are not the law's: import the simulation with the event 'action,item'");
    answer->target = target;
    answer->predicted = view->number[best];
    answer->loss = -log(view->probabilities[chosen]);
    return LAPSE_OK;
}

static lapse_status ask_all(const law_view *view, lp_evaluator *evaluator, lapse_error *error)
{
    const lapse_dataset *dataset = evaluator->targets.dataset;
    const lapse_simulation *simulation = view->simulation;
    evaluator->case_count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t first = (int64_t)dataset->start[s], count = (int64_t)dataset->start[s + 1] - first;
        int64_t user = lp_simulation_user_find(simulation, lp_names_get(&dataset->sequences, s));
        if (user < 0 || simulation->start[user + 1] - simulation->start[user] != count ||
            simulation->time[simulation->start[user]] != dataset->time[first])
            return lp_fail(error, LAPSE_ERROR_INPUT, "sequence '%s' of the dataset is not in the simulation as it is here",
                           lp_names_get(&dataset->sequences, s));
        for (int64_t place = 1; place < count; place++) {
            if (!lp_targets_want(&evaluator->targets, first + place))
                continue;
            lp_case *answer = &evaluator->cases[evaluator->case_count++];
            answer->sequence = s;
            LP_TRY(ask(view, user, place, evaluator->kinds[first + place], answer, error));
        }
    }
    return LAPSE_OK;
}

lapse_status lapse_simulation_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                       const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                       lapse_scores *scores, lapse_error *error)
{
    uint8_t *split;
    lp_split wanted;
    lp_evaluator evaluator = {0};
    law_view view = {.simulation = simulation};
    LP_TRY(lp_evaluator_split(model, dataset, options->split, &split, &wanted, error));
    lapse_status status = lp_evaluator_init(&evaluator, model, dataset, split, wanted, 1, error);
    if (status == LAPSE_OK)
        status = number_kinds(&view, model, error);
    if (status == LAPSE_OK)
        status = ask_all(&view, &evaluator, error);
    if (status == LAPSE_OK)
        status = lp_scores_make(evaluator.cases, evaluator.case_count, &model->kinds, options->bootstrap, scores, error);
    if (status == LAPSE_OK) {
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = "known";
    }
    lp_evaluator_clear(&evaluator);
    lp_free(view.number);
    lp_free(view.probabilities);
    lp_free(split);
    return status;
}
