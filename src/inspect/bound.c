/* bound.c: the number of frequency samples that a kernel requires: Claim 1 of the paper, its proof corrected, and the
 * measured error.
 *
 * The printed claim bounds the probability of an error of epsilon or more, at any lag up to span, by
 *
 *     4 sigma sqrt(span / epsilon) exp(-d epsilon^2 / 32)                                              (printed)
 *
 * Its first factor has a dimension: another time unit gives another d. The mistake is in the proof, which divides by
 * the threshold where Markov's inequality for a second moment divides by its square. docs/theory.md has the details.
 * Corrected, with Hoeffding's own constant, the proof gives
 *
 *     7 x^(2/3) exp(-d epsilon^2 / 12),     x = max(1, sigma span / epsilon)                            (proof)
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "lapse_lab.h"

#include <math.h>

enum { LEAST_POINTS = 256, MOST_POINTS = 1 << 17, LANES = 8, RESTART = 64 };

static const int64_t MOST_SAMPLES = (int64_t)1 << 27;

void lapse_bound_options_default(lapse_bound_options *options)
{
    *options = (lapse_bound_options){.epsilon = 0.1, .delta = 0.05, .repeats = 20, .seed = 1};
}

static lapse_status check(const lapse_bound_options *options, lapse_error *error)
{
    if (!(options->epsilon >= 0.0001 && options->epsilon <= 2))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "epsilon is %g; it must be 0.0001 to 2, the maximum difference of two kernels with K(0) = 1",
                       options->epsilon);
    if (!(options->delta >= 1e-300 && options->delta < 1))
        return lp_fail(error, LAPSE_ERROR_USAGE, "delta is %g; a probability must be above 0 and below 1",
                       options->delta);
    if (!(options->span > 0 && options->span <= 1e15))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the largest lag is %g seconds; it must be above 0, at most 1e15",
                       options->span);
    if (!(options->sigma >= 1e-15 && options->sigma <= 1e15))
        return lp_fail(error, LAPSE_ERROR_USAGE, "sigma is %g per second; it must be 1e-15 to 1e15", options->sigma);
    return LAPSE_OK;
}

lapse_status lapse_bound_samples(const lapse_bound_options *options, double unit, int64_t *samples, lapse_error *error)
{
    LP_REQUIRE(error, options, samples);
    LP_TRY(check(options, error));
    if (!(unit >= 0 && unit <= 1e15))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the time unit is %g seconds; it must be above 0", unit);
    double epsilon = options->epsilon, factor, rate;
    if (unit > 0) {
        factor = 4 * (options->sigma * unit) * sqrt(options->span / unit / epsilon);
        rate = epsilon * epsilon / 32;
    } else {
        double x = options->sigma * options->span / epsilon;
        factor = 7 * cbrt(x > 1 ? x * x : 1);
        rate = epsilon * epsilon / 12;
    }
    double least = ceil(log(factor / options->delta) / rate);
    *samples = least > 0 ? (int64_t)least : 0;
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------- measurement ------ */

typedef struct measurement {
    const lapse_bound_options *options;
    int64_t samples;
    int points;
    double step;
    double *scratch; /* [worker][5 * padded]: scratch; the padding is 0 */
    size_t padded;   /* samples, rounded up to a multiple of LANES */
    double *error;   /* [repeats] */
} measurement;

/* Evaluates every frequency's cosine and sine at a lag. The recurrence of sum_and_step restarts from these values
 * regularly, so that rounding errors do not accumulate. */
static void evaluate(const double *frequency, size_t count, double lag, double *cosine, double *sine)
{
    for (size_t i = 0; i < count; i++) {
        cosine[i] = cos(frequency[i] * lag);
        sine[i] = sin(frequency[i] * lag);
    }
}

/* Sums the cosines and advances each by one step of the grid. SIMD lanes are summed separately in a fixed order, so
 * that the result does not depend on vectorization. */
static double sum_and_step(double *restrict cosine, double *restrict sine, const double *restrict step_cosine,
                           const double *restrict step_sine, size_t padded)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < padded; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            double c = cosine[i + j], s = sine[i + j];
            lane[j] += c;
            cosine[i + j] = c * step_cosine[i + j] - s * step_sine[i + j];
            sine[i + j] = s * step_cosine[i + j] + c * step_sine[i + j];
        }
    double sum = 0;
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

/* One repeat: the largest |mean of cosines - kernel| over the lags. */
static void measure_repeat(void *context, int repeat, int worker)
{
    const measurement *m = context;
    size_t count = (size_t)m->samples;
    double *frequency = m->scratch + (size_t)worker * 5 * m->padded, *cosine = frequency + m->padded;
    double *sine = cosine + m->padded, *step_cosine = sine + m->padded, *step_sine = step_cosine + m->padded;
    lp_random random = lp_random_start(m->options->seed, LP_PURPOSE_BOUND, (uint32_t)repeat);
    for (size_t i = 0; i < count; i++)
        frequency[i] = m->options->sigma * lp_random_normal(&random);
    evaluate(frequency, count, m->step, step_cosine, step_sine);
    double worst = 0;
    for (int point = 0; point < m->points; point++) {
        double lag = point * m->step, x = m->options->sigma * lag;
        if (point % RESTART == 0)
            evaluate(frequency, count, lag, cosine, sine);
        double mean = sum_and_step(cosine, sine, step_cosine, step_sine, m->padded) / (double)count;
        double error = fabs(mean - exp(-x * x / 2));
        worst = error > worst ? error : worst;
    }
    m->error[repeat] = worst;
}

/* Ten lags per 1 / sigma: between two of them the error changes by less than a hundredth of itself. */
static void choose_grid(const lapse_bound_options *options, measurement *m)
{
    double wanted = ceil(10 * options->sigma * options->span) + 1;
    m->points = wanted < LEAST_POINTS ? LEAST_POINTS : wanted > MOST_POINTS ? MOST_POINTS : (int)wanted;
    m->step = options->span / (m->points - 1);
}

lapse_status lapse_bound_measure(const lapse_bound_options *options, int64_t samples, lapse_bound_error *measured,
                                 lapse_error *error)
{
    LP_REQUIRE(error, options, measured);
    LP_TRY(check(options, error));
    if (options->repeats < 1 || options->repeats > 1000000)
        return lp_fail(error, LAPSE_ERROR_USAGE, "repeats is %d; it must be 1 to 1000000", options->repeats);
    if (samples < 1 || samples > MOST_SAMPLES)
        return lp_fail(error, LAPSE_ERROR_USAGE, "samples is %lld; it must be 1 to %lld", (long long)samples,
                       (long long)MOST_SAMPLES);
    int threads;
    LP_TRY(lp_threads_resolve(options->threads, &threads, error));
    threads = threads < options->repeats ? threads : options->repeats;
    measurement m = {.options = options, .samples = samples};
    choose_grid(options, &m);
    m.padded = ((size_t)samples + LANES - 1) / LANES * LANES;
    m.scratch = lp_alloc((size_t)threads * 5 * m.padded, sizeof *m.scratch);
    m.error = lp_alloc((size_t)options->repeats, sizeof *m.error);
    lapse_status status = LAPSE_OK;
    if (m.scratch && m.error) {
        lp_threads_run(threads, options->repeats, measure_repeat, &m);
        *measured =
            (lapse_bound_error){.samples = samples, .repeats = options->repeats, .points = m.points, .step = m.step};
        for (int i = 0; i < options->repeats; i++) {
            measured->mean += m.error[i] / options->repeats;
            measured->worst = m.error[i] > measured->worst ? m.error[i] : measured->worst;
            measured->within += m.error[i] < options->epsilon;
        }
    } else {
        status = lp_fail_memory(error, "the frequency samples", (size_t)threads * 5 * m.padded * sizeof *m.scratch);
    }
    lp_free(m.scratch);
    lp_free(m.error);
    return status;
}
