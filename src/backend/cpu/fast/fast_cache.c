/* fast_cache.c: attention over the KV cache, in tiles of queries.
 *
 * The heads of a token are rows of the same products where they share keys, as they do the basis: it is read once. Keys are stored by
 * rows; products with many queries read a transposed copy of them, those with few transpose a few keys at a time in registers
 * (fast_key_scores). The terms of each sum have the same order, so that a row has the same bits alone and beside others.
 *
 * Branches share the cached keys, so that these are matrix products; keys and values of the branch itself are a few rows, and dot
 * products with them follow each row's cached scores. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"
#include "base/assert.h"

#include <string.h>

/* Tokens of a tile; rows of scores up to which keys are not copied. */
enum { TOKENS = 2 * FAST_ROWS, FEW = 8 };
_Static_assert((int)TOKENS <= (int)LP_ATTENTION_ROWS, "the scratch is sized for fewer rows");

enum { QUERY, KEY, VALUE, TIME_QUERY, BASIS, QUERY_TIME };

/* The queries of tokens from .. from + count - 1: count * heads rows of scores, those of a token adjacent. */
typedef struct tile {
    const lp_node *node;
    const lp_run *run;
    int heads, from, count;
    int cached; /* keys in the cache, the same for all rows; the last of them are masked where rows are not branches */
    int wide;   /* columns of `scores` */
    float *scores;                            /* [count * heads x wide]: cached keys, then those of the row's branch */
    float *key_transposed, *basis_transposed; /* [columns x stride]; NULL: few rows read them */
    int key_stride, basis_stride;
} tile;

/* Keys of the token's own branch. */
static int own_keys(const tile *t, int token)
{
    return t->run->branches ? t->run->branches->length[t->from + token] + 1 : 0;
}

/* A product of `rows` rows, from row `row` of the scores on and `step` rows apart, with cached keys. */
typedef struct part {
    int input; /* of the node: the cached matrix */
    int column, cols;
    int rows, row, step;
    matrix query; /* [rows x cols] */
} part;

/* Scores against the cached keys, added if `add`. */
static void score(const tile *t, const part *p, bool add)
{
    const lp_value *keys = t->node->inputs[p->input];
    const float *transposed = p->input == KEY ? t->key_transposed : t->basis_transposed;
    int stride = p->input == KEY ? t->key_stride : t->basis_stride;
    float scale = (float)t->node->attributes.scale, *to = t->scores + (size_t)p->row * t->wide;
    if (!transposed) {
        const float *rows = lp_run_cached_rows(t->run, keys, t->from);
        fast_key_scores(p->rows, t->cached, p->cols, scale, p->query, (matrix){rows + p->column, keys->cols, true}, add,
                        to, p->step * t->wide);
        return;
    }
    matrix right = {transposed + (size_t)p->column * stride, stride, false};
    fast_product_rows(p->rows, fast_padded(t->cached), p->cols, scale, p->query, right,
                      (matrix){add ? to : NULL, p->step * t->wide, false}, to, p->step * t->wide);
}

/* The same against the keys of each token's branch. */
static void score_own(const tile *t, const part *p, bool add)
{
    const lp_value *keys = t->node->inputs[p->input];
    for (int r = 0; t->run->branches && r < p->rows; r++) {
        int row = p->row + r * p->step, token = row / t->heads;
        const float *rows = lp_run_branch_rows(t->run, keys, t->from + token, 0);
        fast_row_product(own_keys(t, token), p->cols, (float)t->node->attributes.scale,
                         p->query.data + (size_t)r * p->query.stride, rows + p->column, (size_t)keys->cols, add,
                         t->scores + (size_t)row * t->wide + t->cached);
    }
}

/* out [rows x cols] = probabilities times the rows of the cached matrix and those of each token's branch. */
static void sum_rows(const tile *t, const part *p, float *out, int stride)
{
    const lp_value *values = t->node->inputs[p->input];
    const float *rows = lp_run_cached_rows(t->run, values, t->from);
    matrix probabilities = {t->scores + (size_t)p->row * t->wide, p->step * t->wide, false};
    fast_product_rows(p->rows, p->cols, t->cached, 1, probabilities, (matrix){rows + p->column, values->cols, false},
                      (matrix){0}, out, stride);
    for (int r = 0; t->run->branches && r < p->rows; r++) {
        int row = p->row + r * p->step, token = row / t->heads;
        const float *own = lp_run_branch_rows(t->run, values, t->from + token, 0);
        fast_product(1, p->cols, own_keys(t, token), 1,
                     (matrix){t->scores + (size_t)row * t->wide + t->cached, t->wide, false},
                     (matrix){own + p->column, values->cols, false}, true, out + (size_t)r * stride, stride);
    }
}

/* Reflects rows of time queries or outputs by the query times of their tokens. */
static void reflect(const tile *t, const float *x, float *y)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    int extra = node->inputs[BASIS]->cols;
    for (int r = 0; r < t->count * t->heads; r++)
        fast_reflect(x + (size_t)r * extra, INPUT(QUERY_TIME) + (size_t)(t->from + r / t->heads) * extra,
                     y + (size_t)r * extra, extra / 2, false);
}

/* The time queries, reflected into `memory` where there are query times. */
static part time_part(const tile *t, float *memory)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    int extra = node->inputs[BASIS]->cols, rows = t->count * t->heads;
    const float *query = INPUT(TIME_QUERY) + (size_t)t->from * t->heads * extra;
    if (node->inputs[QUERY_TIME])
        reflect(t, query, memory);
    return (part){.input = BASIS,
                  .cols = extra,
                  .rows = rows,
                  .step = 1,
                  .query = {node->inputs[QUERY_TIME] ? memory : query, extra, false}};
}

/* The keys or values of head h, or of all heads where they are common to them: *parts is the number of parts. */
static part head_part(const tile *t, int input, int h, int *parts)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    int all = node->inputs[QUERY]->cols, cols = all / t->heads;
    bool shared = node->inputs[input]->cols != all || t->heads == 1;
    *parts = shared ? 1 : t->heads;
    return (part){.input = input,
                  .column = h * cols,
                  .cols = cols,
                  .rows = shared ? t->count * t->heads : t->count,
                  .row = h,
                  .step = *parts,
                  .query = {INPUT(QUERY) + (size_t)t->from * all + (size_t)h * cols, shared ? cols : all, false}};
}

static void attend(const tile *t)
{
    const lp_node *node = t->node;
    const lp_run *run = t->run;
    int rows = t->count * t->heads, parts = 1;
    part time = {0};
    if (node->inputs[BASIS])
        time = time_part(t, t->scores + (size_t)rows * t->wide);
    for (int h = 0; h < parts; h++) {
        part p = head_part(t, KEY, h, &parts);
        score(t, &p, false);
    }
    if (node->inputs[BASIS])
        score(t, &time, true);
    for (int h = 0; h < parts; h++) { /* after those of cached keys, which fill whole vectors */
        part p = head_part(t, KEY, h, &parts);
        score_own(t, &p, false);
    }
    if (node->inputs[BASIS])
        score_own(t, &time, true);
    for (int r = 0; r < rows; r++) {
        int token = r / t->heads, keys = lp_run_cached_keys(run, t->from + token) + own_keys(t, token);
        fast_softmax(t->scores + (size_t)r * t->wide, keys, t->cached);
    }
    for (int h = 0; h < parts; h++) {
        part p = head_part(t, VALUE, h, &parts);
        sum_rows(t, &p, OUTPUT(0) + (size_t)t->from * node->inputs[QUERY]->cols + p.column, p.query.stride);
    }
    if (!node->inputs[BASIS])
        return;
    float *time_out = OUTPUT(1) + (size_t)t->from * t->heads * time.cols;
    sum_rows(t, &time, time_out, time.cols);
    if (node->inputs[QUERY_TIME])
        reflect(t, time_out, time_out);
}

static int longest_branch(const lp_run *run, int from, int to)
{
    int most = 0;
    for (int q = from; run->branches && q < to; q++)
        most = run->branches->length[q] + 1 > most ? run->branches->length[q] + 1 : most;
    return most;
}

/* A transposed copy of the cached rows, with zeros up to a whole vector; returns the memory after it. */
static float *transpose(const lp_run *run, const lp_value *value, int keys, int stride, float *to)
{
    fast_transpose(keys, value->cols, lp_run_cached_rows(run, value, 0), value->cols, to, stride);
    for (int c = 0; c < value->cols; c++)
        memset(to + (size_t)c * stride + keys, 0, (size_t)(stride - keys) * sizeof *to);
    return to + (size_t)value->cols * stride;
}

/* The transposed basis of one history, which several blocks and queries read. */
static void use_basis(tile *t)
{
    const lp_value *basis = t->node->inputs[BASIS];
    lp_run_transposed *b = t->run->basis;
    if (!b || !basis || t->key_transposed)
        return;
    LP_ASSERT(fast_padded(t->cached) <= b->stride);
    const float *rows = lp_run_cached_rows(t->run, basis, t->from);
    if (b->filled < t->cached)
        fast_transpose(t->cached - b->filled, basis->cols, rows + (size_t)b->filled * basis->cols, basis->cols,
                       b->data + b->filled, b->stride);
    b->filled = t->cached;
    t->basis_transposed = b->data;
    t->basis_stride = b->stride;
}

void LP_FAST(attention_cached)(const lp_node *node, const lp_run *run)
{
    int tokens = run->rows[LP_ROWS_TOKENS];
    tile t = {.node = node, .run = run, .heads = node->attributes.heads};
    float *memory = (float *)(void *)run->scratch;
    lp_run_append_rows(run, node->inputs[KEY]);
    lp_run_append_rows(run, node->inputs[VALUE]);
    lp_run_append_rows(run, node->inputs[BASIS]);
    if (!run->histories && tokens * t.heads > FEW) {
        int keys = lp_run_cached_keys(run, tokens - 1);
        t.key_stride = t.basis_stride = fast_padded(keys);
        t.key_transposed = memory;
        memory = transpose(run, node->inputs[KEY], keys, t.key_stride, memory);
        t.basis_transposed = memory;
        if (node->inputs[BASIS])
            memory = transpose(run, node->inputs[BASIS], keys, t.basis_stride, memory);
    }
    t.scores = memory;
    int most = run->histories ? 1 : TOKENS; /* that have the same keys */
    for (int to; t.from < tokens; t.from = to) {
        to = t.from + most < tokens ? t.from + most : tokens;
        t.count = to - t.from;
        t.cached = lp_run_cached_keys(run, to - 1);
        t.wide = fast_padded(t.cached + longest_branch(run, t.from, to));
        use_basis(&t);
        attend(&t);
    }
}
