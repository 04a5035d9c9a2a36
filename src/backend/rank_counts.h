/* rank_counts.h: what a device counts to rank the target of a case: the candidates whose score is not below the target's
 * (evaluate/ranking.h). All pointers of a job are in the device's memory. Every score of a job is the same sum in the same order, whichever
 * count it enters, so ties are exact. */
#ifndef LP_RANK_COUNTS_H
#define LP_RANK_COUNTS_H

#include "formula/loss.h"

#include <stdint.h>

typedef struct lp_rank_case {
    int64_t sequence, event;
    int64_t list; /* index of the sequence's list of items */
} lp_rank_case;

/* An item of a sequence, with its first event there. */
typedef struct lp_sequence_item {
    int32_t item;
    int64_t first;
} lp_sequence_item;

enum { LP_RANK_POOLS = 2 }; /* of negatives: uniform, popularity */

/* Of one case. "At least": the score is not below the target's. */
typedef struct lp_rank_counts {
    int32_t at_least; /* of the whole catalogue, the target included */
    int32_t seen;     /* items of the sequence before the event, except the target */
    int32_t seen_at_least;
    int32_t negatives_at_least[LP_RANK_POOLS];
} lp_rank_counts;

typedef struct lp_rank_job {
    int count, dims, negatives; /* cases; columns of a state; negatives of a case and pool, 0: none */
    int64_t items;
    lp_score_rule rule;
    const float *state;        /* [count x dims] */
    const float *table, *bias; /* [items x dims], [items]; bias may be NULL */
    const lp_rank_case *cases; /* [count] */
    const int32_t *target;     /* [count] */
    const int64_t *list_start; /* [lists + 1] */
    const lp_sequence_item *list_items;
    const int32_t *negative; /* [count x LP_RANK_POOLS x negatives]: items; -1 where there are fewer */
    float *target_score;     /* [count]: scratch */
    lp_rank_counts *counts;  /* [count] */
} lp_rank_job;

#endif
