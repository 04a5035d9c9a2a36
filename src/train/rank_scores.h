/* rank_scores.h: from ranks to scores, of all cases and of slices of them. */
#ifndef LP_RANK_SCORES_H
#define LP_RANK_SCORES_H

#include "train/ranking.h"

/* Fills *scores from a ranking that has run, apart from split, target_time and popularity. counts are those of the
 * training events of each item. */
lapse_status lp_rank_scores_make(const lp_ranking *ranking, const int64_t *counts, const lapse_rank_options *options,
                                 lapse_rank_scores *scores, lapse_error *error);

#endif
