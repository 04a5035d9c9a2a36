/* test_units.c: the unit and the origin of time do not matter: multiplied or shifted times give the same scores, and the same answers in
 * the other unit, where the model sees time by its gaps. (An encoding of lags rounds its learned periods to floats, in another way in each
 * unit, and training amplifies that: docs/notes/defaults.md.) What is chosen from the data is accepted in any unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "serve/session.h"
#include "support/near.h"
#include "support/small_data.h"
#include "support/small_train.h"

/* The same events at times * factor + shift. */
static lapse_dataset *rescaled(const lapse_dataset *from, double factor, double shift)
{
    double *time = calloc((size_t)from->event_count, sizeof *time);
    int *lengths = calloc((size_t)from->sequence_count, sizeof *lengths);
    assert_true(time && lengths);
    for (int64_t i = 0; i < from->event_count; i++)
        time[i] = from->time[i] * factor + shift;
    for (int64_t s = 0; s < from->sequence_count; s++)
        lengths[s] = (int)(from->start[s + 1] - from->start[s]);
    lapse_dataset *made =
        small_dataset((int)from->sequence_count, lengths, time, from->type, (int)from->types.count, NULL);
    free(time);
    free(lengths);
    return made;
}

typedef struct outcome {
    double log_loss, time_loss;
    double floor;
    double quantiles[3], cdf, density; /* of the next event of a history; quantiles from its last event */
} outcome;

static double property(const lapse_model *model, const char *name)
{
    const char *text = lp_model_property_find(model, name);
    assert_non_null(text);
    return strtod(text, NULL);
}

static outcome outcome_of(const lapse_dataset *from, double factor, double shift)
{
    lapse_dataset *dataset = rescaled(from, factor, shift);
    lapse_train_options options = small_train_options();
    options.model.dims = 8;
    options.model.context = 40;
    options.run.epochs = 4;
    options.run.learning_rate = 0.002;
    small_set(&options, "encoding", "none");
    small_set(&options, "gap-input", "on");
    small_set(&options, "when", "true");
    small_set(&options, "when-background", "constant");
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    outcome got = {.log_loss = property(model, "score.valid.log_loss"),
                   .time_loss = property(model, "score.valid.time_loss"),
                   .floor = property(model, "when_floor")};
    static const double probabilities[] = {0.1, 0.5, 0.9};
    lapse_session *session;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (uint64_t i = 0; i < dataset->start[1]; i++)
        assert_int_equal(lp_session_add(session, dataset->time[i], dataset->type[i], NULL, NULL), LAPSE_OK);
    double last = dataset->time[dataset->start[1] - 1], until = last + 40000 * factor;
    lapse_when when = {.now = NAN,
                       .probabilities = probabilities,
                       .probability_count = 3,
                       .quantiles = got.quantiles,
                       .times = &until,
                       .time_count = 1,
                       .cdf = &got.cdf,
                       .density = &got.density};
    assert_int_equal(lapse_session_when(session, &when, NULL), LAPSE_OK);
    for (int i = 0; i < 3; i++)
        got.quantiles[i] -= last;
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    return got;
}

static void test_units(void **state)
{
    (void)state;
    static const struct {
        double factor, shift;
    } cases[] = {{1e-6, 0}, {1e-3, 0}, {1e3, 0}, {1e6, 0}, {1, 1e9}, {1e-10, 0}};
    lapse_dataset *shop = small_dataset_shop(40, 120, 3), *dataset = rescaled(shop, 1, -shop->time[0]);
    outcome wanted = outcome_of(dataset, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double factor = cases[i].factor;
        outcome got = outcome_of(dataset, factor, cases[i].shift);
        print_message("# times * %g + %g: log-loss off by %.1e, time loss by %.1e\n", factor, cases[i].shift,
                      got.log_loss - wanted.log_loss, got.time_loss - wanted.time_loss);
        assert_near(got.log_loss, wanted.log_loss, 1e-3);
        assert_near(got.time_loss, wanted.time_loss, 1e-3);
        assert_near(got.floor / factor / wanted.floor, 1, 1e-6);
        for (int q = 0; q < 3; q++)
            assert_near(got.quantiles[q] / factor / wanted.quantiles[q], 1, 5e-3);
        assert_near(got.cdf, wanted.cdf, 1e-3);
        assert_near(got.density * factor / wanted.density, 1, 5e-3);
    }
    lapse_dataset_close(dataset);
    lapse_dataset_close(shop);
}

static void test_chosen_periods(void **state)
{
    (void)state;
    static const double factors[] = {1, 1e-15, 1e-9, 1e-3, 1e3, 1e9};
    lapse_dataset *dataset = small_dataset_shop(20, 60, 3);
    double first = dataset->time[0], shortest = 0, longest = 0;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        lapse_dataset *other = rescaled(dataset, factors[i], -first * factors[i]);
        lapse_train_options options = small_train_options();
        lapse_error error = {0};
        small_set(&options, "when", "true");
        if (small_resolve(&options, other, &error) != LAPSE_OK)
            fail_msg("times * %g: %s", factors[i], error.message);
        if (i == 0) {
            shortest = small_get_number(&options, "period-min");
            longest = small_get_number(&options, "period-max");
        }
        assert_near(small_get_number(&options, "period-min") / factors[i] / shortest, 1, 1e-6);
        assert_near(small_get_number(&options, "period-max") / factors[i] / longest, 1, 1e-6);
        lapse_dataset_close(other);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_units), cmocka_unit_test(test_chosen_periods)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
