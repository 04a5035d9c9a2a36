/* test_pretrain.c: item vectors are reproducible, are similar for items in similar contexts, come from features for
 * items without events, and do not depend on held-out events; their files; errors. */
#include "model/vectors.h"
#include "support/small_data.h"
#include "support/small_train.h"

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

static lapse_pretrain_options small_options(void)
{
    lapse_pretrain_options options;
    lapse_pretrain_options_default(&options);
    options.dims = 12;
    options.epochs = 3;
    options.split_by = "sequence";
    return options;
}

static lapse_vectors *learn(const lapse_dataset *dataset, const lapse_pretrain_options *options)
{
    lapse_vectors *vectors = NULL;
    lapse_error error = {0};
    if (lapse_pretrain(dataset, options, NULL, NULL, &vectors, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return vectors;
}

static int64_t find(const lapse_vectors *vectors, const char *name)
{
    for (int64_t i = 0; i < lapse_vectors_count(vectors); i++)
        if (strcmp(lapse_vectors_name(vectors, i), name) == 0)
            return i;
    fail_msg("there is no item '%s'", name);
    return -1;
}

static double cosine(const lapse_vectors *vectors, const char *left, const char *right)
{
    const float *a = lapse_vectors_get(vectors, find(vectors, left)),
                *b = lapse_vectors_get(vectors, find(vectors, right));
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < lapse_vectors_dims(vectors); i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* Sixty sequences, each of items "abcd" or of items "efgh". */
static lapse_dataset *two_groups(const uint8_t *split)
{
    enum { SEQUENCES = 60, LENGTH = 12 };
    static int lengths[SEQUENCES];
    static double time[SEQUENCES * LENGTH];
    static int32_t type[SEQUENCES * LENGTH];
    lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 0);
    for (int s = 0; s < SEQUENCES; s++) {
        lengths[s] = LENGTH;
        for (int i = 0; i < LENGTH; i++) {
            time[s * LENGTH + i] = i;
            type[s * LENGTH + i] = 4 * (s % 2) + (int32_t)lp_random_below(&random, 4);
        }
    }
    return small_dataset(SEQUENCES, lengths, time, type, 8, split);
}

static void test_same_seed_same_file(void **state)
{
    (void)state;
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options options = small_options();
    lapse_vectors *a = learn(dataset, &options), *b = learn(dataset, &options);
    options.seed = 2;
    lapse_vectors *c = learn(dataset, &options);
    assert_int_equal(lapse_vectors_save(a, small_path("a"), NULL), LAPSE_OK);
    assert_int_equal(lapse_vectors_save(b, small_path("b"), NULL), LAPSE_OK);
    small_files_same(small_path("a"), small_path("b"));
    assert_memory_not_equal(a->vector, c->vector, 8 * 12 * sizeof(float));
    lapse_vectors_free(a);
    lapse_vectors_free(b);
    lapse_vectors_free(c);
    lapse_dataset_close(dataset);
}

/* Golden values: they change with the random numbers, the order or the arithmetic. */
static void test_golden(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abab abba baab abab", "tttt tttt tttt vvvv");
    lapse_pretrain_options options = small_options();
    options.split_by = "column";
    options.dims = 2;
    lapse_vectors *vectors = learn(dataset, &options);
    static const float expected[] = {0.008095094f, 0.123195566f, 0.00315431482f, -0.216549188f};
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(vectors->vector[i] - expected[i]) < 1e-6f);
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
}

static void test_near_items_are_alike(void **state)
{
    (void)state;
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options options = small_options();
    options.epochs = 30;
    lapse_vectors *vectors = learn(dataset, &options);
    double within = 0, across = 0;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            char left[2] = {(char)('a' + i), 0}, right[2] = {(char)('a' + j), 0}, other[2] = {(char)('e' + j), 0};
            within += i == j ? 0 : cosine(vectors, left, right) / 12;
            across += cosine(vectors, left, other) / 16;
        }
    }
    assert_true(within > across + 0.5);
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
}

static void test_described_items(void **state)
{
    (void)state;
    static const char text[] = "item,name,brand\na,red lamp,X\nb,blue lamp,X\nc,green lamp,X\nd,old lamp,X\n"
                               "e,red drill,Y\nf,blue drill,Y\ng,green drill,Y\nh,old drill,Y\n"
                               "new lamp,new lamp,X\nnew drill,new drill,Y\nstrange,wholly unknown,Z\n";
    small_file_write(small_path("items.csv"), text, strlen(text));
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options options = small_options();
    options.catalogue = small_path("items.csv");
    options.epochs = 30;
    lapse_vectors *vectors = learn(dataset, &options);
    assert_int_equal(lapse_vectors_count(vectors), 11);
    assert_true(cosine(vectors, "new lamp", "a") > cosine(vectors, "new lamp", "e") + 0.5);
    assert_true(cosine(vectors, "new drill", "e") > cosine(vectors, "new drill", "a") + 0.5);
    assert_int_equal(lapse_vectors_occurrences(vectors, find(vectors, "new lamp")), 0);
    assert_true(lp_vectors_known(vectors, find(vectors, "new lamp")));
    /* An item without known features has zeros: no other item has "wholly", "unknown" or "Z". */
    assert_false(lp_vectors_known(vectors, find(vectors, "strange")));
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
}

/* The vectors depend on the training split only. */
static bool last_loss(const lapse_progress *progress, void *context)
{
    *(double *)context = progress->loss;
    return true;
}

/* Hundreds of words that all items share: the update is bounded, so vectors stay finite and items in similar contexts are
 * alike, also at the largest learning rate. */
static void test_many_common_words(void **state)
{
    (void)state;
    lp_buffer text = {0};
    assert_true(lp_buffer_print(&text, "item,name,brand\n"));
    for (int i = 0; i < 8; i++) {
        assert_true(lp_buffer_print(&text, "%c,", 'a' + i));
        for (int w = 0; w < 400; w++)
            assert_true(lp_buffer_print(&text, "w%d ", w));
        assert_true(lp_buffer_print(&text, ",%s\n", i < 4 ? "X" : "Y"));
    }
    small_file_write(small_path("items.csv"), text.data, text.size);
    lp_buffer_clear(&text);
    lapse_dataset *dataset = two_groups(NULL);
    static const double rates[] = {0.05, 1};
    for (int r = 0; r < 2; r++) {
        lapse_pretrain_options options = small_options();
        options.catalogue = small_path("items.csv");
        options.epochs = 30;
        options.learning_rate = rates[r];
        double loss = NAN;
        lapse_vectors *vectors = NULL;
        assert_int_equal(lapse_pretrain(dataset, &options, last_loss, &loss, &vectors, NULL), LAPSE_OK);
        for (int64_t i = 0; i < 8 * vectors->dims; i++)
            assert_true(isfinite(vectors->vector[i]));
        if (!(r > 0 || loss < 4)) /* six pairs of chance have a loss of 4.2 */
            fail_msg("the loss is %g", loss);
        assert_int_equal(lapse_vectors_save(vectors, small_path("v"), NULL), LAPSE_OK);
        lapse_vectors_free(vectors);
    }
    lapse_dataset_close(dataset);
}

static void test_held_out_events_are_not_read(void **state)
{
    (void)state;
    lapse_dataset *a = small_dataset_spelled("abcab bcabc cabab abcab", "ttttv tttte tttvv eeevv");
    lapse_dataset *b = small_dataset_spelled("abcac bcaba cabba cccab", "ttttv tttte tttvv eeevv");
    lapse_pretrain_options options = small_options();
    options.split_by = NULL;
    lapse_vectors *left = learn(a, &options), *right = learn(b, &options);
    for (int64_t i = 0; i < 3; i++) {
        int64_t j = find(right, lapse_vectors_name(left, i));
        assert_int_equal(lapse_vectors_occurrences(left, i), lapse_vectors_occurrences(right, j));
        assert_memory_equal(lapse_vectors_get(left, i), lapse_vectors_get(right, j), 12 * sizeof(float));
    }
    assert_int_equal(left->counts[find(left, "a")] + left->counts[find(left, "b")] + left->counts[find(left, "c")], 11);
    lapse_vectors_free(left);
    lapse_vectors_free(right);
    lapse_dataset_close(a);
    lapse_dataset_close(b);
}

static bool stop_at_once(const lapse_progress *progress, void *context)
{
    assert_int_equal(progress->epoch, 1);
    assert_true(isfinite(progress->loss));
    assert_true(isnan(progress->score));
    ++*(int *)context;
    return false;
}

static void test_progress(void **state)
{
    (void)state;
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options options = small_options();
    lapse_vectors *vectors = NULL;
    int calls = 0;
    assert_int_equal(lapse_pretrain(dataset, &options, stop_at_once, &calls, &vectors, NULL), LAPSE_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(lapse_vectors_count(vectors), 8);
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
}

/* ----------------------------------------------------------------------------------------- files and errors -- */

static void assert_refused(const lapse_dataset *dataset, const lapse_pretrain_options *options, const char *message)
{
    lapse_vectors *vectors = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_pretrain(dataset, options, NULL, NULL, &vectors, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
    assert_null(vectors);
}

static void test_wrong_options(void **state)
{
    (void)state;
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options o = small_options();
    o.dims = 0;
    assert_refused(dataset, &o, "dims must be from 1 to 4096, not 0");
    o = small_options();
    o.window = 1001;
    assert_refused(dataset, &o, "window must be from 1 to 1000, not 1001");
    o = small_options();
    o.negative_count = 0;
    assert_refused(dataset, &o, "negative-count must be from 1 to 1000, not 0");
    o = small_options();
    o.epochs = -1;
    assert_refused(dataset, &o, "epochs must be from 1 to 10000, not -1");
    o = small_options();
    o.learning_rate = NAN;
    assert_refused(dataset, &o, "learning-rate must be from 1e-06 to 1, not nan");
    o = small_options();
    o.popularity_power = -1;
    assert_refused(dataset, &o, "popularity-power must be from 0 to 2, not -1");
    o = small_options();
    o.split_by = "moon";
    assert_refused(dataset, &o, "there is no split rule 'moon'");
    o = small_options();
    o.session_gap = 0.5;
    assert_refused(dataset, &o,
                   "no two events of the training split are in one window: use a longer --session-gap, or data with "
                   "longer sequences");
    lapse_dataset_close(dataset);
}

static void test_file(void **state)
{
    (void)state;
    lapse_dataset *dataset = two_groups(NULL);
    lapse_pretrain_options options = small_options();
    lapse_vectors *made = learn(dataset, &options), *read = NULL;
    const char *path = small_path("vectors"), *again = small_path("again");
    assert_int_equal(lapse_vectors_save(made, path, NULL), LAPSE_OK);
    assert_int_equal(lapse_vectors_load(path, &read, NULL), LAPSE_OK);
    assert_int_equal(lapse_vectors_save(read, again, NULL), LAPSE_OK);
    small_files_same(path, again);
    const char *name, *value;
    assert_true(lapse_vectors_property(read, 1, &name, &value));
    assert_string_equal(name, "dims");
    assert_string_equal(value, "12");
    assert_false(lapse_vectors_property(read, 1000, &name, &value));
    lapse_vectors_free(read);
    lapse_vectors_free(made);
    lapse_dataset_close(dataset);
}

/* A valid container with invalid contents is refused. */
static void assert_not_loaded(const lapse_vectors *vectors, const char *message)
{
    lapse_vectors *read = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_vectors_save(vectors, small_path("bad"), NULL), LAPSE_OK);
    assert_int_equal(lapse_vectors_load(small_path("bad"), &read, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, message);
    assert_null(read);
}

static void test_bad_files(void **state)
{
    (void)state;
    static const uint64_t offset[] = {0, 2, 4};
    static const lp_names names = {.count = 2, .offset = offset, .bytes = "a\0b"};
    lapse_vectors *vectors = lp_vectors_new(&names, 3), *read = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_vectors_save(vectors, small_path("good"), NULL), LAPSE_OK);
    assert_int_equal(lapse_vectors_load(small_path("good"), &read, NULL), LAPSE_OK);
    lapse_vectors_free(read);
    vectors->vector[4] = INFINITY;
    lp_container file; /* lapse_vectors_save would refuse */
    assert_int_equal(lp_container_open(&file, small_path("good"), NULL), LAPSE_OK);
    assert_string_equal(file.tensors[0].name, "item.vector");
    file.tensors[0].data = vectors->vector;
    assert_int_equal(lp_container_save(&file, small_path("bad"), NULL), LAPSE_OK);
    lp_container_close(&file);
    assert_int_equal(lapse_vectors_load(small_path("bad"), &read, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "these are not item vectors that can be used: a number in them is not finite, or a count is "
                        "negative");
    vectors->vector[4] = 0;
    vectors->counts[1] = -1;
    assert_not_loaded(vectors,
                      "these are not item vectors that can be used: a number in them is not finite, or a count is "
                      "negative");
    vectors->counts[1] = 0;
    ((char *)vectors->blocks[3])[2] = 'a';
    assert_not_loaded(vectors, "names 1 and 2 of tensor 'vocabulary.item.bytes' are both 'a'");
    ((char *)vectors->blocks[3])[2] = 'b';
    ((uint64_t *)vectors->blocks[2])[1] = 3;
    assert_not_loaded(vectors, "these are not item vectors that can be used: their names are damaged");
    ((uint64_t *)vectors->blocks[2])[1] = UINT64_MAX;
    assert_not_loaded(vectors, "these are not item vectors that can be used: their names are damaged");
    lapse_vectors_free(vectors);
    /* A truncated file is refused. */
    lp_buffer bytes = small_file_read(small_path("good"));
    for (size_t size = 0; size < bytes.size; size += 7) {
        small_file_write(small_path("cut"), bytes.data, size);
        assert_int_equal(lapse_vectors_load(small_path("cut"), &read, &error), LAPSE_ERROR_FORMAT);
        assert_null(read);
    }
    lp_buffer_clear(&bytes);
    assert_int_equal(lapse_vectors_load(small_path("none"), &read, &error), LAPSE_ERROR_FILE);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char text[] = "item,brand\na,X\nb,X\nz,X\n";
    small_file_write(small_path("items.csv"), text, strlen(text));
    lapse_dataset *dataset = small_dataset_spelled("abab abba baab", "tttt tttt vvvv");
    lapse_pretrain_options options = small_options();
    options.catalogue = small_path("items.csv");
    options.split_by = NULL;
    lapse_vectors *vectors = NULL;
    int64_t first = lp_memory_count();
    assert_int_equal(lapse_pretrain(dataset, &options, NULL, NULL, &vectors, NULL), LAPSE_OK);
    int64_t count = lp_memory_count() - first;
    assert_true(count > 20);
    lapse_vectors_free(vectors);
    /* Every one is an error: no result is smaller for lack of memory. */
    for (int64_t n = 1; n <= count; n++) {
        vectors = NULL;
        lp_memory_fail_at(n);
        lapse_status status = lapse_pretrain(dataset, &options, NULL, NULL, &vectors, NULL);
        lp_memory_fail_at(0);
        if (status != LAPSE_ERROR_MEMORY)
            fail_msg("allocation %lld of %lld: status %d", (long long)n, (long long)count, (int)status);
        assert_null(vectors);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_same_seed_same_file, remove_files),
        cmocka_unit_test_teardown(test_golden, remove_files),
        cmocka_unit_test_teardown(test_near_items_are_alike, remove_files),
        cmocka_unit_test_teardown(test_described_items, remove_files),
        cmocka_unit_test_teardown(test_many_common_words, remove_files),
        cmocka_unit_test_teardown(test_held_out_events_are_not_read, remove_files),
        cmocka_unit_test_teardown(test_progress, remove_files),
        cmocka_unit_test_teardown(test_wrong_options, remove_files),
        cmocka_unit_test_teardown(test_file, remove_files),
        cmocka_unit_test_teardown(test_bad_files, remove_files),
        cmocka_unit_test_teardown(test_out_of_memory, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
