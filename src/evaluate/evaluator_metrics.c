/* evaluator_metrics.c: the metrics of training, from the cases of an evaluator. */
#include "evaluate/evaluator.h"

#include <math.h>

static double log_loss(const lp_evaluator *evaluator, lp_target target)
{
    double sum = 0;
    for (int64_t i = 0; i < evaluator->case_count; i++)
        sum += evaluator->predictions[target].cases[i].loss;
    return sum / (double)evaluator->case_count;
}

static double accuracy(const lp_evaluator *evaluator, lp_target target)
{
    const lp_case *cases = evaluator->predictions[target].cases;
    int64_t correct = 0;
    for (int64_t i = 0; i < evaluator->case_count; i++)
        correct += cases[i].target == cases[i].predicted;
    return (double)correct / (double)evaluator->case_count;
}

static double ndcg(const lp_evaluator *evaluator, lp_target target)
{
    (void)target;
    return lp_ranking_ndcg(&evaluator->ranking, LP_PROTOCOL_UNSEEN, LP_METRIC_CUTOFF);
}

static double hit(const lp_evaluator *evaluator, lp_target target)
{
    (void)target;
    return lp_ranking_hit(&evaluator->ranking, LP_PROTOCOL_UNSEEN, LP_METRIC_CUTOFF);
}

static double mrr(const lp_evaluator *evaluator, lp_target target)
{
    (void)target;
    return lp_ranking_mrr(&evaluator->ranking, LP_PROTOCOL_UNSEEN);
}

/* Of the likelihood of all gaps, open ones included, for each gap that has ended. In standardized log time: without the factors that a
 * change of the time's unit brings in. */
static double time_loss(const lp_evaluator *evaluator, lp_target target)
{
    (void)target;
    double sum = evaluator->open_nll;
    for (int64_t i = 0; i < evaluator->case_count; i++)
        sum += evaluator->time.cases[i].nll - log(fmax(evaluator->time.cases[i].gap, evaluator->time.floor));
    return sum / (double)evaluator->case_count - log(evaluator->model->config.when_deviation);
}

static double (*const metric_values[LP_METRIC_COUNT])(const lp_evaluator *, lp_target) = {
    [LP_METRIC_LOG_LOSS] = log_loss, [LP_METRIC_ACCURACY] = accuracy, [LP_METRIC_NDCG] = ndcg,
    [LP_METRIC_HIT] = hit,           [LP_METRIC_MRR] = mrr,           [LP_METRIC_TIME_LOSS] = time_loss,
};

void lp_evaluator_metrics(lp_evaluator *evaluator, const float *parameters, double values[LP_METRIC_COLUMNS])
{
    lp_metric_column columns[LP_METRIC_COLUMNS];
    int count = lp_metric_columns(&evaluator->model->config, columns);
    if (lp_model_ranks(&evaluator->model->config))
        lp_evaluator_rank(evaluator, parameters);
    for (int i = 0; i < count; i++)
        values[i] = metric_values[columns[i].metric](evaluator, columns[i].target);
}
