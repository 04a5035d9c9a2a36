/* test_simulate_sessions.c: the preset "sessions": its law is that of docs/simulate.md, its events are sampled from it, and it
 * has the effects that it was made for: searches gain weight over time, purchases end an interest or renew it. */
#include "simulate/simulate_goods.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/small_data.h"

#define DAY 86400.0

enum { SEARCH, VIEW, CART, BUY, ACTIONS };

static lapse_simulation *simulate_sessions(int64_t items, int64_t sequences, uint64_t seed)
{
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.preset = "sessions";
    options.items = items;
    options.sequences = sequences;
    options.seed = seed;
    lapse_simulation *simulation = NULL;
    lapse_error error = {0};
    if (lapse_simulate(&options, &simulation, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return simulation;
}

/* ---------------------------------------------------------------- the law once more, as docs/simulate.md says -- */

/* electronics, accessories, clothing, home, grocery, baby */
static const double fades[] = {0.05, 0.2, 1, 3, 2, 10}, periods[] = {0, 0, 0, 0, 7, 14};

static double weight_of(int target, int action, int department, double lag)
{
    double fade = exp(-lag / (fades[department] * DAY)), period = periods[department];
    double x = (lag / DAY - period) / (0.12 * period);
    if (action == BUY)
        return period > 0 ? 8 * exp(-x * x / 2) : 0;
    if (target == SEARCH || action == VIEW)
        return 0;
    return 2 * (1 - exp(-lag / (action == CART ? 1200 : 600))) * fade;
}

static int department_of(const lapse_simulation *s, int32_t series)
{
    return s->goods->categories[lp_goods_series_category(s->goods, series)].department;
}

/* Probabilities of the items of a search or a view, by the definition: one series after the other. */
static void expected_items(const lapse_simulation *s, int64_t first, int64_t event, int target, double *out)
{
    int32_t items = s->goods->item_count;
    double total = 0;
    for (int32_t series = 0; series < s->goods->series_count; series++) {
        int32_t start, count = lp_goods_series_items(s->goods, series, &start);
        double weight = (target == SEARCH ? 0.5 : 0.1) * s->series_popularity[series], unseen = 0;
        double popularity[LP_GOODS_SERIES];
        bool seen[LP_GOODS_SERIES] = {false};
        int64_t bought = -1;
        lp_goods_item_popularity(s->goods, series, popularity);
        for (int64_t e = first; e < event; e++) {
            int32_t item = s->type[e] % items;
            if (item < start || item >= start + count)
                continue;
            seen[item - start] = true;
            bought = s->type[e] / items == BUY ? e : bought;
        }
        for (int64_t e = first; e < event; e++) {
            int32_t own = lp_goods_series_of(s->goods, s->type[e] % items);
            int action = s->type[e] / items;
            double lag = s->time[event] - s->time[e];
            if (own == series && e >= bought)
                weight += weight_of(target, action, department_of(s, own), lag);
            if (target == VIEW && lp_goods_series_complement(s->goods, own) == series &&
                (action == VIEW || (action == BUY && periods[department_of(s, own)] == 0))) {
                bool ended = false; /* by a later purchase of its own series */
                for (int64_t later = e + 1; later < event; later++)
                    ended = ended || (s->type[later] / items == BUY &&
                                      lp_goods_series_of(s->goods, s->type[later] % items) == own);
                weight += ended ? 0 : action == VIEW ? 12 * exp(-lag / 60) : 2 * exp(-lag / 600);
            }
        }
        for (int32_t k = 0; k < count; k++)
            unseen += seen[k] ? 0 : popularity[k];
        for (int32_t k = 0; k < count; k++)
            out[start + k] = seen[k] ? 0 : weight * popularity[k] / unseen;
        total += unseen > 0 ? weight : 0;
    }
    for (int32_t i = 0; i < items; i++)
        out[i] /= total;
}

static void expected_actions(const lapse_simulation *s, int64_t first, int64_t event, double out[ACTIONS])
{
    static const double after[][ACTIONS] = {
        {0.2, 0.8, 0, 0}, {0.2, 0.55, 0.25, 0}, {0.1, 0.3, 0, 0.6}, {0.4, 0.6, 0, 0}};
    static const double fresh[ACTIONS] = {0.5, 0.5, 0, 0}, start[ACTIONS] = {1, 0, 0, 0};
    const double *row = event == first                               ? start
                        : s->time[event] - s->time[event - 1] > 1800 ? fresh
                                                                     : after[s->type[event - 1] / s->goods->item_count];
    memcpy(out, row, ACTIONS * sizeof *out);
}

static void probabilities_are_those_of_the_document(void **state)
{
    (void)state;
    lapse_simulation *s = simulate_sessions(500, 3, 4);
    int32_t items = s->goods->item_count;
    double *given = lp_alloc((size_t)(ACTIONS * items), sizeof *given), *row = lp_alloc((size_t)items, sizeof *row);
    double actions[ACTIONS];
    int checked[ACTIONS] = {0};
    assert_int_equal(s->law.type_count, ACTIONS * items);
    for (int64_t user = 0; user < s->sequence_count; user++)
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            double sum = 0;
            lp_simulation_probabilities(s, user, i, given);
            expected_actions(s, s->start[user], i, actions);
            for (int a = 0; a < ACTIONS; a++) {
                if (a <= VIEW)
                    expected_items(s, s->start[user], i, a, row);
                for (int32_t k = 0; k < items; k++) {
                    double last = i > s->start[user] && s->type[i - 1] % items == k;
                    double expected = actions[a] == 0 ? 0 : actions[a] * (a <= VIEW ? row[k] : last);
                    assert_true(fabs(given[a * items + k] - expected) < 1e-12);
                    sum += given[a * items + k];
                }
            }
            assert_true(fabs(sum - 1) < 1e-9);
            assert_true(given[s->type[i]] > 0);
            checked[s->type[i] / items]++;
        }
    for (int a = 0; a < ACTIONS; a++)
        assert_true(checked[a] > 0);
    lp_free(given);
    lp_free(row);
    lapse_simulation_free(s);
}

/* The sum of -log p over the events is within 4 standard deviations of the law's own entropy. */
static void events_are_sampled_from_the_law(void **state)
{
    (void)state;
    uint64_t seed = 21;
    lapse_simulation *s = simulate_sessions(600, small_effort(60, 15), seed);
    double *p = lp_alloc((size_t)s->law.type_count, sizeof *p), difference = 0, variance = 0;
    for (int64_t user = 0; user < s->sequence_count; user++)
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            double mean = 0, square = 0;
            lp_simulation_probabilities(s, user, i, p);
            for (int32_t k = 0; k < s->law.type_count; k++)
                if (p[k] > 0) {
                    mean -= p[k] * log(p[k]);
                    square += p[k] * log(p[k]) * log(p[k]);
                }
            difference += -log(p[s->type[i]]) - mean;
            variance += square - mean * mean;
        }
    if (fabs(difference) > 4 * sqrt(variance))
        fail_msg("seed %llu: the log-likelihood is %.2f deviations from the law's", (unsigned long long)seed,
                 difference / sqrt(variance));
    lp_free(p);
    lapse_simulation_free(s);
}

/* ------------------------------------------------------------------------------------------------- effects ---- */

/* A history of one user, replaced by these events. */
typedef struct past {
    int action;
    int32_t series;
    double time;
} past;

/* The probability that a view `lag` seconds after the last event is of the series. */
static double view_probability(lapse_simulation *s, const past *events, int count, double lag, int32_t series)
{
    int32_t items = s->goods->item_count, first;
    double *p = lp_alloc((size_t)s->law.type_count, sizeof *p), sum = 0, all = 0;
    assert_true(s->start[1] > count);
    for (int e = 0; e < count; e++) {
        lp_goods_series_items(s->goods, events[e].series, &first);
        s->type[e] = events[e].action * items + first;
        s->time[e] = LP_SIMULATE_EPOCH + events[e].time;
    }
    s->time[count] = s->time[count - 1] + lag;
    lp_simulation_probabilities(s, 0, count, p);
    int32_t size = lp_goods_series_items(s->goods, series, &first);
    for (int32_t k = 0; k < items; k++)
        all += p[VIEW * items + k];
    for (int32_t k = first; k < first + size; k++)
        sum += p[VIEW * items + k];
    lp_free(p);
    return sum / all;
}

/* A series of a department. */
static int32_t series_in(const lapse_simulation *s, int department, int number)
{
    for (int32_t series = 0; series < s->goods->series_count; series++)
        if (department_of(s, series) == department && number-- == 0)
            return series;
    fail_msg("department %d has too few series", department);
    return -1;
}

static void effects_have_their_signs(void **state)
{
    (void)state;
    enum { ELECTRONICS = 0, HOME = 3, BABY = 5 };
    lapse_simulation *s = simulate_sessions(2000, 1, 3);
    int32_t a = series_in(s, HOME, 0), b = series_in(s, HOME, 9), goes_with_b = lp_goods_series_complement(s->goods, b);
    past viewed[] = {{SEARCH, a, 0}, {VIEW, b, 60}};
    double search[3], view[3], lags[] = {30, 600, 7200};
    assert_int_not_equal(a, goes_with_b);
    for (int i = 0; i < 3; i++) {
        search[i] = view_probability(s, viewed, 2, lags[i], a);
        view[i] = view_probability(s, viewed, 2, lags[i], goes_with_b);
    }
    for (int i = 1; i < 3; i++) {
        assert_true(search[i] > search[i - 1]); /* a search gains weight, a view fades */
        assert_true(view[i] < view[i - 1]);
    }
    assert_true(view[0] > search[0] && view[2] < 0.05);

    /* Interest lasts differently: five days after the search. */
    double kept[2];
    for (int i = 0; i < 2; i++) {
        int32_t series = series_in(s, i ? BABY : ELECTRONICS, 2);
        past searched[] = {{SEARCH, series, 0}};
        kept[i] = view_probability(s, searched, 1, 5 * DAY, series);
    }
    assert_true(kept[0] < 0.05 && kept[1] > 0.5);

    /* A purchase ends the interest; that in baby products comes back after 14 days. */
    for (int i = 0; i < 2; i++) {
        int32_t series = series_in(s, i ? BABY : ELECTRONICS, 2);
        past bought[] = {{SEARCH, series, 0}, {VIEW, series, 60}, {CART, series, 90}, {BUY, series, 120}};
        double before = view_probability(s, bought, 3, 3600, series),
               after = view_probability(s, bought, 4, 3600, series),
               later = view_probability(s, bought, 4, 14 * DAY, series);
        assert_true(before > 0.5 && after < 0.05);
        assert_true(i ? later > 0.8 : later < 0.05);
    }
    lapse_simulation_free(s);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    static const int64_t wrong[] = {1, 499, 20000001};
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.preset = "sessions";
    options.sequences = 2;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lapse_simulation *simulation = NULL;
        lapse_error error;
        options.items = wrong[i];
        assert_int_equal(lapse_simulate(&options, &simulation, &error), LAPSE_ERROR_USAGE);
        assert_non_null(strstr(error.message, "500 to 20000000"));
        assert_null(simulation);
    }
    options.items = 3000000; /* items are not stored */
    lapse_simulation *large = NULL;
    assert_int_equal(lapse_simulate(&options, &large, NULL), LAPSE_OK);
    assert_int_equal(lapse_simulation_save_law(large, small_path("law.csv"), NULL), LAPSE_ERROR_USAGE);
    lapse_simulation_free(large);
}

/* Users do not depend on their number, and are found by the names of their sessions. */
static void users_are_independent(void **state)
{
    (void)state;
    lapse_simulation *few = simulate_sessions(700, 3, 9), *many = simulate_sessions(700, 6, 9);
    assert_memory_equal(few->type, many->type, (size_t)few->event_count * sizeof *few->type);
    assert_memory_equal(few->time, many->time, (size_t)few->event_count * sizeof *few->time);
    assert_int_equal(lp_simulation_user_find(few, "u2/7"), 1);
    assert_int_equal(lp_simulation_user_find(few, "u4/1"), -1);
    for (int64_t i = few->start[1]; i < few->start[2]; i++)
        assert_int_equal(lp_simulation_event_find(few, 1, few->time[i]), i);
    assert_int_equal(lp_simulation_event_find(few, 1, few->time[few->start[1]] + 0.0005), -1);
    lapse_simulation_free(few);
    lapse_simulation_free(many);
}

/* ----------------------------------------------------------------------------------------------- law of time -- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static lapse_simulation *simulate_preset(const char *preset, int64_t sequences, double days)
{
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.preset = preset;
    options.sequences = sequences;
    options.days = days;
    lapse_simulation *s = NULL;
    assert_int_equal(lapse_simulate(&options, &s, NULL), LAPSE_OK);
    return s;
}

/* Of "sessions" and "cycle": the integrated hazard of the waits is exponential with mean 1, and the density is the slope of the
 * survival. Users are concatenated, so that the time after a user's last event counts. */
static void test_waits_follow_the_law_of_time(void **state)
{
    (void)state;
    static const char *const presets[] = {"sessions", "cycle"};
    for (int p = 0; p < 2; p++) {
        double days = 60, carried = 0, whole = 0, distance = 0;
        lapse_simulation *s = simulate_preset(presets[p], small_effort(200, 10), days);
        double *waits = malloc((size_t)s->event_count * sizeof *waits);
        size_t count = 0;
        assert_non_null(waits);
        for (int64_t user = 0; user < s->sequence_count; user++) {
            for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
                bool last = i + 1 == s->start[user + 1];
                double t = (last ? LP_SIMULATE_EPOCH + days * DAY : s->time[i + 1]) - s->time[i];
                lp_law_time law = lp_simulation_next_time(s, user, i - s->start[user] + 1, t);
                carried -= law.log_survival;
                whole -= law.log_survival;
                if (last)
                    continue;
                waits[count++] = carried;
                carried = 0;
                double step = 1e-4 * t;
                double before = lp_simulation_next_time(s, user, i - s->start[user] + 1, t - step).log_survival,
                       after = lp_simulation_next_time(s, user, i - s->start[user] + 1, t + step).log_survival;
                double slope = (exp(before) - exp(after)) / (2 * step), density = exp(law.log_density);
                /* where the uniform pause begins and ends, the density jumps */
                if (fabs(t - 360) > 2 * step && fabs(t - 1560) > 2 * step && fabs(density / slope - 1) > 1e-3)
                    fail_msg("%s: density %g at %g s, should be %g", presets[p], density, t, slope);
            }
        }
        qsort(waits, count, sizeof *waits, ascending);
        for (size_t i = 0; i < count; i++) {
            double level = 1 - exp(-waits[i]);
            distance = fmax(distance, fmax(level - (double)i / (double)count, (double)(i + 1) / (double)count - level));
        }
        double score = ((double)count - whole) / sqrt(whole);
        print_message("%s: %zu waits, expected %.1f (z %.2f); Kolmogorov-Smirnov %.3f\n", presets[p], count, whole,
                      score, distance * sqrt((double)count));
        assert_true(fabs(score) < 2.58 && distance * sqrt((double)count) < 1.628); /* two-sided 1 %; 1 % */
        free(waits);
        lapse_simulation_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_follow_the_law_of_time),
        cmocka_unit_test(probabilities_are_those_of_the_document),
        cmocka_unit_test(events_are_sampled_from_the_law),
        cmocka_unit_test(effects_have_their_signs),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(users_are_independent),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_paths_remove();
    return failed;
}
