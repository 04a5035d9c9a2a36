/* top.h: the best of many scores, without sorting the others. */
#ifndef LP_TOP_H
#define LP_TOP_H

#include "lapse.h"

/* Puts the `top` highest of `count` scores into best, the highest first, equal ones in the order of their numbers, and
 * returns how many there are. Scores that are no numbers are left out, and so are those whose bit is set in `skip`
 * (64 a word), unless it is NULL. Fills item and score. */
int64_t lp_top_select(const float *scores, int64_t count, const uint64_t *skip, int64_t top,
                      lapse_recommendation *best);

#endif
