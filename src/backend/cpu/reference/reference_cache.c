/* reference_cache.c: the KV cache and attention over it. */
#include "backend/cpu/reference/reference.h"

#include <stddef.h>
#include <string.h>

static real dot(const real *a, const real *b, int count)
{
    real sum = 0;
    for (int c = 0; c < count; c++)
        sum += a[c] * b[c];
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

/* Raw scores, of the cached keys and then of the branch's; added if `add`. */
static void score(const lp_node *node, const lp_run *run, const cached_row *r, const real *query, int input, int column,
                  int count, bool add)
{
    const lp_value *value = node->inputs[input];
    const real *cached = lp_run_cached_rows(run, value, r->q);
    const real *own = r->own ? lp_run_branch_rows(run, value, r->q, 0) : NULL;
    for (int i = 0; i < r->cached + r->own; i++) {
        const real *row = i < r->cached ? cached + (size_t)i * (size_t)value->cols
                                        : own + (size_t)(i - r->cached) * (size_t)value->cols;
        r->scores[i] = (add ? r->scores[i] : 0) + dot(query, row + column, count);
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

static void cached_query(const lp_node *node, const lp_run *run, int number, int q)
{
    const real *query = INPUT(0), *time_query = INPUT(3), *query_time = INPUT(5); /* [T x H*d], [T x H*E] */
    bool basis = node->inputs[4] != NULL;
    int all = node->inputs[0]->cols;
    bool branched = run->branches != NULL;
    cached_row r = {.q = q,
                    .cols = all / node->attributes.heads,
                    .extra = basis ? node->inputs[4]->cols : 0,
                    .width = node->inputs[2]->cols,
                    .cached = lp_run_cached_keys(run, q),
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
    const real *rows = branched ? lp_run_branch_rows(run, node->inputs[2], q, 0) : NULL;
    sum_rows(&r, sum, (real *)lp_run_cached_rows(run, node->inputs[2], q) + r.column, branched ? rows + r.column : NULL,
             r.width, r.cols, out);
    if (!basis)
        return;
    real *time_out = OUTPUT(1) + extra_from;
    sum_rows(&r, sum, lp_run_cached_rows(run, node->inputs[4], q),
             branched ? lp_run_branch_rows(run, node->inputs[4], q, 0) : NULL, extra, extra, time_out);
    if (query_time)
        reflect(time_out, query_time + (size_t)q * extra, time_out, extra);
}

void LP_REFERENCE(attention_cached)(const lp_node *node, const lp_run *run)
{
    lp_run_append_rows(run, node->inputs[1]);
    lp_run_append_rows(run, node->inputs[2]);
    lp_run_append_rows(run, node->inputs[4]);
    for (int number = 0; number < node->attributes.heads; number++)
        for (int q = 0; q < run->rows[LP_ROWS_TOKENS]; q++)
            cached_query(node, run, number, q);
}
