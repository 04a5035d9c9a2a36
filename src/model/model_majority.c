/* model_majority.c: the floor that ignores the past: each kind with its share of the training events. */
#include "model/model_rows.h"

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    const lapse_dataset *dataset = data->dataset;
    double *share = lp_model_tensor_add(model, "majority.share", LP_TENSOR_F64, 1, model->kinds.count);
    if (!share)
        return lp_fail_memory(error, "a majority model", (size_t)model->kinds.count * sizeof *share);
    double total = 0;
    for (int64_t kind = 0; kind < model->kinds.count; kind++, total++)
        share[kind] = 1; /* as if each had been seen once more: no kind is impossible */
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++)
            if (data->split[event] == LP_SPLIT_TRAIN) {
                share[dataset->kind[event]]++;
                total++;
            }
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        share[kind] /= total;
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    const lp_tensor *share = lp_model_tensor_find(model, "majority.share");
    if (!share || share != model->tensors || share->type != LP_TENSOR_F64 || share->rows != 1 ||
        share->cols != model->kinds.count)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'majority.share' is missing or has the wrong shape");
    const double *shares = share->data;
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        if (!(shares[kind] > 0 && shares[kind] <= 1))
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'majority.share' holds what is no share");
    return LAPSE_OK;
}

static void answer(const lapse_model *model, const lp_question *question, double *probabilities)
{
    (void)question;
    const double *share = model->tensors[0].data;
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        probabilities[kind] = share[kind];
}

const lp_model_row lp_model_majority = {.name = "majority",
                                        .summary = "a floor: each kind with its overall share",
                                        .fit = fit,
                                        .check = check,
                                        .answer = answer};
