/* law.c: the best possible scores: those of the law that generated a simulation.
 *
 * The law's event types are pairs of an action and an item. A model may predict the pairs, the items or the actions;
 * the probabilities of all pairs of one class are added. */
#include "simulate/law.h"

#include "data/dataset/target_events.h"
#include "evaluate/evaluator.h"

#include <math.h>
#include <string.h>

typedef struct law_view {
    const lapse_simulation *simulation;
    const lapse_dataset *dataset;
    int64_t *event;        /* of each of the dataset's events: the same event of the simulation; owned */
    int32_t *class;        /* of each of the law's event types in the model; -1: none; owned */
    double *probabilities; /* of each of the law's event types; owned */
    const lp_names *names; /* of the model's classes */
    double *sums;          /* probability of each class; owned */
} law_view;

lapse_status lp_law_find_events(const lapse_simulation *simulation, const lapse_dataset *dataset, int64_t **events,
                                lapse_error *error)
{
    int64_t *found = *events = lp_alloc((size_t)dataset->event_count, sizeof *found);
    if (!found)
        return lp_fail_memory(error, "the events of a simulation", (size_t)dataset->event_count * sizeof *found);
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t user = lp_law_user(simulation, dataset, s);
        for (uint64_t e = dataset->start[s]; e < dataset->start[s + 1]; e++) {
            found[e] = user < 0 ? -1 : lp_simulation_event_find(simulation, user, dataset->time[e]);
            if (found[e] < 0)
                return lp_fail(error, LAPSE_ERROR_INPUT, "sequence '%s' of the dataset differs from the simulation",
                               lp_names_get(&dataset->sequences, s));
        }
    }
    return LAPSE_OK;
}

int64_t lp_law_user(const lapse_simulation *simulation, const lapse_dataset *dataset, int64_t sequence)
{
    return lp_simulation_user_find(simulation, lp_names_get(&dataset->sequences, sequence));
}

/* Maps the law's event types to classes: by their full names, or if the model has none of these by item, or by
 * action. */
static lapse_status map_types(law_view *view, const lp_names *names, lapse_error *error)
{
    const lp_law *law = &view->simulation->law;
    char text[LP_SIMULATE_NAME_SIZE];
    view->names = names;
    view->class = lp_alloc((size_t)law->type_count, sizeof *view->class);
    view->probabilities = lp_alloc((size_t)law->type_count, sizeof *view->probabilities);
    view->sums = lp_alloc((size_t)names->count, sizeof *view->sums);
    if (!view->class || !view->probabilities || !view->sums)
        return lp_fail_memory(error, "the probabilities of the law", (size_t)law->type_count * 20);
    bool found = false;
    for (int part = 0; part < LP_TYPE_PARTS && !found; part++) {
        for (int32_t i = 0; i < law->type_count; i++) {
            const char *name = lp_simulation_type_name(view->simulation, i, (lp_type_part)part, text);
            view->class[i] = name ? (int32_t)lp_names_find(names, name) : -1;
            found = found || view->class[i] >= 0;
        }
    }
    return LAPSE_OK;
}

static lapse_status fail_class(lapse_error *error)
{
    return lp_fail(error, LAPSE_ERROR_INPUT,
                   "the dataset's events are not those of the simulation: import it with the event 'action,item', "
                   "'item' or 'action'");
}

/* Where only events with one action are targets, the law is conditioned on it: other event types have no class. */
static void require_action(law_view *view, const char *action)
{
    char text[LP_SIMULATE_NAME_SIZE];
    for (int32_t i = 0; action && i < view->simulation->law.type_count; i++) {
        const char *own = lp_simulation_type_name(view->simulation, i, LP_TYPE_ACTION, text);
        if (!own || strcmp(own, action) != 0)
            view->class[i] = -1;
    }
}

static lapse_status view_open(law_view *view, const lp_names *names, const char *events, lapse_error *error)
{
    LP_TRY(lp_law_find_events(view->simulation, view->dataset, &view->event, error));
    LP_TRY(map_types(view, names, error));
    require_action(view, lp_target_events_action(events));
    return LAPSE_OK;
}

static void view_close(law_view *view)
{
    lp_free(view->event);
    lp_free(view->class);
    lp_free(view->probabilities);
    lp_free(view->sums);
}

/* Fills sums with the probability of each class at an event of the dataset, given that it is one of these: a filter of
 * the import may have dropped others. */
static void predict(const law_view *view, int64_t sequence, int64_t event, double *sums)
{
    const lapse_simulation *simulation = view->simulation;
    int64_t user = lp_law_user(simulation, view->dataset, sequence);
    lp_simulation_probabilities(simulation, user, view->event[event], view->probabilities);
    double total = 0;
    memset(sums, 0, (size_t)view->names->count * sizeof *sums);
    for (int32_t i = 0; i < simulation->law.type_count; i++) {
        if (view->class[i] < 0)
            continue;
        sums[view->class[i]] += view->probabilities[i];
        total += view->probabilities[i];
    }
    for (int64_t i = 0; i < view->names->count; i++)
        sums[i] /= total;
}

static lapse_status predict_case(const law_view *view, int64_t sequence, int64_t event, int32_t target,
                                 lp_case *prediction, lapse_error *error)
{
    if (view->class[view->simulation->type[view->event[event]]] != target)
        return fail_class(error);
    predict(view, sequence, event, view->sums);
    int32_t best = 0;
    for (int32_t i = 1; i < view->names->count; i++)
        best = view->sums[i] > view->sums[best] ? i : best;
    *prediction = (lp_case){sequence, target, best, -log(view->sums[target])};
    return LAPSE_OK;
}

static lapse_status predict_all(const law_view *view, lp_evaluator *evaluator, lp_target target, lapse_error *error)
{
    const lp_event_columns *columns = &evaluator->id_map.columns;
    const int32_t *label = target == LP_TARGET_EVENT ? columns->type : columns->action;
    const lapse_dataset *dataset = view->dataset;
    evaluator->case_count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++)
            if (lp_targets_include(&evaluator->targets, event))
                LP_TRY(predict_case(view, s, event, label[event],
                                    &evaluator->predictions[target].cases[evaluator->case_count++], error));
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
    law_view view = {.simulation = simulation, .dataset = dataset};
    lp_target target;
    const char *events;
    LP_TRY(lp_simulation_require_law(simulation, "best possible score", error));
    LP_TRY(lp_evaluator_class_target(model, options->target, &target, &events, error));
    LP_TRY(lp_evaluator_split(model, dataset, options->split, events, &split, &wanted, error));
    lapse_status status =
        lp_evaluator_init(&evaluator, lp_backend_find("cpu"), model, dataset, split, wanted, 1, error);
    if (status == LAPSE_OK)
        status = view_open(&view, lp_model_target_names(model, target), events, error);
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
    view_close(&view);
    lp_free(split);
    return status;
}

/* Every event must have the class that its event type in the simulation has. */
static lapse_status check_types(const law_view *view, lapse_error *error)
{
    const lapse_dataset *dataset = view->dataset;
    for (int64_t e = 0; e < dataset->event_count; e++) {
        int32_t class = view->class[view->simulation->type[view->event[e]]];
        if (class >= 0 &&
            strcmp(lp_names_get(view->names, class), lp_names_get(&dataset->types, dataset->type[e])) != 0)
            return fail_class(error);
    }
    return LAPSE_OK;
}

static void score_row(void *context, const lp_rank_case *rank_case, double *scores)
{
    predict(context, rank_case->sequence, rank_case->event, scores);
}

lapse_status lapse_simulation_rank(const lapse_simulation *simulation, const lapse_model *model,
                                   const lapse_dataset *dataset, const lapse_rank_options *options,
                                   lapse_rank_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, simulation, model, dataset, options, scores);
    LP_REQUIRE(error, options->split, options->cutoffs);
    LP_TRY(lp_simulation_require_law(simulation, "best possible score", error));
    law_view view = {.simulation = simulation, .dataset = dataset};
    lp_target target;
    const char *events;
    LP_TRY(lp_evaluator_target(model, options->target, &target, &events, error));
    lapse_status status = view_open(&view, &model->types, events, error);
    if (status == LAPSE_OK)
        status = check_types(&view, error);
    if (status == LAPSE_OK)
        status = lp_rank_evaluate_rows(model, dataset, options, score_row, &view, scores, error);
    if (status == LAPSE_OK)
        scores->target_time = "known";
    view_close(&view);
    return status;
}
