/* fast_product.c: small matrix products: a few hundred rows, tens of columns.
 *
 * At these sizes a BLAS spends much of its time on packing, transposed operands and edges. These kernels hold a tile of the
 * result in registers and read both operands without packing (measurements: docs/performance.md). The right operand is
 * copied only if it is transposed, ends within a vector, or its rows evict each other from the first cache. Large products
 * go to BLAS, which blocks for all caches.
 *
 * Vectors are GCC vector extensions (vector_size), so one source serves every instruction set.
 */
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

#include <cblas.h>
#include <string.h>

enum { LANES = FAST_WIDTH, ROWS = FAST_ROWS, VECTORS = FAST_VECTORS, HALF = LANES >= 16 ? LANES / 2 : LANES };

/* Terms per pass, so that a copied panel of the right operand stays in cache; and the number of elements above which BLAS is
 * faster. */
enum { DEPTH = 256, LARGE = 1 << 18 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));
typedef float half __attribute__((vector_size(HALF * sizeof(float)), aligned(4), may_alias));
typedef int32_t half_mask __attribute__((vector_size(HALF * sizeof(float))));

/* Tile loops must be fully unrolled, or the accumulators would spill. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL16 UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL16 _Pragma("GCC unroll 16")
#endif

/* A panel of a product: element (i, p) of the left operand is a[i * row + p * step]. */
typedef struct piece {
    const float *a, *b;
    size_t row, step; /* of a */
    size_t b_stride, c_stride;
    float *c;
    int k;
    float alpha;
    const float
        *base; /* the product is added to this: c itself, another matrix, one row for all (base_stride 0), or NULL */
    size_t base_stride;
    int overlap; /* lanes of an edge vector that the tile before has already added to c */
    bool alike;  /* the summation order of an element must not depend on its position */
    const struct piece
        *more; /* a second product, of which a, b, row, step, b_stride and k are added to this one; or NULL */
} piece;

/* Zeroes the overlapping lanes of an edge vector. */
static inline void hide_overlap(vector *amount, int overlap)
{
    mask keep;
    for (int l = 0; l < LANES; l++)
        keep[l] = l >= overlap ? -1 : 0;
    *amount = (vector)((mask)*amount & keep);
}

/* Computes c [rows x vectors * LANES]; inlined with constant rows and vectors, so that the accumulators stay in
 * registers. done: rows before a. */
static inline __attribute__((always_inline)) void tile(const piece *x, const float *a, const float *base, float *c,
                                                       int done, int rows, int vectors)
{
    vector sum[ROWS][VECTORS];
    const float *b = x->b;
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (vector){0};
    }
    for (const piece *y = x;;) {
        for (int p = 0; p < y->k; p++, a += y->step, b += y->b_stride) {
            vector right[VECTORS];
            UNROLL
            for (int j = 0; j < vectors; j++)
                right[j] = *(const vector *)(b + j * LANES);
            UNROLL
            for (int i = 0; i < rows; i++) {
                float left = a[i * y->row];
                UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] += left * right[j];
            }
        }
        if (!y->more)
            break;
        y = y->more;
        a = y->a + (size_t)done * y->row;
        b = y->b;
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
    for (int done = 0; m > 0;) {
        /* Eight rows are two tiles of four: one of two rows takes as long as one of four. */
        int rows = m >= ROWS && (ROWS != 6 || m != 8) ? ROWS : m >= 4 ? 4 : m >= 2 ? 2 : 1;
        if (rows == ROWS)
            tile(x, a, base, c, done, ROWS, vectors);
        else if (rows == 4)
            tile(x, a, base, c, done, 4, vectors);
        else if (rows == 2)
            tile(x, a, base, c, done, 2, vectors);
        else
            tile(x, a, base, c, done, 1, vectors);
        a += rows * x->row;
        c += rows * x->c_stride;
        if (base)
            base += rows * x->base_stride;
        done += rows;
        m -= rows;
    }
}

/* The same for one vector of half the width, which takes half the time on a CPU that splits the widest vectors: cheaper for
 * few remaining columns. */
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
/* At most THIN remaining columns, with unit-stride rows: sixteen dot products at a time, reduced into one vector. A vector
 * along the columns would be mostly empty. */
enum { THIN = 4 };

/* The columns of the right operand, contiguous. A last vector ends with the last term, with zeros where it overlaps the one
 * before. */
typedef struct thin_right {
    float terms[THIN][DEPTH + LANES];
    int whole, last; /* terms before the last vector's own; first term of the last vector */
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

/* A tile of rows x cols = 16 elements. */
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

/* Processes whole tiles of rows x wide; returns the rows done. If c is not read, the last tile ends with the last row, and
 * overlapping rows are written twice with the same values. */
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

/* Copies `cols` columns of the right operand, zero-padded to whole vectors. */
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

/* A result narrower than a vector, through a buffer. */
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

/* Whether the rows of a strip of the right operand map to so few sets of the first cache that they evict each other, and there are
 * enough rows on the left to pay for a copy. 64 sets of 8 lines of 64 bytes: CPUs have these or more. */
static bool evicts(const piece *x, int m)
{
    enum { SETS = 64, WAYS = 8, LINE = 16 };
    size_t lines = x->b_stride / LINE, sets = SETS;
    if (m < 20 * ROWS || x->b_stride % LINE)
        return false;
    for (; lines % 2 == 0 && sets > 1; lines /= 2)
        sets /= 2;
    return (size_t)x->k > sets * WAYS / 2;
}

/* `cols` columns of the result, less than VECTORS + 1 vectors, for x->k terms. Without edges x is passed on unchanged: a
 * copy of the struct would stall on store forwarding. */
static void column_strip(const piece *x, int m, int cols, bool transposed)
{
    float copy[DEPTH * (VECTORS + 1) * LANES];
    int full = cols / LANES, rest = cols - full * LANES, width = rest ? (full + 1) * LANES : cols;
    bool copied = transposed || !full || evicts(x, m);
    if (!copied && !rest) {
        strip(x, m, full);
        return;
    }
    piece y = *x;
    if (copied)
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
    /* The last columns as one more vector that ends with them and overlaps the one before. */
    int last = rest <= HALF ? HALF : LANES;
    m -= done;
    y.a += (size_t)done * y.row;
    y.b -= last - rest;
    y.c += (ptrdiff_t)((size_t)done * y.c_stride) - (last - rest);
    if (y.base)
        y.base += (ptrdiff_t)((size_t)done * y.base_stride) - (last - rest);
    y.overlap = y.base == y.c ? last - rest
                              : 0; /* if c is not read, overlapping columns are written twice with the same values */
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

/* The matrix that a product is added to. */
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
            /* Balances the last two strips, so that the last has at least one vector of columns if n has. */
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
    int threads = lp_cpu_blas_begin();
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, m, n,
                k, alpha, a.data, a.stride, b.data, b.stride, add, c, stride);
    lp_cpu_blas_end(threads);
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

/* Columns of x that do not fill a vector, which ends with them and overlaps those before: through a buffer, because c may be the
 * base. */
static void last_columns(piece x, int m, int cols)
{
    float buffer[ROWS * LANES], *c = x.c;
    const float *base = x.base;
    size_t stride = x.c_stride;
    x.c = buffer;
    x.c_stride = LANES;
    x.base = NULL;
    for (int i = 0; i < m; i += ROWS, x.a += ROWS * x.row) {
        int rows = m - i < ROWS ? m - i : ROWS;
        strip(&x, rows, 1);
        for (int r = 0; r < rows; r++)
            for (int l = LANES - cols; l < LANES; l++) {
                float amount = buffer[r * LANES + l];
                c[(size_t)(i + r) * stride + (size_t)l] =
                    base ? amount + base[(size_t)(i + r) * x.base_stride + (size_t)l] : amount;
            }
    }
}

void LP_FAST(product_rows)(int m, int n, int k, float alpha, matrix a, matrix b, matrix base, float *c, int stride)
{
    /* As fast_row_times: all terms in one pass, in order. */
    if (m == 1 && !b.transposed && !a.transposed &&
        fast_row_times(n, k, alpha, a.data, b.data, (size_t)b.stride, base.data, c))
        return;
    if (m == 1 || n < LANES || k == 0 || b.transposed || a.transposed) {
        for (int i = 0; i < m; i++) {
            matrix row = {a.data + (size_t)i * a.stride, a.stride, a.transposed};
            float *to = c + (size_t)i * stride;
            const float *under = base.data ? base.data + (size_t)i * base.stride : NULL;
            if (!under || under == to)
                fast_product(1, n, k, alpha, row, b, under != NULL, to, stride);
            else
                fast_product_onto(1, n, k, row, b, (matrix){under, base.stride, false}, to, stride);
        }
        return;
    }
    piece x = {.a = a.data,
               .b = b.data,
               .row = (size_t)a.stride,
               .step = 1,
               .b_stride = (size_t)b.stride,
               .c_stride = (size_t)stride,
               .c = c,
               .k = k,
               .alpha = alpha,
               .base = base.data,
               .base_stride = (size_t)base.stride};
    int whole = n / LANES;
    for (int done = 0, vectors; done < whole; done += vectors) {
        vectors = whole - done < VECTORS ? whole - done : VECTORS;
        strip(&x, m, vectors);
        x.b += vectors * LANES;
        x.c += vectors * LANES;
        if (x.base)
            x.base += vectors * LANES;
    }
    int rest = n - whole * LANES;
    if (rest == 0)
        return;
    x.b -= LANES - rest;
    x.c -= LANES - rest;
    if (x.base)
        x.base -= LANES - rest;
    last_columns(x, m, rest);
}

void LP_FAST(product_sum)(int m, int n, float alpha, int count, const product_terms *terms, bool add, float *c,
                          int stride)
{
    piece all[FAST_TERMS];
    int used = 0;
    bool split = n % LANES != 0;
    for (int i = 0; i < count; i++) {
        matrix a = terms[i].a;
        split = split || terms[i].k > DEPTH;
        if (terms[i].k > 0)
            all[used++] = (piece){.a = a.data,
                                  .b = terms[i].b.data,
                                  .row = a.transposed ? 1 : (size_t)a.stride,
                                  .step = a.transposed ? (size_t)a.stride : 1,
                                  .b_stride = (size_t)terms[i].b.stride,
                                  .k = terms[i].k};
    }
    for (int i = 0; i < count && (split || used == 0); i++)
        fast_product(m, n, terms[i].k, alpha, terms[i].a, terms[i].b, add || i > 0, c, stride);
    if (split || used == 0)
        return;
    for (int i = 0; i + 1 < used; i++)
        all[i].more = &all[i + 1];
    all[0].c_stride = all[0].base_stride = (size_t)stride;
    all[0].alpha = alpha;
    for (int done = 0, vectors; done < n; done += vectors * LANES) {
        vectors = n - done < VECTORS * LANES ? (n - done) / LANES : VECTORS;
        all[0].c = c + done;
        all[0].base = add ? c + done : NULL;
        strip(&all[0], m, vectors);
        for (int i = 0; i < used; i++)
            all[i].b += vectors * LANES;
    }
}

/* ------------------------------------------------------------------------------------------------ transpose --- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void transpose_four(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    four a = *(const four *)in, b = *(const four *)(in + in_stride);
    four c = *(const four *)(in + 2 * in_stride), d = *(const four *)(in + 3 * in_stride);
    four ac = fast_shuffle(a, c, 0, 4, 1, 5), AC = fast_shuffle(a, c, 2, 6, 3, 7);
    four bd = fast_shuffle(b, d, 0, 4, 1, 5), BD = fast_shuffle(b, d, 2, 6, 3, 7);
    *(four *)out = fast_shuffle(ac, bd, 0, 4, 1, 5);
    *(four *)(out + out_stride) = fast_shuffle(ac, bd, 2, 6, 3, 7);
    *(four *)(out + 2 * out_stride) = fast_shuffle(AC, BD, 0, 4, 1, 5);
    *(four *)(out + 3 * out_stride) = fast_shuffle(AC, BD, 2, 6, 3, 7);
}

void LP_FAST(transpose)(int rows, int cols, const float *in, int in_stride, float *out, int out_stride)
{
    int r = 0;
    for (; r + 4 <= rows; r += 4) {
        int c = 0;
        for (; c + 4 <= cols; c += 4)
            transpose_four(in + (size_t)r * in_stride + c, (size_t)in_stride, out + (size_t)c * out_stride + r,
                           (size_t)out_stride);
        for (; c < cols; c++)
            for (int i = r; i < r + 4; i++)
                out[(size_t)c * out_stride + i] = in[(size_t)i * in_stride + c];
    }
    for (; r < rows; r++)
        for (int c = 0; c < cols; c++)
            out[(size_t)c * out_stride + r] = in[(size_t)r * in_stride + c];
}
