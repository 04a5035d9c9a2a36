/* rank_scores.h: ranking metrics (hit rate, NDCG, MRR) of all cases and of slices. */
#ifndef LP_RANK_SCORES_H
#define LP_RANK_SCORES_H

#include "evaluate/ranking.h"
#include "lapse_lab.h"

/* Fills *scores from a ranking that has run, except split, target_time and popularity. counts: training events of each
 * item. */
lapse_status lp_rank_scores_make(const lp_ranking *ranking, const int64_t *counts, const lapse_rank_options *options,
                                 lapse_rank_scores *scores, lapse_error *error);

#endif
