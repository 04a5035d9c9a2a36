/* scores.h: from predictions to scores. */
#ifndef LP_SCORES_H
#define LP_SCORES_H

#include "data/dataset/dataset.h"

/* One prediction that was asked for. */
typedef struct lp_case {
    int64_t sequence;
    int32_t target, predicted; /* event types */
    double loss;               /* -log of the probability given to the target */
} lp_case;

/* Cases of one sequence stand together. Fills *scores, apart from split and target_time. The intervals come from
 * resampling sequences, since events of one sequence are not independent. */
lapse_status lp_scores_make(const lp_case *cases, int64_t count, const lp_names *types, int bootstrap,
                            lapse_scores *scores, lapse_error *error);

#endif
