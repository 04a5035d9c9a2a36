/* law.c: the best possible scores: those of the law that generated a simulation.
 *
 * The law's event types are pairs of an action and an item. A model may predict the pairs, the items or the actions;
 * the probabilities of all pairs of one class are added. */
#include "data/simulate/simulate.h"
#include "train/evaluator.h"

#include <math.h>
#include <string.h>

typedef struct law_view {
    const lapse_simulation *simulation;
    int32_t *class;        /* of each of the law's event types in the model; -1: none; owned */
    double *probabilities; /* of each of the law's event types; owned */
    const lp_names *names; /* of the model's classes */
    double *sums;          /* probability of each class; owned */
} law_view;

/* Maps the law's event types to classes: by their full names, or if the model has none of these by item, or by
 * action. */
static lapse_status map_types(law_view *view, const lp_names *names, lapse_error *error)
{
    const lp_law *law = &view->simulation->law;
    view->names = names;
    view->class = lp_alloc((size_t)law->type_count, sizeof *view->class);
    view->probabilities = lp_alloc((size_t)law->type_count, sizeof *view->probabilities);
    view->sums = lp_alloc((size_t)names->count, sizeof *view->sums);
    if (!view->class || !view->probabilities || !view->sums)
        return lp_fail_memory(error, "the probabilities of the law", (size_t)law->type_count * 20);
    bool found = false;
    for (int part = 0; part < 3 && !found; part++) {
        for (int32_t i = 0; i < law->type_count; i++) {
            const lp_law_type *type = &law->types[i];
            const char *name = part == 0 ? type->name : part == 1 ? type->item : type->action;
            view->class[i] = name ? (int32_t)lp_names_find(names, name) : -1;
            found = found || view->class[i] >= 0;
        }
    }
    return LAPSE_OK;
}

static lapse_status predict(const law_view *view, int64_t user, int64_t index, int32_t target, lp_case *prediction,
                            lapse_error *error)
{
    const lapse_simulation *simulation = view->simulation;
    lp_simulation_probabilities(simulation, user, simulation->start[user] + index, view->probabilities);
    double unknown = 0; /* largest probability of an event type that the model does not have */
    memset(view->sums, 0, (size_t)view->names->count * sizeof *view->sums);
    for (int32_t i = 0; i < simulation->law.type_count; i++) {
        if (view->class[i] >= 0)
            view->sums[view->class[i]] += view->probabilities[i];
        else
            unknown = fmax(unknown, view->probabilities[i]);
    }
    int32_t best = 0;
    for (int32_t i = 1; i < view->names->count; i++)
        best = view->sums[i] > view->sums[best] ? i : best;
    if (view->sums[target] <= 0 || unknown > view->sums[best])
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the dataset's events are not those of the simulation: import it with the event 'action,item', "
                       "'item' or 'action'");
    prediction->target = target;
    prediction->predicted = best;
    prediction->loss = -log(view->sums[target]);
    return LAPSE_OK;
}

static lapse_status predict_all(const law_view *view, lp_evaluator *evaluator, lp_target target, lapse_error *error)
{
    const lp_event_columns *columns = &evaluator->id_map.columns;
    const int32_t *label = target == LP_TARGET_EVENT ? columns->type : columns->action;
    const lapse_dataset *dataset = evaluator->targets.dataset;
    const lapse_simulation *simulation = view->simulation;
    evaluator->case_count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t first = (int64_t)dataset->start[s], count = (int64_t)dataset->start[s + 1] - first;
        int64_t user = lp_simulation_user_find(simulation, lp_names_get(&dataset->sequences, s));
        if (user < 0 || simulation->start[user + 1] - simulation->start[user] != count ||
            simulation->time[simulation->start[user]] != dataset->time[first])
            return lp_fail(error, LAPSE_ERROR_INPUT, "sequence '%s' of the dataset differs from the simulation",
                           lp_names_get(&dataset->sequences, s));
        for (int64_t i = 1; i < count; i++) {
            if (!lp_targets_include(&evaluator->targets, first + i))
                continue;
            lp_case *prediction = &evaluator->predictions[target].cases[evaluator->case_count++];
            prediction->sequence = s;
            LP_TRY(predict(view, user, i, label[first + i], prediction, error));
        }
    }
    return LAPSE_OK;
}

lapse_status lapse_simulation_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                       const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                       lapse_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, simulation, model, dataset, options, scores);
    LP_REQUIRE(error, options->split);
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
        status = map_types(&view, lp_model_target_names(model, target), error);
    if (status == LAPSE_OK)
        status = predict_all(&view, &evaluator, target, error);
    if (status == LAPSE_OK)
        status = lp_scores_make(evaluator.predictions[target].cases, evaluator.case_count, view.names,
                                options->bootstrap, scores, error);
    if (status == LAPSE_OK) {
        scores->target = lp_predict_names[target];
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = "known";
    }
    lp_evaluator_clear(&evaluator);
    lp_free(view.class);
    lp_free(view.probabilities);
    lp_free(view.sums);
    lp_free(split);
    return status;
}
