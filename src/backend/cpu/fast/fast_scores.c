/* fast_scores.c: scores of items for states, and how many of them reach a mark: the two loops of a ranking. */
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
