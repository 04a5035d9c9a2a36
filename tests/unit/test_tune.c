/* test_tune.c: a search is never worse than its first trial on the validation split, changes only what was not given, stops at its
 * limits, and continues in a folder. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif
#include "train/train_options.h"
#include "lapse_lab.h"

#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/small_data.h"
#include "support/small_train.h"

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *level)
{
    (void)info, (void)type, (void)level;
    return remove(path);
}

static int remove_files(void **state)
{
    (void)state;
    nftw(small_path("trials"), remove_one, 8, FTW_DEPTH | FTW_PHYS);
    small_paths_remove();
    return 0;
}

/* Options that are given: training refuses none of them for attention. */
static lapse_train_options options_of(const char *const *settings)
{
    lapse_train_options options;
    lapse_error error = {0};
    lp_train_options_default(&options);
    for (; *settings; settings++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*settings, "="), *settings);
        if (lapse_train_options_set(&options, name, strchr(*settings, '=') + 1, &error) != LAPSE_OK)
            fail_msg("%s", error.message);
    }
    return options;
}

static const char *const usual[] = {"epochs=2", "context=8", "dims=4", "blocks=1", "shards=2", "threads=1", NULL};

static const char *property(const lapse_model *model, const char *wanted)
{
    const char *name, *value;
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        if (strcmp(name, wanted) == 0)
            return value;
    return NULL;
}

static double trial_score(const lapse_model *model, int trial)
{
    char name[64];
    snprintf(name, sizeof name, "tune.trial.%d", trial);
    const char *value = property(model, name), *score = value ? strstr(value, "log-loss ") : NULL;
    return score ? strtod(score + 9, NULL) : NAN;
}

static lapse_model *tune(const lapse_dataset *dataset, const lapse_train_options *options,
                         const lapse_tune_options *limits)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_tune(dataset, options, limits, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

static void the_best_trial_is_returned(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = options_of(usual);
    lapse_tune_options limits;
    lapse_tune_options_default(&limits);
    limits.trials = 8;
    limits.parallel = 2;
    lapse_model *model = tune(dataset, &options, &limits);
    assert_string_equal(property(model, "tune.trials"), "8");
    int best = (int)strtol(property(model, "tune.best"), NULL, 10);
    assert_int_equal(strncmp(property(model, "tune.trial.1"), "options as given: ", 18), 0);
    for (int t = 1; t <= 8; t++)
        assert_true(trial_score(model, best) <= trial_score(model, t));
    assert_true(fabs(strtod(property(model, "score.valid.log_loss"), NULL) - trial_score(model, best)) < 1e-4);

    /* Trial 1 is what training makes of the same options. */
    lapse_model *plain = small_train(dataset, &options, NULL, NULL);
    assert_true(fabs(strtod(property(plain, "score.valid.log_loss"), NULL) - trial_score(model, 1)) < 1e-4);
    lapse_model_free(plain);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* What was given is never changed. */
static void given_options_stay(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    const char *const settings[] = {"epochs=1", "context=8", "dims=4", "blocks=1", "dropout=0.3", "heads=2", NULL};
    lapse_train_options options = options_of(settings);
    lapse_tune_options limits;
    lapse_tune_options_default(&limits);
    limits.trials = 12;
    lapse_model *model = tune(dataset, &options, &limits);
    for (int t = 2; t <= 12; t++) {
        char name[64];
        snprintf(name, sizeof name, "tune.trial.%d", t);
        const char *value = property(model, name);
        assert_non_null(value);
        for (int i = 0; settings[i]; i++) {
            char part[64];
            snprintf(part, sizeof part, "%.*s ", (int)strcspn(settings[i], "="), settings[i]);
            char *found = strstr(value, part);
            assert_true(!found || (found != value && found[-1] != ' ')); /* "epoch 1 of 1" is no option */
        }
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void the_budget_ends_the_search(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(3);
    const char *const settings[] = {"epochs=100000", "patience=100000", "context=8", "dims=4", "blocks=1", NULL};
    lapse_train_options options = options_of(settings);
    lapse_tune_options limits;
    lapse_tune_options_default(&limits);
    limits.seconds = 0.5;
    limits.parallel = 1;
    double start = lp_clock_seconds();
    lapse_model *model = tune(dataset, &options, &limits);
    assert_true(lp_clock_seconds() - start < 20);
    assert_string_equal(property(model, "tune.trials"), "1");
    const char *trial = property(model, "tune.trial.1");
    assert_true(strstr(trial, ", stopped") || strstr(trial, ": no epoch")); /* a slow machine may not end an epoch */
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static bool stop_at_three(const lapse_tune_progress *progress, void *context)
{
    int *calls = context;
    ++*calls;
    return progress->finished + progress->stopped < 3;
}

static void a_search_continues_in_its_folder(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(4);
    lapse_train_options options = options_of(usual);
    lapse_tune_options limits;
    lapse_tune_options_default(&limits);
    limits.parallel = 1;
    limits.folder = small_path("trials");
    lapse_model *first = NULL, *second;
    int calls = 0;
    assert_int_equal(lapse_tune(dataset, &options, &limits, stop_at_three, &calls, &first, NULL), LAPSE_OK);
    int before = (int)strtol(property(first, "tune.trials"), NULL, 10);
    assert_true(before >= 3 && calls > 0);
    limits.trials = before + 2;
    second = tune(dataset, &options, &limits);
    assert_int_equal(strtol(property(second, "tune.trials"), NULL, 10), before + 2);
    for (int t = 1; t < before; t++) /* the last one may have been stopped */
        assert_true(trial_score(first, t) == trial_score(second, t));
    lapse_model_free(first);
    lapse_model_free(second);

    /* Another search does not mix with it. */
    lapse_error error = {0};
    options.run.seed = 9;
    assert_int_equal(lapse_tune(dataset, &options, &limits, NULL, NULL, &first, &error), LAPSE_ERROR_FORMAT);
    nftw(small_path("trials"), remove_one, 8, FTW_DEPTH | FTW_PHYS);
    lapse_dataset_close(dataset);
}

typedef struct searcher {
    const lapse_dataset *dataset;
    lapse_train_options options;
    lapse_tune_options limits;
    lapse_model *model;
    lapse_status status;
} searcher;

static void *search(void *context)
{
    searcher *s = context;
    s->status = lapse_tune(s->dataset, &s->options, &s->limits, NULL, NULL, &s->model, NULL);
    return NULL;
}

/* Two searches in one folder run each trial once, and both end with the best model. */
static void processes_share_a_search(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(5);
    searcher searchers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        searchers[i] = (searcher){.dataset = dataset, .options = options_of(usual)};
        lapse_tune_options_default(&searchers[i].limits);
        searchers[i].limits.trials = 6;
        searchers[i].limits.parallel = 1;
        searchers[i].limits.folder = small_path("trials");
        assert_int_equal(pthread_create(&threads[i], NULL, search, &searchers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(searchers[i].status, LAPSE_OK);
        assert_string_equal(property(searchers[i].model, "tune.trials"), "6");
    }
    for (int t = 1; t <= 6; t++)
        assert_true(trial_score(searchers[0].model, t) == trial_score(searchers[1].model, t));
    assert_string_equal(property(searchers[0].model, "tune.best"), property(searchers[1].model, "tune.best"));
    lapse_model_free(searchers[0].model);
    lapse_model_free(searchers[1].model);
    lapse_dataset_close(dataset);
}

static void bad_limits_are_refused(void **state)
{
    (void)state;
    static const lapse_tune_options cases[] = {
        {.seconds = 0}, {.seconds = NAN}, {.seconds = 1, .trials = -1}, {.seconds = 1, .parallel = 1000}};
    lapse_dataset *dataset = small_train_data(6);
    lapse_train_options options = options_of(usual);
    lapse_model *model = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(lapse_tune(dataset, &options, &cases[i], NULL, NULL, &model, NULL), LAPSE_ERROR_USAGE);
    lapse_train_options_set(&options, "resume", "true", NULL);
    lapse_tune_options limits;
    lapse_tune_options_default(&limits);
    assert_int_equal(lapse_tune(dataset, &options, &limits, NULL, NULL, &model, NULL), LAPSE_ERROR_USAGE);
    assert_null(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_trial_is_returned), cmocka_unit_test(given_options_stay),
        cmocka_unit_test(the_budget_ends_the_search), cmocka_unit_test(a_search_continues_in_its_folder),
        cmocka_unit_test(processes_share_a_search),   cmocka_unit_test(bad_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
