/* test_when_law.c: the law of time of a simulation beside a model of it: best possible scores, expected numbers of events, and how near
 * a small model of the shop comes to them. */
#include "simulate/simulate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/simulated.h"
#include "support/small_data.h"
#include "support/small_train.h"

#define DAY 86400.0

static lapse_model *train_small(const lapse_dataset *dataset)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "when", "true");
    options.run.epochs = 1;
    return small_train(dataset, &options, NULL, NULL);
}

static lapse_time_scores law_scores(const lapse_simulation *simulation, const lapse_model *model,
                                    const lapse_dataset *dataset)
{
    lapse_time_scores scores;
    lapse_evaluate_options evaluate;
    lapse_error error = {0};
    lapse_evaluate_options_default(&evaluate);
    evaluate.bootstrap = 0;
    if (lapse_simulation_time_evaluate(simulation, model, dataset, &evaluate, &scores, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(scores.count, 1);
    assert_string_equal(scores.scores[0].name, "law");
    return scores;
}

/* The NLL is the mean of the law's log density, of a preset whose law is simple: exponential gaps. Scores of the model and of the law
 * are of the same events. */
static void scores_are_those_of_the_law(void **state)
{
    (void)state;
    lapse_simulate_options options;
    lapse_simulation *simulation = NULL;
    lapse_simulate_options_default(&options);
    options.preset = "cycle";
    options.sequences = small_effort(200, 30);
    assert_int_equal(lapse_simulate(&options, &simulation, NULL), LAPSE_OK);
    lapse_dataset *dataset = simulated_dataset(simulation, "event", 0);
    lapse_model *model = train_small(dataset);
    lapse_time_scores scores = law_scores(simulation, model, dataset), own;
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    assert_int_equal(lapse_time_evaluate(model, dataset, &evaluate, &own, NULL), LAPSE_OK);
    assert_true(own.cases == scores.cases && own.unit == scores.unit && own.floor == scores.floor &&
                own.sequences == scores.sequences);
    /* The model's background is exponential too: on few cases it may come below the law. */
    double n = (double)scores.cases;
    if (scores.scores[0].nll > own.scores[0].nll + 0.5 / sqrt(n))
        fail_msg("NLL %.4f of the law, %.4f of the model", scores.scores[0].nll, own.scores[0].nll);
    /* The mean of a gap's NLL: 1 + log of the mean gap, 6 days. */
    if (fabs(scores.scores[0].nll - 1 - log(6 * DAY / scores.unit)) > 4 / sqrt(n))
        fail_msg("NLL %.4f of %.0f cases in units of %g s", scores.scores[0].nll, n, scores.unit);
    assert_true(fabs(scores.scores[0].coverage[1] - 0.8) < 4 * 0.4 / sqrt(n));
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_simulation_free(simulation);
}

static void expect_refused(lapse_status status, const lapse_error *error, const char *text)
{
    if (status == LAPSE_OK || !strstr(error->message, text))
        fail_msg("status %d, '%s'; should be '%s'", (int)status, error->message, text);
}

static void refuses_what_has_no_law(void **state)
{
    (void)state;
    lapse_simulation *shop = simulate(40, 60, 3), *catalogue = NULL, *cycle = NULL;
    lapse_simulate_options options;
    lapse_time_scores scores;
    lapse_evaluate_options evaluate;
    lapse_forecast_options forecast;
    lapse_error error = {0};
    lapse_simulate_options_default(&options);
    lapse_evaluate_options_default(&evaluate);
    lapse_forecast_options_default(&forecast);
    options.preset = "catalogue";
    options.items = 200;
    options.sequences = 5;
    assert_int_equal(lapse_simulate(&options, &catalogue, NULL), LAPSE_OK);
    options = (lapse_simulate_options){.preset = "cycle", .sequences = 5, .seed = 1};
    assert_int_equal(lapse_simulate(&options, &cycle, NULL), LAPSE_OK);
    lapse_dataset *whole = simulated_dataset(shop, "action,item", 0),
                  *part = simulated_dataset(shop, "action,item", 60);
    assert_true(lapse_dataset_event_count(part) < lapse_dataset_event_count(whole));
    lapse_model *model = train_small(whole), *other = train_small(part);
    double *count = calloc((size_t)lapse_dataset_sequence_count(whole), sizeof *count);
    expect_refused(lapse_simulation_time_evaluate(catalogue, model, whole, &evaluate, &scores, &error), &error,
                   "no closed form");
    expect_refused(lapse_simulation_time_evaluate(cycle, model, whole, &evaluate, &scores, &error), &error,
                   "differs from the simulation");
    evaluate.split = "all";
    expect_refused(lapse_simulation_time_evaluate(shop, other, part, &evaluate, &scores, &error), &error,
                   "lacks events");
    expect_refused(lapse_simulation_forecast(cycle, whole, &forecast, count, &error), &error, "only the preset 'shop'");
    forecast.horizon = 0;
    expect_refused(lapse_simulation_forecast(shop, whole, &forecast, count, &error), &error, "above 0");
    free(count);
    lapse_model_free(model);
    lapse_model_free(other);
    lapse_dataset_close(whole);
    lapse_dataset_close(part);
    lapse_simulation_free(shop);
    lapse_simulation_free(catalogue);
    lapse_simulation_free(cycle);
}

static double mean(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* The expected numbers of events of the law, from a moment at which the histories were cut, are those that came: the longer simulation
 * extends the shorter one. The same bits on any number of threads. */
static void forecast_of_the_law_is_what_happens(void **state)
{
    (void)state;
    int users = small_effort(600, 40);
    lapse_simulation *s = simulate(users, 60, 4), *longer = simulate(users, 67, 4);
    lapse_dataset *dataset = simulated_dataset(s, "action,item", 0);
    int64_t sequences = lapse_dataset_sequence_count(dataset);
    double *count = calloc((size_t)sequences, sizeof *count), *again = calloc((size_t)sequences, sizeof *again);
    lapse_forecast_options options;
    lapse_forecast_options_default(&options);
    options.now = LP_SIMULATE_EPOCH + 60 * DAY;
    options.samples = small_effort(100, 10);
    options.threads = 1;
    assert_int_equal(lapse_simulation_forecast(s, dataset, &options, count, NULL), LAPSE_OK);
    options.threads = 3;
    assert_int_equal(lapse_simulation_forecast(s, dataset, &options, again, NULL), LAPSE_OK);
    assert_memory_equal(count, again, (size_t)sequences * sizeof *count);
    /* Users without an event in 60 days are in neither. */
    double came = 0, square = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        double own = (double)(longer->start[user + 1] - longer->start[user] - (s->start[user + 1] - s->start[user]));
        bool in = s->start[user + 1] > s->start[user];
        came += in ? own : 0;
        square += in ? own * own : 0;
    }
    double n = (double)sequences, deviation = sqrt((square / n - came * came / n / n) / n);
    print_message("seed 4: %.3f events a user came, expected %.3f (z %.2f)\n", came / n, mean(count, sequences),
                  (came / n - mean(count, sequences)) / deviation);
    assert_true(fabs(came / n - mean(count, sequences)) < 3 * deviation);
    free(count);
    free(again);
    lapse_dataset_close(dataset);
    lapse_simulation_free(s);
    lapse_simulation_free(longer);
}

/* A small model of a small shop. docs/when.md has the numbers at full size. */
static void model_of_the_shop_is_near_the_law(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_simulation *s = simulate(small_effort(500, 150), 180, 1);
    lapse_dataset *dataset = simulated_dataset(s, "action,item", 0);
    lapse_train_options *options = NULL;
    assert_int_equal(lapse_train_options_new(&options, NULL), LAPSE_OK);
    static const char *const set[][2] = {{"when", "true"},     {"task", "classify"}, {"dims", "32"},
                                         {"blocks", "1"},      {"heads", "1"},       {"learning-rate", "0.006"},
                                         {"dropout", "0.05"},  {"context", "64"},    {"schedule", "cosine"},
                                         {"censoring", "on"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        assert_int_equal(lapse_train_options_set(options, set[i][0], set[i][1], NULL), LAPSE_OK);
    small_set_number(options, "epochs", small_effort(12, 2));
    lapse_model *model = small_train(dataset, options, NULL, NULL);
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.bootstrap = 0;
    lapse_time_scores own, law = law_scores(s, model, dataset);
    assert_int_equal(lapse_time_evaluate(model, dataset, &evaluate, &own, NULL), LAPSE_OK);
    double nll = own.scores[0].nll, best = law.scores[0].nll;
    print_message("time NLL %.4f, of the law %.4f, of one log-normal %.4f (%ss); PIT distance %.4f, of the law %.4f\n",
                  nll, best, own.scores[2].nll, own.unit_name, own.scores[0].pit_distance, law.scores[0].pit_distance);
    if (small_effort(1, 0) && !(nll - best < 0.12 * best && own.scores[0].pit_distance < 0.05))
        fail_msg("time NLL %.4f, of the law %.4f; PIT distance %.4f", nll, best, own.scores[0].pit_distance);
    assert_true(nll < own.scores[2].nll);

    /* Expected numbers of events within 7 days of the end of the data. */
    int64_t sequences = lapse_dataset_sequence_count(dataset);
    double *count = calloc((size_t)sequences, sizeof *count);
    lapse_forecast_options forecast;
    lapse_forecasts made;
    lapse_forecast_options_default(&forecast);
    forecast.now = LP_SIMULATE_EPOCH + 180 * DAY;
    forecast.samples = 20;
    assert_int_equal(lapse_simulation_forecast(s, dataset, &forecast, count, NULL), LAPSE_OK);
    assert_int_equal(lapse_forecast(model, dataset, &forecast, &made, NULL), LAPSE_OK);
    double ours = mean(made.count, sequences), wanted = mean(count, sequences);
    print_message("events within 7 days: %.3f, by the law %.3f\n", ours, wanted);
    if (small_effort(1, 0) && !(fabs(ours / wanted - 1) < 0.1))
        fail_msg("events within 7 days: %.3f, by the law %.3f", ours, wanted);
    lapse_forecasts_clear(&made);
    free(count);
    lapse_model_free(model);
    lapse_train_options_free(options);
    lapse_dataset_close(dataset);
    lapse_simulation_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_law),
        cmocka_unit_test(refuses_what_has_no_law),
        cmocka_unit_test(forecast_of_the_law_is_what_happens),
        cmocka_unit_test(model_of_the_shop_is_near_the_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
