/* fast_norm.c: layer normalization. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

#include <math.h>
#include <string.h>

static void norm_row(const float *row, const float *weight, const float *bias, int cols, double epsilon, float *out,
                     float *moments)
{
    float mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
    for (int c = 0; c < cols; c++)
        mean += row[c];
    mean /= (float)cols;
#pragma omp simd reduction(+ : variance)
    for (int c = 0; c < cols; c++)
        variance += (row[c] - mean) * (row[c] - mean);
    float inverse = (float)(1 / sqrt((double)(variance / (float)cols) + epsilon));
#pragma omp simd
    for (int c = 0; c < cols; c++)
        out[c] = (row[c] - mean) * inverse * weight[c] + bias[c];
    moments[0] = mean;
    moments[1] = inverse;
}

#ifdef __AVX512F__
/* A row as whole vectors. The last vector ends with the row and may overlap the one before; `fresh` masks the overlap. */
typedef struct layout {
    int whole, last; /* columns before the last vector's own; first column of the last vector */
    fast_part fresh; /* 1 in the last vector's own lanes, 0 in the overlap */
} layout;

static layout layout_of(int cols)
{
    layout l = {.whole = (cols - 1) / FAST_LANES * FAST_LANES, .last = cols - FAST_LANES};
    for (int i = 0; i < FAST_LANES; i++)
        l.fresh[i] = l.last + i >= l.whole ? 1 : 0;
    return l;
}

#define LANES_AT(row, c) (*(const fast_part *)((row) + (c)))

static inline void norm_lanes(const float *restrict row, const float *restrict weight, const float *restrict bias,
                              const layout *l, int cols, double epsilon, float *restrict out, float *restrict moments)
{
    fast_part sum = l->fresh * LANES_AT(row, l->last), squares, centred;
    for (int c = 0; c < l->whole; c += FAST_LANES)
        sum += LANES_AT(row, c);
    float mean = fast_lanes_sum(&(fast_lanes){{sum}}) / (float)cols;
    centred = l->fresh * (LANES_AT(row, l->last) - mean);
    squares = centred * centred;
    for (int c = 0; c < l->whole; c += FAST_LANES) {
        centred = LANES_AT(row, c) - mean;
        squares += centred * centred;
    }
    float inverse = (float)(1 / sqrt((double)(fast_lanes_sum(&(fast_lanes){{squares}}) / (float)cols) + epsilon));
    for (int c = 0; c < l->whole; c += FAST_LANES)
        *(fast_part *)(out + c) = (LANES_AT(row, c) - mean) * inverse * LANES_AT(weight, c) + LANES_AT(bias, c);
    *(fast_part *)(out + l->last) =
        (LANES_AT(row, l->last) - mean) * inverse * LANES_AT(weight, l->last) + LANES_AT(bias, l->last);
    moments[0] = mean;
    moments[1] = inverse;
}

/* The same for rows of at least one vector; returns the rows done. */
static int norm_wide(const lp_node *node, int rows, int cols, const float *x, const float *weight, const float *bias,
                     float *y, float *moments)
{
    if (cols < FAST_LANES)
        return 0;
    layout l = layout_of(cols);
    for (int t = 0; t < rows; t++)
        norm_lanes(x + (size_t)t * cols, weight, bias, &l, cols, node->attributes.epsilon, y + (size_t)t * cols,
                   moments + 2 * t);
    return rows;
}
#else
/* With narrower vectors the compiler's remainder loop is short enough. */
static int norm_wide(const lp_node *node, int rows, int cols, const float *x, const float *weight, const float *bias,
                     float *y, float *moments)
{
    (void)node, (void)rows, (void)cols, (void)x, (void)weight, (void)bias, (void)y, (void)moments;
    return 0;
}
#endif

void LP_FAST(layer_norm)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2); /* [T x cols], [cols], [cols] */
    float *y = OUTPUT(0), *moments = OUTPUT(1);                      /* [T x cols], [T x 2] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = norm_wide(node, rows, cols, x, weight, bias, y, moments); t < rows; t++)
        norm_row(x + (size_t)t * cols, weight, bias, cols, node->attributes.epsilon, y + (size_t)t * cols,
                 moments + 2 * t);
}

static void norm_row_gradient(const float *row, const float *drow, const float *weight, const float *moments, float *dx,
                              bool added, int cols)
{
    float mean = moments[0], inverse = moments[1], sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (int c = 0; c < cols; c++) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * weight[c];
        sum += g;
        dot += g * normal;
    }
    sum /= (float)cols;
    dot /= (float)cols;
#pragma omp simd
    for (int c = 0; c < cols; c++) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * weight[c];
        float amount = inverse * (g - sum - normal * dot);
        dx[c] = added ? dx[c] + amount : amount;
    }
}

void LP_FAST(layer_norm_gradient)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1), *moments = INPUT(2), *dy = INPUT(3);
    float *dx = OUTPUT(0), *dweight = OUTPUT(1), *dbias = OUTPUT(2);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (dweight && !ADDED(1))
        memset(dweight, 0, (size_t)cols * sizeof *dweight);
    if (dbias && !ADDED(2))
        memset(dbias, 0, (size_t)cols * sizeof *dbias);
    for (int t = 0; t < rows; t++) {
        const float *row = x + (size_t)t * cols, *drow = dy + (size_t)t * cols;
        float mean = moments[2 * t], inverse = moments[2 * t + 1];
        if (dweight) {
#pragma omp simd
            for (int c = 0; c < cols; c++)
                dweight[c] += drow[c] * ((row[c] - mean) * inverse);
        }
        if (dbias) {
#pragma omp simd
            for (int c = 0; c < cols; c++)
                dbias[c] += drow[c];
        }
        if (dx)
            norm_row_gradient(row, drow, weight, moments + 2 * t, dx + (size_t)t * cols, ADDED(0), cols);
    }
}
