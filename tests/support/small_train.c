/* small_train.c: training runs that take milliseconds. */
#include "support/small_train.h"

#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

lapse_dataset *small_train_data(uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 800);
    return small_dataset_random(&random, 30, 14, 5, 100, false);
}

void small_set(lapse_train_options *options, const char *name, const char *value)
{
    lapse_error error = {0};
    if (lapse_train_options_set(options, name, value, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    memset(options->given, 0, sizeof options->given);
}

void small_set_number(lapse_train_options *options, const char *name, double value)
{
    char text[LP_NUMBER_SIZE];
    small_set(options, name, lp_number_text(value, text));
}

double small_get_number(const lapse_train_options *options, const char *name)
{
    char text[64];
    assert_non_null(lapse_train_options_get(options, name, text, sizeof text));
    return strtod(text, NULL);
}

lapse_status small_resolve(lapse_train_options *options, const lapse_dataset *dataset, lapse_error *error)
{
    lp_resolved resolved;
    lapse_status status = lp_train_options_resolve(options, dataset, &resolved, error);
    lp_free(resolved.split);
    lapse_vectors_free(resolved.vectors);
    return status;
}

lapse_train_options small_train_options(void)
{
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "heads", "2");
    small_set(&options, "periods", "2");
    small_set(&options, "harmonics", "2");
    options.model.dims = 4;
    options.model.context = 6;
    options.run.learning_rate = 0.02;
    options.run.batch = 8;
    options.run.shards = 3;
    options.run.epochs = 3;
    options.run.threads = 1;
    options.run.checkpoint_seconds = 0;
    return options;
}

lapse_model *small_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, options, on_progress, context, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

lapse_train_options small_gap_options(int context, int batch, int epochs)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "encoding", "none");
    small_set(&options, "gap-input", "off");
    small_set(&options, "schedule", "cosine");
    options.model.context = context;
    options.model.dropout = 0;
    options.run.learning_rate = 0.01;
    options.run.batch = batch;
    options.run.epochs = epochs;
    return options;
}

void small_evaluate(lp_evaluator *evaluator, const lapse_model *model, const lapse_dataset *dataset)
{
    assert_int_equal(
        lp_evaluator_init(evaluator, lp_backend_find("cpu"), model, dataset, NULL, LP_SPLIT_COUNT, 1, NULL), LAPSE_OK);
    assert_int_equal(lp_evaluator_run_model(evaluator, NULL), LAPSE_OK);
}
