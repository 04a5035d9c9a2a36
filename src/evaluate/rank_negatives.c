/* rank_negatives.c: sampling without replacement, by rejection of excluded and already sampled items. After too many
 * rejections (a sequence that has nearly all popular items), every item gets an exponential random key divided by its
 * count, and the items with the smallest keys are the sample. Its distribution is the same (Efraimidis and Spirakis
 * 2006), but it takes a pass over the catalogue. */
#include "evaluate/rank_negatives.h"

#include "base/assert.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

/* Attempts per wanted item before sampling by keys. */
enum { TRIES = 32 };

lapse_status lp_rank_pool_init(lp_rank_pool *pool, int64_t items, const int64_t *counts, uint64_t seed,
                               lapse_error *error)
{
    *pool = (lp_rank_pool){.items = items,
                           .usable = items,
                           .seed = seed,
                           .purpose = counts ? LP_PURPOSE_RANK_POPULARITY : LP_PURPOSE_RANK_UNIFORM,
                           .key_purpose = counts ? LP_PURPOSE_RANK_POPULARITY_KEY : LP_PURPOSE_RANK_UNIFORM_KEY};
    if (!counts)
        return LAPSE_OK;
    pool->usable = 0;
    pool->below = lp_alloc((size_t)items + 1, sizeof *pool->below);
    if (!pool->below)
        return lp_fail_memory(error, "the popularity of items", ((size_t)items + 1) * sizeof *pool->below);
    for (int64_t i = 0; i < items; i++) {
        pool->below[i + 1] = pool->below[i] + (uint64_t)counts[i];
        pool->usable += counts[i] > 0;
        LP_ASSERT(pool->below[i] <= pool->below[i + 1]);
    }
    return LAPSE_OK;
}

void lp_rank_pool_clear(lp_rank_pool *pool)
{
    lp_free(pool->below);
    *pool = (lp_rank_pool){0};
}

/* The item whose range of cumulative counts contains the number. */
static int64_t item_at(const lp_rank_pool *pool, uint64_t number)
{
    int64_t low = 0, high = pool->items;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (pool->below[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    LP_ASSERT(pool->below[low] <= number && number < pool->below[low + 1]);
    return low;
}

/* Maps 64 random bits to 0 .. n - 1; n is at most 2^63. */
static uint64_t scaled(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

static int sample_by_rejection(const lp_rank_pool *pool, int64_t event, int count, uint64_t *excluded, int32_t *out)
{
    uint64_t total = pool->below ? pool->below[pool->items] : (uint64_t)pool->items;
    int sampled = 0;
    for (int try = 0; sampled < count && try < TRIES * count; try += 2) {
        lp_random_block block = lp_philox(pool->seed, pool->purpose, (uint32_t)try / 2, (uint64_t)event);
        for (int half = 0; half < 2 && sampled < count; half++) {
            uint64_t number = scaled((uint64_t)block.word[2 * half] << 32 | block.word[2 * half + 1], total);
            int64_t item = pool->below ? item_at(pool, number) : (int64_t)number;
            if (lp_bitset_get(excluded, item))
                continue;
            lp_bitset_set(excluded, item);
            out[sampled++] = (int32_t)item;
        }
    }
    for (int i = 0; i < sampled; i++)
        lp_bitset_clear(excluded, out[i]);
    return sampled;
}

static void sample_by_keys(const lp_rank_pool *pool, int64_t event, int count, const uint64_t *excluded, int32_t *out)
{
    double least[LP_RANK_NEGATIVES_LIMIT];
    int found = 0;
    for (int64_t item = 0; item < pool->items; item++) {
        if (lp_bitset_get(excluded, item) || !lp_rank_pool_usable(pool, item))
            continue;
        lp_random random = {pool->seed, pool->key_purpose, (uint32_t)item, (uint64_t)event, {{0, 0, 0, 0}}, 0};
        double weight = pool->below ? (double)(pool->below[item + 1] - pool->below[item]) : 1;
        double key = lp_random_exponential(&random) / weight;
        if (found == count && key >= least[count - 1])
            continue;
        int at = found < count ? found++ : count - 1;
        for (; at > 0 && least[at - 1] > key; at--) {
            least[at] = least[at - 1];
            out[at] = out[at - 1];
        }
        least[at] = key;
        out[at] = (int32_t)item;
    }
}

static int take_all(const lp_rank_pool *pool, const uint64_t *excluded, int32_t *out)
{
    int count = 0;
    for (int64_t item = 0; item < pool->items; item++)
        if (!lp_bitset_get(excluded, item) && lp_rank_pool_usable(pool, item))
            out[count++] = (int32_t)item;
    return count;
}

static int by_item(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int lp_rank_negatives_sample(const lp_rank_pool *pool, int64_t event, int count, int64_t left, uint64_t *excluded,
                             int32_t *out)
{
    if (left <= count)
        return take_all(pool, excluded, out);
    if (sample_by_rejection(pool, event, count, excluded, out) < count)
        sample_by_keys(pool, event, count, excluded, out);
    qsort(out, (size_t)count, sizeof *out, by_item);
    for (int i = 0; i < count; i++)
        LP_ASSERT(!lp_bitset_get(excluded, out[i]) && (i == 0 || out[i - 1] < out[i]));
    return count;
}
