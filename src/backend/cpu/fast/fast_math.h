/* fast_math.h: exp, log, cosine and sine, the tail of a normal number, reductions and random bits as inline functions that the compiler
 * can vectorize: no branches, no calls, no lookup tables. tests/unit/test_fast_math.c checks the error bounds stated here.
 */
#ifndef LP_FAST_MATH_H
#define LP_FAST_MATH_H

#include "base/random.h"

#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* A vector with the elements of (a, b) at the given indices. gcc before 12 has it under another name. */
#if defined __GNUC__ && !defined __clang__ && __GNUC__ < 12
#define fast_shuffle(a, b, ...) __builtin_shuffle((a), (b), (int __attribute__((vector_size(sizeof(a))))){__VA_ARGS__})
#else
#define fast_shuffle(a, b, ...) __builtin_shufflevector((a), (b), __VA_ARGS__)
#endif

/* e^x for -87 <= x <= 88. */
static inline float fast_exp_within(float x)
{
    /* Adding 1.5 * 2^23 rounds to the nearest integer, which is then in the lowest bits. */
    union {
        float value;
        uint32_t bits;
    } rounded = {.value = x * 1.44269504f + 12582912.0f};
    float whole = rounded.value - 12582912.0f;
    float rest = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
    float power = 1.98756906e-4f;
    power = power * rest + 1.39819995e-3f;
    power = power * rest + 8.33345111e-3f;
    power = power * rest + 4.16657962e-2f;
    power = power * rest + 1.66666657e-1f;
    power = power * rest + 0.5f;
    power = power * rest * rest + rest + 1.0f;
    union {
        uint32_t bits;
        float value;
    } scale = {.bits = (rounded.bits - 0x4B400000u + 127u) << 23};
    return power * scale.value;
}

/* e^x with a relative error below 2e-7 for x in [-87, 88]; 0 below (also for -infinity), e^88 above. */
static inline float fast_exp(float x)
{
    float power = fast_exp_within(x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x);
    return x < -87.0f ? 0.0f : power;
}

/* The same for x <= 88. */
static inline float fast_exp_low(float x)
{
    float power = fast_exp_within(x < -87.0f ? -87.0f : x);
    return x < -87.0f ? 0.0f : power;
}

/* e^x in double with a relative error below 5e-13 for x in [-708, 0]; 0 below (also for -infinity). */
static inline double fast_exp_double(double x)
{
    const double round = 6755399441055744.0; /* 1.5 * 2^52: rounds as above */
    double bounded = x < -708.0 ? -708.0 : x;
    union {
        double value;
        uint64_t bits;
    } rounded = {.value = bounded * 1.4426950408889634 + round};
    double whole = rounded.value - round;
    double rest = bounded - whole * 0.6931471805599453;
    double power = 1.0 / 3628800; /* Taylor: |rest| <= ln(2) / 2 */
    power = power * rest + 1.0 / 362880;
    power = power * rest + 1.0 / 40320;
    power = power * rest + 1.0 / 5040;
    power = power * rest + 1.0 / 720;
    power = power * rest + 1.0 / 120;
    power = power * rest + 1.0 / 24;
    power = power * rest + 1.0 / 6;
    power = power * rest + 0.5;
    power = power * rest * rest + rest + 1.0;
    union {
        uint64_t bits;
        double value;
    } scale = {.bits = (rounded.bits - 0x4338000000000000u + 1023u) << 52};
    return x < -708.0 ? 0.0 : power * scale.value;
}

/* log x with an error below 2e-7 plus 1e-7 of the result, for normal numbers x > 0. */
static inline float fast_log(float x)
{
    union {
        float value;
        uint32_t bits;
    } number = {.value = x}, part;
    /* x = part 2^power with part between sqrt(1/2) and sqrt(2) */
    uint32_t shifted = number.bits - 0x3F3504F3u;
    float power = (float)((int32_t)shifted >> 23);
    part.bits = (shifted & 0x007FFFFFu) + 0x3F3504F3u;
    float s = (part.value - 1) / (part.value + 1), square = s * s; /* log part = 2 artanh s, |s| < 0.172 */
    float series = 0.222222222f;
    series = series * square + 0.285714286f;
    series = series * square + 0.4f;
    series = series * square + 0.666666667f;
    return power * 0.693145752f + (power * 1.42860677e-6f + (series * square * s + 2 * s));
}

/* Q(z) / (density of z sqrt(2 pi)) for z >= 0, with Q the probability that a standard normal number exceeds z; relative error below 6e-7.
 * A polynomial fitted to log(erfcx(x) / t) in t = 1 / (1 + x / 2), x = z / sqrt(2). */
static inline float fast_normal_tail_ratio(float z)
{
    float t = 1 / (1 + z * 0.353553391f);
    float power = 0.170872774f;
    power = power * t - 0.822152219f;
    power = power * t + 1.48851586f;
    power = power * t - 1.13520397f;
    power = power * t + 0.278868069f;
    power = power * t - 0.186288057f;
    power = power * t + 0.0967841889f;
    power = power * t + 0.37409196f;
    power = power * t + 1.00002368f;
    power = power * t - 1.26551223f;
    return 0.5f * t * fast_exp_within(power);
}

/* Rows to reduce are padded to whole vectors of FAST_LANES, and the lanes are reduced as a tree: the compiler by itself
 * adds sixteen numbers one after the other. Lanes are vectors of the instruction set's width: of wider ones gcc moves every eight
 * bytes through general registers. The order of a sum does not depend on that width. */
enum { FAST_LANES = 16 };
#if defined(__AVX512F__)
enum { FAST_PART = 16 };
#elif defined(__AVX__)
enum { FAST_PART = 8 };
#else
enum { FAST_PART = 4 };
#endif
enum { FAST_PARTS = FAST_LANES / FAST_PART };
typedef float fast_part __attribute__((vector_size(FAST_PART * sizeof(float)), aligned(4), may_alias));
typedef int32_t fast_part_mask __attribute__((vector_size(FAST_PART * sizeof(float))));
typedef struct fast_lanes {
    fast_part part[FAST_PARTS];
} fast_lanes;

#define FAST_EACH_PART(k) _Pragma("GCC unroll 4") for (int k = 0; k < FAST_PARTS; k++)

static inline fast_lanes fast_load(const float *from)
{
    fast_lanes lanes;
    FAST_EACH_PART(k)
    lanes.part[k] = *(const fast_part *)(from + k * FAST_PART);
    return lanes;
}

static inline void fast_store(float *to, fast_lanes lanes)
{
    FAST_EACH_PART(k)
    *(fast_part *)(to + k * FAST_PART) = lanes.part[k];
}

static inline void fast_add(fast_lanes *sum, fast_lanes other)
{
    FAST_EACH_PART(k)
    sum->part[k] += other.part[k];
}

/* sum += a * b */
static inline void fast_multiply_add(fast_lanes *sum, fast_lanes a, fast_lanes b)
{
    FAST_EACH_PART(k)
    sum->part[k] += a.part[k] * b.part[k];
}

static inline int fast_padded(int count)
{
    return (count + FAST_LANES - 1) / FAST_LANES * FAST_LANES;
}

static inline float fast_lanes_sum(const fast_lanes *lanes)
{
    const fast_part *part = lanes->part;
#if defined(__AVX512F__)
    fast_part v = part[0];
    v += fast_shuffle(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += fast_shuffle(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v += fast_shuffle(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
#elif defined(__AVX__)
    fast_part v = part[0] + part[1];
    v += fast_shuffle(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += fast_shuffle(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
#else
    fast_part v = (part[0] + part[2]) + (part[1] + part[3]);
    v += fast_shuffle(v, v, 2, 3, 0, 1);
#endif
    return v[0] + v[1];
}

#ifdef __AVX512F__
/* Lane i of the result is the sum of the lanes of s[i]. */
static inline fast_part fast_lanes_sums(const fast_part s[FAST_LANES])
{
    fast_part quarter[4], pair[2];
#pragma GCC unroll 4
    for (int w = 0; w < 4; w++) {
        fast_part a = s[w], b = s[4 + w], c = s[8 + w], d = s[12 + w];
        fast_part ab = fast_shuffle(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                       fast_shuffle(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        fast_part cd = fast_shuffle(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                       fast_shuffle(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        quarter[w] = fast_shuffle(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                     fast_shuffle(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
#pragma GCC unroll 4
    for (int w = 0; w < 2; w++)
        pair[w] =
            fast_shuffle(quarter[2 * w], quarter[2 * w + 1], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
            fast_shuffle(quarter[2 * w], quarter[2 * w + 1], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30,
                         31);
    return fast_shuffle(pair[0], pair[1], 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
           fast_shuffle(pair[0], pair[1], 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}
#endif

/* Rounds a vector: the compiler must not make a multiply-add of the product that it is and of a sum that follows, which it does in some
 * loops and not in others. */
#if defined(__AVX512F__)
#define FAST_ROUNDED(vector) __asm__("" : "+v"(vector))
#elif defined(__SSE2__)
#define FAST_ROUNDED(vector) __asm__("" : "+x"(vector))
#elif defined(__aarch64__)
#define FAST_ROUNDED(vector) __asm__("" : "+w"(vector))
#else
#define FAST_ROUNDED(vector) ((void)0)
#endif

/* Transposes a square matrix of parts. */
static inline __attribute__((always_inline)) void fast_transpose_part(fast_part x[FAST_PART])
{
    fast_part pair[FAST_PART], quad[FAST_PART]; /* quad[4 g + j]: columns j, 4 + j, .. of rows 4 g .. 4 g + 3 */
#if defined(__AVX512F__)
#pragma GCC unroll 8
    for (int i = 0; i < FAST_PART; i += 2) {
        pair[i] = fast_shuffle(x[i], x[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        pair[i + 1] = fast_shuffle(x[i], x[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
#pragma GCC unroll 4
    for (int g = 0; g < FAST_PART; g += 4)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            fast_part a = pair[g + i], b = pair[g + 2 + i];
            quad[g + 2 * i] = fast_shuffle(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
            quad[g + 2 * i + 1] = fast_shuffle(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        fast_part a = quad[j], b = quad[4 + j], c = quad[8 + j], d = quad[12 + j];
        fast_part ab = fast_shuffle(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                  AB = fast_shuffle(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31),
                  cd = fast_shuffle(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                  CD = fast_shuffle(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        x[j] = fast_shuffle(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        x[4 + j] = fast_shuffle(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        x[8 + j] = fast_shuffle(AB, CD, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        x[12 + j] = fast_shuffle(AB, CD, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
#elif defined(__AVX__)
#pragma GCC unroll 4
    for (int i = 0; i < FAST_PART; i += 2) {
        pair[i] = fast_shuffle(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = fast_shuffle(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int g = 0; g < FAST_PART; g += 4)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            fast_part a = pair[g + i], b = pair[g + 2 + i];
            quad[g + 2 * i] = fast_shuffle(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
            quad[g + 2 * i + 1] = fast_shuffle(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        x[j] = fast_shuffle(quad[j], quad[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
        x[4 + j] = fast_shuffle(quad[j], quad[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#else
    for (int i = 0; i < FAST_PART; i += 2) {
        pair[i] = fast_shuffle(x[i], x[i + 1], 0, 4, 1, 5);
        pair[i + 1] = fast_shuffle(x[i], x[i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        quad[2 * i] = fast_shuffle(pair[i], pair[2 + i], 0, 1, 4, 5);
        quad[2 * i + 1] = fast_shuffle(pair[i], pair[2 + i], 2, 3, 6, 7);
    }
    for (int j = 0; j < 4; j++)
        x[j] = quad[j];
#endif
}

/* The larger of both in each lane; b where either is not a number. */
static inline fast_part fast_part_max(fast_part a, fast_part b)
{
    fast_part_mask more = a > b;
    return (fast_part)(((fast_part_mask)a & more) | ((fast_part_mask)b & ~more));
}

/* Bit l: lane l of x is at least `limit`. */
static inline unsigned fast_at_least(const float *x, float limit)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(limit), _CMP_GE_OQ);
#elif defined(__AVX__)
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(limit), _CMP_GE_OQ));
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(x), _mm_set1_ps(limit)));
#else
    unsigned bits = 0;
    for (int l = 0; l < FAST_PART; l++)
        bits |= (unsigned)(x[l] >= limit) << l;
    return bits;
#endif
}

static inline float fast_lanes_max(const fast_lanes *lanes)
{
    const fast_part *part = lanes->part;
#if defined(__AVX512F__)
    fast_part v = part[0];
    v = fast_part_max(fast_shuffle(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7), v);
    v = fast_part_max(fast_shuffle(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11), v);
    v = fast_part_max(fast_shuffle(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13), v);
#elif defined(__AVX__)
    fast_part v = fast_part_max(part[1], part[0]);
    v = fast_part_max(fast_shuffle(v, v, 4, 5, 6, 7, 0, 1, 2, 3), v);
    v = fast_part_max(fast_shuffle(v, v, 2, 3, 0, 1, 6, 7, 4, 5), v);
#else
    fast_part v = fast_part_max(fast_part_max(part[3], part[1]), fast_part_max(part[2], part[0]));
    v = fast_part_max(fast_shuffle(v, v, 2, 3, 0, 1), v);
#endif
    return v[0] > v[1] ? v[0] : v[1];
}

/* Sets the elements of a row from `count` to the end of its last vector to `rest`. Vector stores: element stores would
 * stall the next vector load (store forwarding). */
static inline void fast_fill(float *row, int count, float rest)
{
    static const int32_t lane[FAST_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    int first = fast_padded(count) - FAST_LANES;
    FAST_EACH_PART(k)
    {
        fast_part *last = (fast_part *)(row + first + k * FAST_PART), other = (fast_part){0} + rest;
        fast_part_mask number, own;
        memcpy(&number, lane + k * FAST_PART, sizeof number);
        own = number < (fast_part_mask){0} + (count - first);
        *last = (fast_part)(((fast_part_mask)*last & own) | ((fast_part_mask)other & ~own));
    }
}

/* The maximum of a padded row, with several accumulators to hide latency. */
static inline float fast_largest(const float *row, int length)
{
    enum { WIDE = FAST_PARTS == 1 ? 4 : 2 };
    fast_lanes most[WIDE];
    int i = 0;
#pragma GCC unroll 4
    for (int w = 0; w < WIDE; w++)
        most[w] = fast_load(row);
    for (; i + WIDE * FAST_LANES <= length; i += WIDE * FAST_LANES) {
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++) {
            FAST_EACH_PART(k)
            most[w].part[k] =
                fast_part_max(*(const fast_part *)(row + i + w * FAST_LANES + k * FAST_PART), most[w].part[k]);
        }
    }
    for (; i < length; i += FAST_LANES) {
        FAST_EACH_PART(k)
        most[0].part[k] = fast_part_max(*(const fast_part *)(row + i + k * FAST_PART), most[0].part[k]);
    }
#pragma GCC unroll 4
    for (int w = 1; w < WIDE; w++) {
        FAST_EACH_PART(k)
        most[0].part[k] = fast_part_max(most[w].part[k], most[0].part[k]);
    }
    return fast_lanes_max(&most[0]);
}

/* out = exp(in - most) of padded rows, where no element exceeds `most`; in may be out. Returns the sum. */
static inline float fast_powers(const float *in, float *out, int length, float most)
{
    fast_lanes sum = {0};
    for (int i = 0; i < length; i += FAST_LANES) {
#pragma omp simd
        for (int l = 0; l < FAST_LANES; l++)
            out[i + l] = fast_exp_low(in[i + l] - most);
        fast_add(&sum, fast_load(out + i));
    }
    return fast_lanes_sum(&sum);
}

/* Softmax of the first `seen` scores of a padded row, in place, with zeros from seen to all. */
static inline void fast_softmax(float *row, int seen, int all)
{
    int length = fast_padded(seen);
    fast_fill(row, seen, -INFINITY);
    float sum = fast_powers(row, row, length, fast_largest(row, length)), scale = 1 / sum;
#pragma omp simd
    for (int i = 0; i < length; i++)
        row[i] *= scale;
    for (int i = length; i < all; i++)
        row[i] = 0;
}

/* Cosine and sine of a phase in turns, with an absolute error below 1.5e-7. The range reduction is in double, so the phase
 * may be millions of turns; from 2^51 turns on a double has no fraction left, and the phase counts as 0. */
static inline void fast_turn(double turns, float *cosine, float *sine)
{
    const double round = 6755399441055744.0; /* 1.5 * 2^52: adding and subtracting it rounds */
    double whole = (turns + round) - round;
    double part = fabs(turns) >= 0x1p51 ? 0.0 : 4.0 * (turns - whole); /* quarter turns, -2 .. 2, or NaN */
    union {
        double value;
        uint64_t bits;
    } rounded = {.value = part + round}; /* the integer is in the lowest bits */
    double quarters = rounded.value - round;
    float x = (float)((part - quarters) * 1.5707963267948966), square = x * x;
    uint32_t quarter = (uint32_t)rounded.bits;
    float s = x + x * square * (-1.6666654611e-1f + square * (8.3321608736e-3f + square * -1.9515295891e-4f));
    float c =
        1.0f - 0.5f * square +
        square * square * (4.166664568298827e-2f + square * (-1.388731625493765e-3f + square * 2.443315711809948e-5f));
    float low = quarter & 1 ? s : c, high = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -low : low;
    *sine = quarter & 2 ? -high : high;
}

/* y [2F] = M x for the time whose basis is u, or y += M x if `added`; y may be x. */
static inline void fast_reflect(const float *x, const float *u, float *y, int count, bool added)
{
    const float *xs = x + count, *sine = u + count;
    float *ys = y + count;
#pragma omp simd
    for (int f = 0; f < count; f++) {
        float c = x[f] * u[f] + xs[f] * sine[f], s = x[f] * sine[f] - xs[f] * u[f];
        y[f] = added ? y[f] + c : c;
        ys[f] = added ? ys[f] + s : s;
    }
}

/* Vectors of 64-bit words. */
enum { FAST_WORDS = FAST_PART / 2 };
typedef uint64_t fast_words __attribute__((vector_size(FAST_PART * sizeof(float)), aligned(8), may_alias));

/* The product of the lower halves of each word. Written as a product, compilers multiply all 64 bits, by many shifts and additions. */
static inline fast_words fast_multiply_halves(fast_words a, fast_words b)
{
#if defined(__AVX512F__)
    return (fast_words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (fast_words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && !defined(__AVX__)
    return (fast_words)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__ARM_NEON)
    return (fast_words)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

/* Stores the words of a and b by turns. */
static inline void fast_store_pairs(uint16_t *to, fast_words a, fast_words b)
{
#if defined(__AVX512F__)
    fast_words low = fast_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
               high = fast_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX__)
    fast_words low = fast_shuffle(a, b, 0, 4, 1, 5), high = fast_shuffle(a, b, 2, 6, 3, 7);
#else
    fast_words low = fast_shuffle(a, b, 0, 2), high = fast_shuffle(a, b, 1, 3);
#endif
    memcpy(to, &low, sizeof low);
    memcpy(to + 4 * FAST_WORDS, &high, sizeof high);
}

/* Philox 4x32 (lp_philox in random.h) of FAST_WORDS blocks: keys of the ten rounds, and the last two words of the counter. A word is in the
 * lower half of a lane; what the upper half has is ignored. */
static inline void fast_philox(const uint32_t (*keys)[2], uint32_t step, uint32_t purpose, const uint64_t *element,
                               uint16_t *bits)
{
    const fast_words zero = {0}, half = zero + 0xFFFFFFFFu, by_a = zero + 0xD2511F53u, by_c = zero + 0xCD9E8D57u;
    fast_words a = *(const fast_words *)element, b = a >> 32, c = zero + step, d = zero + purpose;
    for (int round = 0; round < 10; round++) {
        fast_words p = fast_multiply_halves(a, by_a), q = fast_multiply_halves(c, by_c);
        a = (q >> 32) ^ b ^ (zero + keys[round][0]);
        c = (p >> 32) ^ d ^ (zero + keys[round][1]);
        b = q;
        d = p;
    }
    fast_store_pairs(bits, (a & half) | b << 32, (c & half) | d << 32);
}

/* The random bits of blocks `element[0 .. count-1]`: 16 for each of a block's 8 columns, in the order of
 * lp_dropout_keep. */
static inline void fast_random_bits(uint64_t seed, uint32_t purpose, uint32_t step, const uint64_t *element, int count,
                                    uint16_t *bits)
{
    uint32_t keys[10][2] = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    for (int round = 1; round < 10; round++) {
        keys[round][0] = keys[round - 1][0] + 0x9E3779B9u;
        keys[round][1] = keys[round - 1][1] + 0xBB67AE85u;
    }
    int i = 0;
    for (; i + FAST_WORDS <= count; i += FAST_WORDS)
        fast_philox(keys, step, purpose, element + i, bits + 8 * i);
    if (i == count)
        return;
    uint64_t last[FAST_WORDS] = {0};
    uint16_t drawn[8 * FAST_WORDS];
    memcpy(last, element + i, (size_t)(count - i) * sizeof *last);
    fast_philox(keys, step, purpose, last, drawn);
    memcpy(bits + 8 * i, drawn, (size_t)(count - i) * 8 * sizeof *bits);
}

static inline float fast_dot(const float *restrict a, const float *restrict b, int count)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

#endif
