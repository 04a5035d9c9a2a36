/* evaluate.c: lapse_evaluate: the targets and the split that its options name, and the scores of one target. */
#include "base/threads.h"
#include "data/dataset/fingerprint.h"
#include "data/dataset/split.h"
#include "data/dataset/target_events.h"
#include "evaluate/evaluator.h"

#include <string.h>

void lapse_evaluate_options_default(lapse_evaluate_options *options)
{
    *options = (lapse_evaluate_options){.split = "test", .bootstrap = 1000, .device = "cpu"};
}

lapse_status lp_evaluator_device(const lapse_model *model, const char *name, const lp_backend **backend,
                                 lapse_error *error)
{
    return lp_backend_open(name && lp_model_is_network(&model->config) ? name : "cpu", backend, error);
}

/* The length of the name of a target at the beginning of a text, before a comma or its end; 0: there is none. */
static size_t predicted_length(const char *text)
{
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        size_t length = strlen(lp_predict_names[t]);
        if (strncmp(text, lp_predict_names[t], length) == 0 && (!text[length] || text[length] == ','))
            return length;
    }
    return 0;
}

lapse_status lp_evaluator_target(const lapse_model *model, const char *text, lp_target *target, const char **events,
                                 lapse_error *error)
{
    char name[16] = "";
    size_t length = text ? predicted_length(text) : 0;
    memcpy(name, text ? text : "", length);
    *events = model->config.target;
    if (text && text[length])
        *events = text + length + (length > 0);
    *target = lp_model_target_find(model, length ? name : NULL);
    if (**events && !lp_target_events_action(*events) && strcmp(*events, "all") != 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the target is '%.80s'; it must be event, action, action=NAME or all, or two of these such as "
                       "event,action=NAME",
                       text);
    if (*target != LP_TARGET_COUNT)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", name,
                   lp_predict_names[lp_model_target_find(model, NULL)]);
}

lapse_status lp_evaluator_class_target(const lapse_model *model, const char *text, lp_target *target,
                                       const char **events, lapse_error *error)
{
    if (lp_model_ranks(&model->config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "a recommender has ranking metrics, not accuracy: use lapse_rank_evaluate");
    return lp_evaluator_target(model, text, target, events, error);
}

/* The split of each event, whether it is a target or not. */
static lapse_status make_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                               uint8_t **split, lp_split *wanted, lapse_error *error)
{
    *split = NULL;
    *wanted = LP_SPLIT_COUNT;
    if (strcmp(name, "all") == 0)
        return LAPSE_OK;
    for (int i = 0; i < LP_SPLIT_COUNT; i++)
        if (strcmp(name, lp_split_name((lp_split)i)) == 0)
            *wanted = (lp_split)i;
    if (*wanted == LP_SPLIT_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no split '%s'; there are train, valid, test and all", name);
    bool by_column = model->split_by == lp_split_rule_find("column");
    if (!by_column && lp_dataset_fingerprint(dataset) != model->fingerprint)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "this is not the dataset the model was trained on, so its split '%s' is not known here; "
                       "to score every event use the split 'all'",
                       name);
    if (by_column && !dataset->split)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the model was trained with a split column, and this dataset has none; "
                       "to score every event use the split 'all'");
    return lp_split_make(dataset, model->split_by, model->seed, split, error);
}

lapse_status lp_evaluator_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                                const char *events, uint8_t **split, lp_split *wanted, lapse_error *error)
{
    LP_TRY(make_split(model, dataset, name, split, wanted, error));
    lapse_status status = lp_target_events_mask(dataset, events, split, error);
    if (status != LAPSE_OK) {
        lp_free(*split);
        *split = NULL;
    }
    return status;
}

lapse_status lapse_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_evaluate_options *options, lapse_scores *scores, lapse_error *error)
{
    LP_REQUIRE(error, model, dataset, options, scores);
    LP_REQUIRE(error, options->split);
    uint8_t *split;
    lp_split wanted;
    lp_target target;
    const char *events;
    LP_TRY(lp_evaluator_class_target(model, options->target, &target, &events, error));
    const lp_backend *backend;
    LP_TRY(lp_evaluator_device(model, options->device, &backend, error));
    int threads;
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    LP_TRY(lp_evaluator_split(model, dataset, options->split, events, &split, &wanted, error));
    lp_evaluator evaluator;
    lapse_status status = lp_evaluator_init(&evaluator, backend, model, dataset, split, wanted, threads, error);
    if (status == LAPSE_OK) {
        status = lp_evaluator_on_ranks(&evaluator, options->comm, error);
        if (status == LAPSE_OK)
            status = lp_evaluator_run_model(&evaluator, error);
        if (status == LAPSE_OK)
            status = lp_scores_make(evaluator.predictions[target].cases, evaluator.case_count,
                                    lp_model_target_names(model, target), options->bootstrap, scores, error);
        lp_evaluator_clear(&evaluator);
    }
    if (status == LAPSE_OK) {
        scores->target = lp_predict_names[target];
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = lp_model_target_time(model);
    }
    lp_free(split);
    return status;
}
