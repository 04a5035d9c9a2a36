/* test_finite.c: predictions that are not finite are errors that name a tensor, in sessions, batch prediction and
 * evaluation; models, item vectors and checkpoints with numbers that are not finite are not saved. */
#include "model/vectors.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"
#include "train/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* --------------------------------------------------------------------------------------------- predictions --- */

static void check_named(lapse_status status, const lapse_error *error, const char *tensor, const char *what)
{
    char wanted[200];
    snprintf(wanted, sizeof wanted,
             "a prediction of the model is not finite: its parameters are too large, in tensor '%s' up to 3e+38",
             tensor);
    if (status != LAPSE_ERROR_FORMAT || strcmp(error->message, wanted) != 0)
        fail_msg("%s, %s: status %d, '%s'", what, tensor, (int)status, status ? error->message : "");
}

/* All ways to a prediction of a model whose parameters are finite, but overflow. */
static void check_overflow(const lapse_model *model, const lapse_dataset *dataset, const char *tensor)
{
    bool ranks = lp_model_ranks(&model->config);
    lapse_error error = {0};
    lapse_session *session = NULL;
    double probabilities[8];
    lapse_recommendation best[40];
    int64_t count, counts[40];
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 1, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 2, "b", NULL), LAPSE_OK);
    check_named(lapse_session_predict(session, 3, probabilities, &error), &error, tensor, "session_predict");
    check_named(lapse_session_recommend(session, 3, 1, false, best, &count, &error), &error, tensor,
                "session_recommend");
    lapse_session_free(session);
    lapse_query queries[40]; /* more than are scored together */
    for (int i = 0; i < 40; i++)
        queries[i] = (lapse_query){i % dataset->sequence_count, 4e9};
    lapse_predict_options predict = {.top = 1, .threads = 2};
    check_named(lapse_predict_all(model, dataset, queries, 40, &predict, best, counts, &error), &error, tensor,
                "predict_all");
    check_named(lapse_predict_all(model, dataset, queries, 1, &predict, best, counts, &error), &error, tensor,
                "predict_all of one query");
    if (ranks) {
        lapse_rank_options options;
        lapse_rank_scores scores;
        lapse_rank_options_default(&options);
        options.split = "all";
        options.negatives = 0;
        check_named(lapse_rank_evaluate(model, dataset, &options, &scores, &error), &error, tensor, "rank_evaluate");
        return;
    }
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    options.split = "all";
    check_named(lapse_evaluate(model, dataset, &options, &scores, &error), &error, tensor, "evaluate");
}

static void overflow_names_the_tensor(void **state)
{
    (void)state;
    static const struct {
        const char *model, *task, *encoding, *samples;
    } cases[] = {
        {"attention", "classify", "mercer", "1"},
        {"attention", "recommend", "mercer", "1"},
        {"attention", "classify", "bochner", "1"},
        {"attention", "classify", "bochner-normal", "3"},
        {"attention", "recommend", "bochner-normal", "3"},
        {"lstm", "classify", NULL, NULL},
        {"lstm", "recommend", NULL, NULL},
    };
    lapse_dataset *dataset = small_train_data(1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "model", cases[c].model);
        small_set(&options, "task", cases[c].task);
        if (cases[c].encoding) {
            small_set(&options, "encoding", cases[c].encoding);
            small_set(&options, "frequency-samples", cases[c].samples);
        }
        options.run.epochs = 1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        /* All are large, and one tensor is the largest. */
        const char *largest = lp_model_ranks(&model->config) ? model->network.items->name : "output.weight";
        assert_non_null(lp_model_tensor_find(model, largest));
        for (int t = 0; t < model->tensor_count; t++) {
            const lp_tensor *tensor = &model->tensors[t];
            float size = strcmp(tensor->name, largest) == 0 ? 3e38f : 1e30f;
            for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
                ((float *)tensor->data)[i] = size;
        }
        check_overflow(model, dataset, largest);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* Large numbers whose predictions are finite are no error. */
static void large_numbers_are_accepted(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int recommend = 0; recommend < 2; recommend++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "task", recommend ? "recommend" : "classify");
        options.run.epochs = 1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lp_tensor *tensor = lp_model_tensor_find(model, recommend ? model->network.bias->name : "output.bias");
        assert_non_null(tensor);
        ((float *)tensor->data)[0] = 1e30f;
        lapse_session *session = NULL;
        double probabilities[8];
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_append(session, 1, "a", NULL), LAPSE_OK);
        assert_int_equal(lapse_session_predict(session, 3, probabilities, NULL), LAPSE_OK);
        assert_true(probabilities[0] == 1);
        lapse_session_free(session);
        if (recommend) {
            lapse_rank_options rank;
            lapse_rank_scores scores;
            lapse_rank_options_default(&rank);
            rank.split = "all";
            rank.negatives = 0;
            assert_int_equal(lapse_rank_evaluate(model, dataset, &rank, &scores, NULL), LAPSE_OK);
            lapse_rank_scores_clear(&scores);
        } else {
            lapse_evaluate_options evaluate;
            lapse_scores scores;
            lapse_evaluate_options_default(&evaluate);
            evaluate.split = "all";
            assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
            lapse_scores_clear(&scores);
        }
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* -------------------------------------------------------------------------------------------------- saving --- */

static const float wrong[] = {NAN, INFINITY, -INFINITY};

/* The file that was there is unchanged. */
static void check_not_saved(lapse_status status, const lapse_error *error, const char *path, const char *tensor)
{
    char message[200];
    snprintf(message, sizeof message,
             "not saved: tensor '%s' has a number that is not finite; was the learning rate too high?", tensor);
    assert_int_equal(status, LAPSE_ERROR_USAGE);
    assert_string_equal(error->message, message);
    assert_string_equal(error->file, path);
}

static void models_are_not_saved(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_error error = {0};
    static const char *const names[] = {"attention", "lstm", "markov"};
    const char *path = small_path("model");
    small_file_write(path, "as it was", 9);
    for (int m = 0; m < 3; m++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "model", names[m]);
        options.run.epochs = 1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lp_tensor *tensor = lp_model_tensor_find(model, m == 2 ? "markov.strength" : "output.weight");
        assert_non_null(tensor);
        for (int i = 0; i < 3; i++) {
            if (tensor->type == LP_TENSOR_F64)
                *(double *)tensor->data = wrong[i];
            else
                ((float *)tensor->data)[tensor->rows * tensor->cols - 1] = wrong[i];
            check_not_saved(lapse_model_save(model, path, &error), &error, path, tensor->name);
        }
        lapse_model_free(model);
    }
    lp_buffer bytes = small_file_read(path);
    assert_int_equal(bytes.size, 9);
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

static void vectors_are_not_saved(void **state)
{
    (void)state;
    static const uint64_t offset[] = {0, 2, 4};
    static const lp_names names = {.count = 2, .offset = offset, .bytes = "a\0b"};
    lapse_vectors *vectors = lp_vectors_new(&names, 3);
    lapse_error error = {0};
    const char *path = small_path("vectors");
    for (int i = 0; i < 3; i++) {
        vectors->vector[5] = wrong[i];
        check_not_saved(lapse_vectors_save(vectors, path, &error), &error, path, "item.vector");
        assert_int_equal(access(path, F_OK), -1);
    }
    lapse_vectors_free(vectors);
}

static void checkpoints_are_not_saved(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    lp_trainer trainer, fresh;
    const char *path = small_path("checkpoint");
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    static const char *const names[] = {"run.parameters", "run.moment1", "run.moment2"};
    float *buffers[] = {trainer.parameters, trainer.adam.moment1, trainer.adam.moment2};
    for (int i = 0; i < 3; i++) {
        lapse_error error = {0};
        float kept = buffers[i][3];
        buffers[i][3] = wrong[i];
        check_not_saved(lp_checkpoint_save(&trainer, path, &error), &error, path, names[i]);
        buffers[i][3] = kept;
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(lp_checkpoint_save(&trainer, path, NULL), LAPSE_OK); /* its scores are NaN */
    /* Nor loaded, from a file with a valid checksum. */
    lp_container file;
    lapse_error error = {0};
    bool found;
    assert_int_equal(lp_container_open(&file, path, NULL), LAPSE_OK);
    trainer.adam.moment1[3] = NAN;
    for (int i = 0; i < file.tensor_count; i++)
        if (strcmp(file.tensors[i].name, "run.moment1") == 0)
            file.tensors[i].data = trainer.adam.moment1;
    assert_int_equal(lp_container_save(&file, small_path("edited"), NULL), LAPSE_OK);
    lp_container_close(&file);
    assert_int_equal(lp_trainer_init(&fresh, dataset, &options, NULL), LAPSE_OK);
    assert_int_equal(lp_checkpoint_load(&fresh, small_path("edited"), &found, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "this is not a checkpoint that can be used: 'run.moment1' has a number that is not finite");
    lp_trainer_clear(&fresh);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_names_the_tensor),
        cmocka_unit_test(large_numbers_are_accepted),
        cmocka_unit_test_teardown(models_are_not_saved, remove_files),
        cmocka_unit_test_teardown(vectors_are_not_saved, remove_files),
        cmocka_unit_test_teardown(checkpoints_are_not_saved, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
