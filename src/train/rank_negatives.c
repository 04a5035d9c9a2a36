/* rank_negatives.c: drawing without replacement, by refusing what is marked or was drawn before. Where that would refuse
 * too often (a sequence that owns nearly all that is popular), every item gets an exponential key divided by its count and
 * the smallest keys win, which has the same law (Efraimidis and Spirakis 2006) at the price of a walk over the catalogue. */
#include "train/rank_negatives.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

/* Draws for each item wanted before the keys are taken. */
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
    }
    return LAPSE_OK;
}

void lp_rank_pool_clear(lp_rank_pool *pool)
{
    lp_free(pool->below);
    *pool = (lp_rank_pool){0};
}

/* The item that the number, below the sum of all counts, falls into. */
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
    return low;
}

/* A number below n, n at most 2^63, of 64 random bits. */
static uint64_t scaled(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

static int draw_refusing(const lp_rank_pool *pool, int64_t event, int count, uint64_t *marks, int32_t *out)
{
    uint64_t total = pool->below ? pool->below[pool->items] : (uint64_t)pool->items;
    int drawn = 0;
    for (int try = 0; drawn < count && try < TRIES * count; try += 2) {
        lp_random_block block = lp_philox(pool->seed, pool->purpose, (uint32_t)try / 2, (uint64_t)event);
        for (int half = 0; half < 2 && drawn < count; half++) {
            uint64_t number = scaled((uint64_t)block.word[2 * half] << 32 | block.word[2 * half + 1], total);
            int64_t item = pool->below ? item_at(pool, number) : (int64_t)number;
            if (lp_mark_get(marks, item))
                continue;
            lp_mark_set(marks, item);
            out[drawn++] = (int32_t)item;
        }
    }
    for (int i = 0; i < drawn; i++)
        lp_mark_clear(marks, out[i]);
    return drawn;
}

static void draw_keys(const lp_rank_pool *pool, int64_t event, int count, const uint64_t *marks, int32_t *out)
{
    double least[LP_RANK_NEGATIVES_LIMIT];
    int kept = 0;
    for (int64_t item = 0; item < pool->items; item++) {
        if (lp_mark_get(marks, item) || !lp_rank_pool_usable(pool, item))
            continue;
        lp_random random = {pool->seed, pool->key_purpose, (uint32_t)item, (uint64_t)event, {{0, 0, 0, 0}}, 0};
        double weight = pool->below ? (double)(pool->below[item + 1] - pool->below[item]) : 1;
        double key = lp_random_exponential(&random) / weight;
        if (kept == count && key >= least[count - 1])
            continue;
        int place = kept < count ? kept++ : count - 1;
        for (; place > 0 && least[place - 1] > key; place--) {
            least[place] = least[place - 1];
            out[place] = out[place - 1];
        }
        least[place] = key;
        out[place] = (int32_t)item;
    }
}

static int take_all(const lp_rank_pool *pool, const uint64_t *marks, int32_t *out)
{
    int count = 0;
    for (int64_t item = 0; item < pool->items; item++)
        if (!lp_mark_get(marks, item) && lp_rank_pool_usable(pool, item))
            out[count++] = (int32_t)item;
    return count;
}

static int by_item(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int lp_rank_draw(const lp_rank_pool *pool, int64_t event, int count, int64_t left, uint64_t *marks, int32_t *out)
{
    if (left <= count)
        return take_all(pool, marks, out);
    if (draw_refusing(pool, event, count, marks, out) < count)
        draw_keys(pool, event, count, marks, out);
    qsort(out, (size_t)count, sizeof *out, by_item);
    return count;
}
