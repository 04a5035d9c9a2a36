/* test_item_init.c: recommenders that start from item vectors: which items they know, where these start and end, and what
 * is refused. */
#include "data/dataset/fingerprint.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* Event types a, b, c, d; d is never in the training split. */
static lapse_dataset *letters(void)
{
    return small_dataset_spelled("abcabcab bcabcabc cabcabca abcabcd abcabda acbabcb",
                                 "tttttttt tttttttt tttttttt ttttttv tttttvv eeeeeee");
}

/* Vectors of d, c, two items that the dataset does not have, b and a; of one nothing is known. */
static void write_vectors(const char *path, const char *split_by, uint64_t fingerprint)
{
    static const uint64_t offset[] = {0, 2, 4, 8, 12, 14, 16};
    static const lp_names names = {.count = 6, .offset = offset, .bytes = "d\0c\0new\0dim\0b\0a"};
    static const float value[6][4] = {{1, 2, 0, -1}, {0, 1, 1, 0},  {2, 0, 1, 1},
                                      {0, 0, 0, 0},  {1, -1, 0, 2}, {-1, 0, 2, 1}};
    lapse_vectors *vectors = lp_vectors_new(&names, 4);
    assert_non_null(vectors);
    memcpy(vectors->vector, value, sizeof value);
    assert_int_equal(lp_vectors_property_set(vectors, NULL, "split_by", "%s", split_by), LAPSE_OK);
    assert_int_equal(lp_vectors_property_set(vectors, NULL, "seed", "7"), LAPSE_OK);
    assert_int_equal(
        lp_vectors_property_set(vectors, NULL, "dataset.fingerprint", "%016llx", (unsigned long long)fingerprint),
        LAPSE_OK);
    assert_int_equal(lapse_vectors_save(vectors, path, NULL), LAPSE_OK);
    lapse_vectors_free(vectors);
}

static lapse_train_options small_options(const char *vectors)
{
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "task", "recommend");
    small_set(&options, "split-by", "column");
    small_set(&options, "item-vectors", vectors);
    small_set_number(&options, "blocks", 1);
    small_set_number(&options, "periods", 2);
    small_set_number(&options, "harmonics", 1);
    options.run.epochs = 3;
    options.run.batch = 2;
    options.run.shards = 2;
    options.run.threads = 1;
    options.run.seed = 3;
    return options;
}

static lapse_model *learn(const lapse_dataset *dataset, const lapse_train_options *options)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, options, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

static void test_items_of_the_model(void **state)
{
    (void)state;
    static const char *const losses[] = {"softmax", "sampled-softmax", "bce"};
    lapse_dataset *dataset = letters();
    const char *path = small_path("vectors");
    write_vectors(path, "column", 0);
    for (int i = 0; i < 3; i++) {
        lapse_train_options options = small_options(path);
        small_set(&options, "loss", losses[i]);
        lapse_model *model = learn(dataset, &options);
        assert_int_equal(model->config.dims, 4);
        /* The dataset's items in its order, then those that only the vectors know; not "dim", of which nothing is known. */
        assert_int_equal(lapse_model_event_type_count(model), 5);
        for (int64_t k = 0; k < 4; k++)
            assert_string_equal(lapse_model_event_type_name(model, k), lapse_dataset_event_type_name(dataset, k));
        assert_string_equal(lapse_model_event_type_name(model, 4), "new");
        assert_string_equal(lp_model_property_find(model, "train.item_vectors"), path);
        /* Items that were never met have the bias of the rarest met one. */
        const float *bias = lp_model_tensor_find(model, "output.bias")->data;
        int64_t d = lapse_model_event_type_find(model, "d");
        assert_true(bias[4] == bias[d]);
        assert_true(isfinite(bias[4]));
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

static void test_threads_and_files(void **state)
{
    (void)state;
    lapse_dataset *dataset = letters();
    write_vectors(small_path("vectors"), "column", 0);
    lapse_train_options options = small_options(small_path("vectors"));
    small_set(&options, "loss", "sampled-softmax");
    small_set(&options, "item-output", "separate");
    lapse_model *one = learn(dataset, &options), *read = NULL;
    options.run.threads = 3;
    lapse_model *three = learn(dataset, &options);
    assert_int_equal(lapse_model_save(one, small_path("one"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(three, small_path("three"), NULL), LAPSE_OK);
    small_files_same(small_path("one"), small_path("three"));
    assert_int_equal(lapse_model_load(small_path("one"), &read, NULL), LAPSE_OK);
    assert_int_equal(lapse_model_event_type_count(read), 5);
    lapse_model_free(read);
    lapse_model_free(one);
    lapse_model_free(three);
    lapse_dataset_close(dataset);
}

static void test_start(void **state)
{
    (void)state;
    lapse_dataset *dataset = letters();
    write_vectors(small_path("vectors"), "column", 0);
    lapse_train_options options = small_options(small_path("vectors"));
    lp_trainer trainer;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    const float *table = lp_model_tensor_find(trainer.model, "event.embedding")->data;
    double squares = 0;
    for (int i = 0; i < 20; i++)
        squares += (double)table[i] * (double)table[i];
    assert_true(fabs(sqrt(squares / 20) - 2 / sqrt(4.0)) < 1e-5);
    int64_t a = lapse_model_event_type_find(trainer.model, "a");
    assert_true(fabsf(table[4 * a + 2] + 2 * table[4 * a]) < 1e-5f && table[4 * a + 1] == 0);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

/* What the met items have learned is a function of their vectors: the others get the same function of theirs. */
static void test_place(void **state)
{
    (void)state;
    enum { ITEMS = 40, DIMS = 3 };
    lp_random random = lp_random_start(9, LP_PURPOSE_TEST, 0);
    lapse_vectors vectors = {.count = ITEMS, .dims = DIMS};
    float value[ITEMS * DIMS], table[ITEMS * DIMS], expected[ITEMS * DIMS], bias[ITEMS];
    int32_t row[ITEMS], count[ITEMS];
    vectors.vector = value;
    for (int i = 0; i < ITEMS; i++) {
        float *v = value + i * DIMS, *e = expected + i * DIMS;
        for (int d = 0; d < DIMS; d++)
            v[d] = (float)lp_random_normal(&random);
        e[0] = 2 * v[0] - v[1] + 0.5f;
        e[1] = v[2];
        e[2] = v[0] + v[1] + v[2] - 3;
        row[i] = i == 7 ? -1 : i;
        count[i] = i % 4 == 3 ? 0 : 1 + i % 4;
        bias[i] = (float)count[i];
        for (int d = 0; d < DIMS; d++)
            table[i * DIMS + d] = count[i] > 0 ? e[d] : 77;
    }
    lp_item_init start = {.vectors = &vectors, .names = {.count = ITEMS}, .row = row, .count = count};
    lp_tensor tensors[] = {{"event.embedding", LP_TENSOR_F32, ITEMS, DIMS, table},
                           {"output.bias", LP_TENSOR_F32, ITEMS, 1, bias}};
    lapse_model model = {.tensors = tensors, .tensor_count = 2};
    assert_int_equal(lp_item_init_place(&start, &model, NULL), LAPSE_OK);
    for (int i = 0; i < ITEMS; i++) {
        for (int d = 0; d < DIMS; d++)
            assert_true(row[i] < 0 ? table[i * DIMS + d] == 77
                                   : fabsf(table[i * DIMS + d] - expected[i * DIMS + d]) < (count[i] ? 1e-9f : 0.03f));
        assert_true(bias[i] == (count[i] ? (float)count[i] : row[i] < 0 ? 0 : 1));
    }
}

static void assert_refused(const lapse_dataset *dataset, const lapse_train_options *options, lapse_status status,
                           const char *message)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_train(dataset, options, NULL, NULL, &model, &error), status);
    assert_string_equal(error.message, message);
    assert_null(model);
}

static void test_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = letters();
    const char *path = small_path("vectors");
    write_vectors(path, "column", 0);
    lapse_train_options o = small_options(path);
    o.model.dims = 6;
    assert_refused(
        dataset, &o, LAPSE_ERROR_USAGE,
        "the item vectors have 4 numbers each and the model 6 dims; train with --dims 4, or pretrain with --dims "
        "6");
    o = small_options(path);
    small_set(&o, "task", "classify");
    assert_refused(dataset, &o, LAPSE_ERROR_USAGE, "item vectors are for the task recommend, not for classify");
    o = small_options(path);
    small_set(&o, "model", "popularity");
    assert_refused(dataset, &o, LAPSE_ERROR_USAGE,
                   "the model 'popularity' counts items and has no item vectors to initialize");
    o = small_options(small_path("none"));
    assert_refused(dataset, &o, LAPSE_ERROR_FILE, "cannot open: No such file or directory");
    o = small_options(small_path("text"));
    small_file_write(small_path("text"), "a,b\n1,2\n", 8);
    assert_refused(dataset, &o, LAPSE_ERROR_FORMAT,
                   "this is not a whole Lapse model: it does not begin with a safetensors header");
    write_vectors(path, "leave-one-out", lp_dataset_fingerprint(dataset));
    o = small_options(path);
    assert_refused(
        dataset, &o, LAPSE_ERROR_USAGE,
        "these item vectors were learned with --split-by leave-one-out and seed 7, so they may have read what this "
        "run (--split-by column, seed 3) holds out; pretrain with the same two");
    write_vectors(path, "column", lp_dataset_fingerprint(dataset));
    lapse_model *model = learn(dataset, &o);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_items_of_the_model, remove_files),
        cmocka_unit_test_teardown(test_threads_and_files, remove_files),
        cmocka_unit_test_teardown(test_start, remove_files),
        cmocka_unit_test(test_place),
        cmocka_unit_test_teardown(test_refused, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
