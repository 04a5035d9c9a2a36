/* test_branches.c: branches of a history that are asked together are answered as sessions that have their events, for every encoding,
 * with one parameter sample and several, and for a model that runs the whole window. */
#include "serve/branches.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 5, CONTEXT = 16, BRANCHES = 15, STEPS = 9, MOST = 2 * CONTEXT, FIELDS = 2 };

/* The events of one branch, the history's included. */
typedef struct line {
    int count;
    double times[MOST];
    int32_t types[MOST];
    lp_field_number fields[MOST][FIELDS];
} line;

/* A category of 2 values and a number. */
static const uint64_t offsets[] = {0, 1, 5};
static const lp_model_field field_list[FIELDS] = {
    {"device", LAPSE_FIELD_CATEGORY, 3, 0, 0, {.count = 2, .offset = offsets, .bytes = "\0pad\0"}},
    {"price", LAPSE_FIELD_NUMBER, 1, 10, 2, {.count = 0}},
};

/* An event with the fields of the last one of its type or, where there is none, of the last one. */
static void add(line *l, double time, int32_t type)
{
    int source = l->count - 1;
    while (source > 0 && l->types[source] != type)
        source--;
    if (l->count > 0 && l->types[source] != type)
        source = l->count - 1;
    if (l->count > 0)
        memcpy(l->fields[l->count], l->fields[source], sizeof l->fields[0]);
    l->times[l->count] = time;
    l->types[l->count++] = type;
}

static void read_line(lapse_session *session, const line *l)
{
    lapse_session_clear(session);
    for (int i = 0; i < l->count; i++)
        assert_int_equal(lp_session_add(session, l->times[i], l->types[i], l->fields[i], NULL), LAPSE_OK);
}

/* One session for each branch; all of its window is computed anew. */
static void check_types(lapse_session *plain, const line *l, double time, const double *got, const char *what)
{
    double wanted[TYPES];
    read_line(plain, l);
    assert_int_equal(lapse_session_predict(plain, time, wanted, NULL), LAPSE_OK);
    for (int k = 0; k < TYPES; k++)
        if (!(fabs(got[k] - wanted[k]) < 2e-5))
            fail_msg("%s, %d events: type %d has %.9g, a session says %.9g", what, l->count, k, got[k], wanted[k]);
}

static void check_law(lapse_session *plain, const line *l, const lp_next_time *got, const char *what)
{
    lp_next_time wanted;
    read_line(plain, l);
    assert_int_equal(lp_session_law(plain, &wanted, NULL), LAPSE_OK);
    for (double p = 0.1; p < 1; p += 0.4) {
        double a = lp_next_time_quantile(got, p), b = lp_next_time_quantile(&wanted, p);
        if (!(fabs(a - b) < 1e-3 * b))
            fail_msg("%s, %d events: quantile %.1f is %.9g, a session says %.9g", what, l->count, p, a, b);
    }
}

static void grow(const lapse_model *model, uint64_t seed, const char *what)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 960);
    lapse_session *session = NULL, *plain = NULL;
    lp_branches branches;
    line lines[BRANCHES], history = {0};
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &plain, NULL), LAPSE_OK);
    assert_int_equal(lp_session_hold(session, NULL), LAPSE_OK);
    assert_int_equal(lp_session_hold(plain, NULL), LAPSE_OK);
    assert_int_equal(lp_branches_init(&branches, session, BRANCHES, NULL), LAPSE_OK);
    int events = 1 + (int)lp_random_below(&random, (uint32_t)lp_branches_history(model));
    for (int i = 0; i < events; i++) {
        add(&history, 1.5e9 + 10 * i + lp_random_uniform(&random), (int32_t)lp_random_below(&random, TYPES));
        history.fields[i][0].category = (int32_t)lp_random_below(&random, 2);
        history.fields[i][1].number = (float)lp_random_normal(&random);
    }
    read_line(session, &history);
    for (int i = 0; i < BRANCHES; i++)
        lines[i] = history;
    for (int step = 0; step < STEPS; step++) {
        int32_t asked[BRANCHES];
        double times[BRANCHES], out[BRANCHES * TYPES];
        int count = 0;
        for (int32_t i = 0; i < BRANCHES; i++)
            if (lp_random_below(&random, 4) && lp_branches_has_space(&branches, i)) {
                const line *l = &lines[i];
                times[count] =
                    l->times[l->count - 1] + (lp_random_below(&random, 3) ? 5 * lp_random_uniform(&random) : 0);
                asked[count++] = i;
            }
        assert_int_equal(lp_branches_types(&branches, count, asked, times, out, NULL), LAPSE_OK);
        for (int i = 0; i < count; i++) {
            check_types(plain, &lines[asked[i]], times[i], out + i * TYPES, what);
            int32_t type = (int32_t)lp_random_below(&random, TYPES);
            add(&lines[asked[i]], times[i], type);
            lp_branches_add(&branches, asked[i], type);
        }
        assert_int_equal(lp_branches_laws(&branches, count, asked, NULL), LAPSE_OK);
        for (int i = 0; i < count; i++) {
            lp_next_time law = lp_branches_law(&branches, i);
            check_law(plain, &lines[asked[i]], &law, what);
        }
    }
    /* The events of a branch become part of the history. */
    double time = lines[3].times[lines[3].count - 1] + 2, out[TYPES];
    assert_int_equal(lp_branches_types(&branches, 1, &(int32_t){3}, &time, out, NULL), LAPSE_OK);
    assert_int_equal(lp_branches_commit(&branches, 3, 1, NULL), LAPSE_OK);
    add(&lines[3], time, 1);
    int64_t kept = lp_branches_history(model);
    line last = {0};
    for (int i = lines[3].count > kept ? lines[3].count - (int)kept : 0; i < lines[3].count; i++) {
        add(&last, lines[3].times[i], lines[3].types[i]);
        memcpy(last.fields[last.count - 1], lines[3].fields[i], sizeof last.fields[0]);
    }
    assert_int_equal(session->count, last.count);
    assert_memory_equal(session->times, last.times, (size_t)last.count * sizeof *last.times);
    time += 1;
    assert_int_equal(lp_branches_types(&branches, 1, &(int32_t){3}, &time, out, NULL), LAPSE_OK);
    if (!lp_model_reads_gap(
            &model->config)) /* otherwise the first event's gap is known here, and not in a new session */
        check_types(plain, &last, time, out, what);
    lp_branches_clear(&branches);
    lapse_session_free(session);
    lapse_session_free(plain);
}

static void learn_when(lp_model_config *config)
{
    config->when = true;
    config->when_components = 3;
    config->when_floor = 0.01;
    config->when_mean = 1;
    config->when_deviation = 1.5;
    config->context = CONTEXT;
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = 1 + h % 5;
    lp_season_set(&config->season, level);
}

static void every_encoding(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < small_effort(12, 3); variant++) {
            lp_model_config config =
                small_config(lp_encodings[e], 8 + variant % 2 * 8, 1 + variant % 3, 1 << variant % 3);
            learn_when(&config);
            config.when_background = variant % 3 == 1 ? LP_BACKGROUND_WEEK : LP_BACKGROUND_NONE;
            if (lp_encodings[e]->sample)
                small_config_number(&config, "frequency-samples", 1 + variant % 2);
            small_config_number(&config, "projection", variant % 2);
            small_config_number(&config, "combine", variant / 2 % LP_COMBINE_COUNT);
            config.target_time = variant % 5 != 4;
            config.fields = variant % 3 == 2 ? field_list : NULL;
            config.field_count = variant % 3 == 2 ? FIELDS : 0;
            if (variant % 4 < 2)
                small_config_gap(&config);
            char what[80];
            snprintf(what, sizeof what, "%s, variant %d", lp_encodings[e]->name, variant);
            lapse_model *model = small_model(&config, (uint64_t)variant);
            grow(model, (uint64_t)variant, what);
            lapse_model_free(model);
        }
}

static void whole_windows(void **state)
{
    (void)state;
    static const char *const names[] = {"lstm", "gru4rec"};
    for (int i = 0; i < 2; i++) {
        lp_model_config config = small_config_of(lp_model_row_find(names[i]), 8);
        learn_when(&config);
        config.fields = field_list;
        config.field_count = i == 0 ? FIELDS : 0;
        lapse_model *model = small_model(&config, 5);
        grow(model, (uint64_t)i, names[i]);
        lapse_model_free(model);
    }
}

/* Futures that are longer than a branch and than the context have as many events as those that a session draws one by one. */
static void long_futures(void **state)
{
    (void)state;
    enum { SEQUENCES = 2, FUTURES = 60 };
    lapse_dataset *dataset = small_train_data(7);
    lapse_train_options train = small_train_options();
    small_set(&train, "when", "true");
    small_set(&train, "censoring", "off");
    train.model.context = 8;
    train.run.epochs = 1;
    lapse_model *model = small_train(dataset, &train, NULL, NULL);
    lapse_forecasts forecasts;
    lapse_forecast_options options;
    lapse_forecast_options_default(&options);
    options.horizon = 4000;
    options.samples = 150; /* in groups */
    assert_int_equal(lapse_forecast(model, dataset, &options, &forecasts, NULL), LAPSE_OK);
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    double drawn = 0, forecast = 0;
    for (int64_t s = 0; s < SEQUENCES; s++) {
        forecast += forecasts.count[s];
        for (int f = 0; f < FUTURES; f++) {
            lapse_session_clear(session);
            for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++)
                assert_int_equal(lp_session_add(session, dataset->time[i], dataset->type[i], NULL, NULL), LAPSE_OK);
            double time = session->times[session->count - 1], end = time + options.horizon;
            for (uint64_t draw = 0;; draw++) {
                int64_t type;
                assert_int_equal(lapse_session_sample(session, NAN, 100 + (uint64_t)f, draw, &time, &type, NULL),
                                 LAPSE_OK);
                if (time > end)
                    break;
                drawn += 1.0 / FUTURES;
                assert_int_equal(lp_session_add(session, time, (int32_t)type, NULL, NULL), LAPSE_OK);
            }
        }
    }
    if (!(forecast > 2 * 8 * SEQUENCES && fabs(forecast - drawn) < 0.15 * drawn))
        fail_msg("%.2f events are forecast, %.2f drawn", forecast, drawn);
    lapse_forecasts_clear(&forecasts);
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_encoding), cmocka_unit_test(whole_windows),
                                       cmocka_unit_test(long_futures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
