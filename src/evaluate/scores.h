/* scores.h: classification metrics of predictions. */
#ifndef LP_SCORES_H
#define LP_SCORES_H

#include "data/dataset/dataset.h"

typedef struct lp_case {
    int64_t sequence;
    int32_t target, predicted; /* classes: the true one, and the most probable one */
    double loss;               /* -log of the predicted probability of the target */
} lp_case;

/* Fills *scores, except target, split and target_time. Cases of one sequence must be consecutive. names: of the
 * classes. */
lapse_status lp_scores_make(const lp_case *cases, int64_t count, const lp_names *names, int bootstrap,
                            lapse_scores *scores, lapse_error *error);

#endif
