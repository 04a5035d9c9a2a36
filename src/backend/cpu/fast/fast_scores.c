/* fast_scores.c: ranking kernels: catalogue scores, counts above a threshold, log-sum-exp. */
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

typedef float real;
#include "formula/score.h"

#include <string.h>

float LP_FAST(distance)(lp_score_rule rule, const float *z, const float *item, int count)
{
    float sum = 0;
    if (rule == LP_SCORE_L2)
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < count; i++)
            sum += lp_score_term(LP_SCORE_L2, z[i], item[i]);
    else
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < count; i++)
            sum += lp_score_term(LP_SCORE_L1, z[i], item[i]);
    return sum;
}

void LP_FAST(distances)(lp_score_rule rule, int cases, int items, int dims, const float *state, const float *table,
                        const float *bias, float *scores)
{
    for (int c = 0; c < cases; c++)
        for (int i = 0; i < items; i++)
            scores[(size_t)c * (size_t)items + (size_t)i] =
                (bias ? bias[i] : 0) +
                fast_distance(rule, state + (size_t)c * (size_t)dims, table + (size_t)i * (size_t)dims, dims);
}

void LP_FAST(scores)(int cases, int items, int dims, const float *state, const float *table, const float *bias,
                     float *scores)
{
    for (int c = 0; c < cases; c++) {
        float *row = scores + (size_t)c * (size_t)items;
        if (bias)
            memcpy(row, bias, (size_t)items * sizeof *row);
        else
            memset(row, 0, (size_t)items * sizeof *row);
    }
    fast_tiled_product(cases, items, dims, 1, (matrix){state, dims, false}, (matrix){table, dims, true}, true, scores,
                       items);
}

int LP_FAST(count_at_least)(int count, const float *scores, float threshold)
{
    int found = 0;
#pragma omp simd reduction(+ : found)
    for (int i = 0; i < count; i++)
        found += !(scores[i] < threshold);
    return found;
}

void LP_FAST(row_scores)(int items, int dims, const float *state, const float *table, const float *bias, float *scores)
{
    if (bias)
        memcpy(scores, bias, (size_t)items * sizeof *scores);
    fast_row_product(items, dims, 1, state, table, (size_t)dims, bias != NULL, scores);
}

void LP_FAST(transposed_scores)(int items, int dims, const float *state, const float *transposed, size_t stride,
                                const float *bias, float *scores)
{
    if (fast_row_times(items, dims, 1, state, transposed, stride, bias, scores))
        return;
    for (int i = 0; i < items; i++) {
        scores[i] = bias ? bias[i] : 0;
        for (int c = 0; c < dims; c++)
            scores[i] += state[c] * transposed[(size_t)c * stride + (size_t)i];
    }
}

void LP_FAST(many_scores)(int cases, int items, int dims, const float *state, const float *table,
                          const float *transposed, size_t stride, const float *bias, float *scores)
{
    enum { TILE = 512 }; /* items; whole vectors, so that the order of a sum does not depend on the tile */
    if (transposed && items >= FAST_WIDTH) {
        fast_product_rows(cases, items, dims, 1, (matrix){state, dims, false}, (matrix){transposed, (int)stride, false},
                          (matrix){bias, 0, false}, scores, items);
        return;
    }
    for (int first = 0; first < items; first += TILE) {
        int count = items - first < TILE ? items - first : TILE;
        for (int c = 0; c < cases; c++) {
            const float *one = state + (size_t)c * (size_t)dims, *from = bias ? bias + first : NULL;
            float *to = scores + (size_t)c * (size_t)items + first;
            if (transposed)
                LP_FAST(transposed_scores)(count, dims, one, transposed + first, stride, from, to);
            else
                LP_FAST(row_scores)(count, dims, one, table + (size_t)first * (size_t)dims, from, to);
        }
    }
}

double LP_FAST(log_sum)(int count, const float *scores)
{
    float largest = scores[0];
#pragma omp simd reduction(max : largest)
    for (int i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; i++)
        sum += fast_exp_double((double)scores[i] - (double)largest);
    return (double)largest + log(sum);
}

void LP_FAST(largest)(int count, const float *scores, float *largest)
{
    enum { WIDE = LP_SCORE_BLOCK / FAST_LANES };
    for (int from = 0; from < count; from += LP_SCORE_BLOCK, largest++) {
        int size = count - from < LP_SCORE_BLOCK ? count - from : LP_SCORE_BLOCK, i = 0;
        fast_lanes most[WIDE];
        for (int w = 0; w < WIDE; w++)
            FAST_EACH_PART(k)
        most[w].part[k] = (fast_part){0} - (float)INFINITY;
        for (; i + FAST_LANES <= size; i += FAST_LANES)
            FAST_EACH_PART(k)
        most[i / FAST_LANES].part[k] =
            fast_part_max(*(const fast_part *)(scores + from + i + k * FAST_PART), most[i / FAST_LANES].part[k]);
        for (int w = 1; w < WIDE; w++)
            FAST_EACH_PART(k)
        most[0].part[k] = fast_part_max(most[w].part[k], most[0].part[k]);
        float top = fast_lanes_max(&most[0]);
        for (; i < size; i++)
            top = scores[from + i] > top ? scores[from + i] : top;
        *largest = top;
    }
}

int LP_FAST(find_at_least)(int count, const float *scores, float limit, int32_t *index)
{
    int found = 0, i = 0;
    for (; i + FAST_PART <= count; i += FAST_PART)
        for (unsigned bits = fast_at_least(scores + i, limit); bits; bits &= bits - 1)
            index[found++] = i + __builtin_ctz(bits);
    for (; i < count; i++)
        if (scores[i] >= limit)
            index[found++] = i;
    return found;
}
