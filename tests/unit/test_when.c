/* test_when.c: networks that learn the time of the next event: that the events' network is as without, that the target time does not
 * reach it, that a session, an evaluation and a forecast agree about it, data with a known law, and what is refused. */
#include "model/when_head.h"
#include "serve/session.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

/* ------------------------------------------------------------------------------- one law in every place ------- */

typedef struct variant {
    const char *name;
    const char *options[10]; /* names and values */
} variant;

static const variant variants[] = {
    {"defaults", {"when-components", "3"}},
    {"one block", {"blocks", "1", "heads", "1"}},
    {"three blocks", {"blocks", "3"}},
    {"mlp-query", {"projection", "mlp-query", "combine", "add"}},
    {"position", {"encoding", "position"}},
    {"none", {"encoding", "none"}},
    {"samples", {"encoding", "bochner-normal", "periods", "3", "frequency-samples", "3"}},
    {"unknown", {"target-time", "unknown"}},
    {"recommend", {"task", "recommend", "split-by", "sequence"}},
    {"background", {"when-background", "constant", "when-components", "2"}},
    {"week", {"when-background", "week", "encoding", "bochner-normal", "periods", "3", "frequency-samples", "2"}},
    {"lstm", {"model", "lstm", "encoding", "mercer", "periods", "3"}},
    {"sasrec", {"model", "sasrec"}},
};

enum { VARIANTS = sizeof variants / sizeof *variants };

static lapse_train_options options_of(const variant *v, bool when)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "when", when ? "true" : "false");
    options.model.context = 16; /* whole sequences, so that windows of an evaluation see what a session sees */
    options.run.epochs = 1;
    for (int i = 0; v->options[i]; i += 2)
        small_set(&options, v->options[i], v->options[i + 1]);
    return options;
}

static lapse_model *train_variant(const variant *v, const lapse_dataset *dataset)
{
    lapse_train_options options = options_of(v, true);
    return small_train(dataset, &options, NULL, NULL);
}

/* An evaluation computes what a session computes: the NLL of each event is the same. */
static void session_and_evaluation_agree(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(5);
    for (int v = 0; v < VARIANTS; v++) {
        lapse_model *model = train_variant(&variants[v], dataset);
        lp_evaluator evaluator;
        lapse_session *session;
        small_evaluate(&evaluator, model->times, dataset);
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        assert_int_equal(lp_session_hold(session, NULL), LAPSE_OK);
        for (int64_t c = 0; c < evaluator.case_count; c++) {
            const lp_time_case *one = &evaluator.time.cases[c];
            lapse_session_clear(session);
            for (int64_t i = (int64_t)dataset->start[one->sequence]; i < one->event; i++)
                assert_int_equal(lp_session_add(session, dataset->time[i], dataset->type[i], NULL, NULL), LAPSE_OK);
            lp_next_time law;
            assert_int_equal(lp_session_law(session, &law, NULL), LAPSE_OK);
            double nll = -lp_next_time_log_density(&law, fmax(one->gap, model->config.when_floor));
            check_near(variants[v].name, one->nll, nll, 1e-4);
        }
        lapse_session_free(session);
        lp_evaluator_clear(&evaluator);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* The parameters of the events' network, its history and best epoch are those of a run without --when, bit for bit. */
static void events_are_as_without(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(5);
    for (int v = 0; v < VARIANTS; v++) {
        variant plain = variants[v];
        int count = 0;
        for (int i = 0; plain.options[i]; i += 2)
            if (strncmp(plain.options[i], "when-", 5) != 0) {
                plain.options[count] = plain.options[i];
                plain.options[count + 1] = plain.options[i + 1];
                count += 2;
            }
        plain.options[count] = NULL;
        for (int censoring = 0; censoring < 2; censoring++) {
            lapse_train_options with = options_of(&variants[v], true), without = options_of(&plain, false);
            small_set(&with, "censoring", censoring ? "on" : "off");
            if (censoring) {
                small_set(&with, "split-by", "sequence");
                small_set(&without, "split-by", "sequence");
            }
            with.run.epochs = without.run.epochs = 3;
            lapse_model *a = small_train(dataset, &without, NULL, NULL), *b = small_train(dataset, &with, NULL, NULL);
            assert_non_null(b->times);
            assert_int_equal(a->tensor_count + b->times->tensor_count, b->tensor_count);
            assert_int_equal(a->network.graph.parameter_size, b->network.graph.parameter_size);
            if (memcmp(a->parameters, b->parameters, a->network.graph.parameter_size * sizeof(float)) != 0)
                fail_msg("%s, censoring %d: --when changes the events' network", variants[v].name, censoring);
            lapse_epoch one, other;
            for (int i = 0; lapse_model_history(a, i, &one); i++) {
                assert_true(lapse_model_history(b, i, &other) && one.metric_count == other.metric_count);
                assert_true(one.loss == other.loss && one.score == other.score);
            }
            assert_string_equal(lp_model_property_find(a, "score.epoch"), lp_model_property_find(b, "score.epoch"));
            assert_true(lapse_model_times_history(b, 2, &one) && !lapse_model_times_history(a, 0, &one));
            assert_int_equal(one.metric_count, 1);
            assert_string_equal(one.metrics[0].name, "time-loss");
            lapse_model_free(a);
            lapse_model_free(b);
        }
    }
    lapse_dataset_close(dataset);
}

/* A run that is stopped before the events' network is trained has no network of times. */
static bool stop(const lapse_progress *progress, void *context)
{
    const int *when = context;
    return !(progress->epoch == 2 && progress->times == *when);
}

static void stopped_before_the_times(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(5);
    for (int times = 0; times < 2; times++) {
        lapse_train_options options = options_of(&variants[0], true);
        options.run.epochs = 3;
        lapse_model *model = small_train(dataset, &options, stop, &times), *loaded;
        assert_int_equal(lapse_model_predicts_time(model), times);
        assert_string_equal(lp_model_property_find(model, "run.status"), "stopped");
        assert_int_equal(lapse_model_save(model, small_path("stopped"), NULL), LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("stopped"), &loaded, NULL), LAPSE_OK);
        assert_int_equal(lapse_model_predicts_time(loaded), times);
        assert_int_equal(model->tensor_count, loaded->tensor_count);
        lapse_model_free(loaded);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* Another time of the last event of every sequence leaves the law of its time as it was, bit for bit. */
static void target_time_does_not_leak(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(6), *other = small_train_data(6);
    double *time = (double *)(uintptr_t)other->time;
    for (int64_t s = 0; s < other->sequence_count; s++)
        time[other->start[s + 1] - 1] += 1234.567 * (double)(s + 1);
    for (int v = 0; v < VARIANTS; v++) {
        lapse_model *model = train_variant(&variants[v], dataset);
        lp_evaluator a, b;
        small_evaluate(&a, model->times, dataset);
        small_evaluate(&b, model->times, other);
        assert_int_equal(a.case_count, b.case_count);
        int64_t moved = 0;
        for (int64_t c = 0; c < a.case_count; c++)
            moved += a.time.cases[c].gap != b.time.cases[c].gap;
        assert_true(moved > 5);
        /* The outputs of the last batch; the data is one batch. */
        size_t width = (size_t)a.time.width * (size_t)lp_network_samples(&model->times->network);
        if (memcmp(a.time.outputs, b.time.outputs, (size_t)a.batch.targets * width * sizeof(float)) != 0)
            fail_msg("%s: the target time changed the law of the time", variants[v].name);
        lp_evaluator_clear(&a);
        lp_evaluator_clear(&b);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

/* ---------------------------------------------------------------------------------- data with a known law ----- */

typedef struct renewal {
    const char *name;
    double (*draw)(lp_random *random);
    double (*log_density)(double t);
    double (*survival)(double t);
} renewal;

static double upper_tail(double z)
{
    return 0.5 * erfc(z / sqrt(2));
}

static double log_normal_part(double t, double mean, double deviation)
{
    double z = (log(t) - mean) / deviation;
    return exp(-z * z / 2) / (t * deviation * sqrt(2 * M_PI));
}

static double draw_log_normal(lp_random *random)
{
    return exp(8 + 1.2 * lp_random_normal(random));
}

static double log_normal_density(double t)
{
    return log(log_normal_part(t, 8, 1.2));
}

static double log_normal_survival(double t)
{
    return upper_tail((log(t) - 8) / 1.2);
}

static double draw_weibull(lp_random *random)
{
    return 3600 * pow(lp_random_exponential(random), 1 / 0.7);
}

static double weibull_density(double t)
{
    double x = t / 3600;
    return log(0.7 / 3600) - 0.3 * log(x) - pow(x, 0.7);
}

static double weibull_survival(double t)
{
    return exp(-pow(t / 3600, 0.7));
}

static double draw_clusters(lp_random *random)
{
    bool late = lp_random_uniform(random) < 0.3;
    return exp((late ? 11 : 5) + (late ? 0.3 : 0.6) * lp_random_normal(random));
}

static double clusters_density(double t)
{
    return log(0.7 * log_normal_part(t, 5, 0.6) + 0.3 * log_normal_part(t, 11, 0.3));
}

static double clusters_survival(double t)
{
    return 0.7 * upper_tail((log(t) - 5) / 0.6) + 0.3 * upper_tail((log(t) - 11) / 0.3);
}

static const renewal renewals[] = {
    {"log-normal", draw_log_normal, log_normal_density, log_normal_survival},
    {"Weibull", draw_weibull, weibull_density, weibull_survival},
    {"two clusters", draw_clusters, clusters_density, clusters_survival},
};

enum { SEQUENCES = 10000, EVENTS = 21 };

/* Sequences of the renewal processes: LAPSE_TEST_RENEWALS, at most SEQUENCES. */
static int renewal_sequences(void)
{
    const char *wanted = getenv("LAPSE_TEST_RENEWALS");
    int count = wanted ? atoi(wanted) : 2000;
    return count < 40 ? 40 : count > SEQUENCES ? SEQUENCES : count;
}

static lapse_dataset *renewal_data(const renewal *r, int sequences, uint64_t seed)
{
    static double time[SEQUENCES * EVENTS];
    static int32_t type[SEQUENCES * EVENTS];
    static int lengths[SEQUENCES];
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 1);
    for (int s = 0; s < sequences; s++) {
        lengths[s] = EVENTS;
        for (int k = 0; k < EVENTS; k++) {
            int i = s * EVENTS + k;
            time[i] = k ? time[i - 1] + r->draw(&random) : 1e9;
            type[i] = (int32_t)lp_random_below(&random, 2);
        }
    }
    return small_dataset(sequences, lengths, time, type, 2, NULL);
}

/* The NLL of unseen gaps against that of the law; and the chance to come within a while after a long silence. Few training gaps outlast
 * the silence, and what the model learns of it is at best as exact as their sample: docs/when.md has the numbers of 10,000 sequences,
 * where both are within 0.01. */
static void learns_renewal_processes(void **state)
{
    (void)state;
    small_skip_under_tools(); /* it is about numbers, and reads memory like the others */
    for (size_t r = 0; r < sizeof renewals / sizeof *renewals; r += (size_t)small_effort(1, 3)) {
        int sequences = renewal_sequences();
        lapse_dataset *dataset = renewal_data(&renewals[r], sequences, 1),
                      *other = renewal_data(&renewals[r], sequences, 2);
        lapse_train_options options = small_gap_options(EVENTS, sequences / 40, 8);
        small_set(&options, "when", "true");
        small_set(&options, "censoring", "off"); /* the sequences end by number, not by time */
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lp_evaluator evaluator;
        small_evaluate(&evaluator, model->times, other);
        double sum = 0, best = 0;
        for (int64_t c = 0; c < evaluator.case_count; c++) {
            sum += evaluator.time.cases[c].nll;
            best -= renewals[r].log_density(evaluator.time.cases[c].gap);
        }
        double count = (double)evaluator.case_count;
        check_near(renewals[r].name, sum / count, best / count, 0.01);
        lapse_session *session;
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(lp_session_add(session, other->time[i], other->type[i], NULL, NULL), LAPSE_OK);
        double silence = 20000, span = 20000, cdf, last = other->time[3], until = last + silence + span;
        lapse_when when = {.now = last + silence, .times = &until, .time_count = 1, .cdf = &cdf};
        assert_int_equal(lapse_session_when(session, &when, NULL), LAPSE_OK);
        double at[3] = {until - 10, until, until + 10}, below[3], density[3]; /* the density is the slope of the CDF */
        when = (lapse_when){.now = last + silence, .times = at, .time_count = 3, .cdf = below, .density = density};
        assert_int_equal(lapse_session_when(session, &when, NULL), LAPSE_OK);
        check_near("density", density[1] / ((below[2] - below[0]) / 20), 1, 1e-4);
        assert_true(below[1] == cdf);
        double exact = 1 - renewals[r].survival(silence + span) / renewals[r].survival(silence);
        double outlast = 0.8 * count * renewals[r].survival(silence), sample = sqrt(exact * (1 - exact) / outlast);
        print_message("%s, %d sequences: NLL %.4f above that of the law; after a silence %.4f, exactly %.4f, standard "
                      "error of the "
                      "sample %.4f\n",
                      renewals[r].name, sequences, (sum - best) / count, cdf, exact, sample);
        check_near("after a silence", cdf, exact, fmax(0.01, 3 * sample));
        lapse_session_free(session);
        lp_evaluator_clear(&evaluator);
        lapse_model_free(model);
        lapse_dataset_close(dataset);
        lapse_dataset_close(other);
    }
}

/* --------------------------------------------------------------------------------------------- forecasts ------ */

/* Same bits on any number of threads; the chance of no event is the survival; within is the integral over types. */
static void forecast_agrees_with_the_law(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(7);
    for (int v = 0; v < VARIANTS; v += small_effort(2, 5)) {
        lapse_model *model = train_variant(&variants[v], dataset);
        lapse_forecasts one, four;
        lapse_forecast_options options;
        lapse_forecast_options_default(&options);
        options.horizon = 200;
        options.samples = 100;
        options.threads = 1;
        assert_int_equal(lapse_forecast(model, dataset, &options, &one, NULL), LAPSE_OK);
        options.threads = 4;
        assert_int_equal(lapse_forecast(model, dataset, &options, &four, NULL), LAPSE_OK);
        size_t all = (size_t)(one.sequence_count * one.type_count) * sizeof(double);
        assert_memory_equal(one.type_expected, four.type_expected, all);
        assert_memory_equal(one.type_any, four.type_any, all);
        assert_memory_equal(one.high, four.high, (size_t)one.sequence_count * sizeof(double));
        double *start = calloc((size_t)one.sequence_count, sizeof *start),
               *within = calloc((size_t)one.sequence_count, sizeof *within),
               *types = calloc((size_t)(one.sequence_count * one.type_count), sizeof *types);
        lapse_when_options ask;
        lapse_when_options_default(&ask);
        ask.horizons = &options.horizon;
        ask.horizon_count = 1;
        ask.alive = calloc((size_t)one.sequence_count, sizeof *ask.alive);
        ask.mean = calloc((size_t)one.sequence_count, sizeof *ask.mean);
        assert_int_equal(lapse_when_all(model, dataset, &ask, start, NULL, within, types, NULL), LAPSE_OK);
        double *first = calloc((size_t)(one.sequence_count * one.type_count), sizeof *first);
        ask.type_sequences = 2; /* the others are not computed */
        assert_int_equal(lapse_when_all(model, dataset, &ask, start, NULL, within, first, NULL), LAPSE_OK);
        assert_memory_equal(first, types, (size_t)(2 * one.type_count) * sizeof *first);
        assert_true(first[2 * one.type_count] == 0 && types[2 * one.type_count] > 0);
        free(first);
        for (int64_t s = 0; s < one.sequence_count; s++) {
            double sum = 0, count = 0;
            for (int64_t k = 0; k < one.type_count; k++) {
                sum += types[s * one.type_count + k];
                count += one.type_expected[s * one.type_count + k];
            }
            check_near("types within", sum, within[s], 1e-6);
            check_near("any event", one.any[s], within[s], 0.25);
            check_near("events", count, one.count[s], 1e-9 * (1 + count));
            assert_true(one.low[s] <= one.high[s] && one.samples[s] == 100);
            bool short_horizon = options.horizon <= model->config.when_span;
            assert_true(ask.alive[s] > 0 && ask.alive[s] <= 1 && (ask.alive[s] >= within[s]) == short_horizon);
            assert_true(ask.mean[s] > start[s] && ask.mean[s] < start[s] + model->config.when_span);
        }
        free(ask.alive);
        free(ask.mean);
        free(start);
        free(within);
        free(types);
        lapse_forecasts_clear(&one);
        lapse_forecasts_clear(&four);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* A session returns to where it was: the same query, the same bits. */
static void session_returns(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(8);
    for (int v = 0; v < VARIANTS; v++) {
        lapse_model *model = train_variant(&variants[v], dataset);
        lapse_session *session;
        double before[8], after[8];
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        assert_int_equal(lp_session_hold(session, NULL), LAPSE_OK);
        for (int64_t i = 0; i < 6; i++)
            assert_int_equal(lp_session_add(session, 100.0 * (double)i, (int32_t)(i % 5), NULL, NULL), LAPSE_OK);
        assert_int_equal(lp_session_probabilities(session, 700, before, NULL), LAPSE_OK);
        lp_session_mark mark = lp_session_mark_of(session);
        for (int k = 0; k < 3; k++) {
            lp_next_time law;
            assert_int_equal(lp_session_add(session, 600 + 50.5 * k, 1, NULL, NULL), LAPSE_OK);
            assert_int_equal(lp_session_law(session, &law, NULL), LAPSE_OK);
        }
        lp_session_return(session, mark);
        assert_int_equal(lp_session_probabilities(session, 700, after, NULL), LAPSE_OK);
        if (memcmp(before, after, 5 * sizeof *before) != 0)
            fail_msg("%s: another prediction after the session returned", variants[v].name);
        double time, again;
        int64_t event, same;
        assert_int_equal(lapse_session_sample(session, NAN, 3, 9, &time, &event, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_sample(session, NAN, 3, 9, &again, &same, NULL), LAPSE_OK);
        assert_true(time == again && event == same && time >= 500 && event >= 0 && event < 5);
        lapse_session_free(session);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------------- refusals ------- */

static void expect_refused(lapse_status status, lapse_status wanted, const lapse_error *error, const char *text)
{
    if (status != wanted || !strstr(error->message, text))
        fail_msg("status %d, '%s'; should be %d, '%s'", (int)status, error->message, (int)wanted, text);
}

static void refuses_bad_input(void **state)
{
    (void)state;
    lapse_error error;
    lapse_dataset *dataset = small_train_data(9);
    lapse_train_options plain = small_train_options();
    lapse_model *without = small_train(dataset, &plain, NULL, NULL), *model = train_variant(&variants[0], dataset);
    assert_false(lapse_model_predicts_time(without));
    assert_true(lapse_model_predicts_time(model));
    assert_null(lp_model_property_find(without, "when.mean"));
    lapse_forecasts forecasts;
    lapse_forecast_options options;
    lapse_forecast_options_default(&options);
    expect_refused(lapse_forecast(without, dataset, &options, &forecasts, &error), LAPSE_ERROR_USAGE, &error, "--when");
    options.horizon = -5;
    expect_refused(lapse_forecast(model, dataset, &options, &forecasts, &error), LAPSE_ERROR_USAGE, &error, "horizon");
    lapse_session *session;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    lapse_when when;
    lapse_when_default(&when);
    expect_refused(lapse_session_when(session, &when, &error), LAPSE_ERROR_USAGE, &error, "empty");
    assert_int_equal(lapse_session_append(session, 1000, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_when(session, &when, NULL), LAPSE_OK); /* one event suffices */
    when.now = 999;
    expect_refused(lapse_session_when(session, &when, &error), LAPSE_ERROR_INPUT, &error, "before the last event");
    double cdf, early = 1500, probabilities[5];
    when = (lapse_when){.now = 2000, .times = &early, .time_count = 1, .cdf = &cdf};
    expect_refused(lapse_session_when(session, &when, &error), LAPSE_ERROR_INPUT, &error, "before now");
    expect_refused(lapse_session_within(session, 2000, 1500, probabilities, &error), LAPSE_ERROR_INPUT, &error,
                   "before now");
    lapse_session_free(session);
    lapse_time_scores scores;
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    expect_refused(lapse_time_evaluate(without, dataset, &evaluate, &scores, &error), LAPSE_ERROR_USAGE, &error,
                   "--when");
    static const struct {
        const char *name, *value, *text;
    } options_refused[] = {{"model", "markov", "needs a network"},
                           {"model", "rmtpp", "by itself"},
                           {"projection", "mlp", "tell the times of later ones"}};
    for (size_t i = 0; i < sizeof options_refused / sizeof *options_refused; i++) {
        lapse_train_options with = small_train_options();
        small_set(&with, "when", "true");
        small_set(&with, options_refused[i].name, options_refused[i].value);
        expect_refused(small_resolve(&with, dataset, &error), LAPSE_ERROR_USAGE, &error, options_refused[i].text);
    }
    lapse_model_free(model);
    lapse_model_free(without);
    lapse_dataset_close(dataset);
}

/* All gaps 0: there is no time to learn. Ties among other gaps count as the floor. */
static void ties(void **state)
{
    (void)state;
    double time[40] = {0};
    int32_t type[40] = {0};
    int lengths[10];
    for (int s = 0; s < 10; s++)
        lengths[s] = 4;
    for (int i = 0; i < 40; i++)
        type[i] = i % 2;
    lapse_error error;
    lapse_train_options options = small_train_options();
    small_set(&options, "when", "true");
    lapse_dataset *dataset = small_dataset(10, lengths, time, type, 2, NULL);
    lapse_trainer *trainer;
    expect_refused(lapse_trainer_new(dataset, &options, &trainer, &error), LAPSE_ERROR_INPUT, &error, "the same time");
    lapse_dataset_close(dataset);
    for (int i = 0; i < 40; i++)
        time[i] = 100 * (i / 2);
    dataset = small_dataset(10, lengths, time, type, 2, NULL);
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    assert_true(model->config.when_floor == 100);
    lp_evaluator evaluator;
    small_evaluate(&evaluator, model->times, dataset);
    for (int64_t c = 0; c < evaluator.case_count; c++)
        assert_true(isfinite(evaluator.time.cases[c].nll));
    lp_evaluator_clear(&evaluator);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* The scores of the model and of baselines, through the public call. */
static void scores_are_whole(void **state)
{
    (void)state;
    lapse_dataset *dataset = renewal_data(&renewals[0], 500, 3);
    lapse_train_options options = small_train_options();
    small_set(&options, "when", "true");
    small_set(&options, "encoding", "none");
    small_set(&options, "split-by", "sequence");
    options.model.context = 4;
    options.run.epochs = 6;
    options.run.learning_rate = 0.02;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_time_scores scores;
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.bootstrap = 50;
    assert_int_equal(lapse_time_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.count, 5);
    assert_string_equal(scores.unit_name, "minute");
    for (int i = 0; i < scores.count; i++) {
        const lapse_time_score *s = &scores.scores[i];
        assert_true(s->nll_low <= s->nll && s->nll <= s->nll_high && s->mae > 0 && s->crps > 0 && s->crps < s->mae * 2);
        assert_true(s->coverage[0] < s->coverage[1] && s->coverage[1] < s->coverage[2] && s->coverage[2] <= 1);
    }
    /* The log-normal baseline is the law itself. */
    const lapse_time_score *law = &scores.scores[2];
    check_near("coverage", law->coverage[1], 0.8, 0.05);
    check_near("PIT", law->pit_distance, 0, 0.06);
    check_near("NLL", law->nll, 8 + 0.5 + log(1.2 * sqrt(2 * M_PI)) - log(60), 0.1);
    assert_true(scores.scores[1].nll > law->nll);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

enum { ALTERNATING = 200 };

/* Gaps that are short after long ones and long after short ones: the histogram knows the gap before, the log-normal does not. */
static void histogram_sees_the_gap_before(void **state)
{
    (void)state;
    static double time[ALTERNATING * EVENTS];
    static int32_t type[ALTERNATING * EVENTS];
    static uint8_t split[ALTERNATING * EVENTS];
    static lp_time_case cases[ALTERNATING * EVENTS], scored[ALTERNATING * EVENTS];
    int lengths[ALTERNATING];
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 1);
    int64_t count = 0;
    for (int s = 0; s < ALTERNATING; s++) {
        lengths[s] = EVENTS;
        for (int k = 0; k < EVENTS; k++) {
            int i = s * EVENTS + k;
            double gap = ((s + k) % 2 ? 60 : 86400) * exp(0.2 * lp_random_normal(&random));
            time[i] = k ? time[i - 1] + gap : 1e9;
            split[i] = s % 2 ? LP_SPLIT_TEST : LP_SPLIT_TRAIN;
            if (s % 2 && k > 1)
                cases[count++] = (lp_time_case){.sequence = s, .event = i, .gap = gap};
        }
    }
    lapse_dataset *dataset = small_dataset(ALTERNATING, lengths, time, type, 1, NULL);
    double nll[8], exact = 0;
    int baselines = 0;
    for (; lp_time_baselines[baselines]; baselines++) {
        nll[baselines] = 0;
        assert_int_equal(
            lp_time_baseline_score(lp_time_baselines[baselines], dataset, split, 1, 1e6, cases, count, 2, scored, NULL),
            LAPSE_OK);
        for (int64_t c = 0; c < count; c++)
            nll[baselines] += scored[c].nll / (double)count;
    }
    for (int64_t c = 0; c < count; c++)
        exact += (log(cases[c].gap) + 0.5 + log(0.2 * sqrt(2 * M_PI))) / (double)count;
    assert_string_equal(lp_time_baseline_name(lp_time_baselines[baselines - 1]), "gap-histogram");
    check_near("gap-histogram", nll[baselines - 1], exact, 0.1);
    assert_true(nll[baselines - 1] + 1 < nll[1]);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(session_and_evaluation_agree),
        cmocka_unit_test(events_are_as_without),
        cmocka_unit_test(stopped_before_the_times),
        cmocka_unit_test(target_time_does_not_leak),
        cmocka_unit_test(learns_renewal_processes),
        cmocka_unit_test(forecast_agrees_with_the_law),
        cmocka_unit_test(session_returns),
        cmocka_unit_test(refuses_bad_input),
        cmocka_unit_test(ties),
        cmocka_unit_test(scores_are_whole),
        cmocka_unit_test(histogram_sees_the_gap_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
