/* random.h: counter-based random numbers (Philox 4x32-10, Salmon et al. 2011).
 *
 * A number is a pure function of a key, the seed of the run, and a counter (purpose, step, element). So dropout, shuffles
 * and initial values do not depend on thread, order or backend, and a resumed run gives the same bits as an uninterrupted
 * one. The functions are inline and compile for the GPU too.
 */
#ifndef LP_RANDOM_H
#define LP_RANDOM_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define LP_INLINE static inline __host__ __device__
#else
#define LP_INLINE static inline
#endif

/* The purpose of a random number: a word of the counter, so that purposes have independent streams. */
typedef enum lp_purpose {
    LP_PURPOSE_SPLIT = 1,  /* which split a sequence belongs to */
    LP_PURPOSE_INIT = 2,   /* initial values of parameters */
    LP_PURPOSE_ORDER = 3,  /* order of windows in an epoch */
    LP_PURPOSE_OFFSET = 4, /* window offsets of a sequence in an epoch */
    LP_PURPOSE_DROPOUT = 5,
    LP_PURPOSE_BOOTSTRAP = 6,
    LP_PURPOSE_BOUND = 16, /* frequencies of the kernel approximation bound */
    LP_PURPOSE_SIMULATE = 7,
    LP_PURPOSE_TEST = 8,
    LP_PURPOSE_NOISE = 9,         /* sampled frequencies */
    LP_PURPOSE_RANK_UNIFORM = 25, /* negatives of sampled ranking protocols */
    LP_PURPOSE_RANK_POPULARITY = 26,
    LP_PURPOSE_RANK_UNIFORM_KEY = 27, /* the same, when rejection sampling would reject most draws */
    LP_PURPOSE_RANK_POPULARITY_KEY = 28,
    LP_PURPOSE_RANK_CASES = 29, /* subsample of ranked events */
    LP_PURPOSE_GOODS = 30,      /* items of a simulated catalogue */
    LP_PURPOSE_CUSTOMERS = 31,  /* the users of a simulated catalogue */
    LP_PURPOSE_PRETRAIN = 32,   /* of item vectors: initial values, order and negatives */
    LP_PURPOSE_NEGATIVE = 40,   /* negative sampling */
    LP_PURPOSE_BENCH = 60,      /* synthetic events of benchmarks */
    LP_PURPOSE_TUNE = 61,       /* trials of a search */
    LP_PURPOSE_FORECAST = 62    /* drawn futures: times and types of events */
} lp_purpose;

enum { LP_PHILOX_ROUNDS = 10 };

typedef struct lp_random_block {
    uint32_t word[4];
} lp_random_block;

/* The two words of a * b. nvcc adds a zero to the high word of each 64-bit product; PTX avoids a fifth of Philox. */
LP_INLINE void lp_multiply_words(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low)
{
#ifdef __CUDA_ARCH__
    asm("{.reg .u64 both; mul.wide.u32 both, %2, %3; mov.b64 {%1, %0}, both;}"
        : "=r"(*high), "=r"(*low)
        : "r"(a), "r"(b));
#else
    uint64_t both = (uint64_t)a * b;
    *high = (uint32_t)(both >> 32);
    *low = (uint32_t)both;
#endif
}

/* A round of Philox on a block, with the key of the round. */
LP_INLINE void lp_philox_round(uint32_t word[4], uint64_t seed, int round)
{
    uint32_t p, q, second = word[1], last = word[3];
    lp_multiply_words(0xD2511F53u, word[0], &p, &word[3]);
    lp_multiply_words(0xCD9E8D57u, word[2], &q, &word[1]);
    word[0] = q ^ second ^ ((uint32_t)seed + (uint32_t)round * 0x9E3779B9u);
    word[2] = p ^ last ^ ((uint32_t)(seed >> 32) + (uint32_t)round * 0xBB67AE85u);
}

LP_INLINE lp_random_block lp_philox(uint64_t seed, uint32_t purpose, uint32_t step, uint64_t element)
{
    lp_random_block out = {{(uint32_t)element, (uint32_t)(element >> 32), step, purpose}};
    for (int round = 0; round < LP_PHILOX_ROUNDS; round++)
        lp_philox_round(out.word, seed, round);
    return out;
}

/* A sequential generator over one purpose and step (simulator, bootstrap, tests). */
typedef struct lp_random {
    uint64_t seed;
    uint32_t purpose, step;
    uint64_t element; /* of the next block */
    lp_random_block block;
    int left; /* unused words of block */
} lp_random;

LP_INLINE lp_random lp_random_start(uint64_t seed, uint32_t purpose, uint32_t step)
{
    lp_random random = {seed, purpose, step, 0, {{0, 0, 0, 0}}, 0};
    return random;
}

LP_INLINE uint32_t lp_random_word(lp_random *random)
{
    if (random->left == 0) {
        random->block = lp_philox(random->seed, random->purpose, random->step, random->element++);
        random->left = 4;
    }
    return random->block.word[4 - random->left--];
}

/* Uniform on (0, 1), never 0 or 1: 53 bits. */
LP_INLINE double lp_random_uniform(lp_random *random)
{
    uint64_t high = lp_random_word(random), low = lp_random_word(random);
    return ((double)((high << 21) ^ (low >> 11)) + 0.5) * 0x1p-53;
}

/* Uniform on 0 .. n-1; the bias is below n / 2^32. */
LP_INLINE uint32_t lp_random_below(lp_random *random, uint32_t n)
{
    return (uint32_t)(((uint64_t)lp_random_word(random) * n) >> 32);
}

/* Standard normal (Box-Muller; the second value is discarded to keep the counter simple). */
LP_INLINE double lp_random_normal(lp_random *random)
{
    double u = lp_random_uniform(random), v = lp_random_uniform(random);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* The quantile function of the standard normal distribution, 0 < p < 1: Newton's method on the log of the tail
 * probability, which is smooth and concave, so that a rough initial value suffices. */
LP_INLINE double lp_normal_quantile(double p)
{
    double tail = p < 0.5 ? p : 1 - p, target = log(tail);
    double x = 5.5 * (1 - pow(tail / (1 - tail), 0.12));
    for (int i = 0; i < 6; i++) {
        double q = 0.5 * erfc(x * 0.7071067811865476), density = 0.3989422804014327 * exp(-0.5 * x * x);
        x += (log(q) - target) * q / density;
    }
    return p < 0.5 ? -x : x;
}

/* Exponential with rate 1. */
LP_INLINE double lp_random_exponential(lp_random *random)
{
    return -log(lp_random_uniform(random));
}

#endif
