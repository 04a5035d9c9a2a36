/* fast_convolution.c: convolutions over the tokens of packed sequences, row by row: the columns of a row are the vector. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

/* A segment's tokens are begin .. end - 1. */
#define FOR_EACH_SEGMENT \
    for (int s = 0, begin, end; s < run->segments && (begin = run->segment[s], end = run->segment[s + 1], 1); s++)

static void add_row(float *restrict to, const float *restrict from, float scale, int count)
{
#pragma omp simd
    for (int i = 0; i < count; i++)
        to[i] += scale * from[i];
}

/* Clears a row unless the output accumulates. */
static void begin_row(float *row, int count, bool added)
{
    if (!added)
        memset(row, 0, (size_t)count * sizeof *row);
}

void LP_FAST(fold)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *bias = INPUT(1); /* [T x height*a], [a] */
    float *y = OUTPUT(0);                        /* [T x a] */
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++) {
        float *row = y + (size_t)t * cols;
        begin_row(row, cols, ADDED(0));
        if (bias)
            add_row(row, bias, 1, cols);
        for (int m = 0; m < height && t - m >= begin; m++)
            add_row(row, x + ((size_t)(t - m) * height + m) * cols, 1, cols);
    }
}

void LP_FAST(unfold)(const lp_node *node, const lp_run *run)
{
    const float *dy = INPUT(0); /* [T x a] */
    float *dx = OUTPUT(0);      /* [T x height*a] */
    int height = node->attributes.height, cols = node->inputs[0]->cols;
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++) {
        float *rows = dx + (size_t)t * height * cols;
        int inside = end - t < height ? end - t : height;
        begin_row(rows, height * cols, ADDED(0));
        /* Row t + m of dy goes to tap m: consecutive rows on both sides. */
        add_row(rows, dy + (size_t)t * cols, 1, inside * cols);
    }
}

void LP_FAST(max_rows)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0); /* [T x a] */
    float *y = OUTPUT(0);      /* [T x a] */
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    bool added = ADDED(0);
    enum { MOST = 256 };
    float most[MOST];
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++)
        for (int first = 0; first < cols; first += MOST) {
            int count = cols - first < MOST ? cols - first : MOST;
            const float *row = x + (size_t)t * cols + first;
            float *out = y + (size_t)t * cols + first;
            memcpy(most, row, (size_t)count * sizeof *most);
            for (int m = 1; m < height && t - m >= begin; m++) {
                const float *other = row - (size_t)m * cols;
#pragma omp simd
                for (int c = 0; c < count; c++)
                    most[c] = other[c] > most[c] ? other[c] : most[c];
            }
#pragma omp simd
            for (int c = 0; c < count; c++)
                out[c] = added ? out[c] + most[c] : most[c];
        }
}

void LP_FAST(max_rows_gradient)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *y = INPUT(1), *dy = INPUT(2);
    float *dx = OUTPUT(0);
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    enum { MOST = 256 };
    float alive[MOST]; /* 1 where no newer row of the window is at least as large */
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++)
        for (int first = 0; first < cols; first += MOST) {
            int count = cols - first < MOST ? cols - first : MOST;
            size_t at = (size_t)t * cols + first;
            float *out = dx + at;
            begin_row(out, count, ADDED(0));
            for (int c = 0; c < count; c++)
                alive[c] = 1;
            for (int m = 0; m < height && t + m < end; m++) {
                size_t later = at + (size_t)m * cols;
#pragma omp simd
                for (int c = 0; c < count; c++) {
                    alive[c] = m > 0 && x[later + c] >= x[at + c] ? 0 : alive[c];
                    out[c] += y[later + c] == x[at + c] ? alive[c] * dy[later + c] : 0;
                }
            }
        }
}

void LP_FAST(vertical_conv)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1); /* [T x a], [filters x height] */
    float *y = OUTPUT(0);                          /* [T x filters*a] */
    int height = node->attributes.height, cols = node->inputs[0]->cols, filters = node->inputs[1]->cols / height;
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++)
        for (int j = 0; j < filters; j++) {
            float *row = y + ((size_t)t * filters + j) * cols;
            begin_row(row, cols, ADDED(0));
            for (int m = 0; m < height && t - m >= begin; m++)
                add_row(row, x + (size_t)(t - m) * cols, weight[j * height + m], cols);
        }
}

void LP_FAST(vertical_conv_gradient)(const lp_node *node, const lp_run *run)
{
    const float *weight = INPUT(0), *dy = INPUT(1);
    float *dx = OUTPUT(0);
    int height = node->attributes.height, cols = node->outputs[0]->cols, filters = node->inputs[0]->cols / height;
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++) {
        float *row = dx + (size_t)t * cols;
        begin_row(row, cols, ADDED(0));
        for (int m = 0; m < height && t + m < end; m++)
            for (int j = 0; j < filters; j++)
                add_row(row, dy + ((size_t)(t + m) * filters + j) * cols, weight[j * height + m], cols);
    }
}

void LP_FAST(vertical_conv_products)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *dy = INPUT(1);
    float *products = OUTPUT(0); /* [T x filters*height] */
    int height = node->attributes.height, cols = node->inputs[0]->cols, filters = node->outputs[0]->cols / height;
    FOR_EACH_SEGMENT
    for (int t = begin; t < end; t++)
        for (int j = 0; j < filters; j++)
            for (int m = 0; m < height; m++)
                products[((size_t)t * filters + j) * height + m] =
                    t - m >= begin ? fast_dot(x + (size_t)(t - m) * cols, dy + ((size_t)t * filters + j) * cols, cols)
                                   : 0;
}
