#include "support/small_train.h"

#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

lapse_dataset *small_train_data(uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 800);
    return small_dataset_random(&random, 30, 14, 5, 100, false);
}

lapse_train_options small_train_options(void)
{
    lapse_train_options options;
    lapse_train_options_default(&options);
    options.dims = 4;
    options.heads = 2;
    options.context = 6;
    options.periods = 2;
    options.harmonics = 2;
    options.learning_rate = 0.02;
    options.batch = 8;
    options.shards = 3;
    options.epochs = 3;
    options.threads = 1;
    options.checkpoint_seconds = 0;
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
