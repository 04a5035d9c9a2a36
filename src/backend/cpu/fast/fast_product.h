/* fast_product.h: matrix products. */
#ifndef LP_FAST_PRODUCT_H
#define LP_FAST_PRODUCT_H

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

/* A matrix stored by rows, `stride` elements apart. */
typedef struct matrix {
    const float *data;
    int stride;
    bool transposed;
} matrix;

/* c [m x n] = alpha * a [m x k] * b [k x n] + beta * c; beta is 0 or 1. Without terms (k = 0) the sum is 0. */
static inline void product(int m, int n, int k, float alpha, matrix a, matrix b, float beta, float *c, int stride)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (int i = 0; i < m && beta == 0; i++)
            memset(c + (size_t)i * stride, 0, (size_t)n * sizeof *c);
        return;
    }
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, m, n, k,
                alpha, a.data, a.stride, b.data, b.stride, beta, c, stride);
}

#endif
