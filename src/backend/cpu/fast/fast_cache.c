/* fast_cache.c: the KV cache and attention over it, in tiles of queries.
 *
 * Keys and bases are cached transposed, so scores are products without copies, for one query or many. Columns after the
 * last key, up to a whole vector, hold stale data: their scores are computed, then masked.
 *
 * Branches share the cached keys, so that these are matrix products; keys and values of the branch itself are a few rows, and dot
 * products with them follow each row's cached scores. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"
#include "base/assert.h"

#include <string.h>

/* As in fast_attention.c. */
enum { ROWS = 2 * FAST_ROWS };
_Static_assert((int)ROWS <= (int)LP_ATTENTION_ROWS, "the scratch is sized for fewer rows");
_Static_assert((int)FAST_LANES == (int)LP_CACHE_PADDING, "the cache is padded for other vectors");

/* Appends row t of x to the branch of token t. */
static void append_rows(const lp_run *run, const lp_value *cached, const float *x, int rows, int cols)
{
    for (int t = 0; t < rows; t++)
        memcpy(lp_run_branch_rows(run, cached, cols, t, run->branches->length[t]), x + (size_t)t * cols,
               (size_t)cols * sizeof *x);
}

/* Appends row t of x to the transposed matrix of token t's history. */
static void append_columns(const lp_run *run, const lp_value *cached, const float *x, int rows, int cols)
{
    for (int t = 0; t < rows; t++) {
        const lp_run_history *history = &run->histories[t];
        float *column = (float *)history->rows[cached->slot] + history->past;
        LP_ASSERT(history->past < history->stride);
        for (int c = 0; c < cols; c++)
            column[(size_t)c * (size_t)history->stride] = x[(size_t)t * cols + c];
    }
}

/* Appends row t of x to the rows of token t's history. */
static void append_to_histories(const lp_run *run, const lp_value *cached, const float *x, int rows)
{
    size_t cols = (size_t)cached->cols;
    for (int t = 0; t < rows; t++)
        memcpy((float *)run->histories[t].rows[cached->slot] + (size_t)run->histories[t].past * cols,
               x + (size_t)t * cols, cols * sizeof *x);
}

void LP_FAST(cache_append)(const lp_node *node, const lp_run *run)
{
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (run->branches)
        append_rows(run, node->outputs[0], INPUT(0), rows, cols);
    else if (run->histories)
        append_columns(run, node->outputs[0], INPUT(0), rows, cols);
    else
        fast_transpose(rows, cols, INPUT(0), cols, OUTPUT(0) + run->rows[LP_ROWS_PAST],
                       lp_run_cache_stride(run, node->outputs[0]));
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

/* Row 0 of a matrix of cached rows, of the history of a token. */
static const float *cached_rows(const lp_node *node, const lp_run *run, int input, int token)
{
    const lp_value *value = node->inputs[input];
    if (run->histories)
        return run->histories[token].rows[value->slot];
    return run->branches ? run->branches->cached[value->slot]
                         : INPUT(input) - (size_t)run->rows[LP_ROWS_PAST] * value->cols;
}

/* A tile of rows of one head. */
typedef struct cached_tile {
    const lp_node *node;
    const lp_run *run;
    int from, count; /* rows */
    int cached; /* keys in the cache, the same for all rows; the last of them are masked where rows are not branches */
    int wide;   /* columns of `scores` */
    float *scores; /* [count x wide]: cached keys, then those of the row's branch */
} cached_tile;

/* Keys of the row's own branch. */
static int own_keys(const cached_tile *t, int row)
{
    return t->run->branches ? t->run->branches->length[t->from + row] + 1 : 0;
}

/* Scores of `query` [count x cols] against columns `column` .. of the transposed matrix `input`, added if `add`. */
static void score(const cached_tile *t, matrix query, int input, int column, int cols, bool add)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    const lp_run_history *history = run->histories ? &run->histories[t->from] : NULL;
    int stride = history ? history->stride : lp_run_cache_stride(run, node->inputs[input]);
    const float *keys = history ? history->rows[node->inputs[input]->slot] : INPUT(input);
    float scale = (float)node->attributes.scale;
    matrix transposed = {keys + (size_t)column * stride, stride, false};
    fast_product(t->count, fast_padded(t->cached), cols, scale, query, transposed, add, t->scores, t->wide);
}

/* The same against the keys of each row's branch. */
static void score_own(const cached_tile *t, matrix query, int input, int column, int cols, bool add)
{
    const lp_value *keys = t->node->inputs[input];
    for (int r = 0; t->run->branches && r < t->count; r++) {
        const float *rows = lp_run_branch_rows(t->run, keys, keys->rows, t->from + r, 0);
        fast_row_product(own_keys(t, r), cols, (float)t->node->attributes.scale, query.data + (size_t)r * query.stride,
                         rows + column, (size_t)keys->rows, add, t->scores + (size_t)r * t->wide + t->cached);
    }
}

/* out [count x cols] = probabilities times rows: cached ones from `rows` on, and the branches' of the matrix `cached`. */
static void sum_rows(const cached_tile *t, const float *rows, const lp_value *cached, int width, int column, int cols,
                     float *out, int stride)
{
    matrix probabilities = {t->scores, t->wide, false};
    fast_product(t->count, cols, t->cached, 1, probabilities, (matrix){rows + column, width, false}, false, out,
                 stride);
    for (int r = 0; t->run->branches && r < t->count; r++) {
        const float *own = lp_run_branch_rows(t->run, cached, width, t->from + r, 0);
        fast_product(1, cols, own_keys(t, r), 1, (matrix){t->scores + (size_t)r * t->wide + t->cached, t->wide, false},
                     (matrix){own + column, width, false}, true, out + (size_t)r * stride, stride);
    }
}

/* Time outputs of a head, reflected back. */
static void time_outputs(const cached_tile *t, int number)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    int extra = node->inputs[5]->cols, stride = node->inputs[3]->cols;
    const float *query_time = INPUT(6);
    float *out = OUTPUT(1) + (size_t)t->from * stride + (size_t)number * extra;
    sum_rows(t, cached_rows(node, run, 5, t->from), node->inputs[4], extra, 0, extra, out, stride);
    for (int r = 0; query_time && r < t->count; r++)
        fast_reflect(out + (size_t)r * stride, query_time + (size_t)(t->from + r) * extra, out + (size_t)r * stride,
                     extra / 2, false);
}

static int longest_branch(const lp_run *run, int from, int to)
{
    int most = 0;
    for (int q = from; run->branches && q < to; q++)
        most = run->branches->length[q] + 1 > most ? run->branches->length[q] + 1 : most;
    return most;
}

static void cached_block(const lp_node *node, const lp_run *run, int number, int from, int to)
{
    int all = node->inputs[0]->cols, cols = all / node->attributes.heads, at = number * cols;
    int width = node->inputs[2]->cols, column = width == all ? at : 0; /* 0: keys and values are common to all heads */
    int past = run->histories ? run->histories[from].past - from : run->rows[LP_ROWS_PAST];
    int cached = run->branches ? past : past + to;
    cached_tile t = {.node = node,
                     .run = run,
                     .from = from,
                     .count = to - from,
                     .cached = cached,
                     .wide = fast_padded(cached + longest_branch(run, from, to)),
                     .scores = (float *)(void *)run->scratch};
    matrix query = {INPUT(0) + (size_t)from * all + at, all, false}, time_query = {0};
    if (node->inputs[5])
        time_query = reflected_queries(node, run, number, from, t.count, t.scores + (size_t)ROWS * t.wide);
    score(&t, query, 1, column, cols, false);
    if (node->inputs[5])
        score(&t, time_query, 4, 0, node->inputs[5]->cols, true);
    score_own(&t, query, 1, column, cols, false);
    if (node->inputs[5])
        score_own(&t, time_query, 4, 0, node->inputs[5]->cols, true);
    for (int r = 0; r < t.count; r++)
        fast_softmax(t.scores + (size_t)r * t.wide, run->branches ? cached + own_keys(&t, r) : past + from + r + 1,
                     cached);
    sum_rows(&t, cached_rows(node, run, 2, from), node->inputs[2], width, column, cols,
             OUTPUT(0) + (size_t)from * all + at, all);
    if (node->inputs[5])
        time_outputs(&t, number);
}

void LP_FAST(attention_cached)(const lp_node *node, const lp_run *run)
{
    int tokens = run->rows[LP_ROWS_TOKENS];
    if (run->branches)
        append_rows(run, node->inputs[2], INPUT(2), tokens, node->inputs[2]->cols);
    if (run->histories)
        append_to_histories(run, node->inputs[2], INPUT(2), tokens);
    if (run->histories && node->inputs[5])
        append_to_histories(run, node->inputs[5], INPUT(5), tokens);
    int rows = run->histories ? 1 : ROWS; /* that have the same keys */
    for (int from = 0; from < tokens; from += rows)
        for (int number = 0; number < node->attributes.heads; number++)
            cached_block(node, run, number, from, from + rows < tokens ? from + rows : tokens);
}
