/* metric.h: the metrics that training computes on the validation split after each epoch. One of them selects the best
 * epoch (training option "select"). docs/evaluation.md defines them.
 */
#ifndef LP_METRIC_H
#define LP_METRIC_H

#include "model/model.h"

typedef enum lp_metric {
    LP_METRIC_LOG_LOSS,
    LP_METRIC_ACCURACY,
    LP_METRIC_NDCG,
    LP_METRIC_HIT,
    LP_METRIC_MRR,
    LP_METRIC_TIME_LOSS, /* of networks of times: negative log-likelihood of the standardized log time */
    LP_METRIC_COUNT
} lp_metric;

/* Cutoff of NDCG and hit rate. Ranks are those of the protocol full-unseen. */
enum { LP_METRIC_CUTOFF = 10 };

extern const char *const lp_metric_names[]; /* by lp_metric, NULL-terminated */

/* The task of a metric of targets, of which a task's are consecutive; of the others -1. And a task's first. */
int lp_metric_task(lp_metric metric);
lp_metric lp_metric_first(lp_task task);

/* Whether a network of this configuration has the metric; and the one that selects its best epoch by default. */
bool lp_metric_exists(const lp_model_config *config, lp_metric metric);
lp_metric lp_metric_default(const lp_model_config *config);

/* Whether a value of the metric is better than another one. NaN is the worst value. */
bool lp_metric_better(lp_metric metric, double value, double than);

/* A metric of one target; LP_TARGET_COUNT: of the time. */
typedef struct lp_metric_column {
    lp_metric metric;
    lp_target target;
} lp_metric_column;

enum { LP_METRIC_COLUMNS = 5 };

/* "event", "action" or "time". */
const char *lp_metric_target_name(const lp_metric_column *column);

/* The metrics that a network of this configuration has, for each of its targets. Returns their number. */
int lp_metric_columns(const lp_model_config *config, lp_metric_column columns[LP_METRIC_COLUMNS]);

/* The metric over all targets, from the values of the columns: the sum of losses, the mean of other metrics. */
double lp_metric_combine(const lp_model_config *config, lp_metric metric, const double values[LP_METRIC_COLUMNS]);

#endif
