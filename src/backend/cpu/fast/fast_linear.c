/* fast_linear.c: linear layers and column reductions. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_product.h"
#include "base/assert.h"

#include <string.h>

/* y = bias + add, before the product accumulates onto it. */
static void fill(float *y, const float *bias, const float *add, int rows, int cols)
{
    for (int t = 0; t < rows; t++) {
        float *row = y + (size_t)t * cols;
        const float *other = add + (size_t)t * cols;
#pragma omp simd
        for (int c = 0; c < cols; c++)
            row[c] = bias[c] + other[c];
    }
}

void LP_FAST(linear)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2), *add = INPUT(3);
    float *y = OUTPUT(0);
    int heads = node->attributes.heads, a = node->inputs[1]->rows / heads, b = node->inputs[1]->cols;
    bool transpose = node->attributes.transpose;
    int in = transpose ? b : a, out = transpose ? a : b; /* columns per head */
    int rows = lp_run_rows(run, node->outputs[0]), stride = heads * out;
    LP_ASSERT(!(bias || add) || !ADDED(0)); /* gradients have neither */
    if (bias && add)
        fill(y, bias, add, rows, stride);
    const float *base = bias ? bias : add;
    for (int h = 0; h < heads; h++) {
        matrix left = {x + h * in, heads * in, false}, right = {weight + (size_t)h * a * b, b, transpose};
        if (run->rows_alone) {
            matrix under = {bias && add ? y + h * out : base ? base + h * out : NULL, bias && !add ? 0 : stride, false};
            fast_product_rows(rows, out, in, 1, left, right, under, y + h * out, stride);
        } else if (!bias != !add)
            fast_product_onto(rows, out, in, left, right, (matrix){base + h * out, bias ? 0 : stride, false},
                              y + h * out, stride);
        else
            fast_product(rows, out, in, 1, left, right, bias || ADDED(0), y + h * out, stride);
    }
}

/* y [cols] = column sums of x [rows x cols], or y += them if `added` */
static void sum_columns(float *y, const float *x, int rows, int cols, bool added)
{
    if (!added)
        memset(y, 0, (size_t)cols * sizeof *y);
    int t = 0;
    for (; t + 4 <= rows; t += 4) {
        const float *row = x + (size_t)t * cols;
#pragma omp simd
        for (int c = 0; c < cols; c++)
            y[c] += (row[c] + row[cols + c]) + (row[2 * cols + c] + row[3 * cols + c]);
    }
    for (; t < rows; t++) {
#pragma omp simd
        for (int c = 0; c < cols; c++)
            y[c] += x[(size_t)t * cols + c];
    }
}

void LP_FAST(linear_outer)(const lp_node *node, const lp_run *run)
{
    const float *p = INPUT(0), *q = INPUT(1); /* [T x H*a], [T x H*b] */
    float *out = OUTPUT(0);                   /* [H*a x b] */
    int heads = node->attributes.heads, a = node->outputs[0]->rows / heads, b = node->outputs[0]->cols;
    int rows = lp_run_rows(run, node->inputs[0]);
    for (int h = 0; h < heads; h++)
        fast_product(a, b, rows, 1, (matrix){p + h * a, heads * a, true}, (matrix){q + h * b, heads * b, false},
                     ADDED(0), out + (size_t)h * a * b, b);
    if (node->outputs[1])
        sum_columns(OUTPUT(1), node->attributes.transpose ? q : p, rows, node->outputs[1]->cols, ADDED(1));
}

void LP_FAST(column_sum)(const lp_node *node, const lp_run *run)
{
    sum_columns(OUTPUT(0), INPUT(0), lp_run_rows(run, node->inputs[0]), node->inputs[0]->cols, ADDED(0));
}

void LP_FAST(column_dot)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *z = INPUT(1); /* [rows x cols] */
    float *y = OUTPUT(0);                     /* [cols] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (!ADDED(0))
        memset(y, 0, (size_t)cols * sizeof *y);
    for (int t = 0; t < rows; t++) {
        const float *xs = x + (size_t)t * cols, *zs = z + (size_t)t * cols;
#pragma omp simd
        for (int c = 0; c < cols; c++)
            y[c] += xs[c] * zs[c];
    }
}

void LP_FAST(scale_columns)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *scale = INPUT(1); /* [rows x cols], [cols] */
    float *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    bool added = ADDED(0);
    for (int t = 0; t < rows; t++) {
        const float *xs = x + (size_t)t * cols;
        float *ys = y + (size_t)t * cols;
#pragma omp simd
        for (int c = 0; c < cols; c++)
            ys[c] = added ? ys[c] + xs[c] * scale[c] : xs[c] * scale[c];
    }
}
