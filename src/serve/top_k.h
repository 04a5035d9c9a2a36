/* top_k.h: the best of many scores, without sorting the others. */
#ifndef LP_TOP_K_H
#define LP_TOP_K_H

#include "lapse.h"

/* The best so far: a heap with the worst of them on top, in memory of the caller. */
typedef struct lp_top_k {
    lapse_recommendation *best; /* `most` elements */
    int64_t size, most;
} lp_top_k;

/* Whether an item is left out. Called only for items that would be among the best. */
typedef bool (*lp_top_k_skip)(const void *context, int64_t item);

/* Offers the scores of items first .. first + count - 1; items come in ascending order over all calls. NaN scores are left out.
 * skip may be NULL. */
void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first, lp_top_k_skip skip,
                    const void *context);

/* Sorts the best: the highest score first, ties by item. Fills item and score. The last call. */
void lp_top_k_sort(lp_top_k *top);

#endif
