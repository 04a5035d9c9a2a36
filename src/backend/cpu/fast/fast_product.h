/* fast_product.h: small matrix products. */
#ifndef LP_FAST_PRODUCT_H
#define LP_FAST_PRODUCT_H

#include "backend/cpu/fast/fast.h"

/* A tile of FAST_ROWS x FAST_VECTORS accumulators and its operands fill the registers of each instruction set. */
#if defined(__AVX512F__)
enum { FAST_WIDTH = 16, FAST_ROWS = 8, FAST_VECTORS = 3 };
#elif defined(__AVX__)
enum { FAST_WIDTH = 8, FAST_ROWS = 6, FAST_VECTORS = 2 };
#elif defined(__aarch64__)
enum { FAST_WIDTH = 4, FAST_ROWS = 8, FAST_VECTORS = 3 };
#else
enum { FAST_WIDTH = 4, FAST_ROWS = 6, FAST_VECTORS = 2 };
#endif

/* A row-major matrix with rows `stride` elements apart; transposed: its transpose is used. */
typedef struct matrix {
    const float *data;
    int stride;
    bool transposed;
} matrix;

/* c [m x n] = alpha * a [m x k] * b [k x n], or c += if `add`. If k is 0 the product is 0. */
void LP_FAST(product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride);
#define fast_product LP_FAST(product)

/* c [m x n] = base [m x n] + a b; the stride of base may be 0 (one row for all); base must not overlap c. */
void LP_FAST(product_onto)(int m, int n, int k, matrix a, matrix b, matrix base, float *c, int stride);
#define fast_product_onto LP_FAST(product_onto)

/* The factors of a product: a [m x k], b [k x n], which is not transposed. */
typedef struct product_terms {
    int k;
    matrix a, b;
} product_terms;

enum { FAST_TERMS = 2 };

/* c [m x n] = alpha * the sum of count <= FAST_TERMS products, or c += if `add`: one pass over c. */
void LP_FAST(product_sum)(int m, int n, float alpha, int count, const product_terms *terms, bool add, float *c,
                          int stride);
#define fast_product_sum LP_FAST(product_sum)

/* c [m x n] = base [m x n] + alpha * a b, each row with the bits that fast_row_times gives it alone, or for fewer than a vector of
 * columns fast_product; base.data may be NULL or c. */
void LP_FAST(product_rows)(int m, int n, int k, float alpha, matrix a, matrix b, matrix base, float *c, int stride);
#define fast_product_rows LP_FAST(product_rows)

/* fast_product without BLAS: the bits of an element depend only on its row of a and its column of b, not on the sizes of the
 * product or the position of the element. */
void LP_FAST(tiled_product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride);
#define fast_tiled_product LP_FAST(tiled_product)

/* c [n] = alpha * a [k] * (b [n x k])^T, or c += if `add`: n dot products. */
void LP_FAST(row_product)(int n, int k, float alpha, const float *a, const float *b, size_t stride, bool add, float *c);
#define fast_row_product LP_FAST(row_product)

/* c [n] = base [n] + alpha * a [k] * b [k x n]; base may be c or NULL. Returns false, doing nothing, if n is too small. */
bool LP_FAST(row_times)(int n, int k, float alpha, const float *a, const float *b, size_t stride, const float *base,
                        float *c);
#define fast_row_times LP_FAST(row_times)

/* c [m x n] = alpha * a [m x k] b [k x n], or c += if `add`, with the bits of fast_product_rows, where b is transposed: its columns are
 * keys. Writes whole vectors of c. */
void LP_FAST(key_scores)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride);
#define fast_key_scores LP_FAST(key_scores)

/* out [cols x out_stride] = transpose of in [rows x cols] */
void LP_FAST(transpose)(int rows, int cols, const float *in, int in_stride, float *out, int out_stride);
#define fast_transpose LP_FAST(transpose)

#endif
