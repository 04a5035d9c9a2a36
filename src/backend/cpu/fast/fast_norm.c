/* fast_norm.c: layer norm: kernels that sum over the columns of a row. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

#include <math.h>
#include <string.h>

static void norm_row(const float *row, const float *gain, const float *shift, int cols, double epsilon, float *out,
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
        out[c] = (row[c] - mean) * inverse * gain[c] + shift[c];
    moments[0] = mean;
    moments[1] = inverse;
}

#ifdef __AVX512F__
/* Columns of a row as whole lanes. The last ones are lanes that end with the row and begin among those before, which `fresh`
 * leaves out of sums. */
typedef struct layout {
    int whole, last;  /* columns that are whole lanes, without the last ones; where the last lanes begin */
    fast_lanes fresh; /* 1 where the last lanes hold columns of their own, otherwise 0 */
} layout;

static layout layout_of(int cols)
{
    layout l = {.whole = (cols - 1) / FAST_LANES * FAST_LANES, .last = cols - FAST_LANES};
    for (int i = 0; i < FAST_LANES; i++)
        l.fresh[i] = l.last + i >= l.whole ? 1 : 0;
    return l;
}

#define LANES_AT(row, c) (*(const fast_lanes *)((row) + (c)))

static inline void norm_lanes(const float *restrict row, const float *restrict gain, const float *restrict shift,
                              const layout *l, int cols, double epsilon, float *restrict out, float *restrict moments)
{
    fast_lanes sum = l->fresh * LANES_AT(row, l->last), squares, centred;
    for (int c = 0; c < l->whole; c += FAST_LANES)
        sum += LANES_AT(row, c);
    float mean = fast_lanes_sum(&sum) / (float)cols;
    centred = l->fresh * (LANES_AT(row, l->last) - mean);
    squares = centred * centred;
    for (int c = 0; c < l->whole; c += FAST_LANES) {
        centred = LANES_AT(row, c) - mean;
        squares += centred * centred;
    }
    float inverse = (float)(1 / sqrt((double)(fast_lanes_sum(&squares) / (float)cols) + epsilon));
    for (int c = 0; c < l->whole; c += FAST_LANES)
        *(fast_lanes *)(out + c) = (LANES_AT(row, c) - mean) * inverse * LANES_AT(gain, c) + LANES_AT(shift, c);
    *(fast_lanes *)(out + l->last) =
        (LANES_AT(row, l->last) - mean) * inverse * LANES_AT(gain, l->last) + LANES_AT(shift, l->last);
    moments[0] = mean;
    moments[1] = inverse;
}

/* The same for rows of a vector or more; returns the rows done. */
static int norm_wide(const lp_node *node, int rows, int cols, const float *x, const float *gain, const float *shift,
                     float *y, float *moments)
{
    if (cols < FAST_LANES)
        return 0;
    layout l = layout_of(cols);
    for (int t = 0; t < rows; t++)
        norm_lanes(x + (size_t)t * cols, gain, shift, &l, cols, node->with.epsilon, y + (size_t)t * cols,
                   moments + 2 * t);
    return rows;
}
#else
/* Narrower vectors leave few columns over, and are better left to the compiler. */
static int norm_wide(const lp_node *node, int rows, int cols, const float *x, const float *gain, const float *shift,
                     float *y, float *moments)
{
    (void)node, (void)rows, (void)cols, (void)x, (void)gain, (void)shift, (void)y, (void)moments;
    return 0;
}
#endif

void LP_FAST(layer_norm)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *gain = INPUT(1), *shift = INPUT(2); /* [T x cols], [cols], [cols] */
    float *y = OUTPUT(0), *moments = OUTPUT(1);                     /* [T x cols], [T x 2] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = norm_wide(node, rows, cols, x, gain, shift, y, moments); t < rows; t++)
        norm_row(x + (size_t)t * cols, gain, shift, cols, node->with.epsilon, y + (size_t)t * cols, moments + 2 * t);
}

static void norm_row_gradient(const float *row, const float *drow, const float *gain, const float *moments, float *dx,
                              bool added, int cols)
{
    float mean = moments[0], inverse = moments[1], sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (int c = 0; c < cols; c++) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * gain[c];
        sum += g;
        dot += g * normal;
    }
    sum /= (float)cols;
    dot /= (float)cols;
#pragma omp simd
    for (int c = 0; c < cols; c++) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * gain[c];
        float amount = inverse * (g - sum - normal * dot);
        dx[c] = added ? dx[c] + amount : amount;
    }
}

void LP_FAST(layer_norm_gradient)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *gain = INPUT(1), *moments = INPUT(2), *dy = INPUT(3);
    float *dx = OUTPUT(0), *dgain = OUTPUT(1), *dshift = OUTPUT(2);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (dgain && !ADDED(1))
        memset(dgain, 0, (size_t)cols * sizeof *dgain);
    if (dshift && !ADDED(2))
        memset(dshift, 0, (size_t)cols * sizeof *dshift);
    for (int t = 0; t < rows; t++) {
        const float *row = x + (size_t)t * cols, *drow = dy + (size_t)t * cols;
        float mean = moments[2 * t], inverse = moments[2 * t + 1];
        if (dgain) {
#pragma omp simd
            for (int c = 0; c < cols; c++)
                dgain[c] += drow[c] * ((row[c] - mean) * inverse);
        }
        if (dshift) {
#pragma omp simd
            for (int c = 0; c < cols; c++)
                dshift[c] += drow[c];
        }
        if (dx)
            norm_row_gradient(row, drow, gain, moments + 2 * t, dx + (size_t)t * cols, ADDED(0), cols);
    }
}
