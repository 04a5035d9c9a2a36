/* outcomes.h: the metrics of each predicted event, for means, intervals and paired tests. */
#ifndef LP_OUTCOMES_H
#define LP_OUTCOMES_H

#include "evaluate/evaluator.h"

/* Metrics of one target, at most. */
/* lp_outcomes.metrics at most; of a ranking, those after the metrics of training are NDCG and hit rate at half the cutoff. */
enum { LP_OUTCOME_METRICS = 5 };

typedef struct lp_outcome_setup {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const uint8_t *split; /* of each event */
    lp_split wanted;      /* LP_SPLIT_COUNT: all events */
    lp_target target;     /* of a classifier */
    const lp_backend *backend;
    int threads;
    lapse_comm *comm; /* as in lapse_evaluate_options */

    /* Of a recommender. */
    lp_protocol protocol;
    int64_t max_cases; /* a sample of this size if there are more cases; 0: all */
    int negatives;     /* of the sampled protocols; 0 for the others */
    uint64_t seed;     /* of negatives and of the sample of cases */
} lp_outcome_setup;

/* The cases in the order of events. The metrics have the order of lp_metric: log-loss and accuracy; NDCG, hit rate and
 * reciprocal rank, then NDCG and hit rate at half the cutoff. */
typedef struct lp_outcomes {
    int64_t count, total; /* total: before sampling */
    int metrics;
    int64_t *sequence; /* [count]; owned */
    double *values;    /* [count x metrics]; owned */
} lp_outcomes;

/* Evaluates a network or a baseline. */
lapse_status lp_outcomes_make(const lp_outcome_setup *setup, lp_outcomes *outcomes, lapse_error *error);
/* The outcomes of a ranking that has its results. */
lapse_status lp_outcomes_take(const lp_ranking *ranking, lp_protocol protocol, lp_outcomes *outcomes,
                              lapse_error *error);
void lp_outcomes_clear(lp_outcomes *outcomes);

/* lapse_rank_evaluate of a network, with the outcomes of the protocol full-unseen. */
lapse_status lp_rank_evaluate_outcomes(const lapse_model *model, const lapse_dataset *dataset,
                                       const lapse_rank_options *options, lapse_rank_scores *scores,
                                       lp_outcomes *outcomes, lapse_error *error);

#endif
