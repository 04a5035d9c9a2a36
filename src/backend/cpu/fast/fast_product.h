/* fast_product.h: matrix products of the sizes a shard has. */
#ifndef LP_FAST_PRODUCT_H
#define LP_FAST_PRODUCT_H

#include "backend/cpu/fast/fast.h"

/* A tile of FAST_ROWS x FAST_VECTORS sums fills the registers of each event type of CPU and leaves room for the operands. */
#if defined(__AVX512F__)
enum { FAST_WIDTH = 16, FAST_ROWS = 8, FAST_VECTORS = 3 };
#elif defined(__AVX__)
enum { FAST_WIDTH = 8, FAST_ROWS = 6, FAST_VECTORS = 2 };
#elif defined(__aarch64__)
enum { FAST_WIDTH = 4, FAST_ROWS = 8, FAST_VECTORS = 3 };
#else
enum { FAST_WIDTH = 4, FAST_ROWS = 6, FAST_VECTORS = 2 };
#endif

/* A matrix stored by rows, `stride` elements apart; transposed: it is used on its side. */
typedef struct matrix {
    const float *data;
    int stride;
    bool transposed;
} matrix;

/* c [m x n] = alpha * a [m x k] * b [k x n], or with `add` c += that. Without terms (k = 0) the sum is 0. */
void LP_FAST(product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride);
#define fast_product LP_FAST(product)

/* c [m x n] = base [m x n] + a b; the base's stride may be 0, one row for all, and it must not overlap c. */
void LP_FAST(product_onto)(int m, int n, int k, matrix a, matrix b, matrix base, float *c, int stride);
#define fast_product_onto LP_FAST(product_onto)

/* fast_product, and never handed to BLAS: what an element comes to depends on its row of a and its column of b alone, not on
 * the sizes of the product or the element's place in it. */
void LP_FAST(tiled_product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride);
#define fast_tiled_product LP_FAST(tiled_product)

/* c [n] = alpha * a [k] * (b [n x k])^T, or with `add` c += that: one row, dot by dot. */
void LP_FAST(row_product)(int n, int k, float alpha, const float *a, const float *b, size_t stride, bool add, float *c);
#define fast_row_product LP_FAST(row_product)

/* c [n] = base [n] + alpha * a [k] * b [k x n]; the base may be c or NULL. False: so few columns are for others. */
bool LP_FAST(row_times)(int n, int k, float alpha, const float *a, const float *b, size_t stride, const float *base,
                        float *c);
#define fast_row_times LP_FAST(row_times)

/* out [cols x stride] = in [rows x cols] on its side. */
void LP_FAST(transpose)(int rows, int cols, const float *in, int in_stride, float *out, int out_stride);
#define fast_transpose LP_FAST(transpose)

#endif
