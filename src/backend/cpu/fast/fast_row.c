/* fast_row.c: vector-matrix products, the cost of a session query.
 *
 * With a transposed matrix each element is a dot product of two contiguous rows, so nothing is copied; several of them are
 * interleaved to reuse the loads of the row and hide latency. */
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

enum { LANES = FAST_LANES };

/* Dot products of a with four rows of b, `stride` apart. */
static inline void four_dots(const float *restrict a, const float *restrict b, size_t stride, int count,
                             float *restrict out)
{
    fast_lanes sum[4] = {0};
    int i = 0;
    for (; i + LANES <= count; i += LANES) {
        fast_lanes left = fast_load(a + i);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            fast_multiply_add(&sum[r], left, fast_load(b + r * stride + i));
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        out[r] = fast_lanes_sum(&sum[r]);
    for (; i < count; i++)
        for (int r = 0; r < 4; r++)
            out[r] += a[i] * b[r * stride + i];
}

static float one_dot(const float *restrict a, const float *restrict b, int count)
{
    fast_lanes sum = {0};
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        fast_multiply_add(&sum, fast_load(a + i), fast_load(b + i));
    float total = fast_lanes_sum(&sum);
    for (; i < count; i++)
        total += a[i] * b[i];
    return total;
}

#ifdef __AVX512F__
/* Sixteen dot products at a time, reduced into one vector. The last terms are a vector that ends with the row, with zeros
 * where it overlaps the one before. Returns the rows done. */
static int sixteen_dots(int n, int k, float alpha, const float *a, const float *b, size_t stride, bool add, float *c)
{
    if (k < LANES)
        return 0;
    int whole = (k - 1) / LANES * LANES, last = k - LANES, done = 0;
    float rest[LANES];
    for (int l = 0; l < LANES; l++)
        rest[l] = last + l >= whole ? a[last + l] : 0;
    for (; done + LANES <= n; done += LANES, b += LANES * stride) {
        fast_part sum[LANES], left = *(const fast_part *)rest, *to = (fast_part *)(c + done);
#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++)
            sum[r] = left * *(const fast_part *)(b + r * stride + last);
        for (int i = 0; i < whole; i += LANES) {
            left = *(const fast_part *)(a + i);
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++)
                sum[r] += left * *(const fast_part *)(b + r * stride + i);
        }
        left = alpha * fast_lanes_sums(sum);
        if (add)
            left += *to;
        *to = left;
    }
    return done;
}
#else
static int sixteen_dots(int n, int k, float alpha, const float *a, const float *b, size_t stride, bool add, float *c)
{
    (void)n, (void)k, (void)alpha, (void)a, (void)b, (void)stride, (void)add, (void)c;
    return 0;
}
#endif

void LP_FAST(row_product)(int n, int k, float alpha, const float *a, const float *b, size_t stride, bool add, float *c)
{
    int i = sixteen_dots(n, k, alpha, a, b, stride, add, c);
    for (; i + 4 <= n; i += 4) {
        float four[4];
        four_dots(a, b + (size_t)i * stride, stride, k, four);
        for (int r = 0; r < 4; r++)
            c[i + r] = alpha * four[r] + (add ? c[i + r] : 0);
    }
    for (; i < n; i++)
        c[i] = alpha * one_dot(a, b + (size_t)i * stride, k) + (add ? c[i] : 0);
}

/* ------------------------------------------------------------------------------------- not transposed ------ */

/* Accumulators of a strip: enough to hide the latency of multiply-adds (4 cycles, 2 per cycle). */
enum { STRIP = 8 };

typedef float row_vector __attribute__((vector_size(FAST_WIDTH * sizeof(float)), aligned(4), may_alias));

/* `vectors` vectors of c, the last of which starts at column `last`. The base is read before c is written, because the last
 * vector may overlap the one before. */
static inline __attribute__((always_inline)) void row_strip(int vectors, int last, int k, float alpha, const float *a,
                                                            const float *b, size_t stride, const float *base, float *c)
{
    row_vector sum[STRIP];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++)
        sum[j] = (row_vector){0};
    for (int p = 0; p < k; p++, b += stride) {
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            sum[j] += a[p] * *(const row_vector *)(b + (j + 1 < vectors ? j * FAST_WIDTH : last));
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        sum[j] *= alpha;
        FAST_ROUNDED(sum[j]);
        if (base)
            sum[j] += *(const row_vector *)(base + (j + 1 < vectors ? j * FAST_WIDTH : last));
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++)
        *(row_vector *)(c + (j + 1 < vectors ? j * FAST_WIDTH : last)) = sum[j];
}

bool LP_FAST(row_times)(int n, int k, float alpha, const float *a, const float *b, size_t stride, const float *base,
                        float *c)
{
    int vectors = (n + FAST_WIDTH - 1) / FAST_WIDTH, strips = (vectors + STRIP - 1) / STRIP, done = 0;
    if (n < FAST_WIDTH)
        return false;
    for (int s = 0; s < strips; s++) {
        /* Strips of nearly equal width, so that the last has at least two vectors if it needs them. */
        int count = vectors * (s + 1) / strips - vectors * s / strips;
        int last = s + 1 < strips ? (count - 1) * FAST_WIDTH : n - done - FAST_WIDTH;
        const float *right = b + done, *under = base ? base + done : NULL;
        switch (count) {
#define CASE(v)                                                          \
    case v:                                                              \
        row_strip(v, last, k, alpha, a, right, stride, under, c + done); \
        break
            CASE(1);
            CASE(2);
            CASE(3);
            CASE(4);
            CASE(5);
            CASE(6);
            CASE(7);
            CASE(8);
#undef CASE
        }
        done += count * FAST_WIDTH;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- scores of keys --- */

enum { PART = FAST_PART, MOST_ROWS = 4 };

/* Adds the products with PART columns, from column `at` on but only those from `from` on, of PART keys. */
static inline __attribute__((always_inline)) void score_columns(int m, const float *a, size_t a_stride,
                                                                const float *keys, const size_t *row, int at, int from,
                                                                fast_part sum[MOST_ROWS])
{
    fast_part x[PART];
#pragma GCC unroll 16
    for (int r = 0; r < PART; r++)
        x[r] = *(const fast_part *)(keys + row[r] + at);
    fast_transpose_part(x);
#pragma GCC unroll 16
    for (int j = 0; j < PART; j++) {
        if (at + j < from)
            continue;
#pragma GCC unroll 4
        for (int i = 0; i < m; i++)
            sum[i] += a[i * a_stride + at + j] * x[j];
    }
}

/* The scores of PART keys, which begin at keys + row[..], for m rows of a. */
static inline __attribute__((always_inline)) void score_keys(int m, int k, float alpha, const float *a, size_t a_stride,
                                                             const float *keys, const size_t *row, bool add, float *c,
                                                             size_t stride)
{
    fast_part sum[MOST_ROWS];
    int p = 0;
#pragma GCC unroll 4
    for (int i = 0; i < m; i++)
        sum[i] = (fast_part){0};
    for (; p + PART <= k; p += PART)
        score_columns(m, a, a_stride, keys, row, p, p, sum);
    if (p < k && k >= PART)
        score_columns(m, a, a_stride, keys, row, k - PART, p, sum);
    for (; p < k && k < PART; p++) {
        fast_part x;
        for (int r = 0; r < PART; r++)
            x[r] = keys[row[r] + (size_t)p];
#pragma GCC unroll 4
        for (int i = 0; i < m; i++)
            sum[i] += a[i * a_stride + p] * x;
    }
#pragma GCC unroll 4
    for (int i = 0; i < m; i++) {
        fast_part *to = (fast_part *)(c + i * stride), scores = alpha * sum[i];
        FAST_ROUNDED(scores);
        if (add)
            scores += *to;
        *to = scores;
    }
}

void LP_FAST(key_scores)(int m, int n, int k, float alpha, matrix a, matrix b, bool add, float *c, int stride)
{
    size_t row[PART];
    for (int done = 0; done < n; done += PART) {
        for (int r = 0; r < PART; r++) /* behind the last key, that one again */
            row[r] = (size_t)(done + r < n ? r : n - 1 - done) * (size_t)b.stride;
        for (int from = 0, rows; from < m; from += rows) {
            const float *left = a.data + (size_t)from * a.stride, *keys = b.data + (size_t)done * b.stride;
            float *to = c + (size_t)from * stride + done;
            rows = m - from >= MOST_ROWS ? MOST_ROWS : m - from >= 2 ? 2 : 1;
            if (rows == 1)
                score_keys(1, k, alpha, left, (size_t)a.stride, keys, row, add, to, (size_t)stride);
            else if (rows == 2)
                score_keys(2, k, alpha, left, (size_t)a.stride, keys, row, add, to, (size_t)stride);
            else
                score_keys(MOST_ROWS, k, alpha, left, (size_t)a.stride, keys, row, add, to, (size_t)stride);
        }
    }
}
