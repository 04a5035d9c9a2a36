/* metric.c: the table of validation metrics. */
#include "model/metric.h"

#include <math.h>

const char *const lp_metric_names[] = {"log-loss", "accuracy", "ndcg@10", "hit@10", "mrr", NULL};

lp_task lp_metric_task(lp_metric metric)
{
    return metric <= LP_METRIC_ACCURACY ? LP_TASK_CLASSIFY : LP_TASK_RECOMMEND;
}

lp_metric lp_metric_default(lp_task task)
{
    return task == LP_TASK_CLASSIFY ? LP_METRIC_LOG_LOSS : LP_METRIC_NDCG;
}

bool lp_metric_better(lp_metric metric, double value, double than)
{
    if (isnan(value) || isnan(than))
        return !isnan(value);
    return metric == LP_METRIC_LOG_LOSS ? value < than : value > than;
}

int lp_metric_columns(const lp_model_config *config, lp_metric_column columns[LP_METRIC_COLUMNS])
{
    int count = 0;
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        for (int m = 0; m < LP_METRIC_COUNT; m++)
            if (lp_model_predicts(config, (lp_target)t) && (int)lp_metric_task((lp_metric)m) == config->task)
                columns[count++] = (lp_metric_column){(lp_metric)m, (lp_target)t};
    return count;
}

double lp_metric_combine(const lp_model_config *config, lp_metric metric, const double values[LP_METRIC_COLUMNS])
{
    lp_metric_column columns[LP_METRIC_COLUMNS];
    int count = lp_metric_columns(config, columns), found = 0;
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (columns[i].metric == metric) {
            sum += values[i];
            found++;
        }
    return metric == LP_METRIC_LOG_LOSS ? sum : sum / found;
}
