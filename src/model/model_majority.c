/* model_majority.c: the baseline that ignores the past: each event type with its share of the training events. */
#include "model/model_rows.h"

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    const lapse_dataset *dataset = data->dataset;
    double *share = lp_model_tensor_add(model, "majority.share", LP_TENSOR_F64, 1, model->types.count);
    if (!share)
        return lp_fail_memory(error, "a majority model", (size_t)model->types.count * sizeof *share);
    double total = 0;
    for (int64_t type = 0; type < model->types.count; type++, total++)
        share[type] = 1; /* as if each had been seen once more: no event type is impossible */
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++)
            if (data->split[event] == LP_SPLIT_TRAIN) {
                share[dataset->type[event]]++;
                total++;
            }
    for (int64_t type = 0; type < model->types.count; type++)
        share[type] /= total;
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    const lp_tensor *share = lp_model_tensor_find(model, "majority.share");
    if (!share || share != model->tensors || share->type != LP_TENSOR_F64 || share->rows != 1 ||
        share->cols != model->types.count)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'majority.share' is missing or has the wrong shape");
    const double *shares = share->data;
    for (int64_t type = 0; type < model->types.count; type++)
        if (!(shares[type] > 0 && shares[type] <= 1))
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'majority.share' holds what is no share");
    return LAPSE_OK;
}

static void answer(const lapse_model *model, const lp_query *question, double *probabilities)
{
    (void)question;
    const double *share = model->tensors[0].data;
    for (int64_t type = 0; type < model->types.count; type++)
        probabilities[type] = share[type];
}

const lp_model_row lp_model_majority = {.name = "majority",
                                        .summary = "a baseline: each event type with its overall share",
                                        .fit = fit,
                                        .check = check,
                                        .answer = answer};
