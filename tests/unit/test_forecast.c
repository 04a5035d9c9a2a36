/* test_forecast.c: how a forecast is estimated, refused and stopped: what it says of the events to come, and that what is left of it is
 * that of the whole one. */
#include "data/dataset/dataset.h"
#include "lapse_lab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/small_data.h"
#include "support/small_train.h"

/* Three groups of futures. */
enum { SAMPLES = 300 };

static lapse_dataset *dataset;
static lapse_model *model;

static lapse_forecast_options options_of(double horizon)
{
    lapse_forecast_options options;
    lapse_forecast_options_default(&options);
    options.horizon = horizon;
    options.samples = SAMPLES;
    options.threads = 1;
    return options;
}

typedef struct watch {
    int calls;
    double first_expected; /* events, at the first call */
    double stop_events;    /* stops once so many are drawn */
    int64_t stop_sequences;
    bool every; /* called between any two draws */
} watch;

static bool on_progress(const lapse_forecast_progress *progress, void *context)
{
    watch *w = context;
    if (w->calls++ == 0)
        w->first_expected = progress->events_expected;
    assert_true(progress->events_expected >= progress->events && progress->seconds_left >= 0);
    assert_true(progress->sequences <= progress->sequence_count);
    if (w->every)
        usleep(100000);
    return progress->events < w->stop_events && progress->sequences < w->stop_sequences;
}

static double events_of(const lapse_forecasts *forecasts)
{
    double sum = 0;
    for (int64_t s = 0; s < forecasts->sequence_count; s++)
        sum += forecasts->count[s] * (double)forecasts->samples[s];
    return sum;
}

/* Short horizons, whose futures end within the estimate, and long ones, which it extrapolates. */
static void the_estimate_is_near(void **state)
{
    (void)state;
    static const double horizons[] = {20, 400, 8000, 40000};
    for (size_t h = 0; h < sizeof horizons / sizeof *horizons; h++) {
        lapse_forecasts forecasts;
        lapse_forecast_options options = options_of(horizons[h]);
        watch w = {.stop_events = INFINITY, .stop_sequences = INT64_MAX};
        options.threads = 0;
        options.samples = 40;
        options.on_progress = on_progress;
        options.context = &w;
        assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, NULL), LAPSE_OK);
        double events = events_of(&forecasts);
        assert_true(!forecasts.partial && forecasts.cut == 0 && w.calls > 0);
        if (!(w.first_expected > 0.6 * events && w.first_expected < 1.7 * events))
            fail_msg("horizon %g: %.0f events are expected, %.0f drawn", horizons[h], w.first_expected, events);
        lapse_forecasts_clear(&forecasts);
    }
}

static void too_many_events_are_refused(void **state)
{
    (void)state;
    lapse_forecasts forecasts;
    lapse_error error;
    lapse_forecast_options options = options_of(1e12); /* would take hours */
    assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, &error), LAPSE_ERROR_USAGE);
    if (!strstr(error.message, "--max-events") || !strstr(error.message, "the limit is 100,000,000"))
        fail_msg("%s", error.message);
    options = options_of(400);
    options.max_events = 100;
    assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, &error), LAPSE_ERROR_USAGE);
    options.max_events = -1;
    assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, &error), LAPSE_ERROR_USAGE);
    options.max_events = 0;
    assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, &error), LAPSE_OK);
    assert_false(forecasts.partial);
    lapse_forecasts_clear(&forecasts);
}

/* Stopped in the second group of the first sequence, and after the second sequence: the futures of whole groups remain, and they are those
 * of a forecast of so many samples or sequences. */
static void what_is_left_of_a_stopped_forecast_is_right(void **state)
{
    (void)state;
    lapse_forecasts whole, part;
    for (int groups = 0; groups < 2; groups++) {
        lapse_forecast_options options = options_of(groups ? 15 : 2);
        assert_int_equal(lapse_forecast(model, dataset, &options, &whole, NULL), LAPSE_OK);
        watch w = {.stop_events = groups ? whole.count[0] * SAMPLES * 0.5 : INFINITY,
                   .stop_sequences = groups ? INT64_MAX : 2,
                   .every = true};
        options.on_progress = on_progress;
        options.context = &w;
        assert_int_equal(lapse_forecast(model, dataset, &options, &part, NULL), LAPSE_OK);
        assert_true(part.partial);
        if (groups) {
            assert_int_equal(part.samples[0], SAMPLES / 3);
            assert_true(part.count[0] > 0 && fabs(part.count[0] - whole.count[0]) < 0.3 * whole.count[0]);
            double sum = 0;
            for (int64_t k = 0; k < part.type_count; k++) {
                assert_true(part.type_any[k] <= fmin(part.type_expected[k], 1));
                sum += part.type_expected[k];
            }
            assert_true(fabs(sum - part.count[0]) < 1e-9 * sum);
        } else {
            size_t types = (size_t)(2 * part.type_count) * sizeof(double);
            assert_int_equal(part.samples[1], SAMPLES);
            assert_memory_equal(part.type_expected, whole.type_expected, types);
            assert_memory_equal(part.type_any, whole.type_any, types);
            assert_memory_equal(part.count, whole.count, 2 * sizeof(double));
        }
        for (int64_t s = groups ? 1 : 2; s < part.sequence_count; s++)
            assert_true(part.samples[s] == -1 && part.count[s] == 0);
        lapse_forecasts_clear(&part);
        lapse_forecasts_clear(&whole);
    }
}

static int setup(void **state)
{
    (void)state;
    dataset = small_train_data(7);
    lapse_train_options train = small_train_options();
    small_set(&train, "when", "true");
    small_set(&train, "censoring", "off"); /* which makes the number of events vary more */
    train.run.epochs = 1;
    model = small_train(dataset, &train, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimate_is_near),
        cmocka_unit_test(too_many_events_are_refused),
        cmocka_unit_test(what_is_left_of_a_stopped_forecast_is_right),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
