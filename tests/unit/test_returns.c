/* test_returns.c: returns of histories after an origin: the cases, the baselines on laws that they can know, scores, and a model's chances,
 * which nothing after the origin may reach. */
#include "base/random.h"
#include "data/dataset/names.h"
#include "evaluate/returns.h"
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

static void cases_are_those_before_the_origin(void **state)
{
    (void)state;
    const double time[] = {10, 20, 50, 60, 90, 5, 30};
    const int32_t type[] = {0, 1, 0, 1, 0, 1, 0};
    const int lengths[] = {3, 2, 2};
    const uint8_t split[] = {0, 0, 0, 2, 2, 2, 2};
    lapse_dataset *dataset = small_dataset(3, lengths, time, type, 2, NULL);
    lp_return_case *cases;
    int64_t count;
    assert_int_equal(lp_return_cases(dataset, NULL, LP_SPLIT_COUNT, 30, &cases, &count, NULL), LAPSE_OK);
    assert_int_equal(count, 2);
    const lp_return_case wanted[] = {{0, 2, 1, 10, 20, 20}, {2, 2, 1, 25, 25, INFINITY}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cases[i].sequence, wanted[i].sequence);
        assert_int_equal(cases[i].seen, wanted[i].seen);
        assert_true(cases[i].frequency == wanted[i].frequency && cases[i].recency == wanted[i].recency &&
                    cases[i].age == wanted[i].age && cases[i].next == wanted[i].next);
    }
    lp_free(cases);
    assert_int_equal(lp_return_cases(dataset, split, LP_SPLIT_TEST, 70, &cases, &count, NULL), LAPSE_OK);
    assert_true(count == 2 && cases[0].sequence == 1 && cases[0].next == 20);
    lp_free(cases);
    lapse_dataset_close(dataset);
}

static void some_sequences_are_a_dataset(void **state)
{
    (void)state;
    const double time[] = {10, 20, 50, 60, 90, 5};
    const int32_t type[] = {0, 1, 0, 1, 0, 1};
    const int lengths[] = {3, 2, 1};
    const int64_t chosen[] = {2, 0}, events[] = {1, 2}, wrong = 3;
    lapse_dataset *dataset = small_dataset(3, lengths, time, type, 2, NULL), *part, *cut;
    assert_int_equal(lapse_dataset_select(dataset, chosen, 2, &part, NULL), LAPSE_OK);
    assert_int_equal(lp_dataset_select(dataset, chosen, events, 2, &cut, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_select(dataset, &wrong, 1, &part, NULL), LAPSE_ERROR_USAGE);
    assert_int_equal(lapse_dataset_select(dataset, chosen, 0, &part, NULL), LAPSE_ERROR_USAGE);
    lapse_dataset_close(dataset);
    assert_int_equal(lapse_dataset_event_count(part), 4);
    assert_int_equal(lapse_dataset_event_count(cut), 3);
    assert_string_equal(lapse_dataset_sequence_name(part, 0), "s2");
    assert_string_equal(lapse_dataset_sequence_name(cut, 1), "s0");
    assert_string_equal(lapse_dataset_event_type_name(part, 1), "b");
    assert_true(part->time[0] == 5 && part->time[3] == 50 && cut->time[2] == 20 && cut->type[2] == 1);
    assert_int_equal(lp_names_find(&part->types, "b"), 1);
    lapse_dataset_close(part);
    lapse_dataset_close(cut);
}

/* ----------------------------------------------------------------------------------------------------- BG/NBD ---- */

enum { CUSTOMERS = 6000 };
static const lp_bg_nbd TRUTH = {.r = 2, .alpha = 12, .a = 1.2, .b = 5, .unit = 3600};

/* Customers of the law, each known for 20 to 60 units; *later: their events in the `after` units after that. */
static void draw_customers(lp_return_case *cases, double after, double *later)
{
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 0);
    *later = 0;
    for (int i = 0; i < CUSTOMERS; i++) {
        double age = 20 + 40 * lp_random_uniform(&random), rate = 0, low = 1, high = 1, t = 0;
        for (int k = 0; k < 2; k++) /* gamma with shape 2 */
            rate += lp_random_exponential(&random) / TRUTH.alpha;
        /* beta(1.2, 5) by Johnk's rejection */
        do {
            low = pow(lp_random_uniform(&random), 1 / TRUTH.a);
            high = pow(lp_random_uniform(&random), 1 / TRUTH.b);
        } while (low + high > 1);
        double leaves = low / (low + high);
        cases[i] = (lp_return_case){.sequence = i, .age = age * TRUTH.unit, .next = INFINITY};
        while ((t += lp_random_exponential(&random) / rate) < age + after) {
            if (t < age) {
                cases[i].frequency++;
                cases[i].recency = t * TRUTH.unit;
            } else {
                cases[i].next = fmin(cases[i].next, (t - age) * TRUTH.unit);
                ++*later;
            }
            if (lp_random_uniform(&random) < leaves)
                break;
        }
    }
}

/* The fit is at least as likely as the truth, and says who comes back and how often. */
static void bg_nbd_fits_its_own_law(void **state)
{
    (void)state;
    static lp_return_case cases[CUSTOMERS];
    const double after = 10, horizon = after * TRUTH.unit;
    double later, own = 0, truth = 0, events = 0, chance = 0, returned = 0, alive = 0;
    draw_customers(cases, after, &later);
    lp_bg_nbd fit = lp_bg_nbd_fit(cases, CUSTOMERS);
    for (int i = 0; i < CUSTOMERS; i++) {
        own += lp_bg_nbd_log_likelihood(&fit, &cases[i]) / CUSTOMERS;
        lp_bg_nbd same = TRUTH; /* in the unit of the fit, whose density has another one */
        same.unit = fit.unit;
        same.alpha *= TRUTH.unit / fit.unit;
        truth += lp_bg_nbd_log_likelihood(&same, &cases[i]) / CUSTOMERS;
        events += lp_bg_nbd_events(&fit, &cases[i], horizon);
        chance += lp_bg_nbd_chance(&fit, &cases[i], horizon);
        alive += lp_bg_nbd_alive(&fit, &cases[i]);
        returned += cases[i].next <= horizon;
        double soon = 1e-4 * TRUTH.unit, rate = (fit.r + cases[i].frequency) / (fit.alpha * fit.unit + cases[i].age);
        double expected = lp_bg_nbd_alive(&fit, &cases[i]) * rate * soon;
        check_near("events soon", lp_bg_nbd_events(&fit, &cases[i], soon), expected, 1e-3 * expected);
        check_near("chance soon", lp_bg_nbd_chance(&fit, &cases[i], soon), expected, 1e-3 * expected);
    }
    assert_true(own >= truth - 1e-6);
    check_near("likelihood", own, truth, 0.002);
    check_near("events", events, later, 0.04 * later);
    check_near("returns", chance, returned, 0.04 * returned);
    assert_true(alive > chance && alive < CUSTOMERS);
    assert_true(lp_bg_nbd_events(&(lp_bg_nbd){1, 1, 1, 1, 1}, &(lp_return_case){.age = 1}, 1) >
                0); /* a = 1: its limit */
}

/* ---------------------------------------------------------------------------------------------------- scores ----- */

/* The score equation of a regression with an intercept: chances add up to outcomes; and it tells late from early. */
static void logistic_regression_is_calibrated(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    static lp_return_case cases[COUNT];
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 0);
    double sum = 0, came = 0;
    for (int i = 0; i < COUNT; i++) {
        double silence = exp(8 * lp_random_uniform(&random)), p = 1 / (1 + exp(log1p(silence) - 3));
        cases[i] = (lp_return_case){.frequency = floor(9 * lp_random_uniform(&random)), .recency = 100};
        cases[i].age = 100 + silence;
        cases[i].next = lp_random_uniform(&random) < p ? 1 : 1e9;
    }
    lp_return_logistic model = lp_return_logistic_fit(cases, COUNT, 10);
    for (int i = 0; i < COUNT; i++) {
        double p = lp_return_logistic_chance(&model, &cases[i]);
        check_near("chance", p, 1 / (1 + exp(log1p(cases[i].age - cases[i].recency) - 3)), 0.06);
        sum += p;
        came += cases[i].next <= 10;
    }
    check_near("sum of chances", sum, came, 0.01);
    for (int i = 0; i < COUNT; i++)
        cases[i].next = 1; /* all came: the weights stay finite */
    model = lp_return_logistic_fit(cases, COUNT, 10);
    assert_true(lp_return_logistic_chance(&model, &cases[0]) > 0.99 && isfinite(model.weight[3]));
}

static void scores_are_those_of_the_definition(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    lp_return_case cases[COUNT];
    double chance[COUNT];
    lapse_return_score score;
    lapse_return_horizon horizon = {.seconds = 5};
    for (int i = 0; i < COUNT; i++) {
        cases[i] = (lp_return_case){.next = i < 3 ? 5 : 6};
        chance[i] = i < 3 ? 0.75 : 0.25;
    }
    assert_int_equal(lp_return_score_make(cases, chance, COUNT, 5, 0, &score, NULL), LAPSE_OK);
    check_near("Brier", score.brier, 0.0625, 1e-12);
    check_near("log-loss", score.log_loss, -log(0.75), 1e-12);
    check_near("mean", score.mean, 0.4, 1e-12);
    assert_int_equal(lp_return_groups(cases, chance, COUNT, &horizon, NULL), LAPSE_OK);
    for (int g = 0; g < LAPSE_RETURN_GROUPS; g++) {
        assert_int_equal(horizon.groups[g].cases, 2);
        check_near("predicted", horizon.groups[g].predicted, g < 3 ? 0.25 : g == 3 ? 0.5 : 0.75, 1e-12);
        check_near("observed", horizon.groups[g].observed, g < 3 ? 0 : g == 3 ? 0.5 : 1, 1e-12);
    }
}

/* ----------------------------------------------------------------------------------------------- evaluation ----- */

static const double HORIZONS[] = {86400, 7 * 86400.0};

static lapse_return_scores evaluate(const lapse_model *model, const lapse_dataset *dataset, const char *split,
                                    int threads)
{
    lapse_return_options options;
    lapse_return_scores scores;
    lapse_error error = {0};
    lapse_return_options_default(&options);
    options.split = split;
    options.horizons = HORIZONS;
    options.horizon_count = 2;
    options.samples = 3;
    options.bootstrap = 20;
    options.threads = threads;
    if (lapse_return_evaluate(model, dataset, &options, &scores, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return scores;
}

/* Threads change no bit; other times after the origin change outcomes, and no chance. */
static void the_future_does_not_leak(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_shop(120, 60, 2), *other = small_dataset_shop(120, 60, 2);
    lapse_train_options options = small_train_options();
    small_set(&options, "when", "true");
    small_set(&options, "split-by", "sequence");
    small_set(&options, "context", "16");
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_return_scores all = evaluate(model, dataset, "all", 1), again = evaluate(model, dataset, "all", 4);
    assert_memory_equal(&all, &again, sizeof all);
    double *time = (double *)(uintptr_t)other->time, end = all.now + HORIZONS[1];
    for (int64_t i = 0; i < other->event_count; i++)
        if (time[i] > all.now + 86400 && time[i] < end) /* the data ends when it did */
            time[i] = all.now + 86400 + (time[i] - all.now - 86400) * 0.5;
    again = evaluate(model, other, "all", 1);
    assert_true(again.now == all.now && again.horizons[1].scores[0].mean == all.horizons[1].scores[0].mean);
    assert_true(again.steps[9].expected == all.steps[9].expected && again.steps[5].observed > all.steps[5].observed);
    lapse_return_scores test = evaluate(model, dataset, "test", 1);
    assert_true(test.cases > 0 && test.cases < all.cases && test.step_count == LAPSE_RETURN_STEPS);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 4; i++) {
            const lapse_return_score *score = &all.horizons[h].scores[i];
            assert_true(score->brier >= 0 && score->brier_low <= score->brier && score->brier <= score->brier_high);
            assert_true(score->mean > 0 && score->mean < 1);
        }
    for (int k = 1; k < LAPSE_RETURN_STEPS; k++)
        assert_true(all.steps[k].observed >= all.steps[k - 1].observed &&
                    all.steps[k].expected >= all.steps[k - 1].expected &&
                    all.steps[k].bg_nbd > all.steps[k - 1].bg_nbd);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

static void refuses(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(12);
    lapse_train_options train = small_train_options();
    lapse_model *plain = small_train(dataset, &train, NULL, NULL);
    small_set(&train, "when", "true");
    small_set(&train, "split-by", "leave-one-out");
    lapse_model *model = small_train(dataset, &train, NULL, NULL);
    const double none = 0, year = 4e7, second = 1;
    const struct {
        const lapse_model *model;
        const double *horizons;
        int count;
        const char *split, *text;
    } cases[] = {
        {plain, &second, 1, "all", "train it with --when"},
        {model, &second, 0, "all", "0 horizons are not between 1 and 8"},
        {model, &none, 1, "all", "it must be above 0"},
        {model, &year, 1, "all", "no history of the split 'all' has an event before"},
        {model, &second, 1, "test", "use --split-by sequence, time or session"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_return_options options;
        lapse_return_scores scores;
        lapse_error error = {0};
        lapse_return_options_default(&options);
        options.split = cases[i].split;
        options.horizons = cases[i].horizons;
        options.horizon_count = cases[i].count;
        if (lapse_return_evaluate(cases[i].model, dataset, &options, &scores, &error) == LAPSE_OK ||
            !strstr(error.message, cases[i].text))
            fail_msg("'%s' should be '%s'", error.message, cases[i].text);
        options.now = 1e15;
        if (cases[i].count > 0 && cases[i].horizons[0] > 0 && cases[i].model == model &&
            strcmp(cases[i].split, "all") == 0) {
            assert_int_equal(lapse_return_evaluate(model, dataset, &options, &scores, &error), LAPSE_ERROR_USAGE);
            assert_non_null(strstr(error.message, "give a shorter one, or an earlier --now"));
        }
    }
    lapse_model_free(plain);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_are_those_before_the_origin),
        cmocka_unit_test(some_sequences_are_a_dataset),
        cmocka_unit_test(bg_nbd_fits_its_own_law),
        cmocka_unit_test(logistic_regression_is_calibrated),
        cmocka_unit_test(scores_are_those_of_the_definition),
        cmocka_unit_test(the_future_does_not_leak),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
