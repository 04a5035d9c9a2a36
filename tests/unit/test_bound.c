/* test_bound.c: sample counts of Claim 1 and of its corrected proof by their formulas; and that these counts satisfy
 * the bound. */
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "lapse_lab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/small_data.h"

#define HOUR 3600.0
#define DAY 86400.0

static lapse_bound_options target_position(double epsilon, double span, double sigma, double delta)
{
    lapse_bound_options options;
    lapse_bound_options_default(&options);
    options.epsilon = epsilon;
    options.span = span;
    options.sigma = sigma;
    options.delta = delta;
    options.threads = 1;
    return options;
}

static int64_t samples(lapse_bound_options options, double unit)
{
    int64_t count = -1;
    lapse_error error = {0};
    if (lapse_bound_samples(&options, unit, &count, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return count;
}

/* This number of samples brings the bound to delta, and one fewer does not. */
static void test_formulas(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.1, 30 * DAY, 1 / (2 * HOUR), 0.05);
    static const double units[] = {1, HOUR, DAY};
    for (int i = 0; i < 3; i++) {
        double d = (double)samples(o, units[i]);
        double factor = 4 * o.sigma * units[i] * sqrt(o.span / units[i] / o.epsilon);
        assert_true(factor * exp(-d * o.epsilon * o.epsilon / 32) <= o.delta);
        assert_true(factor * exp(-(d - 1) * o.epsilon * o.epsilon / 32) > o.delta);
    }
    double d = (double)samples(o, 0), x = o.sigma * o.span / o.epsilon;
    assert_true(7 * pow(x, 2.0 / 3) * exp(-d * o.epsilon * o.epsilon / 12) <= o.delta);
    assert_true(7 * pow(x, 2.0 / 3) * exp(-(d - 1) * o.epsilon * o.epsilon / 12) > o.delta);
    assert_int_equal(samples(o, DAY), 31101);
    assert_int_equal(samples(o, 0), 12481);
}

/* The printed claim gives a different answer for each time unit, down to 0 samples. */
static void test_unit_matters_to_the_claim_alone(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.1, 30 * DAY, 1 / (30 * DAY), 0.05);
    assert_int_equal(samples(o, 1), 0);
    assert_true(samples(o, DAY) > 4000);
    int64_t proof = samples(o, 0);
    lapse_bound_options in_days = target_position(0.1, 30, 1.0 / 30, 0.05);
    assert_int_equal(samples(in_days, 0), proof);
}

static void test_monotone(void **state)
{
    (void)state;
    static const double units[] = {0, 1, HOUR, DAY};
    for (int i = 0; i < 4; i++) {
        int64_t last[4] = {INT64_MAX, 0, 0, INT64_MAX};
        for (int step = 1; step <= 40; step++) {
            int64_t next[4] = {
                samples(target_position(0.02 * step, 30 * DAY, 1 / HOUR, 0.05), units[i]),
                samples(target_position(0.1, step * DAY, 1 / HOUR, 0.05), units[i]),
                samples(target_position(0.1, 30 * DAY, step / HOUR, 0.05), units[i]),
                samples(target_position(0.1, 30 * DAY, 1 / HOUR, 0.02 * step), units[i]),
            };
            assert_true(next[0] < last[0] && next[1] > last[1] && next[2] > last[2] && next[3] < last[3]);
            memcpy(last, next, sizeof last);
        }
    }
}

static lapse_bound_error measure(lapse_bound_options options, int64_t count)
{
    lapse_bound_error measured = {0};
    lapse_error error = {0};
    if (lapse_bound_measure(&options, count, &measured, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return measured;
}

/* Against directly computed cosines, for any number of threads. */
static void test_measurement_is_the_error(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.3, 50, 1, 0.05);
    o.repeats = 3;
    o.seed = 99;
    static const int64_t counts[] = {1, 7, 8, 9, 100};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lapse_bound_error m = measure(o, counts[i]);
        double mean = 0, worst = 0, frequency[100];
        assert_int_equal(m.points, 501);
        assert_near(m.step, 0.1, 1e-12);
        for (int draw = 0; draw < 3; draw++) {
            lp_random random = lp_random_start(99, LP_PURPOSE_BOUND, (uint32_t)draw);
            double largest = 0;
            for (int64_t k = 0; k < counts[i]; k++)
                frequency[k] = lp_random_normal(&random);
            for (int point = 0; point < m.points; point++) {
                double lag = point * m.step, sum = 0;
                for (int64_t k = 0; k < counts[i]; k++)
                    sum += cos(frequency[k] * lag);
                largest = fmax(largest, fabs(sum / (double)counts[i] - exp(-lag * lag / 2)));
            }
            mean += largest / 3;
            worst = fmax(worst, largest);
        }
        assert_near(m.mean, mean, 1e-12);
        assert_near(m.worst, worst, 1e-12);
        o.threads = 3;
        lapse_bound_error threaded = measure(o, counts[i]);
        assert_memory_equal(&threaded, &m, sizeof m);
        o.threads = 1;
    }
}

static void test_promise_is_kept(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.25, 10 * DAY, 1 / (6 * HOUR), 0.1);
    o.repeats = small_effort(60, 10);
    o.seed = 4;
    lapse_bound_error m = measure(o, samples(o, 0));
    print_message("%lld samples: mean error %.4f, worst %.4f, seed %llu\n", (long long)m.samples, m.mean, m.worst,
                  (unsigned long long)o.seed);
    assert_true(m.within >= (1 - o.delta) * m.repeats);
    assert_true(m.worst < o.epsilon);
    /* And a far smaller number violates it. */
    m = measure(o, 8);
    assert_true(m.within < (1 - o.delta) * m.repeats);
    assert_true(m.mean > o.epsilon && m.worst >= m.mean);
}

static void test_grid_is_limited(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.5, 1, 1e-6, 0.5);
    o.repeats = 1;
    assert_int_equal(measure(o, 1).points, 256);
    o = target_position(0.5, 1e9, 1, 0.5);
    o.repeats = 1;
    assert_int_equal(measure(o, 1).points, 131072);
}

static void assert_refused(lapse_bound_options options, const char *message)
{
    int64_t count = -7;
    lapse_bound_error measured;
    lapse_error error = {0};
    assert_int_equal(lapse_bound_samples(&options, 0, &count, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
    assert_int_equal(count, -7);
    assert_int_equal(lapse_bound_measure(&options, 10, &measured, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused(target_position(0, 1, 1, 0.5),
                   "epsilon is 0; it must be 0.0001 to 2, the maximum difference of two kernels with K(0) = 1");
    assert_refused(target_position(NAN, 1, 1, 0.5),
                   "epsilon is nan; it must be 0.0001 to 2, the maximum difference of two kernels with K(0) = 1");
    assert_refused(target_position(0.1, 0, 1, 0.5), "the largest lag is 0 seconds; it must be above 0, at most 1e15");
    assert_refused(target_position(0.1, INFINITY, 1, 0.5),
                   "the largest lag is inf seconds; it must be above 0, at most 1e15");
    assert_refused(target_position(0.1, 1, -1, 0.5), "sigma is -1 per second; it must be 1e-15 to 1e15");
    assert_refused(target_position(0.1, 1, 1, 0), "delta is 0; a probability must be above 0 and below 1");
    assert_refused(target_position(0.1, 1, 1, 1), "delta is 1; a probability must be above 0 and below 1");
    lapse_bound_options o = target_position(0.1, 1, 1, 0.5);
    lapse_bound_error measured;
    lapse_error error = {0};
    int64_t count;
    assert_int_equal(lapse_bound_samples(&o, -1, &count, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the time unit is -1 seconds; it must be above 0");
    assert_int_equal(lapse_bound_measure(&o, 0, &measured, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "samples is 0; it must be 1 to 134217728");
    o.threads = 1 << 30;
    assert_int_equal(lapse_bound_measure(&o, 1, &measured, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "threads is 1073741824; it must be 1 to 4096, or 0 for all cores");
    o.repeats = 0;
    assert_int_equal(lapse_bound_measure(&o, 1, &measured, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "repeats is 0; it must be 1 to 1000000");
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    lapse_bound_options o = target_position(0.5, 1, 1, 0.5);
    lapse_bound_error measured;
    lapse_error error = {0};
    o.repeats = 2;
    for (int n = 1; n <= 2; n++) {
        lp_memory_fail_at(n);
        assert_int_equal(lapse_bound_measure(&o, 5, &measured, &error), LAPSE_ERROR_MEMORY);
        assert_true(error.message[0]);
    }
    lp_memory_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),        cmocka_unit_test(test_unit_matters_to_the_claim_alone),
        cmocka_unit_test(test_monotone),        cmocka_unit_test(test_measurement_is_the_error),
        cmocka_unit_test(test_promise_is_kept), cmocka_unit_test(test_grid_is_limited),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
