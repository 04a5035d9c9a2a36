/* model_popularity.c: the floor that recommends to everybody what was most frequent in training, every event counted. (The
 * majority counts what was asked for, so not the first event of a sequence.)
 *
 *     p(e) = (n(e) + 1) / (n + kinds)
 */
#include "model/model_rows.h"

static const char COUNT[] = "popularity.count";

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    uint64_t *count = lp_model_tensor_add(model, COUNT, LP_TENSOR_U64, 1, model->kinds.count);
    if (!count)
        return lp_fail_memory(error, "a popularity model", (size_t)model->kinds.count * sizeof *count);
    for (int64_t event = 0; event < data->dataset->event_count; event++)
        if (data->split[event] == LP_SPLIT_TRAIN)
            count[data->dataset->kind[event]]++;
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    const lp_tensor *tensor = lp_model_tensor_find(model, COUNT);
    if (!tensor || tensor != model->tensors || tensor->type != LP_TENSOR_U64 || tensor->rows != 1 ||
        tensor->cols != model->kinds.count)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is missing or has the wrong shape", COUNT);
    const uint64_t *count = tensor->data;
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        if (count[kind] > UINT64_MAX >> 32)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' counts more than there can be", COUNT);
    return LAPSE_OK;
}

static void answer(const lapse_model *model, const lp_question *question, double *probabilities)
{
    (void)question;
    const uint64_t *count = model->tensors[0].data;
    double total = (double)model->kinds.count;
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        total += (double)count[kind];
    for (int64_t kind = 0; kind < model->kinds.count; kind++)
        probabilities[kind] = ((double)count[kind] + 1) / total;
}

const lp_model_row lp_model_popularity = {.name = "popularity",
                                          .summary = "a floor: what is most frequent, for everybody",
                                          .fit = fit,
                                          .check = check,
                                          .answer = answer};
