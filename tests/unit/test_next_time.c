/* test_next_time.c: laws of the time of the next event: survival, density, quantiles and draws agree, tails are exact. */
#include "model/next_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

static const double LOG_WEIGHT[] = {-0.5108256237659907, -1.2039728043259361, -2.3025850929940455}; /* 0.6 0.3 0.1 */
static const double MEAN[] = {2, 5, 9}, DEVIATION[] = {0.5, 1.5, 0.2};

/* Of the background beside each component: one that matters soon, one that matters late, one that never does. */
static const double RATE[] = {1e-3, 1e-5, 1e-12}, LAST = 1767225600 + 12345;

/* Every third hour at five times the level of the others. */
static lp_season *uneven_season(void)
{
    static lp_season season;
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = h % 3 ? 1 : 5;
    lp_season_set(&season, level);
    return &season;
}

/* Survival, density, quantile and draws tell of one law, whatever has elapsed, with a background and without. */
static void check_consistent(bool background)
{
    static const double elapsed[] = {0, 3, 200, 1e4, 1e6};
    for (size_t e = 0; e < sizeof elapsed / sizeof *elapsed; e++) {
        lp_next_time law = lp_next_time_mixture(3, LOG_WEIGHT, MEAN, DEVIATION);
        if (background)
            law = lp_next_time_background(law, RATE, uneven_season(), LAST);
        law = lp_next_time_after(law, elapsed[e]);
        double before = 0;
        for (double p = 0.001; p < 1; p += 0.0831) {
            double t = lp_next_time_quantile(&law, p), step = t * 1e-5;
            assert_true(t > before);
            before = t;
            check_near("cdf of the quantile", lp_next_time_cdf(&law, t), p, 1e-9);
            if (lp_season_hour(LAST + elapsed[e] + t - step) != lp_season_hour(LAST + elapsed[e] + t + step))
                continue; /* the density has a step */
            double slope = (lp_next_time_cdf(&law, t + step) - lp_next_time_cdf(&law, t - step)) / (2 * step);
            double density = exp(lp_next_time_log_density(&law, t));
            check_near("density", density, slope, 1e-4 * slope);
        }
        lp_random random = lp_random_start(3, LP_PURPOSE_TEST, (uint32_t)e);
        double below[9] = {0}, span = lp_next_time_quantile(&law, 0.9), sum = 0, square = 0, count = 0;
        for (int i = 0; i < 4000; i++) {
            double t = lp_next_time_draw(&law, &random), cdf = lp_next_time_cdf(&law, t);
            sum += t < span ? t : 0;
            square += t < span ? t * t : 0;
            count += t < span;
            for (int k = 0; k < 9; k++)
                below[k] += cdf < 0.1 * (k + 1);
        }
        for (int k = 0; k < 9; k++)
            check_near("draws below a decile", below[k] / 4000, 0.1 * (k + 1), 0.03);
        double mean = sum / count, deviation = sqrt(square / count - mean * mean);
        check_near("mean of the draws", lp_next_time_mean(&law, span), mean, 4 * deviation / sqrt(count));
        assert_true(lp_next_time_mean(&law, 0) == 0);
    }
}

static void law_is_consistent(void **state)
{
    (void)state;
    check_consistent(false);
    check_consistent(true);
    lp_next_time law = lp_next_time_mixture(3, LOG_WEIGHT, MEAN, DEVIATION);
    assert_true(lp_next_time_cdf(&law, 0) == 0 && lp_next_time_never(&law) == 0);
}

/* Far beyond the quantile the log survival, that of the background, is so large a number that its slope is noise. Newton's first step
 * may lead there from the rare short times of a wide component. */
static void quantiles_from_far_away(void **state)
{
    (void)state;
    static lp_season even;
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = 1;
    lp_season_set(&even, level);
    lp_random random = lp_random_start(17, LP_PURPOSE_TEST, 0);
    for (int i = 0; i < 3000; i++) {
        double wide = 2 + 6 * lp_random_uniform(&random), r = exp(-14 + 2 * lp_random_uniform(&random));
        double mean[] = {8 + lp_random_uniform(&random), 15, 16}, deviation[] = {wide, 1, 1.4}, rate[] = {r, r, r};
        double log_weight[] = {log(0.003), log(0.5), log(0.497)};
        lp_next_time law = lp_next_time_mixture(3, log_weight, mean, deviation);
        law = lp_next_time_background(law, rate, &even, LAST);
        for (double p = 0.1; p < 1; p += 0.4)
            check_near("cdf of the quantile", lp_next_time_cdf(&law, lp_next_time_quantile(&law, p)), p, 1e-9);
    }
}

/* The residual law of one log-normal so far out that its survival is no double, against the continued fraction of Mills' ratio. */
static long double mills(long double z)
{
    long double ratio = z;
    for (int k = 200; k > 0; k--)
        ratio = z + k / ratio;
    return 1 / ratio;
}

static void tail_is_exact(void **state)
{
    (void)state;
    double weight = 0, mean = 1, deviation = 0.5;
    static const double elapsed[] = {1e4, 1e8, 1e20};
    for (int i = 0; i < 3; i++) {
        lp_next_time law = lp_next_time_after(lp_next_time_mixture(1, &weight, &mean, &deviation), elapsed[i]);
        for (double part = 0.001; part < 2; part *= 3) {
            double t = part * elapsed[i];
            long double a = (logl((long double)elapsed[i]) - 1) / 0.5L,
                        b = (logl((long double)(elapsed[i] + t)) - 1) / 0.5L;
            long double log_ratio = (a - b) * (a + b) / 2 + logl(mills(b) / mills(a));
            check_near("log survival", lp_next_time_log_survival(&law, t), (double)log_ratio,
                       1e-9 * (1 + fabs((double)log_ratio)));
        }
        double half = lp_next_time_quantile(&law, 0.5);
        check_near("median", lp_next_time_survival(&law, half), 0.5, 1e-9);
    }
}

/* The score of an exponential law has a closed form: t + 2 m exp(-t / m) - 3 m / 2. */
static void crps_is_exact(void **state)
{
    (void)state;
    lp_next_time law = lp_next_time_gompertz(0, 0, 50);
    static const double times[] = {0.5, 20, 50, 300};
    for (int i = 0; i < 4; i++)
        check_near("crps", lp_next_time_crps(&law, times[i]), times[i] + 100 * exp(-times[i] / 50) - 75,
                   2e-3 * (times[i] + 25));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(law_is_consistent),
        cmocka_unit_test(quantiles_from_far_away),
        cmocka_unit_test(tail_is_exact),
        cmocka_unit_test(crps_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
