/* top_k.c: a heap of the best scores so far with the worst of them on top. Most scores are in blocks whose largest shows that none of
 * them is among the best. */
#include "serve/top_k.h"

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

/* Explicit SIMD of a width that every CPU has: compilers do not vectorize float comparisons that may raise
 * exceptions. */
enum { LANES = 4, BLOCK = 16 * LANES, BLOCKS = 64 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t lane_mask __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes larger(lanes a, lanes b)
{
    lane_mask more = a > b;
    return (lanes)((more & (lane_mask)a) | (~more & (lane_mask)b));
}

/* The largest of a block of scores; NaN is left out. */
static float block_largest(const float *scores, int64_t count)
{
    enum { WIDE = 4 };
    lanes most[WIDE];
    float largest = -INFINITY;
    int64_t i = 0;
    for (int w = 0; w < WIDE; w++)
        most[w] = (lanes){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (; i + WIDE * LANES <= count; i += WIDE * LANES)
        for (int w = 0; w < WIDE; w++)
            most[w] = larger(*(const lanes *)(scores + i + w * LANES), most[w]);
    most[0] = larger(larger(most[0], most[1]), larger(most[2], most[3]));
    for (; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    for (int l = 0; l < LANES; l++)
        largest = most[0][l] > largest ? most[0][l] : largest;
    return largest;
}

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
static void offer_blocks(lp_top_k *top, const float *scores, int64_t count, int64_t first)
{
    float largest[BLOCKS];
    int blocks = (int)((count + BLOCK - 1) / BLOCK);
    for (int b = 0; b < blocks; b++)
        largest[b] = block_largest(scores + b * BLOCK, count - b * BLOCK < BLOCK ? count - b * BLOCK : BLOCK);
    float limit = reached_by(largest, blocks, top->most);
    for (int b = 0; b < blocks; b++)
        for (int64_t i = b * BLOCK; largest[b] >= limit && i < count && i < (b + 1) * BLOCK; i++)
            if (scores[i] >= limit)
                offer_one(top, (double)scores[i], first + i);
}

void lp_top_k_offer(lp_top_k *top, const float *scores, int64_t count, int64_t first)
{
    for (int64_t i = 0, size; i < count && top->most > 0; i += size) {
        size = count - i < BLOCKS * BLOCK ? count - i : BLOCKS * BLOCK;
        offer_blocks(top, scores + i, size, first + i);
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
