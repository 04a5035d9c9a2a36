/* test_like.c: the settings of an earlier run (lapse_train_options_like), and the history of a run in its model file. */
#include "model/history.h"
#include "model/model_file.h"
#include "train/train_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/small_data.h"
#include "support/small_train.h"

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

static lapse_model *train_and_save(const lapse_dataset *dataset, const lapse_train_options *options, const char *path)
{
    lapse_model *model = small_train(dataset, options, NULL, NULL);
    assert_int_equal(lapse_model_save(model, path, NULL), LAPSE_OK);
    return model;
}

static lapse_train_options options_like(const lapse_model *model, const lapse_dataset *dataset)
{
    lapse_train_options options;
    lapse_error error = {0};
    lp_train_options_default(&options);
    if (lapse_train_options_like(&options, model, dataset, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return options;
}

/* A run with the settings of another one writes the same bytes, for every model and task, from the file as well. */
static void the_same_settings_give_the_same_file(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(6);
    for (int m = 0; lp_models[m]; m++)
        for (int task = 0; lp_task_names[task]; task++) {
            if (!(lp_models[m]->tasks >> task & 1))
                continue;
            lapse_train_options options = small_train_options();
            lapse_model *read = NULL;
            small_set(&options, "model", lp_models[m]->name);
            small_set(&options, "task", lp_task_names[task]);
            small_set(&options, "context", "7");
            small_set(&options, "seed", "12345678901234567890");
            small_set(&options, "split-by", "leave-one-out");
            small_set(&options, "dropout", "0.15");
            small_set(&options, "loss", task ? "bce" : "softmax");
            small_set(&options, "negatives-unseen", "true");
            small_set(&options, "period-min", "90s");
            small_set(&options, "select", task ? "mrr" : "accuracy");
            if (!task)
                options.model.negatives_unseen = false;
            lapse_model *model = train_and_save(dataset, &options, small_path("first"));
            assert_int_equal(lapse_model_load(small_path("first"), &read, NULL), LAPSE_OK);
            lapse_train_options again = options_like(read, dataset);
            lapse_model *second = train_and_save(dataset, &again, small_path("second"));
            small_files_same(small_path("first"), small_path("second"));
            lapse_model_free(model);
            lapse_model_free(read);
            lapse_model_free(second);
        }
    lapse_dataset_close(dataset);
}

static void options_that_are_set_override(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(6);
    lapse_train_options options = small_train_options();
    char text[64];
    small_set(&options, "task", "recommend");
    small_set(&options, "select", "hit@10");
    small_set(&options, "loss", "bce");
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_train_options *given = NULL;
    assert_int_equal(lapse_train_options_new(&given, NULL), LAPSE_OK);
    /* Metrics and losses belong to the task; an LSTM has no encoding. */
    assert_int_equal(lapse_train_options_set(given, "task", "classify", NULL), LAPSE_OK);
    assert_int_equal(lapse_train_options_set(given, "model", "lstm", NULL), LAPSE_OK);
    assert_int_equal(lapse_train_options_set(given, "epochs", "2", NULL), LAPSE_OK);
    assert_int_equal(lapse_train_options_like(given, model, dataset, NULL), LAPSE_OK);
    assert_string_equal(lapse_train_options_get(given, "epochs", text, sizeof text), "2");
    assert_string_equal(lapse_train_options_get(given, "dims", text, sizeof text), "4");
    assert_string_equal(lapse_train_options_get(given, "model", text, sizeof text), "lstm");
    lapse_model *other = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, given, NULL, NULL, &other, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    assert_string_equal(lp_model_property_find(other, "train.select"), "log-loss");
    lapse_model_free(other);
    lapse_model_free(model);
    lapse_train_options_free(given);
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------- history ------ */

static bool stop_in_second_epoch(const lapse_progress *progress, void *context)
{
    (void)context;
    return progress->epoch < 2 || progress->epoch_end;
}

/* The history survives files and resumed runs, and has no trace of the interruption. */
static void history_of_a_resumed_run(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(7);
    lapse_train_options options = small_train_options();
    lapse_model *whole = train_and_save(dataset, &options, small_path("whole"));
    small_set(&options, "checkpoint", small_path("checkpoint"));
    lapse_model *stopped = small_train(dataset, &options, stop_in_second_epoch, NULL);
    lapse_epoch epoch, other;
    assert_true(lapse_model_history(stopped, 0, &epoch));
    assert_false(lapse_model_history(stopped, 1, &epoch));
    options.run.resume = true;
    lapse_model *resumed = train_and_save(dataset, &options, small_path("resumed")), *read = NULL;
    small_files_same(small_path("whole"), small_path("resumed"));
    assert_int_equal(lapse_model_load(small_path("resumed"), &read, NULL), LAPSE_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(lapse_model_history(whole, i, &epoch) && lapse_model_history(read, i, &other));
        assert_memory_equal(&epoch.loss, &other.loss, sizeof epoch.loss);
        for (int m = 0; m < epoch.metric_count; m++)
            assert_true(epoch.metrics[m].value == other.metrics[m].value);
    }
    assert_false(lapse_model_history(read, 3, &other) || lapse_model_history(read, -1, &other));
    lapse_model_free(whole);
    lapse_model_free(stopped);
    lapse_model_free(resumed);
    lapse_model_free(read);
    lapse_dataset_close(dataset);
}

static void a_run_without_an_epoch_has_no_history(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(7);
    lapse_train_options options = small_train_options();
    lapse_epoch epoch;
    small_set(&options, "model", "markov");
    lapse_model *model = train_and_save(dataset, &options, small_path("markov")), *read = NULL;
    assert_int_equal(lapse_model_load(small_path("markov"), &read, NULL), LAPSE_OK);
    assert_false(lapse_model_history(model, 0, &epoch) || lapse_model_history(read, 0, &epoch));
    lapse_model_free(model);
    lapse_model_free(read);
    lapse_dataset_close(dataset);
}

/* A forged history is refused. */
static void a_history_of_another_shape(void **state)
{
    (void)state;
    static const struct {
        lp_tensor_type type;
        int64_t rows, cols;
    } wrong[] = {{LP_TENSOR_F64, 2, 2}, {LP_TENSOR_F64, 1, 4}, {LP_TENSOR_F32, 2, 3}, {LP_TENSOR_F64, 0, 3}};
    lapse_dataset *dataset = small_train_data(7);
    lapse_train_options options = small_train_options();
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lp_container container = {0};
        lapse_model *read = NULL;
        lapse_error error = {0};
        assert_int_equal(lp_model_contain(model, 0, &container, NULL), LAPSE_OK);
        lp_tensor *history = NULL;
        for (int t = 0; t < container.tensor_count; t++)
            if (strcmp(container.tensors[t].name, "history") == 0)
                history = &container.tensors[t];
        assert_non_null(history);
        history->type = wrong[i].type;
        history->rows = wrong[i].rows;
        history->cols = wrong[i].cols;
        lapse_status saved = lp_container_save(&container, small_path("forged"), NULL);
        lp_arena_clear(&container.arena);
        assert_int_equal(saved, LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("forged"), &read, &error), LAPSE_ERROR_FORMAT);
        assert_null(read);
        if (wrong[i].rows > 0)
            assert_string_equal(error.message,
                                "this is not a Lapse model that can be used: 'history' is missing or wrong");
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_same_settings_give_the_same_file, remove_files),
        cmocka_unit_test(options_that_are_set_override),
        cmocka_unit_test_teardown(history_of_a_resumed_run, remove_files),
        cmocka_unit_test_teardown(a_run_without_an_epoch_has_no_history, remove_files),
        cmocka_unit_test_teardown(a_history_of_another_shape, remove_files),
    };
    return cmocka_run_group_tests_name("like", tests, NULL, NULL);
}
