/* fast_norm.c: layer norm and the loss: kernels that sum over the columns of a row. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

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

/* powers = exp(row - most) for the one vector at row; returns the sum of its lanes from `overlap` on. */
static float last_powers(const float *row, float *restrict powers, int overlap, float most)
{
    float own[FAST_LANES];
#pragma omp simd
    for (int l = 0; l < FAST_LANES; l++) {
        powers[l] = fast_exp(row[l] - most);
        own[l] = l >= overlap ? powers[l] : 0;
    }
    return fast_lanes_sum((const fast_lanes *)own);
}

/* powers[c] = exp(row[c] - largest); returns their sum. Short rows are the rule, so the last columns are a vector that
 * begins among those already done, or is padded where the row has less than one, and not a loop's remainder. */
static float row_powers(const float *row, int cols, float *restrict powers, float *largest)
{
    int full = cols / FAST_LANES * FAST_LANES, last = cols - FAST_LANES;
    if (!full) {
        float padded[FAST_LANES];
        for (int l = 0; l < FAST_LANES; l++)
            padded[l] = l < cols ? row[l] : -INFINITY;
        *largest = fast_largest(padded, FAST_LANES);
        return fast_powers(padded, powers, FAST_LANES, *largest);
    }
    float most = fast_largest(row, full), other = fast_largest(row + last, FAST_LANES);
    *largest = most = other > most ? other : most;
    float sum = fast_powers(row, powers, full, most);
    return full < cols ? sum + last_powers(row + last, powers + last, full - last, most) : sum;
}

void LP_FAST(cross_entropy)(const lp_node *node, const lp_run *run)
{
    const float *logits = INPUT(0), *weight = INPUT(2);        /* [T x C], [T] */
    const int32_t *target = lp_run_data(run, node->inputs[1]); /* [T] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    float *powers = (float *)(void *)run->scratch, largest;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        if (weight[t] == 0)
            continue;
        const float *row = logits + (size_t)t * cols;
        float sum = row_powers(row, cols, powers, &largest);
        loss += (double)weight[t] * (log((double)sum) + (double)(largest - row[target[t]]));
    }
    *OUTPUT(0) = (float)loss;
}

void LP_FAST(cross_entropy_gradient)(const lp_node *node, const lp_run *run)
{
    const float *logits = INPUT(0), *weight = INPUT(2), *dloss = INPUT(3);
    const int32_t *target = lp_run_data(run, node->inputs[1]);
    float *dlogits = OUTPUT(0), *powers = (float *)(void *)run->scratch, largest;
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    bool added = ADDED(0);
    for (int t = 0; t < rows; t++) {
        float *out = dlogits + (size_t)t * cols, scale = *dloss * weight[t];
        float share = scale / row_powers(logits + (size_t)t * cols, cols, powers, &largest);
#pragma omp simd
        for (int c = 0; c < cols; c++)
            out[c] = added ? out[c] + share * powers[c] : share * powers[c];
        out[target[t]] -= scale;
    }
}
