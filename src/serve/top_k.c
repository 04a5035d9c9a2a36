/* top_k.c: a heap of the best scores so far with the worst of them on top. Most scores are in blocks whose largest shows that none of
 * them is among the best. */
#include "serve/top_k.h"

#include "backend/backend.h"
#include "base/assert.h"

#include <math.h>

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

enum { BLOCKS = 64 };

/* The number that `most` of these reach, or a smaller one. */
static float reached_by(const float *numbers, int count, int64_t most)
{
    float best[BLOCKS]; /* in descending order */
    if (most > count)
        return -INFINITY;
    for (int i = 0, size = 0; i < count; i++) {
        int at = size < (int)most ? size++ : (int)most - 1;
        if (i >= (int)most && !(numbers[i] > best[at]))
            continue;
        for (; at > 0 && numbers[i] > best[at - 1]; at--)
            best[at] = best[at - 1];
        best[at] = numbers[i];
    }
    return best[most - 1];
}

static void offer_one(lp_top_k *top, double score, int64_t item)
{
    lapse_recommendation entry = {.item = item, .score = score};
    if (top->size < top->most)
        rise(top->best, top->size++, entry);
    else if (score > top->best[0].score)
        sink(top->best, top->size, 0, entry);
    LP_ASSERT(first_is_worst(top));
}

/* The items of at most BLOCKS blocks. As many blocks as there are best have a score that reaches a limit, so that the best do too. */
static void offer_blocks(lp_top_k *top, const float *scores, int count, int64_t first)
{
    const lp_ranking_kernels *kernels = lp_backend_ranking(lp_backend_find("cpu"));
    float largest[BLOCKS];
    int32_t index[BLOCKS * LP_SCORE_BLOCK];
    kernels->largest(count, scores, largest);
    float limit = reached_by(largest, (count + LP_SCORE_BLOCK - 1) / LP_SCORE_BLOCK, top->most);
    int found = kernels->find_at_least(count, scores, limit, index);
    for (int i = 0; i < found; i++)
        offer_one(top, (double)scores[index[i]], first + index[i]);
}

void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first)
{
    for (int64_t i = 0, size; i < count && top->most > 0; i += size) {
        size = count - i < BLOCKS * LP_SCORE_BLOCK ? count - i : BLOCKS * LP_SCORE_BLOCK;
        offer_blocks(top, scores + i, (int)size, first + i);
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
