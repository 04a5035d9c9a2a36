/* top_k.c: a heap of the best so far, the worst of them on top. Most scores are below it and cost one comparison, many
 * of them at a time. */
#include "serve/top_k.h"

/* Whether a comes after b in the answer. */
static bool is_worse(const lapse_recommendation *a, const lapse_recommendation *b)
{
    return a->score < b->score || (!(b->score < a->score) && a->item > b->item);
}

/* Puts `entry` into the heap, from place `at` downwards. */
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

/* Scores looked at together, as vectors of what every CPU has: a compiler that must mind exceptions makes none of a loop. */
enum { LANES = 4, STRETCH = 8 * LANES };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(LANES * sizeof(float))));

/* Whether one of a stretch is above the mark. */
static bool reaches(const float *scores, float mark)
{
    lanes marks = {mark, mark, mark, mark};
    lane_mask above = {0};
    for (int i = 0; i < STRETCH; i += LANES)
        above |= *(const lanes *)(scores + i) > marks;
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
}

void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first, lp_top_k_skip skip,
                    const void *context)
{
    for (int64_t i = 0, end; i < count && top->most > 0; i = end) {
        end = i + STRETCH < count ? i + STRETCH : count;
        if (top->size == top->most && end - i == STRETCH && !reaches(scores + i, (float)top->best[0].score))
            continue;
        for (int64_t k = i; k < end; k++)
            offer_one(top, (double)scores[k], first + k, skip, context);
    }
}

void lp_top_k_sort(lp_top_k *top)
{
    /* The worst goes to the end, again and again. */
    for (int64_t left = top->size - 1; left > 0; left--) {
        lapse_recommendation worst = top->best[0], last = top->best[left];
        sink(top->best, left, 0, last);
        top->best[left] = worst;
    }
}
