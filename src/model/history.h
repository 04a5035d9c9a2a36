/* history.h: the history of a training run: a row of numbers for each epoch, stored in the model file.
 *
 * A row has the mean training loss and the validation metrics (lp_metric_columns), and no clock times: equal runs have
 * equal histories.
 */
#ifndef LP_HISTORY_H
#define LP_HISTORY_H

#include "model/metric.h"

/* Columns of a row. */
static inline int lp_history_columns(const lp_model_config *config)
{
    lp_metric_column columns[LP_METRIC_COLUMNS];
    return 1 + lp_metric_columns(config, columns);
}

/* Allocates the history of at most this many epochs. */
lapse_status lp_history_reserve(lapse_model *model, int epochs, lapse_error *error);

/* Appends an epoch, within the reserved number. */
void lp_history_add(lapse_model *model, double loss, const double metrics[LP_METRIC_COLUMNS]);

/* The metrics of an epoch, from 1. */
static inline const double *lp_history_metrics(const lapse_model *model, int epoch)
{
    return model->history + (size_t)(epoch - 1) * (size_t)lp_history_columns(&model->config) + 1;
}

/* Describes an epoch. loss and metrics: a row. */
lapse_epoch lp_history_describe(const lapse_model *model, int epoch, double loss,
                                const double metrics[LP_METRIC_COLUMNS]);

#endif
