/* test_model_limits.c: numbers in the metadata of a model file: each at its limit, and beyond it. */
#include "model/model_file.h"
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* Whether a file whose property has this value is refused because of it: another part of the file may contradict it, too. */
static bool refused(const char *key, const char *value)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    char wrong[100];
    assert_int_equal(lapse_model_load(small_path("model"), &model, &error), LAPSE_OK);
    assert_non_null(lp_model_property_find(model, key));
    assert_int_equal(lp_model_property_set(model, NULL, key, "%s", value), LAPSE_OK);
    assert_int_equal(lapse_model_save(model, small_path("edited"), NULL), LAPSE_OK);
    lapse_model_free(model);
    model = NULL;
    if (lapse_model_load(small_path("edited"), &model, &error) == LAPSE_OK) {
        lapse_model_free(model);
        return false;
    }
    snprintf(wrong, sizeof wrong, "'%s' is missing or wrong", key);
    return strstr(error.message, wrong) != NULL;
}

typedef struct limit {
    const char *key, *least, *below, *most, *above;
} limit;

static void check_limits(const limit *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const limit *l = &limits[i];
        if (refused(l->key, l->least) || refused(l->key, l->most))
            fail_msg("%s takes neither %s nor %s, or one of them", l->key, l->least, l->most);
        if (!refused(l->key, l->below) || !refused(l->key, l->above))
            fail_msg("%s takes %s or %s", l->key, l->below, l->above);
    }
}

static void make(lapse_train_options *options)
{
    lapse_dataset *dataset = small_train_data(1);
    options->run.epochs = 1;
    lapse_model *model = small_train(dataset, options, NULL, NULL);
    assert_int_equal(lapse_model_save(model, small_path("model"), NULL), LAPSE_OK);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void classifiers_with_times(void **state)
{
    (void)state;
    lapse_train_options options = small_train_options();
    small_set(&options, "gap-input", "on");
    small_set(&options, "when", "true");
    make(&options);
    static const limit limits[] = {
        {"event_types", "1", "0", "2000000000", "2000000001"},
        {"gap.offset", "1e-308", "9e-309", "1e308", "1.1e308"},
        {"gap.mean", "-1e308", "-1.1e308", "1e308", "1.1e308"},
        {"gap.deviation", "1e-308", "9e-309", "1e308", "1.1e308"},
        {"when.mean", "-1000", "-1000.001", "1000", "1000.001"},
        {"when.deviation", "1e-9", "9.99e-10", "1000", "1000.001"},
        {"fields", "0", "-1", "64", "65"},
        {"dims", "1", "0", "4096", "4097"},
        {"context", "1", "0", "4096", "4097"},
    };
    check_limits(limits, sizeof limits / sizeof *limits);
    assert_true(refused("event_types", "2.5") && refused("fields", "0.5"));
}

static void recommenders_with_sequences(void **state)
{
    (void)state;
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "transrec");
    small_set(&options, "task", "recommend");
    make(&options);
    static const limit limits[] = {{"sequences", "1", "0", "2000000000", "2000000001"}};
    check_limits(limits, 1);
    assert_true(refused("sequences", "1.5"));
}

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers_with_times),
        cmocka_unit_test(recommenders_with_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
