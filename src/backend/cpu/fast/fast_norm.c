/* fast_norm.c: layer norm: kernels that sum over the columns of a row. */
#include "backend/cpu/fast/fast.h"

#include <math.h>
#include <string.h>

void LP_FAST(layer_norm)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *gain = INPUT(1), *shift = INPUT(2); /* [T x cols], [cols], [cols] */
    float *y = OUTPUT(0), *moments = OUTPUT(1);                     /* [T x cols], [T x 2] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        const float *row = x + (size_t)t * cols;
        float *out = y + (size_t)t * cols;
        float mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
        for (int c = 0; c < cols; c++)
            mean += row[c];
        mean /= (float)cols;
#pragma omp simd reduction(+ : variance)
        for (int c = 0; c < cols; c++)
            variance += (row[c] - mean) * (row[c] - mean);
        float inverse = (float)(1 / sqrt((double)(variance / (float)cols) + node->with.epsilon));
#pragma omp simd
        for (int c = 0; c < cols; c++)
            out[c] = (row[c] - mean) * inverse * gain[c] + shift[c];
        moments[2 * t] = mean;
        moments[2 * t + 1] = inverse;
    }
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
