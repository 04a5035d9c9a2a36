/* test_influence.c: the influence of events that the report shows agrees with the law of the simulated shop: kibble is bought
 * again after 14 days, and a view matters for less than an hour. */
#include "inspect/inspection.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/simulated.h"

enum { POINTS = 41, MINUTE = 60, DAY = 86400 };

typedef struct shop {
    lapse_simulation *simulation;
    lapse_dataset *dataset;
    lapse_model *model;
    lp_survey survey;
    lapse_session *with, *without;
} shop;

static void set(lapse_train_options *options, const char *name, const char *value)
{
    lapse_error error = {0};
    if (lapse_train_options_set(options, name, value, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

static void open_shop(shop *s)
{
    static const char *const options[][2] = {
        {"task", "classify"},       {"dims", "32"},   {"blocks", "1"}, {"context", "64"},
        {"learning-rate", "0.003"}, {"epochs", "12"}, {"seed", "1"},   {"dropout", "0.2"}};
    lapse_train_options *chosen = NULL;
    lapse_error error = {0};
    int64_t sequences = small_effort(1500, 900);
    s->simulation = simulate(sequences, 180, 5);
    s->dataset = small_dataset_shop(sequences, 180, 5);
    assert_int_equal(lapse_train_options_new(&chosen, NULL), LAPSE_OK);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        set(chosen, options[i][0], options[i][1]);
    if (lapse_train(s->dataset, chosen, NULL, NULL, &s->model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_train_options_free(chosen);
    assert_int_equal(lp_survey_make(&s->survey, s->model, s->dataset, "test", 1000, 0, &error), LAPSE_OK);
    assert_int_equal(lapse_session_new(s->model, &s->with, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(s->model, &s->without, NULL), LAPSE_OK);
}

static void close_shop(shop *s)
{
    lapse_session_free(s->with);
    lapse_session_free(s->without);
    lp_survey_clear(&s->survey);
    lapse_model_free(s->model);
    lapse_dataset_close(s->dataset);
    lapse_simulation_free(s->simulation);
}

static int32_t law_type(const shop *s, const char *name)
{
    int32_t type = 0;
    while (strcmp(s->simulation->law.types[type].name, name) != 0)
        type++;
    return type;
}

/* Adds the law's change of the probability of a class. */
static void add_law(const shop *s, int64_t sequence, int64_t last, int32_t class, double *curve)
{
    int64_t user = lp_simulation_user_find(s->simulation, lapse_dataset_sequence_name(s->dataset, sequence));
    double time = s->simulation->time[s->simulation->start[user] + last];
    for (int p = 0; p < POINTS; p++)
        for (int with = 0; with < 2; with++) {
            double intensities[64], sum = 0;
            lp_simulation_intensities(s->simulation, user, last + with, time + lp_survey_lag(&s->survey, p, POINTS),
                                      intensities);
            for (int32_t k = 0; k < s->simulation->law.type_count; k++)
                sum += intensities[k];
            curve[p] += (with ? 1 : -1) * intensities[class] / sum;
        }
}

/* The mean influence of `source` on `target` over lags from .. to, of the model and of the law. */
static void influence(shop *s, const char *source, const char *target, double from, double to, double model[POINTS],
                      double law[POINTS])
{
    const lapse_dataset *d = s->dataset;
    int64_t type = 0, class = lapse_model_event_type_find(s->model, target);
    size_t classes = (size_t)s->survey.classes;
    double *change = lp_alloc(POINTS * classes, sizeof *change);
    int count = 0, most = 100;
    while (strcmp(lapse_dataset_event_type_name(d, type), source) != 0)
        type++;
    s->survey.shortest = from;
    s->survey.longest = to;
    memset(law, 0, POINTS * sizeof *law);
    for (int64_t n = 0; n < d->sequence_count && count < most; n++)
        for (uint64_t i = d->start[n] + 1; i < d->start[n + 1] && count < most; i++)
            if (d->type[i] == type) {
                assert_int_equal(lp_influence_add(&s->survey, s->with, s->without, n, i, POINTS, change, NULL),
                                 LAPSE_OK);
                add_law(s, n, (int64_t)(i - d->start[n]), law_type(s, target), law);
                count++;
            }
    assert_int_equal(count, most);
    for (int p = 0; p < POINTS; p++) {
        model[p] = change[(size_t)p * classes + (size_t) class] / count;
        law[p] /= count;
    }
    lp_free(change);
}

/* The lag around which the mean of five points is largest. */
static double peak_of(const shop *s, const double curve[POINTS])
{
    int best = 2;
    double most = -1;
    for (int p = 2; p + 2 < POINTS; p++) {
        double sum = curve[p - 2] + curve[p - 1] + curve[p] + curve[p + 1] + curve[p + 2];
        best = sum > most ? p : best;
        most = fmax(most, sum);
    }
    return lp_survey_lag(&s->survey, best, POINTS);
}

static void assert_within(const char *what, double value, double low, double high)
{
    if (!(value >= low && value <= high))
        fail_msg("%s is %g, not %g to %g", what, value, low, high);
}

static void influence_follows_the_law(void **state)
{
    (void)state;
    small_skip_under_tools();
    shop s = {0};
    double model[POINTS], law[POINTS];
    /* Fewer sequences of the quick tier tell the peak less exactly. */
    double part = small_effort(10, 20) / 100.0, low = (1 - part) * 14, high = (1 + part) * 14;
    open_shop(&s);

    influence(&s, "buy kibble", "view kibble", 4 * DAY, 40 * DAY, model, law);
    double peak = peak_of(&s, model) / DAY;
    assert_within("the law's peak after a purchase, in days,", peak_of(&s, law) / DAY, 0.9 * 14, 1.1 * 14);
    assert_within("the model's peak after a purchase, in days,", peak, low, high);
    print_message("a purchase of kibble has its largest influence after %.1f days\n", peak);

    influence(&s, "view kibble", "buy kibble", 2 * MINUTE, 600 * MINUTE, model, law);
    peak = peak_of(&s, model) / MINUTE;
    assert_within("the law's peak after a view, in minutes,", peak_of(&s, law) / MINUTE, 10, 40);
    assert_within("the model's peak after a view, in minutes,", peak, 10, 40);
    for (int p = 0; p < POINTS; p++) {
        double minutes = lp_survey_lag(&s.survey, p, POINTS) / MINUTE;
        if (minutes >= 10 && minutes <= 30)
            assert_within("the influence of a view, relative to the law,", model[p] / law[p], 0.8, 1.2);
        if (minutes >= 60)
            assert_within("the influence of a view after an hour", model[p], -0.05, 0.05);
    }
    print_message("a view of kibble has its largest influence after %.0f minutes\n", peak);
    close_shop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(influence_follows_the_law)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
