/* reference_recall.c: plain attention over kept keys and values and those of now. */
#include "backend/cpu/reference/reference.h"

#include <string.h>

/* Row i of what was and is: the first `past` rows lie in before, the rest in now. */
static const real *row_of(const real *before, const real *now, int past, int i, int cols)
{
    return i < past ? before + (size_t)i * cols : now + (size_t)(i - past) * cols;
}

static real dot(const real *a, const real *b, int count)
{
    real sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(real *to, real factor, const real *from, int count)
{
    for (int i = 0; i < count; i++)
        to[i] += factor * from[i];
}

static void recall_query(const lp_node *node, const lp_run *run, int number, int q)
{
    const real *query = INPUT(0), *key = INPUT(1), *value = INPUT(2), *time_query = INPUT(3), *basis = INPUT(4);
    const real *past_key = INPUT(5), *past_value = INPUT(6), *past_basis = INPUT(7);
    int all = node->inputs[0]->cols, cols = all / node->with.heads, from = number * cols;
    int extra = basis ? node->inputs[4]->cols : 0, past = run->rows[LP_ROWS_PAST], keys = past + q + 1;
    real *out = OUTPUT(0) + (size_t)q * all + from;
    size_t extra_from = (size_t)q * node->with.heads * extra + (size_t)number * extra;
    real *scores = (real *)(void *)run->scratch, largest = 0, sum = 0;
    for (int i = 0; i < keys; i++) {
        real score = dot(query + (size_t)q * all + from, row_of(past_key, key, past, i, all) + from, cols);
        if (basis)
            score += dot(time_query + extra_from, row_of(past_basis, basis, past, i, extra), extra);
        scores[i] = (real)node->with.scale * score;
        largest = i == 0 || scores[i] > largest ? scores[i] : largest;
    }
    for (int i = 0; i < keys; i++)
        sum += scores[i] = (real)exp((double)(scores[i] - largest));
    memset(out, 0, (size_t)cols * sizeof *out);
    for (int i = 0; i < keys; i++)
        add_scaled(out, scores[i] / sum, row_of(past_value, value, past, i, all) + from, cols);
    if (!basis)
        return;
    real *time_out = OUTPUT(1) + extra_from;
    memset(time_out, 0, (size_t)extra * sizeof *time_out);
    for (int i = 0; i < keys; i++)
        add_scaled(time_out, scores[i] / sum, row_of(past_basis, basis, past, i, extra), extra);
}

void LP_REFERENCE(recall)(const lp_node *node, const lp_run *run)
{
    for (int number = 0; number < node->with.heads; number++)
        for (int q = 0; q < run->rows[LP_ROWS_TOKENS]; q++)
            recall_query(node, run, number, q);
}
