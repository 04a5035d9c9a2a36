/* history.c: the history of a training run, and lapse_model_history. */
#include "model/history.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

lapse_status lp_history_reserve(lapse_model *model, int epochs, lapse_error *error)
{
    size_t count = (size_t)epochs * (size_t)lp_history_columns(&model->config);
    double *history = lp_grow(model->history, count, sizeof *history);
    if (!history)
        return lp_fail_memory(error, "the history of a training run", count * sizeof *history);
    model->history = history;
    return LAPSE_OK;
}

void lp_history_add(lapse_model *model, double loss, const double metrics[LP_METRIC_COLUMNS])
{
    size_t columns = (size_t)lp_history_columns(&model->config);
    double *row = model->history + (size_t)model->epochs++ * columns;
    row[0] = loss;
    memcpy(row + 1, metrics, (columns - 1) * sizeof *row);
}

/* The metric that selected the model's epoch. */
static lp_metric selection(const lapse_model *model)
{
    const char *name = lp_model_property_find(model, "train.select");
    int index = name ? lp_name_index(name, lp_metric_names) : -1;
    bool valid = index >= 0 && lp_metric_exists(&model->config, (lp_metric)index);
    return valid ? (lp_metric)index : lp_metric_default(&model->config);
}

lapse_epoch lp_history_describe(const lapse_model *model, int epoch, double loss,
                                const double metrics[LP_METRIC_COLUMNS])
{
    lp_metric_column columns[LP_METRIC_COLUMNS];
    lapse_epoch out = {.epoch = epoch, .loss = loss, .metric_count = lp_metric_columns(&model->config, columns)};
    out.score = lp_metric_combine(&model->config, selection(model), metrics);
    for (int i = 0; i < out.metric_count; i++)
        out.metrics[i] =
            (lapse_metric){lp_metric_names[columns[i].metric], lp_metric_target_name(&columns[i]), metrics[i]};
    return out;
}

bool lapse_model_times_history(const lapse_model *model, int index, lapse_epoch *epoch)
{
    return model->times && lapse_model_history(model->times, index, epoch);
}

bool lapse_model_history(const lapse_model *model, int index, lapse_epoch *epoch)
{
    if (index < 0 || index >= model->epochs)
        return false;
    const double *metrics = lp_history_metrics(model, index + 1);
    *epoch = lp_history_describe(model, index + 1, metrics[-1], metrics);
    return true;
}
