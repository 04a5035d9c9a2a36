/* reference_cache.c: the KV cache and attention over it. */
#include "backend/cpu/reference/reference.h"

#include <stddef.h>
#include <string.h>

void LP_REFERENCE(cache_append)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [T x cols] */
    real *cache = OUTPUT(0);  /* [cols x stride] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, past = run->rows[LP_ROWS_PAST];
    for (int t = 0; run->branches && t < rows; t++)
        memcpy(lp_run_branch_rows(run, node->outputs[0], cols, t, run->branches->length[t]), x + (size_t)t * cols,
               (size_t)cols * sizeof *x);
    for (int t = 0; run->histories && t < rows; t++)
        for (int c = 0; c < cols; c++)
            ((real *)run->histories[t].rows[node->outputs[0]->slot])[(size_t)c * (size_t)run->histories[t].stride +
                                                                     (size_t)run->histories[t].past] =
                x[(size_t)t * cols + c];
    for (int t = 0; !run->branches && !run->histories && t < rows; t++)
        for (int c = 0; c < cols; c++)
            cache[(size_t)c * lp_run_cache_stride(run, node->outputs[0]) + (size_t)(past + t)] =
                x[(size_t)t * cols + c];
}

/* a [count] . column i of b [count x stride] */
static real dot(const real *a, const real *b, size_t stride, int i, int count)
{
    real sum = 0;
    for (int c = 0; c < count; c++)
        sum += a[c] * b[c * stride + (size_t)i];
    return sum;
}

static void add_scaled(real *to, real factor, const real *from, int count)
{
    for (int i = 0; i < count; i++)
        to[i] += factor * from[i];
}

/* y = M x for the time whose basis is u; y may be x. */
static void reflect(const real *x, const real *u, real *y, int cols)
{
    for (int c = 0, s = cols / 2; s < cols; c++, s++) {
        real cosine = x[c] * u[c] + x[s] * u[s], sine = x[c] * u[s] - x[s] * u[c];
        y[c] = cosine;
        y[s] = sine;
    }
}

/* Of the row q of one head. The keys are `cached` ones, and then `own` ones of its branch. */
typedef struct cached_row {
    int q, cols, extra, width, column; /* columns of the head, of the basis, of a row of keys, before the head's */
    int cached, own;
    real *scores; /* [cached + own] */
} cached_row;

/* Raw scores: of the cached keys by columns of `transposed`, of the branch's by its rows; added if `add`. */
static void score(const lp_node *node, const lp_run *run, const cached_row *r, const real *query, int input, int column,
                  int count, bool add)
{
    const lp_run_history *history = run->histories ? &run->histories[r->q] : NULL;
    size_t stride = (size_t)(history ? history->stride : lp_run_cache_stride(run, node->inputs[input]));
    const real *keys = history ? history->rows[node->inputs[input]->slot] : INPUT(input);
    const real *transposed = keys + column * stride;
    for (int i = 0; i < r->cached; i++)
        r->scores[i] = (add ? r->scores[i] : 0) + dot(query, transposed, stride, i, count);
    int cols = node->inputs[input]->rows;
    const real *rows = r->own ? lp_run_branch_rows(run, node->inputs[input], cols, r->q, 0) : NULL;
    for (int i = 0; i < r->own; i++) {
        real *to = &r->scores[r->cached + i];
        *to = (add ? *to : 0) + dot(query, rows + (size_t)i * cols + column, 1, 0, count);
    }
}

/* out [count] = sum of probability times row. cached: row 0 of the cached ones; rows: row 0 of the branch's. */
static void sum_rows(const cached_row *r, real sum, const real *cached, const real *rows, int stride, int count,
                     real *out)
{
    memset(out, 0, (size_t)count * sizeof *out);
    for (int i = 0; i < r->cached; i++)
        add_scaled(out, r->scores[i] / sum, cached + (size_t)i * stride, count);
    for (int i = 0; i < r->own; i++)
        add_scaled(out, r->scores[r->cached + i] / sum, rows + (size_t)i * stride, count);
}

/* Row 0 of a matrix of cached rows, of the history of a token. */
static const real *cached_rows(const lp_node *node, const lp_run *run, int input, int token)
{
    const lp_value *value = node->inputs[input];
    if (run->histories)
        return run->histories[token].rows[value->slot];
    return run->branches ? run->branches->cached[value->slot]
                         : (const real *)INPUT(input) - (ptrdiff_t)run->rows[LP_ROWS_PAST] * value->cols;
}

static void cached_query(const lp_node *node, const lp_run *run, int number, int q)
{
    const real *query = INPUT(0), *time_query = INPUT(3), *query_time = INPUT(6); /* [T x H*d], [T x H*E] */
    bool basis = node->inputs[5] != NULL;
    int all = node->inputs[0]->cols;
    int past = run->histories ? run->histories[q].past - q : run->rows[LP_ROWS_PAST];
    bool branched = run->branches != NULL;
    cached_row r = {.q = q,
                    .cols = all / node->attributes.heads,
                    .extra = basis ? node->inputs[5]->cols : 0,
                    .width = node->inputs[2]->cols,
                    .cached = branched ? past : past + q + 1,
                    .own = branched ? run->branches->length[q] + 1 : 0};
    int from = number * r.cols, extra = r.extra;
    r.column = r.width == all ? from : 0; /* 0: common to all heads */
    size_t extra_from = (size_t)q * node->attributes.heads * extra + (size_t)number * extra;
    real *out = OUTPUT(0) + (size_t)q * all + from;
    real *reflected_query = (real *)(void *)run->scratch, largest = 0, sum = 0;
    r.scores = reflected_query + extra;
    if (basis)
        memcpy(reflected_query, time_query + extra_from, (size_t)extra * sizeof *reflected_query);
    if (query_time)
        reflect(reflected_query, query_time + (size_t)q * extra, reflected_query, extra);
    score(node, run, &r, query + (size_t)q * all + from, 1, r.column, r.cols, false);
    if (basis)
        score(node, run, &r, reflected_query, 4, 0, extra, true);
    for (int i = 0; i < r.cached + r.own; i++) {
        r.scores[i] *= (real)node->attributes.scale;
        largest = i == 0 || r.scores[i] > largest ? r.scores[i] : largest;
    }
    for (int i = 0; i < r.cached + r.own; i++)
        sum += r.scores[i] = (real)exp((double)(r.scores[i] - largest));
    const real *rows = branched ? lp_run_branch_rows(run, node->inputs[2], r.width, q, 0) : NULL;
    sum_rows(&r, sum, cached_rows(node, run, 2, q) + r.column, branched ? rows + r.column : NULL, r.width, r.cols, out);
    if (!basis)
        return;
    real *time_out = OUTPUT(1) + extra_from;
    sum_rows(&r, sum, cached_rows(node, run, 5, q),
             branched ? lp_run_branch_rows(run, node->inputs[4], extra, q, 0) : NULL, extra, extra, time_out);
    if (query_time)
        reflect(time_out, query_time + (size_t)q * extra, time_out, extra);
}

/* Appends the newest rows of a cached matrix to the histories. */
static void append_to_histories(const lp_node *node, const lp_run *run, int input)
{
    const lp_value *value = node->inputs[input];
    size_t cols = value ? (size_t)value->cols : 0;
    for (int q = 0; value && q < run->rows[LP_ROWS_TOKENS]; q++)
        memcpy((real *)run->histories[q].rows[value->slot] + (size_t)run->histories[q].past * cols,
               (const real *)INPUT(input) + (size_t)q * cols, cols * sizeof(real));
}

void LP_REFERENCE(attention_cached)(const lp_node *node, const lp_run *run)
{
    int width = node->inputs[2]->cols;
    if (run->histories) {
        append_to_histories(node, run, 2);
        append_to_histories(node, run, 5);
    }
    for (int q = 0; run->branches && q < run->rows[LP_ROWS_TOKENS]; q++)
        memcpy(lp_run_branch_rows(run, node->inputs[2], width, q, run->branches->length[q]),
               (const real *)INPUT(2) + (size_t)q * width, (size_t)width * sizeof(real));
    for (int number = 0; number < node->attributes.heads; number++)
        for (int q = 0; q < run->rows[LP_ROWS_TOKENS]; q++)
            cached_query(node, run, number, q);
}
