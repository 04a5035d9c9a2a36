/* fast_scores.c: scores of items for states, how many of them reach a mark, and what they sum up to: the loops of a ranking. */
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

#include <string.h>

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

int LP_FAST(reaching)(int count, const float *scores, float mark)
{
    int reached = 0;
#pragma omp simd reduction(+ : reached)
    for (int i = 0; i < count; i++)
        reached += !(scores[i] < mark);
    return reached;
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

/* Sums of a thousand in float, and of these in double. */
double LP_FAST(log_sum)(int count, const float *scores)
{
    enum { PIECE = 1024 };
    float largest = scores[0], powers[PIECE];
#pragma omp simd reduction(max : largest)
    for (int i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    double sum = 0;
    for (int done = 0; done < count; done += PIECE) {
        int size = count - done < PIECE ? count - done : PIECE, whole = size / FAST_LANES * FAST_LANES;
        sum += (double)fast_powers(scores + done, powers, whole, largest);
        for (int i = whole; i < size; i++)
            sum += (double)fast_exp(scores[done + i] - largest);
    }
    return (double)largest + log(sum);
}
