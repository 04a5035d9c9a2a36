/* top_k.c: a heap of the best scores so far with the worst of them on top. Most scores are below it and are rejected by
 * a vectorized comparison. */
#include "serve/top_k.h"

#include "base/assert.h"

/* Whether a ranks below b. */
static bool is_worse(const lapse_recommendation *a, const lapse_recommendation *b)
{
    return a->score < b->score || (!(b->score < a->score) && a->item > b->item);
}

/* Inserts `entry` at index `at` and moves it down the heap. */
static void sink(lapse_recommendation *heap, int64_t size, int64_t at, lapse_recommendation entry)
{
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && is_worse(&heap[child + 1], &heap[child]))
            child++;
        if (!is_worse(&heap[child], &entry))
            break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

static void rise(lapse_recommendation *heap, int64_t at, lapse_recommendation entry)
{
    for (int64_t parent; at > 0 && is_worse(&entry, &heap[parent = (at - 1) / 2]); at = parent)
        heap[at] = heap[parent];
    heap[at] = entry;
}

/* Whether no entry ranks below the first. */
static bool first_is_worst(const lp_top_k *top)
{
    bool worst = true;
    for (int64_t i = 1; i < top->size; i++)
        worst = worst && is_worse(&top->best[0], &top->best[i]);
    return worst;
}

/* Explicit SIMD of a width that every CPU has: compilers do not vectorize float comparisons that may raise
 * exceptions. */
enum { LANES = 4, CHUNK = 8 * LANES };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(LANES * sizeof(float))));

/* Whether one of CHUNK scores is above the threshold. */
static bool any_above(const float *scores, float threshold)
{
    lanes limit = {threshold, threshold, threshold, threshold};
    lane_mask above = {0};
    for (int i = 0; i < CHUNK; i += LANES)
        above |= *(const lanes *)(scores + i) > limit;
    return (above[0] | above[1] | above[2] | above[3]) != 0;
}

static void offer_one(lp_top_k *top, double score, int64_t item, lp_top_k_skip skip, const void *context)
{
    if (top->size == top->most && !(score > top->best[0].score))
        return;
    if (score != score || (skip && skip(context, item)))
        return;
    lapse_recommendation entry = {.item = item, .score = score};
    if (top->size < top->most)
        rise(top->best, top->size++, entry);
    else
        sink(top->best, top->size, 0, entry);
    LP_ASSERT(first_is_worst(top));
}

void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first, lp_top_k_skip skip,
                    const void *context)
{
    for (int64_t i = 0, end; i < count && top->most > 0; i = end) {
        end = i + CHUNK < count ? i + CHUNK : count;
        if (top->size == top->most && end - i == CHUNK && !any_above(scores + i, (float)top->best[0].score))
            continue;
        for (int64_t k = i; k < end; k++)
            offer_one(top, (double)scores[k], first + k, skip, context);
    }
}

void lp_top_k_sort(lp_top_k *top)
{
    for (int64_t left = top->size - 1; left > 0; left--) {
        lapse_recommendation worst = top->best[0], last = top->best[left];
        sink(top->best, left, 0, last);
        top->best[left] = worst;
        LP_ASSERT(left + 1 == top->size || is_worse(&top->best[left + 1], &top->best[left]));
    }
}
