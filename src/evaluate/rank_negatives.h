/* rank_negatives.h: the sampled negatives of a ranking.
 *
 * Negatives are a function of the seed, the protocol and the target event: every model is ranked against the same ones,
 * on any number of threads. They are distinct, and never items that the caller excludes (those of the sequence).
 */
#ifndef LP_RANK_NEGATIVES_H
#define LP_RANK_NEGATIVES_H

#include "base/error.h"
#include "base/memory.h"

typedef struct lp_rank_pool {
    int64_t items;
    uint64_t *below; /* [items + 1]: cumulative counts of the items before each; owned. NULL: uniform */
    int64_t usable;  /* items whose count is not 0; the others are never sampled */
    uint64_t seed;
    uint32_t purpose, key_purpose; /* of the random numbers */
} lp_rank_pool;

/* Uniform where counts is NULL, otherwise by counts [items]. */
lapse_status lp_rank_pool_init(lp_rank_pool *pool, int64_t items, const int64_t *counts, uint64_t seed,
                               lapse_error *error);
void lp_rank_pool_clear(lp_rank_pool *pool);

static inline bool lp_rank_pool_usable(const lp_rank_pool *pool, int64_t item)
{
    return !pool->below || pool->below[item + 1] > pool->below[item];
}

/* A bitset of items. */
static inline void lp_bitset_set(uint64_t *bits, int64_t item)
{
    bits[item >> 6] |= (uint64_t)1 << (item & 63);
}

static inline void lp_bitset_clear(uint64_t *bits, int64_t item)
{
    bits[item >> 6] &= ~((uint64_t)1 << (item & 63));
}

static inline bool lp_bitset_get(const uint64_t *bits, int64_t item)
{
    return bits[item >> 6] >> (item & 63) & 1;
}

/* Samples `count` items for the event into out, ascending; all remaining ones if there are fewer. Returns their number.
 * left: the number of usable items that are not excluded. The bitset is changed during the call and restored. */
int lp_rank_negatives_sample(const lp_rank_pool *pool, int64_t event, int count, int64_t left, uint64_t *excluded,
                             int32_t *out);

/* Largest number of negatives per case. */
enum { LP_RANK_NEGATIVES_LIMIT = 10000 };

#endif
