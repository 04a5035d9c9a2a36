/* fast_product.c: matrix products of the sizes a shard has: a few hundred rows, tens of columns.
 *
 * There a BLAS spends much of its time on packing, on transposed sides and on odd edges; these few loops keep a tile of
 * the result in registers and read both sides in place (docs/performance.md has the numbers). The right side is copied
 * only where it is transposed or ends within a vector. Large products go to BLAS, which blocks for all caches.
 *
 * Vectors are the compiler's own (vector_size), so the same lines serve every CPU.
 */
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

#include <cblas.h>
#include <string.h>

enum { LANES = FAST_WIDTH, ROWS = FAST_ROWS, VECTORS = FAST_VECTORS, HALF = LANES >= 16 ? LANES / 2 : LANES };

/* Terms summed at a time, so that a copied piece of the right side stays in the cache; and the most elements of a
 * matrix that this file is better at than BLAS. */
enum { DEPTH = 256, LARGE = 1 << 18 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));
typedef float half __attribute__((vector_size(HALF * sizeof(float)), aligned(4), may_alias));
typedef int32_t half_mask __attribute__((vector_size(HALF * sizeof(float))));

/* The loops over a tile must vanish, or its sums would live in memory. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL16 UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL16 _Pragma("GCC unroll 16")
#endif

/* One piece of a product: element (i, p) of the left side is a[i * row + p * step]. */
typedef struct piece {
    const float *a, *b;
    size_t row, step; /* of a */
    size_t b_stride, c_stride;
    float *c;
    int k;
    float alpha;
    const float
        *base; /* what the product is added to: c itself, other rows, one row for all (base_stride 0), or NULL */
    size_t base_stride;
    int overlap; /* lanes of an edge's vector that the tile before it has already added to c */
    bool alike;  /* every element is to be summed in the same order, whatever its place */
} piece;

/* What an edge adds: nothing in the lanes that overlap. */
static inline void hide_overlap(vector *amount, int overlap)
{
    mask keep;
    for (int l = 0; l < LANES; l++)
        keep[l] = l >= overlap ? -1 : 0;
    *amount = (vector)((mask)*amount & keep);
}

/* c [rows x vectors * LANES], and where it begins in the base; inlined with constant rows and vectors, so that the sums stay in
 * registers. */
static inline __attribute__((always_inline)) void tile(const piece *x, const float *a, const float *base, float *c,
                                                       int rows, int vectors)
{
    vector sum[ROWS][VECTORS];
    const float *b = x->b;
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (vector){0};
    }
    for (int p = 0; p < x->k; p++, a += x->step, b += x->b_stride) {
        vector right[VECTORS];
        UNROLL
        for (int j = 0; j < vectors; j++)
            right[j] = *(const vector *)(b + j * LANES);
        UNROLL
        for (int i = 0; i < rows; i++) {
            float left = a[i * x->row];
            UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] += left * right[j];
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++) {
            vector *to = (vector *)(c + i * x->c_stride + j * LANES), amount = x->alpha * sum[i][j];
            if (x->overlap)
                hide_overlap(&amount, x->overlap);
            if (base)
                amount += *(const vector *)(base + i * x->base_stride + j * LANES);
            *to = amount;
        }
    }
}

static inline __attribute__((always_inline)) void rows_of_tiles(const piece *x, int m, int vectors)
{
    const float *a = x->a, *base = x->base;
    float *c = x->c;
    while (m > 0) {
        int rows = m >= ROWS ? ROWS : m >= 4 ? 4 : m >= 2 ? 2 : 1;
        if (rows == ROWS)
            tile(x, a, base, c, ROWS, vectors);
        else if (rows == 4)
            tile(x, a, base, c, 4, vectors);
        else if (rows == 2)
            tile(x, a, base, c, 2, vectors);
        else
            tile(x, a, base, c, 1, vectors);
        a += rows * x->row;
        c += rows * x->c_stride;
        if (base)
            base += rows * x->base_stride;
        m -= rows;
    }
}

/* The same for one vector of half the width, where vectors are so wide that a CPU may take half of one in half the time: few
 * columns left over cost that much less. */
static inline __attribute__((always_inline)) void half_tile(const piece *x, const float *a, const float *base, float *c,
                                                            int rows)
{
    half sum[ROWS];
    const float *b = x->b;
    UNROLL
    for (int i = 0; i < rows; i++)
        sum[i] = (half){0};
    for (int p = 0; p < x->k; p++, a += x->step, b += x->b_stride) {
        half right = *(const half *)b;
        UNROLL
        for (int i = 0; i < rows; i++)
            sum[i] += a[i * x->row] * right;
    }
    half_mask keep;
    for (int l = 0; l < HALF; l++)
        keep[l] = l >= x->overlap ? -1 : 0;
    UNROLL
    for (int i = 0; i < rows; i++) {
        half amount = x->alpha * sum[i];
        if (x->overlap)
            amount = (half)((half_mask)amount & keep);
        if (base)
            amount += *(const half *)(base + i * x->base_stride);
        *(half *)(c + i * x->c_stride) = amount;
    }
}

static void half_strip(const piece *x, int m)
{
    const float *a = x->a, *base = x->base;
    float *c = x->c;
    while (m > 0) {
        int rows = m >= ROWS ? ROWS : m >= 4 ? 4 : 1;
        if (rows == ROWS)
            half_tile(x, a, base, c, ROWS);
        else if (rows == 4)
            half_tile(x, a, base, c, 4);
        else
            half_tile(x, a, base, c, 1);
        a += rows * x->row;
        c += rows * x->c_stride;
        if (base)
            base += rows * x->base_stride;
        m -= rows;
    }
}

#ifdef __AVX512F__
/* A few columns left over, of rows that lie in place: dot products along the terms, sixteen of them at a time, which are
 * brought together as one vector. A vector along the columns would be mostly empty. */
enum { THIN = 4 };

/* The columns of the right side, one behind the other. The last terms stand once more as a vector that ends with them,
 * with zeros for those that it shares with the one before. */
typedef struct thin_right {
    float terms[THIN][DEPTH + LANES];
    int whole, last; /* terms in vectors before the last one; where that begins in a row of the left side */
} thin_right;

static void gather_thin(const piece *x, int cols, thin_right *right)
{
    right->whole = (x->k - 1) / LANES * LANES;
    right->last = x->k - LANES;
    for (int j = 0; j < cols; j++) {
        float *terms = right->terms[j];
        for (int p = 0; p < right->whole; p++)
            terms[p] = x->b[(size_t)p * x->b_stride + (size_t)j];
        for (int l = 0; l < LANES; l++) {
            int p = right->last + l;
            terms[right->whole + l] = p >= right->whole ? x->b[(size_t)p * x->b_stride + (size_t)j] : 0;
        }
    }
}

/* Elements of `rows` x `cols`, sixteen in all. */
static inline __attribute__((always_inline)) vector thin_tile(const piece *x, const thin_right *right, const float *a,
                                                              int rows, int cols)
{
    vector sum[LANES];
    UNROLL16
    for (int i = 0; i < LANES; i++)
        sum[i] = (vector){0};
    for (int p = 0; p <= right->whole; p += LANES) {
        int at = p < right->whole ? p : right->last;
        vector terms[THIN];
        UNROLL
        for (int j = 0; j < cols; j++)
            terms[j] = *(const vector *)(right->terms[j] + p);
        UNROLL16
        for (int i = 0; i < rows; i++) {
            vector left = *(const vector *)(a + i * x->row + at);
            UNROLL
            for (int j = 0; j < cols; j++)
                sum[i * cols + j] += left * terms[j];
        }
    }
    return fast_lanes_sums(sum);
}

/* As many rows as fill tiles of rows x wide; returns them. Where c is not read, the last tile ends with the last row, and rows
 * that it shares with the one before are written twice alike. */
static inline __attribute__((always_inline)) int thin_rows(const piece *x, const thin_right *right, int m, int rows,
                                                           int wide, int cols)
{
    int done = 0;
    for (; done < m; done += rows) {
        if (done + rows > m && x->base == x->c)
            break;
        done = done + rows > m ? m - rows : done;
        float *c = x->c + (size_t)done * x->c_stride, sums[LANES];
        const float *base = x->base ? x->base + (size_t)done * x->base_stride : NULL;
        *(vector *)sums = x->alpha * thin_tile(x, right, x->a + (size_t)done * x->row, rows, wide);
        UNROLL16
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < cols; j++)
                c[i * x->c_stride + j] = sums[i * wide + j] + (base ? base[i * x->base_stride + j] : 0);
    }
    return done;
}

static int thin_strip(const piece *x, int m, int cols)
{
    thin_right right;
    int rows = cols > 2 ? 4 : LANES / cols;
    if (x->step != 1 || x->alike || x->k < LANES || cols > THIN || m < 2 * rows)
        return 0;
    gather_thin(x, cols, &right);
    if (cols == 3)
        memset(right.terms[3], 0, sizeof right.terms[3]);
    return cols == 1   ? thin_rows(x, &right, m, 16, 1, 1)
           : cols == 2 ? thin_rows(x, &right, m, 8, 2, 2)
                       : thin_rows(x, &right, m, 4, 4, cols);
}
#else
static int thin_strip(const piece *x, int m, int cols)
{
    (void)x, (void)m, (void)cols;
    return 0;
}
#endif

static void strip(const piece *x, int m, int vectors)
{
    if (vectors == 1)
        rows_of_tiles(x, m, 1);
    else if (vectors == 2)
        rows_of_tiles(x, m, 2);
    else
        rows_of_tiles(x, m, VECTORS);
}

/* The right side's `cols` columns, copied with zeros up to whole vectors. */
static void copy_right(piece *x, int cols, int width, bool transposed, float *copy)
{
    for (int p = 0; p < x->k && width > cols; p++)
        for (int c = width - LANES; c < width; c++)
            copy[p * width + c] = 0;
    if (transposed)
        fast_transpose(cols, x->k, x->b, (int)x->b_stride, copy, width);
    for (int p = 0; p < x->k && !transposed; p++)
        for (int c = 0; c < cols; c++)
            copy[p * width + c] = x->b[p * x->b_stride + (size_t)c];
    x->b = copy;
    x->b_stride = (size_t)width;
}

/* A result of less than a vector's columns, by way of a buffer. */
static void narrow(piece x, int m, int cols)
{
    float buffer[ROWS * LANES], *c = x.c;
    const float *base = x.base;
    size_t stride = x.c_stride;
    x.c = buffer;
    x.c_stride = LANES;
    x.base = NULL;
    for (int i = 0; i < m; i += ROWS) {
        int rows = m - i < ROWS ? m - i : ROWS;
        strip(&x, rows, 1);
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                float amount = buffer[r * LANES + k];
                c[(size_t)(i + r) * stride + (size_t)k] =
                    base ? base[(size_t)(i + r) * x.base_stride + (size_t)k] + amount : amount;
            }
        x.a += ROWS * x.row;
    }
}

/* `cols` columns of the result, less than VECTORS + 1 vectors, for x->k terms. Where whole vectors lie in place, x is handed
 * on as it is: a copy of it would have to wait for its parts to be written. */
static void column_strip(const piece *x, int m, int cols, bool transposed)
{
    float copy[DEPTH * (VECTORS + 1) * LANES];
    int full = cols / LANES, rest = cols - full * LANES, width = rest ? (full + 1) * LANES : cols;
    if (!transposed && !rest) {
        strip(x, m, full);
        return;
    }
    piece y = *x;
    if (transposed || !full)
        copy_right(&y, cols, width, transposed, copy);
    if (!full) {
        narrow(y, m, cols);
        return;
    }
    strip(&y, m, full);
    if (!rest)
        return;
    y.b += full * LANES;
    y.c += full * LANES;
    if (y.base)
        y.base += full * LANES;
    int done = thin_strip(&y, m, rest);
    if (done == m)
        return;
    /* The last columns as one more vector that ends with them and begins among those already done. */
    int last = rest <= HALF ? HALF : LANES;
    m -= done;
    y.a += (size_t)done * y.row;
    y.b -= last - rest;
    y.c += (size_t)done * y.c_stride - (size_t)(last - rest);
    if (y.base)
        y.base += (size_t)done * y.base_stride - (size_t)(last - rest);
    y.overlap = y.base == y.c ? last - rest : 0; /* where c is not read, columns are written twice alike */
    if (last == HALF)
        half_strip(&y, m);
    else
        strip(&y, m, 1);
}

static void clear(int m, int n, float *c, int stride)
{
    for (int i = 0; i < m; i++)
        memset(c + (size_t)i * stride, 0, (size_t)n * sizeof *c);
}

/* The base of a product in c. */
typedef struct product_base {
    const float *data; /* NULL: none */
    int stride;
} product_base;

static void tiled(int m, int n, int k, float alpha, matrix a, matrix b, product_base base, bool alike, float *c,
                  int stride)
{
    piece x = {.row = a.transposed ? 1 : (size_t)a.stride,
               .step = a.transposed ? (size_t)a.stride : 1,
               .b_stride = (size_t)b.stride,
               .c_stride = (size_t)stride,
               .alpha = alpha,
               .alike = alike};
    for (int p = 0; p < k; p += DEPTH) {
        x.k = k - p < DEPTH ? k - p : DEPTH;
        x.a = a.data + p * x.step;
        if (p > 0)
            base = (product_base){c, stride};
        for (int done = 0, cols; done < n; done += cols) {
            /* The last strip has at least a vector's columns, unless n has not; and two strips are of like width. */
            int left = n - done, most = VECTORS * LANES;
            cols = left < most + LANES ? left : left < most + 2 * LANES ? most - LANES : most;
            x.b = b.data + (b.transposed ? (size_t)done * b.stride + (size_t)p : (size_t)p * b.stride + (size_t)done);
            x.c = c + done;
            x.base = base.data ? base.data + done : NULL;
            x.base_stride = (size_t)base.stride;
            column_strip(&x, m, cols, b.transposed);
        }
    }
}

void LP_FAST(tiled_product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride)
{
    if (k == 0 && !add)
        clear(m, n, c, stride);
    tiled(m, n, k, alpha, a, b, (product_base){add ? c : NULL, stride}, true, c, stride);
}

static bool large(int m, int n, int k)
{
    return (size_t)m * (size_t)n > LARGE || (size_t)n * (size_t)k > LARGE || (size_t)m * (size_t)k > LARGE;
}

static void blas(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride)
{
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, m, n,
                k, alpha, a.data, a.stride, b.data, b.stride, add, c, stride);
}

void LP_FAST(product)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride)
{
    if (m == 0 || n == 0)
        return;
    if (m == 1 && b.transposed && !a.transposed)
        fast_row_product(n, k, alpha, a.data, b.data, (size_t)b.stride, add, c);
    else if (m == 1 && !a.transposed &&
             fast_row_times(n, k, alpha, a.data, b.data, (size_t)b.stride, add ? c : NULL, c))
        return;
    else if (large(m, n, k))
        blas(m, n, k, alpha, a, b, add, c, stride);
    else if (k > 0)
        tiled(m, n, k, alpha, a, b, (product_base){add ? c : NULL, stride}, false, c, stride);
    else if (!add)
        clear(m, n, c, stride);
}

void LP_FAST(product_onto)(int m, int n, int k, matrix a, matrix b, matrix base, float *c, int stride)
{
    if (m == 1 && !a.transposed && !b.transposed &&
        fast_row_times(n, k, 1, a.data, b.data, (size_t)b.stride, base.data, c))
        return;
    if (m > 0 && n > 0 && k > 0 && !large(m, n, k)) {
        tiled(m, n, k, 1, a, b, (product_base){base.data, base.stride}, false, c, stride);
        return;
    }
    for (int i = 0; i < m; i++)
        memcpy(c + (size_t)i * stride, base.data + (size_t)i * base.stride, (size_t)n * sizeof *c);
    fast_product(m, n, k, 1, a, b, true, c, stride);
}

/* ------------------------------------------------------------------------------------------------ turning ----- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void turn_four(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    four a = *(const four *)in, b = *(const four *)(in + in_stride);
    four c = *(const four *)(in + 2 * in_stride), d = *(const four *)(in + 3 * in_stride);
    four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5), AC = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    four bd = __builtin_shufflevector(b, d, 0, 4, 1, 5), BD = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    *(four *)out = __builtin_shufflevector(ac, bd, 0, 4, 1, 5);
    *(four *)(out + out_stride) = __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
    *(four *)(out + 2 * out_stride) = __builtin_shufflevector(AC, BD, 0, 4, 1, 5);
    *(four *)(out + 3 * out_stride) = __builtin_shufflevector(AC, BD, 2, 6, 3, 7);
}

void LP_FAST(transpose)(int rows, int cols, const float *in, int in_stride, float *out, int out_stride)
{
    int r = 0;
    for (; r + 4 <= rows; r += 4) {
        int c = 0;
        for (; c + 4 <= cols; c += 4)
            turn_four(in + (size_t)r * in_stride + c, (size_t)in_stride, out + (size_t)c * out_stride + r,
                      (size_t)out_stride);
        for (; c < cols; c++)
            for (int i = r; i < r + 4; i++)
                out[(size_t)c * out_stride + i] = in[(size_t)i * in_stride + c];
    }
    for (; r < rows; r++)
        for (int c = 0; c < cols; c++)
            out[(size_t)c * out_stride + r] = in[(size_t)r * in_stride + c];
}
