/* metric.c: the table of validation metrics. The first of a task selects the saved epoch by default. For classes that is the log-loss:
 * accuracy is constant where time changes probabilities but not the most probable event. */
#include "model/metric.h"

#include <math.h>

const char *const lp_metric_names[] = {"log-loss", "accuracy", "ndcg@10", "hit@10", "mrr", "time-loss", NULL};

int lp_metric_task(lp_metric metric)
{
    if (metric > LP_METRIC_MRR)
        return -1;
    return metric <= LP_METRIC_ACCURACY ? LP_TASK_CLASSIFY : LP_TASK_RECOMMEND;
}

lp_metric lp_metric_first(lp_task task)
{
    return task == LP_TASK_CLASSIFY ? LP_METRIC_LOG_LOSS : LP_METRIC_NDCG;
}

bool lp_metric_exists(const lp_model_config *config, lp_metric metric)
{
    return config->of_times ? metric == LP_METRIC_TIME_LOSS : lp_metric_task(metric) == config->task;
}

lp_metric lp_metric_default(const lp_model_config *config)
{
    return config->of_times ? LP_METRIC_TIME_LOSS : lp_metric_first((lp_task)config->task);
}

static bool is_loss(lp_metric metric)
{
    return metric == LP_METRIC_LOG_LOSS || metric == LP_METRIC_TIME_LOSS;
}

bool lp_metric_better(lp_metric metric, double value, double than)
{
    if (isnan(value) || isnan(than))
        return !isnan(value);
    return is_loss(metric) ? value < than : value > than;
}

int lp_metric_columns(const lp_model_config *config, lp_metric_column columns[LP_METRIC_COLUMNS])
{
    int count = 0;
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        for (int m = 0; m <= LP_METRIC_MRR; m++)
            if (lp_model_predicts(config, (lp_target)t) && lp_metric_exists(config, (lp_metric)m))
                columns[count++] = (lp_metric_column){(lp_metric)m, (lp_target)t};
    if (config->of_times)
        columns[count++] = (lp_metric_column){LP_METRIC_TIME_LOSS, LP_TARGET_COUNT};
    return count;
}

const char *lp_metric_target_name(const lp_metric_column *column)
{
    return column->target == LP_TARGET_COUNT ? "time" : lp_predict_names[column->target];
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
    return is_loss(metric) ? sum : sum / found;
}
