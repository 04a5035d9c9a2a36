/* law.c: the best possible scores: those of the law a simulation was drawn from.
 *
 * The law's event types are pairs of an action and an item. A model may predict the pairs, or the item alone, or the action: then
 * the chances of all pairs that are the same to the model are added. */
#include "data/simulate/simulate.h"
#include "train/evaluator.h"

#include <math.h>
#include <string.h>

typedef struct law_view {
    const lapse_simulation *simulation;
    int32_t *number;       /* of each of the law's event types in the model; -1: none; owned */
    double *probabilities; /* of each of the law's event types; owned */
    const lp_names *names; /* of the model */
    double *sums;          /* by the model's number; owned */
} law_view;

/* Numbers the law's event types by their whole names, or where the model has none of these by the items', or the actions'. */
static lapse_status number_types(law_view *view, const lp_names *names, lapse_error *error)
{
    const lp_law *law = &view->simulation->law;
    view->names = names;
    view->number = lp_alloc((size_t)law->type_count, sizeof *view->number);
    view->probabilities = lp_alloc((size_t)law->type_count, sizeof *view->probabilities);
    view->sums = lp_alloc((size_t)names->count, sizeof *view->sums);
    if (!view->number || !view->probabilities || !view->sums)
        return lp_fail_memory(error, "the law's answers", (size_t)law->type_count * 20);
    bool found = false;
    for (int part = 0; part < 3 && !found; part++) {
        for (int32_t i = 0; i < law->type_count; i++) {
            const lp_law_type *type = &law->types[i];
            view->number[i] = (int32_t)lp_names_find(names, part == 0   ? type->name
                                                            : part == 1 ? type->item
                                                                        : type->action);
            found = found || view->number[i] >= 0;
        }
    }
    return LAPSE_OK;
}

/* The law's answer to event `place` of a user, as a case. */
static lapse_status ask(const law_view *view, int64_t user, int64_t place, int32_t target, lp_case *answer,
                        lapse_error *error)
{
    const lapse_simulation *simulation = view->simulation;
    lp_simulation_probabilities(simulation, user, simulation->start[user] + place, view->probabilities);
    double unknown = 0; /* what the law finds possible and the model has no name for */
    memset(view->sums, 0, (size_t)view->names->count * sizeof *view->sums);
    for (int32_t i = 0; i < simulation->law.type_count; i++) {
        if (view->number[i] >= 0)
            view->sums[view->number[i]] += view->probabilities[i];
        else
            unknown = fmax(unknown, view->probabilities[i]);
    }
    int32_t best = 0;
    for (int32_t i = 1; i < view->names->count; i++)
        best = view->sums[i] > view->sums[best] ? i : best;
    if (view->sums[target] <= 0 || unknown > view->sums[best])
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the dataset's events are not the law's: import the simulation with the event 'action,item', "
                       "'item' or 'action'");
    answer->target = target;
    answer->predicted = best;
    answer->loss = -log(view->sums[target]);
    return LAPSE_OK;
}

static lapse_status ask_all(const law_view *view, lp_evaluator *evaluator, lp_target target, lapse_error *error)
{
    const lp_event_columns *columns = &evaluator->translation.columns;
    const int32_t *truth = target == LP_TARGET_EVENT ? columns->type : columns->action;
    const lapse_dataset *dataset = evaluator->targets.dataset;
    const lapse_simulation *simulation = view->simulation;
    evaluator->case_count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t first = (int64_t)dataset->start[s], count = (int64_t)dataset->start[s + 1] - first;
        int64_t user = lp_simulation_user_find(simulation, lp_names_get(&dataset->sequences, s));
        if (user < 0 || simulation->start[user + 1] - simulation->start[user] != count ||
            simulation->time[simulation->start[user]] != dataset->time[first])
            return lp_fail(error, LAPSE_ERROR_INPUT,
                           "sequence '%s' of the dataset is not in the simulation as it is here",
                           lp_names_get(&dataset->sequences, s));
        for (int64_t place = 1; place < count; place++) {
            if (!lp_targets_include(&evaluator->targets, first + place))
                continue;
            lp_case *answer = &evaluator->verdicts[target].cases[evaluator->case_count++];
            answer->sequence = s;
            LP_TRY(ask(view, user, place, truth[first + place], answer, error));
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
    lp_target target;
    LP_TRY(lp_simulation_require_law(simulation, "best possible score", error));
    LP_TRY(lp_evaluator_target(model, options->target, &target, error));
    LP_TRY(lp_evaluator_split(model, dataset, options->split, &split, &wanted, error));
    lapse_status status =
        lp_evaluator_init(&evaluator, lp_backend_find("cpu"), model, dataset, split, wanted, 1, error);
    if (status == LAPSE_OK)
        status = number_types(&view, lp_model_target_names(model, target), error);
    if (status == LAPSE_OK)
        status = ask_all(&view, &evaluator, target, error);
    if (status == LAPSE_OK)
        status = lp_scores_make(evaluator.verdicts[target].cases, evaluator.case_count, view.names, options->bootstrap,
                                scores, error);
    if (status == LAPSE_OK) {
        scores->target = lp_predict_names[target];
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = "known";
    }
    lp_evaluator_clear(&evaluator);
    lp_free(view.number);
    lp_free(view.probabilities);
    lp_free(view.sums);
    lp_free(split);
    return status;
}
