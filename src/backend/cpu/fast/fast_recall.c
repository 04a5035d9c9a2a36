/* fast_recall.c: attention over kept keys and values and those of now, a block of queries at a time.
 *
 * A question is one query, for which a product with the keys on their side is a dot product for each event, in place
 * (fast_product has a way of its own for one row); longer runs, of a history seen for the first time, are blocks of
 * matrix products as in fast_attention.c.
 */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

enum { ROWS = 2 * FAST_ROWS };
_Static_assert((int)ROWS <= (int)LP_ATTENTION_ROWS, "the scratch is sized for fewer rows");

/* Rows of a block against what was and what is, for one head. */
typedef struct part {
    int past, to, count; /* kept events, events of now that the last query sees, queries */
    int stride;          /* of the scores */
    float *scores;       /* [count x stride] */
} part;

/* scores = or += scale * queries [count x cols] times keys on their side, of the past and then of now. */
static void score(const part *p, int cols, float scale, matrix queries, matrix before, matrix now, bool add)
{
    before.transposed = now.transposed = true;
    fast_product(p->count, p->past, cols, scale, queries, before, add, p->scores, p->stride);
    fast_product(p->count, p->to, cols, scale, queries, now, add, p->scores + p->past, p->stride);
}

/* out = probabilities times values, of the past and then of now. */
static void mix(const part *p, int cols, matrix before, matrix now, float *out, int stride)
{
    matrix then = {p->scores, p->stride, false}, here = {p->scores + p->past, p->stride, false};
    fast_product(p->count, cols, p->past, 1, then, before, false, out, stride);
    fast_product(p->count, cols, p->to, 1, here, now, true, out, stride);
}

/* `seen` scores become probabilities, and zeros from there to `all`. */
static void softmax_row(float *row, int seen, int all)
{
    int length = fast_padded(seen);
    for (int i = seen; i < length; i++)
        row[i] = -INFINITY;
    float sum = fast_powers(row, row, length, fast_largest(row, length)), share = 1 / sum;
#pragma omp simd
    for (int i = 0; i < length; i++)
        row[i] *= share;
    for (int i = length; i < all; i++)
        row[i] = 0;
}

static void recall_block(const lp_node *node, const lp_run *run, int number, int from, int to)
{
    const float *query = INPUT(0), *time_query = INPUT(3);
    int heads = node->with.heads, all = node->inputs[0]->cols, cols = all / heads, at = number * cols;
    int extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    float scale = (float)node->with.scale;
    part p = {.past = run->rows[LP_ROWS_PAST], .to = to, .count = to - from};
    p.stride = fast_padded(p.past + to);
    p.scores = (float *)(void *)run->scratch;
    matrix before = {INPUT(5) + at, all, false}, now = {INPUT(1) + at, all, false};
    score(&p, cols, scale, (matrix){query + (size_t)from * all + at, all, false}, before, now, false);
    matrix bases_before = {INPUT(7), extra, false}, bases_now = {INPUT(4), extra, false};
    if (extra)
        score(&p, extra, scale, (matrix){time_query + ((size_t)from * heads + number) * extra, heads * extra, false},
              bases_before, bases_now, true);
    for (int q = from; q < to; q++)
        softmax_row(p.scores + (size_t)(q - from) * p.stride, p.past + q + 1, p.past + to);
    before.data = INPUT(6) + at;
    now.data = INPUT(2) + at;
    mix(&p, cols, before, now, OUTPUT(0) + (size_t)from * all + at, all);
    if (extra)
        mix(&p, extra, bases_before, bases_now, OUTPUT(1) + ((size_t)from * heads + number) * extra, heads * extra);
}

void LP_FAST(recall)(const lp_node *node, const lp_run *run)
{
    int tokens = run->rows[LP_ROWS_TOKENS];
    for (int number = 0; number < node->with.heads; number++)
        for (int from = 0; from < tokens; from += ROWS)
            recall_block(node, run, number, from, from + ROWS < tokens ? from + ROWS : tokens);
}
