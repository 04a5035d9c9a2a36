/* test_fields.c: fields of events from text to file: values, errors, and independence of chunks and threads. */
#include "base/random.h"
#include "data/import/chunks.h"
#include "data/dataset/dataset.h"
#include "data/dataset/fingerprint.h"
#include "support/small_data.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const devices[] = {"device"}, *const prices[] = {"price"};

/* The columns of the tables below. */
static lapse_import_options with_fields(void)
{
    lapse_import_options options = defaults();
    options.event = "item";
    options.action = "action";
    options.categories = devices;
    options.category_count = 1;
    options.numbers = prices;
    options.number_count = 1;
    return options;
}

static const char table[] = "user,time,item,action,device,price\na,5,x,view,phone,1.5\na,3,y,buy,,-2e1\nb,1,x,view,"
                            "phone,\nb,2,x,view,\"tab\"\"let\", 7 \na,4,x,search,phone,3\n";

static lapse_dataset *make(void)
{
    lapse_import_options options = with_fields();
    lapse_dataset *dataset = NULL;
    assert_int_equal(import_bytes(table, sizeof table - 1, &options, 30, &dataset, NULL, NULL), LAPSE_OK);
    return dataset;
}

/* ------------------------------------------------------------------------------------------------- reading --- */

static void fields_follow_their_events(void **state)
{
    (void)state;
    lapse_import_options options = with_fields();
    expect_with(table, sizeof table - 1, &options,
                "a: 3 y [buy] [] <-20>, 4 x [search] [phone] <3>, 5 x [view] [phone] <1.5>;b: 1 x [view] [phone] "
                "<nan>, 2 x [view] [tab\"let] <7>;");
    options.categories = (const char *const[]){"5", "item"};
    options.category_count = 2; /* by number, and a column that is also part of the event */
    options.action = NULL;
    options.number_count = 0;
    expect_with(table, sizeof table - 1, &options,
                "a: 3 y [] [y], 4 x [phone] [x], 5 x [phone] [x];b: 1 x [phone] [x], 2 x [tab\"let] [x];");
}

static void without_a_header_columns_are_numbers(void **state)
{
    (void)state;
    static const char text[] = "a,1,x,view,2\na,2,y,,\n";
    lapse_import_options options = defaults();
    options.header = false;
    options.action = "4";
    options.numbers = (const char *const[]){"5"};
    options.number_count = 1;
    expect_with(text, sizeof text - 1, &options, "a: 1 x [view] <2>, 2 y [] <nan>;");
}

static void categories_are_numbered_by_how_often_they_occur(void **state)
{
    (void)state;
    lapse_dataset *dataset = make();
    lapse_field field;
    const int32_t *categories;
    const double *numbers;
    assert_true(lapse_dataset_field(dataset, 0, &field));
    assert_string_equal(field.name, "action");
    assert_int_equal(field.type, LAPSE_FIELD_ACTION);
    assert_int_equal(field.category_count, 3);
    assert_string_equal(lapse_dataset_category_name(dataset, 0, 0), "view");
    assert_string_equal(lapse_dataset_category_name(dataset, 0, 1), "buy");
    assert_string_equal(lapse_dataset_category_name(dataset, 0, 2), "search");
    assert_null(lapse_dataset_category_name(dataset, 0, 3));
    assert_true(lapse_dataset_field(dataset, 1, &field));
    assert_int_equal(field.type, LAPSE_FIELD_CATEGORY);
    assert_string_equal(lapse_dataset_category_name(dataset, 1, 1), "");
    assert_true(lapse_dataset_field(dataset, 2, &field));
    assert_int_equal(field.type, LAPSE_FIELD_NUMBER);
    assert_int_equal(field.category_count, 0);
    assert_null(lapse_dataset_category_name(dataset, 2, 0));
    assert_false(lapse_dataset_field(dataset, 3, &field));
    assert_false(lapse_dataset_field(dataset, -1, &field));
    lapse_dataset_field_values(dataset, 0, 0, &categories, &numbers);
    assert_null(numbers);
    assert_int_equal(categories[0], 1);
    lapse_dataset_field_values(dataset, 2, 1, &categories, &numbers);
    assert_null(categories);
    assert_true(isnan(numbers[0]) && numbers[1] == 7);
    lapse_dataset_field_values(dataset, 2, 2, &categories, &numbers);
    assert_null(numbers);
    assert_string_equal(lp_dataset_property_find(dataset, "field.1"), "action (action): 3 distinct values");
    assert_string_equal(lp_dataset_property_find(dataset, "field.2"), "device (category): 3 distinct values");
    assert_string_equal(lp_dataset_property_find(dataset, "field.3"),
                        "price (number): mean -2.125, standard deviation 10.5141, 1 missing");
    lapse_dataset_close(dataset);
}

/* The first category need not be the most frequent. */
static void values_keep_their_names_when_numbered(void **state)
{
    (void)state;
    static const char text[] =
        "user,time,item,action\na,1,x,rare\na,2,x,often\na,3,x,often\nb,1,x,some\nb,2,x,often\nb,3,x,some\n";
    lapse_import_options options = defaults();
    options.event = "item";
    options.action = "action";
    expect_with(text, sizeof text - 1, &options,
                "a: 1 x [rare], 2 x [often], 3 x [often];b: 1 x [some], 2 x [often], 3 x [some];");
    lapse_dataset *dataset = NULL;
    assert_int_equal(import_bytes(text, sizeof text - 1, &options, 64, &dataset, NULL, NULL), LAPSE_OK);
    static const char *const names[] = {"often", "some", "rare"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(lapse_dataset_category_name(dataset, 0, i), names[i]);
    lapse_dataset_close(dataset);
}

/* Only categories of the remaining events are stored. */
static void dropped_rows_take_their_categories_along(void **state)
{
    (void)state;
    lapse_import_options options = with_fields();
    options.min_count = 2;
    lapse_dataset *dataset = NULL;
    assert_int_equal(import_bytes(table, sizeof table - 1, &options, 9, &dataset, NULL, NULL), LAPSE_OK);
    assert_int_equal(dataset->fields[0].categories.count, 2);
    assert_string_equal(lapse_dataset_category_name(dataset, 0, 1), "search");
    assert_int_equal(dataset->fields[1].categories.count, 2);
    lapse_dataset_close(dataset);
}

static void missing_numbers(void **state)
{
    (void)state;
    static const char *const words[] = {"",     "NaN", "nan",  "NA",   "N/A",  "null", "NULL",
                                        "None", "n/a", "-nan", "<NA>", "#N/A", "\\N",  " NaN "};
    lapse_import_options options = with_fields();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[200];
        snprintf(text, sizeof text, "user,time,item,action,device,price\na,1,x,view,phone,%s\na,2,x,view,phone,7\n",
                 words[i]);
        expect_with(text, strlen(text), &options, "a: 1 x [view] [phone] <nan>, 2 x [view] [phone] <7>;");
    }
}

#define NOT_NUMBER \
    "' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null"

static void bad_fields_are_bad_rows(void **state)
{
    (void)state;
    static const struct {
        const char *row, *message;
        int64_t column;
    } cases[] = {
        {"a,1,x,view,phone,cheap\n", "'cheap" NOT_NUMBER, 6},
        {"a,1,x,view,phone,inf\n", "'inf" NOT_NUMBER, 6},
        {"a,1,x,view,phone,-Infinity\n", "'-Infinity" NOT_NUMBER, 6},
        {"a,1,x,view,phone,nanny\n", "'nanny" NOT_NUMBER, 6},
        {"a,1,x,view,phone,1e999\n", "'1e999" NOT_NUMBER, 6},
        {"a,1,x,v\xFF,phone,1\n", "the action is not valid UTF-8 text", 4},
        {"a,1,x,view,\xC3,1\n", "the field is not valid UTF-8 text", 5},
        {"a,1,x,view,phone\n", "this row has 5 fields, but the header has 6", 0},
    };
    lapse_import_options options = with_fields();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        snprintf(text, sizeof text, "user,time,item,action,device,price\nb,1,y,buy,tablet,1\n%sb,2,y,buy,tablet,2\n",
                 cases[i].row);
        refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 3, cases[i].column, cases[i].message);
        options.skip_bad_rows = true; /* a dropped row leaves no trace: neither its user nor its categories */
        expect_with(text, strlen(text), &options, "b: 1 y [buy] [tablet] <1>, 2 y [buy] [tablet] <2>;");
        options.skip_bad_rows = false;
    }
}

static void wrong_columns_are_named(void **state)
{
    (void)state;
    lapse_import_options options = with_fields();
    options.action = "deed";
    refuse_with(table, sizeof table - 1, &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'deed' for the action; the columns are: user, time, item, action, device, price");
    options = with_fields();
    options.categories = (const char *const[]){"colour"};
    refuse_with(table, sizeof table - 1, &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'colour' for the field; the columns are: user, time, item, action, device, price");
    options = with_fields();
    options.numbers = (const char *const[]){"7"};
    refuse_with(table, sizeof table - 1, &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column '7' for the number; the columns are: user, time, item, action, device, price");
    options = with_fields();
    options.categories = (const char *const[]){"action"};
    refuse_with(table, sizeof table - 1, &options, LAPSE_ERROR_USAGE, 1, 4,
                "the column 'action' cannot be the field: it already has another role");
    options = with_fields();
    options.numbers = (const char *const[]){"time"};
    refuse_with(table, sizeof table - 1, &options, LAPSE_ERROR_USAGE, 1, 2,
                "the column 'time' cannot be the number: it already has another role");
}

static void there_are_at_most_64(void **state)
{
    (void)state;
    lp_buffer text = {0};
    const char *names[70];
    char storage[70][8];
    lp_buffer_print(&text, "user,time,item");
    for (int i = 0; i < 70; i++) {
        snprintf(storage[i], sizeof storage[i], "f%d", i);
        names[i] = storage[i];
        lp_buffer_print(&text, ",f%d", i);
    }
    lp_buffer_print(&text, "\na,1,x");
    for (int i = 0; i < 70; i++)
        lp_buffer_print(&text, ",%d", i);
    lp_buffer_print(&text, "\n");
    lapse_import_options options = defaults();
    options.categories = names;
    options.category_count = 40;
    options.numbers = names + 40;
    options.number_count = 24;
    lapse_dataset *dataset = NULL, *opened = NULL;
    lapse_error error = {0};
    assert_int_equal(import_bytes(text.data, text.size, &options, 100, &dataset, NULL, &error), LAPSE_OK);
    assert_int_equal(dataset->field_count, 64);
    assert_int_equal(lapse_dataset_save(dataset, small_path("many.lapse"), &error), LAPSE_OK);
    assert_int_equal(lapse_dataset_open(small_path("many.lapse"), &opened, &error), LAPSE_OK);
    assert_string_equal(lapse_dataset_category_name(opened, 39, 0), "39");
    assert_true(opened->fields[63].number[0] == 63);
    lapse_dataset_close(dataset);
    lapse_dataset_close(opened);
    options.number_count = 25;
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_USAGE, 1, 0, "too many fields: the limit is 64");
    lp_buffer_clear(&text);
}

/* ------------------------------------------------------------------------------- blocks, threads and memory --- */

static void add_random_row(lp_buffer *text, lp_random *random)
{
    static const char *const actions[] = {"view", "buy", "", "\"two\nlines\"", "a rather long name of an action"};
    uint32_t fate = lp_random_below(random, 40);
    lp_buffer_print(text, "user %u,%u,item %u,%s,d%u,", lp_random_below(random, 30), lp_random_below(random, 1000),
                    lp_random_below(random, 20), actions[lp_random_below(random, 5)], lp_random_below(random, 200));
    if (fate == 0)
        lp_buffer_print(text, "bad\n");
    else if (fate < 5)
        lp_buffer_print(text, "\n");
    else
        lp_buffer_print(text, "%u.%u\n", lp_random_below(random, 100), lp_random_below(random, 100));
}

static void cuts_and_threads_do_not_show(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
        lp_buffer text = {0};
        lp_buffer_print(&text, "user,time,item,action,device,price\n");
        for (int i = 0; i < 1500; i++)
            add_random_row(&text, &random);
        lapse_import_options options = with_fields();
        options.skip_bad_rows = true;
        options.min_count = (int64_t)seed * 18;
        options.min_events = (int64_t)seed * 8;
        char *expected = NULL;
        uint64_t fingerprint = 0;
        static const int64_t blocks[] = {LP_CHUNK_SIZE, 1, 17, 100, 1000, 33333};
        for (int b = 0; b < 6; b++) {
            for (options.threads = 1; options.threads <= 5; options.threads += 2) {
                lapse_dataset *dataset = NULL;
                assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, NULL, NULL),
                                 LAPSE_OK);
                char *shown = show(dataset);
                if (!expected) {
                    expected = shown;
                    fingerprint = lp_dataset_fingerprint(dataset);
                } else {
                    assert_string_equal(shown, expected);
                    assert_true(fingerprint == lp_dataset_fingerprint(dataset));
                    lp_free(shown);
                }
                lapse_dataset_close(dataset);
            }
        }
        lp_free(expected);
        lp_buffer_clear(&text);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    lapse_import_options options = with_fields();
    options.threads = 2;
    int64_t n = 1;
    for (;; n++) {
        lapse_dataset *dataset = NULL, *opened = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = import_bytes(table, sizeof table - 1, &options, 16, &dataset, NULL, &error);
        if (status == LAPSE_OK)
            status = lapse_dataset_save(dataset, small_path("f.lapse"), &error);
        if (status == LAPSE_OK)
            status = lapse_dataset_open(small_path("f.lapse"), &opened, &error);
        lp_memory_fail_at(0);
        lapse_dataset_close(dataset);
        lapse_dataset_close(opened);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_memory_equal(error.message, "out of memory", 13);
    }
    print_message("%lld allocations\n", (long long)n - 1);
    assert_true(n > 50);
}

/* ------------------------------------------------------------------------------------------------- the file --- */

static bool same(const lapse_dataset *a, const lapse_dataset *b)
{
    char *left = show(a), *right = show(b);
    bool equal = strcmp(left, right) == 0 && lp_dataset_fingerprint(a) == lp_dataset_fingerprint(b);
    lp_free(left);
    lp_free(right);
    return equal;
}

static void what_is_saved_is_opened(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(), *opened = NULL;
    assert_int_equal(lapse_dataset_save(dataset, small_path("f.lapse"), NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_open(small_path("f.lapse"), &opened, NULL), LAPSE_OK);
    assert_true(same(dataset, opened));
    assert_int_equal(lapse_dataset_save(opened, small_path("g.lapse"), NULL), LAPSE_OK);
    small_files_same(small_path("f.lapse"), small_path("g.lapse"));
    lapse_dataset_close(dataset);
    lapse_dataset_close(opened);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = make();
    assert_int_equal(lapse_dataset_save(dataset, small_path("f.lapse"), NULL), LAPSE_OK);
    lp_buffer bytes = small_file_read(small_path("f.lapse"));
    for (size_t size = 0; size < bytes.size; size++) {
        lapse_dataset *opened = NULL;
        small_file_write(small_path("g.lapse"), bytes.data, size);
        assert_int_equal(lapse_dataset_open(small_path("g.lapse"), &opened, NULL), LAPSE_ERROR_FORMAT);
        assert_null(opened);
    }
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

static void every_changed_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    lapse_dataset *dataset = make();
    assert_int_equal(lapse_dataset_save(dataset, small_path("f.lapse"), NULL), LAPSE_OK);
    lp_buffer bytes = small_file_read(small_path("f.lapse"));
    int64_t harmless = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        lapse_dataset *opened = NULL;
        char kept = bytes.data[i];
        bytes.data[i] ^= (char)(1 << i % 8);
        small_file_write(small_path("g.lapse"), bytes.data, bytes.size);
        lapse_status status = lapse_dataset_open(small_path("g.lapse"), &opened, NULL);
        if (status == LAPSE_OK) {
            assert_true(same(dataset, opened));
            harmless++;
        } else {
            assert_int_equal(status, LAPSE_ERROR_FORMAT);
        }
        lapse_dataset_close(opened);
        bytes.data[i] = kept;
    }
    print_message("%lld of %zu bytes only fill gaps between columns\n", (long long)harmless, bytes.size);
    assert_true(harmless < (int64_t)bytes.size / 2);
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

/* The layout of docs/dataset.md, defined a second time. */
typedef struct entry {
    char name[24], type[8];
    uint64_t offset, size, checksum, reserved;
} entry;

/* Overwrites the first `size` bytes of a column, corrects all checksums as a forger would, and opens the file. */
static void forge(const lp_buffer *original, const char *column, const void *data, size_t size, const char *message)
{
    lp_buffer bytes = {0};
    lapse_dataset *opened = NULL;
    lapse_error error = {0};
    uint32_t count;
    assert_true(lp_buffer_add(&bytes, original->data, original->size));
    memcpy(&count, bytes.data + 24, sizeof count);
    entry *entries = (entry *)(void *)(bytes.data + 64);
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, column) == 0) {
            found = true;
            if (data)
                memcpy(bytes.data + entries[i].offset, data, size);
            else
                entries[i].name[0] = 'X';
            entries[i].checksum = XXH3_64bits(bytes.data + entries[i].offset, entries[i].size);
        }
    }
    assert_true(found);
    uint64_t checksum = XXH3_64bits(entries, count * sizeof *entries);
    memcpy(bytes.data + 48, &checksum, 8);
    checksum = XXH3_64bits(bytes.data, 56);
    memcpy(bytes.data + 56, &checksum, 8);
    small_file_write(small_path("g.lapse"), bytes.data, bytes.size);
    assert_int_equal(lapse_dataset_open(small_path("g.lapse"), &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, message);
    lp_buffer_clear(&bytes);
}

static void forged_fields_are_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = make();
    assert_int_equal(lapse_dataset_save(dataset, small_path("f.lapse"), NULL), LAPSE_OK);
    lp_buffer bytes = small_file_read(small_path("f.lapse"));
    const char *order = "column 'field.type' is not in the order action, categories, numbers";
    forge(&bytes, "field.0", &(int32_t){3}, 4, "column 'field.0' has an id that no category has");
    forge(&bytes, "field.1", &(int32_t){-1}, 4, "column 'field.1' has an id that no category has");
    forge(&bytes, "field.2", &(double){INFINITY}, 8, "column 'field.2' has an infinite number");
    forge(&bytes, "field.type", "\0\0\2", 3, order);
    forge(&bytes, "field.type", "\0\2\1", 3, order);
    forge(&bytes, "field.type", "\0\1\3", 3, order);
    forge(&bytes, "field.type", "\1\1\1", 3, "column 'field.2' has type 'f64', but should have 'i32'");
    forge(&bytes, "field.0.text", NULL, 0, "column 'field.0.text' is missing");
    forge(&bytes, "field.1.offset", NULL, 0, "column 'field.1.offset' is missing");
    forge(&bytes, "field.2", NULL, 0, "column 'field.2' is missing");
    forge(&bytes, "field.name.text", NULL, 0, "column 'field.name.text' is missing");
    lp_buffer_clear(&bytes);
    /* Two equal categories. */
    static const uint64_t offset[] = {0, 2, 4, 6};
    lapse_dataset *opened = NULL;
    lapse_error error = {0};
    dataset->fields[1].categories = (lp_names){.count = 3, .offset = offset, .bytes = "u\0v\0v"};
    assert_int_equal(lapse_dataset_save(dataset, small_path("f.lapse"), NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_open(small_path("f.lapse"), &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "names 2 and 3 of column 'field.1.text' are both 'v'");
    lapse_dataset_close(dataset);
}

/* Other fields give another fingerprint; without fields the fingerprint has not changed. */
static void fields_are_part_of_the_fingerprint(void **state)
{
    (void)state;
    lapse_import_options options = with_fields();
    lapse_dataset *all = make(), *fewer = NULL, *other = NULL;
    options.number_count = 0;
    assert_int_equal(import_bytes(table, sizeof table - 1, &options, 64, &fewer, NULL, NULL), LAPSE_OK);
    options.categories = prices;
    assert_int_equal(import_bytes(table, sizeof table - 1, &options, 64, &other, NULL, NULL), LAPSE_OK);
    assert_true(lp_dataset_fingerprint(all) != lp_dataset_fingerprint(fewer));
    assert_true(lp_dataset_fingerprint(other) != lp_dataset_fingerprint(fewer));
    lapse_dataset_close(all);
    lapse_dataset_close(fewer);
    lapse_dataset_close(other);
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
        cmocka_unit_test(fields_follow_their_events),
        cmocka_unit_test(without_a_header_columns_are_numbers),
        cmocka_unit_test(categories_are_numbered_by_how_often_they_occur),
        cmocka_unit_test(values_keep_their_names_when_numbered),
        cmocka_unit_test(dropped_rows_take_their_categories_along),
        cmocka_unit_test(missing_numbers),
        cmocka_unit_test(bad_fields_are_bad_rows),
        cmocka_unit_test(wrong_columns_are_named),
        cmocka_unit_test(there_are_at_most_64),
        cmocka_unit_test(cuts_and_threads_do_not_show),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_is_saved_is_opened),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_changed_byte_is_refused_or_harmless),
        cmocka_unit_test(forged_fields_are_refused),
        cmocka_unit_test(fields_are_part_of_the_fingerprint),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
