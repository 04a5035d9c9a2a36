/* top_k.h: the best of many scores, without sorting the others. */
#ifndef LP_TOP_K_H
#define LP_TOP_K_H

#include "lapse.h"

/* The best so far, a heap with the worst of them first; they lie in memory of the caller. */
typedef struct lp_top_k {
    lapse_recommendation *best; /* room for `most` */
    int64_t size, most;
} lp_top_k;

/* Whether an item must be left out. Asked only of those that would be among the best. */
typedef bool (*lp_top_k_skip)(const void *context, int64_t item);

/* Looks at the scores of items first .. first + count - 1, which are later than all before. Scores that are no numbers are
 * left out. skip may be NULL. */
void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first, lp_top_k_skip skip,
                    const void *context);

/* Brings the best into their order: the highest first, equal ones in the order of their numbers. item and score are
 * filled. Nothing can be offered afterwards. */
void lp_top_k_sort(lp_top_k *top);

#endif
