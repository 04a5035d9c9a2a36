/* top_k.h: the best of many scores, without sorting the others. */
#ifndef LP_TOP_K_H
#define LP_TOP_K_H

#include "lapse.h"

/* The best so far: a heap with the worst of them on top, in memory of the caller. */
typedef struct lp_top_k {
    lapse_recommendation *best; /* `most` elements */
    int64_t size, most;
} lp_top_k;

/* Offers the scores of items first .. first + count - 1; items come in ascending order over all calls. NaN scores are left out. */
void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first);

/* Sorts the best: the highest score first, ties by item. Fills item and score. The last call. */
void lp_top_k_sort(lp_top_k *top);

#endif
