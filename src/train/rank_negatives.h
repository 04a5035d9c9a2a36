/* rank_negatives.h: the items that a ranking holds against the target.
 *
 * They are frozen: a function of the seed, the protocol and the event asked for, so every model is held against the same
 * ones, on any number of threads. They are distinct, and never items that the caller has marked (the sequence's own).
 */
#ifndef LP_RANK_NEGATIVES_H
#define LP_RANK_NEGATIVES_H

#include "base/error.h"
#include "base/memory.h"

/* What is drawn from. */
typedef struct lp_rank_pool {
    int64_t items;
    uint64_t *below; /* [items + 1]: what the counts of the items before each add up to; owned. NULL: all items alike */
    int64_t usable;  /* items whose count is not 0: the others are never drawn */
    uint64_t seed;
    uint32_t purpose, key_purpose; /* of random numbers */
} lp_rank_pool;

/* Uniform where counts is NULL, otherwise by counts [items]. */
lapse_status lp_rank_pool_init(lp_rank_pool *pool, int64_t items, const int64_t *counts, uint64_t seed,
                               lapse_error *error);
void lp_rank_pool_clear(lp_rank_pool *pool);

static inline bool lp_rank_pool_usable(const lp_rank_pool *pool, int64_t item)
{
    return !pool->below || pool->below[item + 1] > pool->below[item];
}

/* One bit an item. */
static inline void lp_mark_set(uint64_t *marks, int64_t item)
{
    marks[item >> 6] |= (uint64_t)1 << (item & 63);
}

static inline void lp_mark_clear(uint64_t *marks, int64_t item)
{
    marks[item >> 6] &= ~((uint64_t)1 << (item & 63));
}

static inline bool lp_mark_get(const uint64_t *marks, int64_t item)
{
    return marks[item >> 6] >> (item & 63) & 1;
}

/* Up to `count` items for the event, in their order, into out; all that are left where these are fewer. Returns how many.
 * `left` says how many usable items are not marked. The marks are as before afterwards. */
int lp_rank_draw(const lp_rank_pool *pool, int64_t event, int count, int64_t left, uint64_t *marks, int32_t *out);

/* The most that can be asked for. */
enum { LP_RANK_NEGATIVES_LIMIT = 10000 };

#endif
