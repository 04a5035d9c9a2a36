/* model_majority.c: baseline that ignores the history: the frequency of each event type among the training targets,
 * with add-one smoothing:
 *
 *     p(e) = (n(e) + 1) / (n + event types)
 */
#include "model/model_rows.h"

#include <math.h>

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    const lapse_dataset *dataset = data->dataset;
    double *probability = lp_model_tensor_add(model, "majority.probability", LP_TENSOR_F64, 1, model->types.count);
    if (!probability)
        return lp_fail_memory(error, "a majority model", (size_t)model->types.count * sizeof *probability);
    double total = 0;
    for (int64_t type = 0; type < model->types.count; type++, total++)
        probability[type] = 1; /* add-one smoothing: no event type is impossible */
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++)
            if (data->split[event] == LP_SPLIT_TRAIN) {
                probability[dataset->type[event]]++;
                total++;
            }
    for (int64_t type = 0; type < model->types.count; type++)
        probability[type] /= total;
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    const lp_tensor *probability = lp_model_tensor_find(model, "majority.probability");
    if (!probability || probability != model->tensors || probability->type != LP_TENSOR_F64 || probability->rows != 1 ||
        probability->cols != model->types.count)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'majority.probability' is missing or has the wrong shape");
    const double *values = probability->data;
    double sum = 0;
    for (int64_t type = 0; type < model->types.count; type++)
        if (!(values[type] > 0 && values[type] <= 1))
            return lp_fail(error, LAPSE_ERROR_FORMAT,
                           "tensor 'majority.probability' holds a number that is not a probability");
        else
            sum += values[type];
    if (!(fabs(sum - 1) <= 1e-6))
        return lp_fail(error, LAPSE_ERROR_FORMAT,
                       "the probabilities of tensor 'majority.probability' do not add up to 1");
    return LAPSE_OK;
}

static void predict(const lapse_model *model, const lp_query *query, double *probabilities)
{
    (void)query;
    const double *probability = model->tensors[0].data;
    for (int64_t type = 0; type < model->types.count; type++)
        probabilities[type] = probability[type];
}

const lp_model_row lp_model_majority = {.name = "majority",
                                        .summary = "baseline: the frequency of each event type",
                                        .tasks = LP_TASKS_ALL,
                                        .fit = fit,
                                        .check = check,
                                        .predict = predict};
