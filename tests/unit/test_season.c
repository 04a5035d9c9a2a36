/* test_season.c: a weekly profile: its integral and inverse, and its estimate from numbers of events. */
#include "base/random.h"
#include "formula/season.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

static const double HOUR = 3600, WEEK = 604800;

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

static lp_season uneven(uint64_t seed)
{
    lp_season season;
    double level[LP_SEASON_HOURS];
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = 0.1 + 20 * lp_random_uniform(&random);
    lp_season_set(&season, level);
    return season;
}

/* Dates of a calendar, in Unix seconds. */
static void hours_of_the_week(void **state)
{
    (void)state;
    static const struct {
        double time;
        int hour;
    } cases[] = {
        {0, 72},                 /* 1970-01-01T00:00Z, a Thursday */
        {345600, 0},             /* Monday */
        {345599.9, 167},         /* Sunday, 23:59 */
        {-1, 71},                /* Wednesday */
        {1767225600, 72},        /* 2026-01-01, a Thursday */
        {1767225600 + 9000, 74}, /* 02:30 */
        {-2208988800.0, 0},      /* 1900-01-01, a Monday */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(lp_season_hour(cases[i].time), cases[i].hour);
}

/* The integral adds up, is the sum of the levels of the hours, and has an inverse; times before 1970 included. */
static void integral_and_inverse(void **state)
{
    (void)state;
    lp_season season = uneven(1);
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 0);
    for (int i = 0; i < 2000; i++) {
        double from = 4e9 * (lp_random_uniform(&random) - 0.4), span = exp(20 * lp_random_uniform(&random) - 2);
        double part = span * lp_random_uniform(&random), all = lp_season_integral(&season, from, span);
        check_near("sum",
                   lp_season_integral(&season, from, part) + lp_season_integral(&season, from + part, span - part), all,
                   1e-5 + 1e-12 * all);
        check_near("inverse", lp_season_inverse(&season, from, all), span, 1e-5 + 1e-12 * span);
        check_near("week", lp_season_integral(&season, from, 3 * WEEK), 3 * WEEK, 1e-4);
        double step = 1e-3, level = lp_season_level(&season, from);
        if (lp_season_hour(from) == lp_season_hour(from + step))
            check_near("level", lp_season_integral(&season, from, step) / step, level, 0.02 * level);
    }
    double sum = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++) {
        check_near("hours", lp_season_integral(&season, 345600, h * HOUR), sum, 1e-6);
        sum += HOUR * season.level[h];
    }
    /* Far away a double knows no hour. */
    assert_true(lp_season_integral(&season, 0, 1e20) == 1e20 && lp_season_inverse(&season, 0, 1e20) == 1e20);
    assert_true(lp_season_integral(&season, 0, INFINITY) == INFINITY && lp_season_level(&season, INFINITY) == 1);
}

/* Spans of time end with an event of a Poisson process of this profile, or of one at all hours alike that is as frequent; both come every
 * `mean` seconds on average. */
static void draw_counts(const lp_season *profile, int spans, double mean, lp_season_counts *counts)
{
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 0);
    double time = 1.7e9;
    *counts = (lp_season_counts){0};
    for (int i = 0; i < spans; i++) {
        double seasonal = lp_season_inverse(profile, time, mean * lp_random_exponential(&random));
        double span = fmin(seasonal, mean * lp_random_exponential(&random));
        lp_season_count(counts, time, span);
        time += span;
    }
}

static double sum_of(const double *numbers)
{
    double sum = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        sum += numbers[h];
    return sum;
}

/* Spans are counted in full, to the hour. */
static void counts_spans(void **state)
{
    (void)state;
    lp_season_counts counts = {0};
    lp_season_count(&counts, 345600 + 23 * HOUR + 1800, 2 * HOUR); /* Monday 23:30 to Tuesday 01:30 */
    assert_true(counts.seconds[23] == 1800 && counts.seconds[24] == 3600 && counts.seconds[25] == 1800);
    assert_true(counts.events[25] == 1 && sum_of(counts.events) == 1);
    lp_season_count(&counts, 345600 - 1800, 2 * WEEK + HOUR); /* Sunday 23:30, over two weeks, to Monday 00:30 */
    assert_true(counts.seconds[167] == 2 * HOUR + 1800 && counts.seconds[0] == 2 * HOUR + 1800);
    assert_true(counts.seconds[100] == 2 * HOUR && counts.events[0] == 1);
    check_near("seconds", sum_of(counts.seconds), 2 * WEEK + 3 * HOUR, 1e-6);
}

/* A profile is found though half of the events do not follow it, and though events that are frequent leave little time after the best
 * hours; from noise and from no events the level is 1. */
static void estimates(void **state)
{
    (void)state;
    double level[LP_SEASON_HOURS];
    lp_season profile, season;
    lp_season_counts counts;
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = (1 + 0.85 * cos(2 * M_PI * (h - 20) / 24)) * (1 + 0.6 * cos(2 * M_PI * (h - 130) / 168.0));
    lp_season_set(&profile, level);
    for (double mean = 5 * HOUR; mean < 1e6; mean *= 5) {
        draw_counts(&profile, 40000, mean, &counts);
        lp_season_estimate(&season, &counts);
        for (int h = 0; h < LP_SEASON_HOURS; h++) {
            assert_true(season.level[h] > 0.049);
            check_near("level", season.level[h], profile.level[h], 0.35);
        }
        check_near("mean", sum_of(season.level) / LP_SEASON_HOURS, 1, 1e-12);
    }
    lp_season_constant(&profile);
    for (int spans = 0; spans <= 1000000; spans = spans * 100 + 100) {
        draw_counts(&profile, spans < 40000 ? spans : 40000, 5 * HOUR, &counts);
        lp_season_estimate(&season, &counts);
        for (int h = 0; h < LP_SEASON_HOURS; h++)
            assert_true(season.level[h] == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hours_of_the_week),
        cmocka_unit_test(integral_and_inverse),
        cmocka_unit_test(counts_spans),
        cmocka_unit_test(estimates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
