/* reference_cache.c: the KV cache and attention over it. */
#include "backend/cpu/reference/reference.h"

#include <stddef.h>
#include <string.h>

void LP_REFERENCE(cache_append)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [T x cols] */
    real *cache = OUTPUT(0);  /* [cols x stride] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, past = run->rows[LP_ROWS_PAST];
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            cache[(size_t)c * node->outputs[0]->cols + (size_t)(past + t)] = x[(size_t)t * cols + c];
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

static void cached_query(const lp_node *node, const lp_run *run, int number, int q)
{
    const real *query = INPUT(0), *time_query = INPUT(3), *query_time = INPUT(6);             /* [T x H*d], [T x H*E] */
    const real *key = INPUT(1), *value = INPUT(2), *transposed = INPUT(4), *basis = INPUT(5); /* cached */
    int all = node->inputs[0]->cols, cols = all / node->attributes.heads, from = number * cols;
    int width = node->inputs[2]->cols, column = width == all ? from : 0; /* 0: common to all heads */
    int extra = basis ? node->inputs[5]->cols : 0, past = run->rows[LP_ROWS_PAST], keys = past + q + 1;
    size_t key_stride = (size_t)node->inputs[1]->cols, extra_stride = basis ? (size_t)node->inputs[4]->cols : 0;
    size_t extra_from = (size_t)q * node->attributes.heads * extra + (size_t)number * extra;
    real *out = OUTPUT(0) + (size_t)q * all + from;
    real *reflected_query = (real *)(void *)run->scratch, *scores = reflected_query + extra, largest = 0, sum = 0;
    if (basis)
        memcpy(reflected_query, time_query + extra_from, (size_t)extra * sizeof *reflected_query);
    if (query_time)
        reflect(reflected_query, query_time + (size_t)q * extra, reflected_query, extra);
    for (int i = 0; i < keys; i++) {
        real score = dot(query + (size_t)q * all + from, key + column * key_stride, key_stride, i, cols);
        if (basis)
            score += dot(reflected_query, transposed, extra_stride, i, extra);
        scores[i] = (real)node->attributes.scale * score;
        largest = i == 0 || scores[i] > largest ? scores[i] : largest;
    }
    for (int i = 0; i < keys; i++)
        sum += scores[i] = (real)exp((double)(scores[i] - largest));
    memset(out, 0, (size_t)cols * sizeof *out);
    for (int i = 0; i < keys; i++)
        add_scaled(out, scores[i] / sum, value + (i - past) * (ptrdiff_t)width + column, cols);
    if (!basis)
        return;
    real *time_out = OUTPUT(1) + extra_from;
    memset(time_out, 0, (size_t)extra * sizeof *time_out);
    for (int i = 0; i < keys; i++)
        add_scaled(time_out, scores[i] / sum, basis + (i - past) * (ptrdiff_t)extra, extra);
    if (query_time)
        reflect(time_out, query_time + (size_t)q * extra, time_out, extra);
}

void LP_REFERENCE(attention_cached)(const lp_node *node, const lp_run *run)
{
    for (int number = 0; number < node->attributes.heads; number++)
        for (int q = 0; q < run->rows[LP_ROWS_TOKENS]; q++)
            cached_query(node, run, number, q);
}
