/* top.c: a heap of the best so far, the worst of them on top. Most scores are below it and cost one comparison. */
#include "serve/top.h"

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

int64_t lp_top_select(const float *scores, int64_t count, const uint64_t *skip, int64_t top, lapse_recommendation *best)
{
    int64_t size = 0;
    for (int64_t i = 0; i < count && top > 0; i++) {
        double score = (double)scores[i];
        if (size == top && !(score > best[0].score))
            continue;
        if (score != score || (skip && (skip[i / 64] >> (i % 64) & 1)))
            continue;
        lapse_recommendation entry = {.item = i, .score = score};
        if (size < top)
            rise(best, size++, entry);
        else
            sink(best, size, 0, entry);
    }
    /* The worst goes to the end, again and again. */
    for (int64_t left = size - 1; left > 0; left--) {
        lapse_recommendation worst = best[0], last = best[left];
        sink(best, left, 0, last);
        best[left] = worst;
    }
    return size;
}
