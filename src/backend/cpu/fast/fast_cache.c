/* fast_cache.c: the KV cache and attention over it, in tiles of queries.
 *
 * Keys and bases are cached transposed, so scores are products without copies, for one query or many. Columns after the
 * last key, up to a whole vector, hold stale data: their scores are computed, then masked. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

/* As in fast_attention.c. */
enum { ROWS = 2 * FAST_ROWS };
_Static_assert((int)ROWS <= (int)LP_ATTENTION_ROWS, "the scratch is sized for fewer rows");
_Static_assert((int)FAST_LANES == (int)LP_CACHE_PADDING, "the cache is padded for other vectors");

void LP_FAST(cache_append)(const lp_node *node, const lp_run *run)
{
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    fast_transpose(rows, cols, INPUT(0), cols, OUTPUT(0) + run->rows[LP_ROWS_PAST], node->outputs[0]->cols);
}

/* Softmax of the first `seen` scores, in place, with zeros from seen to all. */
static void softmax_row(float *row, int seen, int all)
{
    int length = fast_padded(seen);
    fast_fill(row, seen, -INFINITY);
    float sum = fast_powers(row, row, length, fast_largest(row, length)), scale = 1 / sum;
#pragma omp simd
    for (int i = 0; i < length; i++)
        row[i] *= scale;
    for (int i = length; i < all; i++)
        row[i] = 0;
}

/* Time queries of head `number` from row `from` on, reflected by their query times. */
static matrix reflected_queries(const lp_node *node, const lp_run *run, int number, int from, int count,
                                float *transposed)
{
    int extra = node->inputs[5]->cols, stride = node->inputs[3]->cols;
    const float *query = INPUT(3) + (size_t)from * stride + (size_t)number * extra, *query_time = INPUT(6);
    if (!query_time)
        return (matrix){query, stride, false};
    for (int r = 0; r < count; r++)
        fast_reflect(query + (size_t)r * stride, query_time + (size_t)(from + r) * extra,
                     transposed + (size_t)r * extra, extra / 2, false);
    return (matrix){transposed, extra, false};
}

/* Time outputs, reflected back. */
static void time_outputs(const lp_node *node, const lp_run *run, int number, int from, int count, int keys,
                         matrix probabilities)
{
    int extra = node->inputs[5]->cols, stride = node->inputs[3]->cols;
    const float *query_time = INPUT(6);
    float *out = OUTPUT(1) + (size_t)from * stride + (size_t)number * extra;
    fast_product(count, extra, keys, 1, probabilities,
                 (matrix){INPUT(5) - (size_t)run->rows[LP_ROWS_PAST] * extra, extra, false}, false, out, stride);
    for (int r = 0; query_time && r < count; r++)
        fast_reflect(out + (size_t)r * stride, query_time + (size_t)(from + r) * extra, out + (size_t)r * stride,
                     extra / 2, false);
}

static void cached_block(const lp_node *node, const lp_run *run, int number, int from, int to)
{
    int all = node->inputs[0]->cols, cols = all / node->attributes.heads, at = number * cols, count = to - from;
    int width = node->inputs[2]->cols, column = width == all ? at : 0; /* 0: keys and values are common to all heads */
    int past = run->rows[LP_ROWS_PAST], keys = past + to, wide = fast_padded(keys);
    float scale = (float)node->attributes.scale, *scores = (float *)(void *)run->scratch; /* [count x wide] */
    matrix query = {INPUT(0) + (size_t)from * all + at, all, false},
           value = {INPUT(2) - (size_t)past * width + column, width, false};
    matrix key = {INPUT(1) + (size_t)column * node->inputs[1]->cols, node->inputs[1]->cols, false};
    matrix probabilities = {scores, wide, false};
    fast_product(count, wide, cols, scale, query, key, false, scores, wide);
    if (node->inputs[5])
        fast_product(count, wide, node->inputs[5]->cols, scale,
                     reflected_queries(node, run, number, from, count, scores + (size_t)ROWS * wide),
                     (matrix){INPUT(4), node->inputs[4]->cols, false}, true, scores, wide);
    for (int q = from; q < to; q++)
        softmax_row(scores + (size_t)(q - from) * wide, past + q + 1, keys);
    fast_product(count, cols, keys, 1, probabilities, value, false, OUTPUT(0) + (size_t)from * all + at, all);
    if (node->inputs[5])
        time_outputs(node, run, number, from, count, keys, probabilities);
}

void LP_FAST(attention_cached)(const lp_node *node, const lp_run *run)
{
    int tokens = run->rows[LP_ROWS_TOKENS];
    for (int number = 0; number < node->attributes.heads; number++)
        for (int from = 0; from < tokens; from += ROWS)
            cached_block(node, run, number, from, from + ROWS < tokens ? from + ROWS : tokens);
}
