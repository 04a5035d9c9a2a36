/* model_popularity.c: baseline: event types by their count in the training split, every event counted. (majority counts
 * targets alone, so not the first event of a sequence.)
 *
 *     p(e) = (n(e) + 1) / (n + event types)
 */
#include "model/model_rows.h"

static const char COUNT[] = "popularity.count";

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    uint64_t *count = lp_model_tensor_add(model, COUNT, LP_TENSOR_U64, 1, model->types.count);
    if (!count)
        return lp_fail_memory(error, "a popularity model", (size_t)model->types.count * sizeof *count);
    for (int64_t event = 0; event < data->dataset->event_count; event++)
        if (data->split[event] == LP_SPLIT_TRAIN)
            count[data->dataset->type[event]]++;
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    const lp_tensor *tensor = lp_model_tensor_find(model, COUNT);
    if (!tensor || tensor != model->tensors || tensor->type != LP_TENSOR_U64 || tensor->rows != 1 ||
        tensor->cols != model->types.count)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is missing or has the wrong shape", COUNT);
    const uint64_t *count = tensor->data;
    for (int64_t type = 0; type < model->types.count; type++)
        if (count[type] > UINT64_MAX >> 32)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' counts more than there can be", COUNT);
    return LAPSE_OK;
}

static void predict(const lapse_model *model, const lp_query *query, double *probabilities)
{
    (void)query;
    const uint64_t *count = model->tensors[0].data;
    double total = (double)model->types.count;
    for (int64_t type = 0; type < model->types.count; type++)
        total += (double)count[type];
    for (int64_t type = 0; type < model->types.count; type++)
        probabilities[type] = ((double)count[type] + 1) / total;
}

const lp_model_row lp_model_popularity = {.name = "popularity",
                                          .summary = "baseline: the most frequent items, the same for all",
                                          .tasks = LP_TASKS_ALL,
                                          .fit = fit,
                                          .check = check,
                                          .predict = predict};
