/* test_csv.c: imports of delimited text; the result depends neither on chunks nor on threads. */
#include "support/table_text.h"

#include "base/memory.h"
#include "base/random.h"
#include "data/import/chunks.h"
#include "data/dataset/dataset.h"
#include "data/import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void expect(const char *text, const char *expected)
{
    lapse_import_options options = defaults();
    expect_with(text, strlen(text), &options, expected);
}

/* ------------------------------------------------------------------------------------------- what is read ---- */

static void plain_tables(void **state)
{
    (void)state;
    expect("user,time,event\na,1,x\nb,2,y\na,3.5,x\n", "a: 1 x, 3.5 x;b: 2 y;");
    expect("user,time,event\r\na,1,x\r\nb,2,y\r\n", "a: 1 x;b: 2 y;");
    expect("user,time,event\na,1,x\nb,2,y", "a: 1 x;b: 2 y;");
    expect("user,time,event\r\na,1,x\r", "a: 1 x;");
    expect("\n\nuser,time,event\n\n\na,1,x\n\r\nb,2,y\n\n", "a: 1 x;b: 2 y;");
    expect("\xEF\xBB\xBFuser,time,event\na,1,x\n", "a: 1 x;");
    expect("user\ttime\tevent\na b\t1\tx,y\n", "a b: 1 x,y;");
    expect("user;time;event\na;1;x\n", "a: 1 x;");
    expect("user|time|event\na|1|x\n", "a: 1 x;");
    expect("other,event,time,note,user\n,x,1,,a\n", "a: 1 x;");
    expect("user,time,event\na, 1 ,x\n", "a: 1 x;");
    expect("user,time,event\n1234567,1,x\n12345678,1,x\n123456789,1,x\n1,1,x\n12,1,x\n123,1,x\n1234,1,x\n",
           "1234567: 1 x;12345678: 1 x;123456789: 1 x;1: 1 x;12: 1 x;123: 1 x;1234: 1 x;");
}

static void quoted_fields(void **state)
{
    (void)state;
    expect("\"user\",time,\"event\"\n\"a, b\",1,\"say \"\"hi\"\"\"\n", "a, b: 1 say \"hi\";");
    expect("user,time,event\na,1,\"two\nlines\"\nb,2,x\n", "a: 1 two\nlines;b: 2 x;");
    expect("user,time,event\r\na,1,\"x\"\r\nb,\"2\",x\r\n", "a: 1 x;b: 2 x;");
    expect("user,time,event\na,1,5\" pipe\nb,2,a\"b\"c\n", "a: 1 5\" pipe;b: 2 a\"b\"c;");
    expect("user,time,event\na,1,\"\"\"\"\n", "a: 1 \";");
    expect("user,time,event\na,1,\"x\"", "a: 1 x;");
    expect("user,time,event,note\na,1,x,\"\"\nb,2,y,\"\n\n\"\nc,3,z,\"a,\"\"\n\"\"b\"\n", "a: 1 x;b: 2 y;c: 3 z;");
    expect("user,time,event\na,1,\" padded \"\n", "a: 1  padded ;");
}

static void order_and_numbers(void **state)
{
    (void)state;
    expect("user,time,event\nb,5,x\na,3,y\nb,1,y\na,3,x\na,3,z\nb,5,y\n", "b: 1 y, 5 x, 5 y;a: 3 y, 3 x, 3 z;");
    lapse_dataset *dataset = NULL;
    lapse_import_report report;
    lapse_import_options options = defaults();
    const char *text = "user,time,event\na,1,rare\na,9,often\na,2,tie\na,3,often\na,4,second\nb,1,second\nb,0,tie\n";
    assert_int_equal(import_bytes(text, strlen(text), &options, 64, &dataset, &report, NULL), LAPSE_OK);
    static const char *const names[] = {"often", "tie", "second", "rare"};
    assert_int_equal(lapse_dataset_event_type_count(dataset), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(lapse_dataset_event_type_name(dataset, i), names[i]);
    assert_null(lapse_dataset_event_type_name(dataset, 4));
    assert_null(lapse_dataset_event_type_name(dataset, -1));
    assert_null(lapse_dataset_sequence_name(dataset, 2));
    assert_int_equal(lapse_dataset_sequence_count(dataset), 2);
    assert_int_equal(lapse_dataset_event_count(dataset), 7);
    assert_int_equal(report.moved_rows, 4);
    assert_int_equal(report.rows, 7);
    assert_int_equal(report.bytes, strlen(text));
    const double *times;
    const int32_t *types;
    int64_t count;
    lapse_dataset_sequence(dataset, 1, &times, &types, &count);
    assert_int_equal(count, 2);
    assert_true(times[0] == 0 && times[1] == 1 && types[0] == 1 && types[1] == 2);
    lapse_dataset_sequence(dataset, 2, &times, &types, &count);
    assert_int_equal(count, 0);
    lapse_dataset_close(dataset);
}

static void units_of_time(void **state)
{
    (void)state;
    expect("user,time,event\na,1326506723.403,x\n", "a: 1326506723.4030001 x;");
    expect("user,time,event\na,1326506723403,x\na,1326506723404,x\n", "a: 1326506723.4030001 x, 1326506723.404 x;");
    expect("user,time,event\na,2012-01-14T02:05:23.403Z,x\na,2012-01-14 04:05:24+0200,x\n",
           "a: 1326506723.4030001 x, 1326506724 x;");
    lapse_import_options options = defaults();
    options.time_unit = "ms";
    expect_with("u,time,event,id\na,1500,x,s\n", 27, &options, "s: 1.5 x;");
    options.time_unit = "s";
    expect_with("id,time,event\na,200000000000,x\n", 31, &options, "a: 200000000000 x;");
    options.time_unit = NULL;
    expect_with("id,time,event\na,7,x\n", 20, &options, "a: 7 x;");
}

static void columns_by_name_and_number(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.sequence = "who";
    options.time = "2";
    options.event = "action, item";
    const char *text = "who,t,action,item\na,1,buy,tea\na,2,leave,\na,3,,tea\n";
    expect_with(text, strlen(text), &options, "a: 1 buy tea, 2 leave, 3 tea;");
    options = defaults();
    options.event = "one, two";
    text = "user,time,\"one, two\"\na,1,x\n";
    expect_with(text, strlen(text), &options, "a: 1 x;");
    options = defaults();
    options.sequence = "2";
    options.time = "1";
    options.event = "3";
    text = "3,1,2\nx,5,a\n"; /* names take precedence over numbers */
    expect_with(text, strlen(text), &options, "a: 5 x;");
}

static void delimiters_can_be_chosen(void **state)
{
    (void)state;
    static const char *const given[] = {"\t", "\\t", "tab"};
    lapse_import_options options = defaults();
    const char *text;
    for (int i = 0; i < 3; i++) {
        options.delimiter = given[i];
        options.sequence = "user,x";
        options.event = "event,y,z";
        text = "user,x\ttime\tevent,y,z\na\t1\tb,c\n";
        expect_with(text, strlen(text), &options, "a: 1 b,c;");
    }
    options = defaults();
    options.delimiter = ":";
    text = "user:time:event\na:1:x,y,z\n";
    expect_with(text, strlen(text), &options, "a: 1 x,y,z;");
    options.delimiter = " ";
    text = "user time event\na 1 \"x y\"\n";
    expect_with(text, strlen(text), &options, "a: 1 x y;");
}

static void without_a_header(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.header = false;
    const char *text = "\na,1,x\nb,2,y\n";
    expect_with(text, strlen(text), &options, "a: 1 x;b: 2 y;");
    text = "\"a\"\"\",1,\"x\"\nb,2,y\n";
    expect_with(text, strlen(text), &options, "a\": 1 x;b: 2 y;");
    options.sequence = "3";
    options.event = "1";
    text = "x,1,a\n";
    expect_with(text, strlen(text), &options, "a: 1 x;");
}

static void split_columns(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.split = "part";
    const char *text =
        "user,time,event,part\na,1,x,train\na,2,x,Valid\na,3,x,TEST\nb,1,x,validation\nb,2,x,val\nb,3,x,dev\n";
    expect_with(text, strlen(text), &options,
                "a: 1 x (train), 2 x (valid), 3 x (test);b: 1 x (valid), 2 x (valid), 3 x (valid);");
    text = "user,time,event,part\na,3,x,test\na,1,x,train\n";
    expect_with(text, strlen(text), &options, "a: 1 x (train), 3 x (test);");
}

static void filters(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\nb,1,rare\na,2,x\na,3,y\nb,2,x\nc,1,y\nd,1,once\nd,2,twice\ne,1,twice\n";
    lapse_import_options options = defaults();
    options.min_count = 2;
    options.min_events = 2;
    lapse_import_report report;
    lapse_dataset *dataset = NULL;
    assert_int_equal(import_bytes(text, strlen(text), &options, 64, &dataset, &report, NULL), LAPSE_OK);
    char *shown = show(dataset);
    assert_string_equal(shown, "a: 1 x, 2 x, 3 y;");
    lp_free(shown);
    assert_int_equal(lapse_dataset_event_type_count(dataset), 2);
    assert_int_equal(report.rows, 9);
    assert_int_equal(report.rare_rows, 2);
    assert_int_equal(report.rare_event_types, 2);
    assert_int_equal(report.short_sequences, 4);
    assert_int_equal(report.short_rows, 4);
    assert_string_equal(lp_dataset_property_find(dataset, "rows.rare"), "2 dropped with 2 rare event types");
    assert_string_equal(lp_dataset_property_find(dataset, "rows.short"), "4 dropped with 4 short sequences");
    lapse_dataset_close(dataset);
    options.min_events = 9;
    lapse_error error = {0};
    assert_int_equal(import_bytes(text, strlen(text), &options, 64, &dataset, &report, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "no event is left: 2 have event types that occur fewer than 2 times, and 7 are "
                                       "in sequences with fewer than 9 events");
}

/* Malformed rows are dropped and counted, and none of their names is in the dataset. */
static void skipped_rows(void **state)
{
    (void)state;
    const char *text = "user,time,event\nghost,soon,spook\na,1,x\nb,2\n,3,x\nc,4,\n\"d\nd\",nan,x\n\"e\"e,1,x\na,1e12,"
                       "x\nf,5,\xFF\na,2,y\n\"open,9,x\nb,3,x\n";
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    static const int64_t blocks[] = {1, 5, 20, LP_CHUNK_SIZE};
    for (int b = 0; b < 4; b++) {
        lapse_dataset *dataset = NULL;
        lapse_import_report report;
        lapse_error error = {0};
        assert_int_equal(import_bytes(text, strlen(text), &options, blocks[b], &dataset, &report, &error), LAPSE_OK);
        char *shown = show(dataset);
        assert_string_equal(shown, "a: 1 x, 2 y;b: 3 x;");
        lp_free(shown);
        assert_int_equal(lapse_dataset_event_type_count(dataset), 2);
        assert_int_equal(report.rows, 12);
        assert_int_equal(report.bad_rows, 9);
        assert_int_equal(report.first_bad_row.line, 2);
        assert_int_equal(report.first_bad_row.column, 2);
        assert_string_equal(lp_dataset_property_find(dataset, "rows.bad"), "9 malformed, dropped");
        lapse_dataset_close(dataset);
    }
}

/* ---------------------------------------------------------------------------------------------------- gzip --- */

static lp_buffer zip(const char *text, size_t size)
{
    lp_buffer out = {0};
    lp_buffer_reserve(&out, size + 1000);
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)out.data;
    stream.avail_out = (uInt)out.capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.size = out.capacity - stream.avail_out;
    deflateEnd(&stream);
    return out;
}

static void gzip_is_read(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\nb,2,y\n";
    lp_buffer one = zip(text, strlen(text)), two = zip("a,3,y\n", 6), empty = zip("", 0);
    lapse_import_options options = defaults();
    expect_with(one.data, one.size, &options, "a: 1 x;b: 2 y;");
    lp_buffer_add(&one, empty.data, empty.size);
    lp_buffer_add(&one, two.data, two.size);
    expect_with(one.data, one.size, &options, "a: 1 x, 3 y;b: 2 y;");
    static const char zeros[100];
    lp_buffer padded = {0};
    lp_buffer_add(&padded, one.data, one.size);
    lp_buffer_add(&padded, zeros, sizeof zeros);
    expect_with(padded.data, padded.size, &options, "a: 1 x, 3 y;b: 2 y;");
    lp_buffer_add(&padded, "junk", 4);
    refuse_with(padded.data, padded.size, &options, LAPSE_ERROR_INPUT, 0, 0, "the gzip data is followed by other data");
    /* Truncated anywhere but at the end of a member, it is an error. */
    for (size_t size = 2; size < one.size; size++) {
        if (size == one.size - two.size || size == one.size - two.size - empty.size)
            continue;
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lapse_status status = import_bytes(one.data, size, &options, 64, &dataset, NULL, &error);
        if (size == one.size - two.size + 1 || size == one.size - two.size - empty.size + 1) {
            assert_string_equal(error.message, "the gzip data is followed by other data");
        } else {
            assert_int_equal(status, LAPSE_ERROR_INPUT);
            assert_string_equal(error.message, "the gzip data is truncated");
        }
    }
    one.data[15] ^= 0x55;
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    assert_int_equal(import_bytes(one.data, one.size, &options, 64, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
    assert_memory_equal(error.message, "the gzip data is corrupt: ", 26);
    lp_buffer_clear(&one);
    lp_buffer_clear(&two);
    lp_buffer_clear(&empty);
    lp_buffer_clear(&padded);
}

/* A file and standard input give the same result as memory. */
static void files_and_standard_input(void **state)
{
    (void)state;
    char path[] = "/tmp/lapse_test_XXXXXX";
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    const char *text = "user,time,event\na,1,x\nb,2,y\n";
    assert_int_equal(write(handle, text, strlen(text)), strlen(text));
    lapse_import_options options = defaults();
    options.input = path;
    lapse_dataset *dataset = NULL;
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_event_count(dataset), 2);
    assert_string_equal(lp_dataset_property_find(dataset, "source"), strrchr(path, '/') + 1);
    lapse_dataset_close(dataset);
    lseek(handle, 0, SEEK_SET);
    int kept = dup(STDIN_FILENO);
    dup2(handle, STDIN_FILENO);
    options.input = "-";
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, NULL), LAPSE_OK);
    assert_string_equal(lp_dataset_property_find(dataset, "source"), "standard input");
    lapse_dataset_close(dataset);
    lapse_error error = {0};
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.file, "standard input");
    dup2(kept, STDIN_FILENO);
    close(kept);
    close(handle);
    unlink(path);
}

/* ------------------------------------------------------------------------------- blocks, threads and memory --- */

static void add_random_row(lp_buffer *text, lp_random *random)
{
    static const char *const types[] = {"view", "buy", "\"say \"\"hi\"\"\"", "\"two\nlines\"",
                                        "a rather long name of an event"};
    uint32_t fate = lp_random_below(random, 40);
    uint32_t user = lp_random_below(random, 50);
    const char *end = fate % 3 ? "\n" : "\r\n";
    if (fate == 0)
        lp_buffer_print(text, "%s", end);
    else if (fate == 1)
        lp_buffer_print(text, "user %u,bad,x%s", user, end);
    else if (fate == 2)
        lp_buffer_print(text, "user %u,7%s", user, end);
    else
        lp_buffer_print(text, "user %u,%u.%03u,%s%s", user, lp_random_below(random, 1000),
                        lp_random_below(random, 1000), types[lp_random_below(random, 5)], end);
}

/* The same text with every chunk size and several threads gives the same dataset, report and first bad row. */
static void cuts_and_threads_do_not_show(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
        lp_buffer text = {0};
        lp_buffer_print(&text, "user,time,event\n");
        for (int i = 0; i < 1500; i++)
            add_random_row(&text, &random);
        lapse_import_options options = defaults();
        options.skip_bad_rows = true;
        options.min_count = seed % 3;
        options.min_events = (int64_t)seed * 5;
        char *expected = NULL;
        lapse_import_report first;
        static const int64_t blocks[] = {LP_CHUNK_SIZE, 1, 3, 17, 100, 1000, 5000, 33333};
        for (int b = 0; b < 8; b++) {
            for (options.threads = 1; options.threads <= 5; options.threads += 2) {
                lapse_dataset *dataset = NULL;
                lapse_import_report report;
                lapse_error error = {0};
                assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, &report, &error),
                                 LAPSE_OK);
                char *shown = show(dataset);
                if (!expected) {
                    expected = shown;
                    first = report;
                } else {
                    assert_string_equal(shown, expected);
                    assert_memory_equal(&report, &first, offsetof(lapse_import_report, first_bad_row));
                    assert_int_equal(report.first_bad_row.line, first.first_bad_row.line);
                    assert_string_equal(report.first_bad_row.message, first.first_bad_row.message);
                    lp_free(shown);
                }
                lapse_dataset_close(dataset);
            }
        }
        lp_free(expected);
        lp_buffer_clear(&text);
    }
}

/* Long sequences with many equal times: each event is named by its row, which must increase among equal times. */
static void equal_times_keep_the_order_of_the_source(void **state)
{
    (void)state;
    enum { ROWS = 5000, USERS = 7 };
    uint64_t seed = 99;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event,part\n");
    for (int row = 0; row < ROWS; row++)
        lp_buffer_print(&text, "%u,%u,%d,%s\n", lp_random_below(&random, USERS), lp_random_below(&random, 30), row,
                        row % 3 ? "train" : "test");
    lapse_import_options options = defaults();
    options.split = "part";
    for (options.threads = 1; options.threads <= 3; options.threads++) {
        lapse_dataset *dataset = NULL;
        assert_int_equal(import_bytes(text.data, text.size, &options, 3000, &dataset, NULL, NULL), LAPSE_OK);
        assert_int_equal(lapse_dataset_event_count(dataset), ROWS);
        assert_int_equal(lapse_dataset_sequence_count(dataset), USERS);
        for (int64_t s = 0; s < USERS; s++) {
            for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
                int row = atoi(lapse_dataset_event_type_name(dataset, dataset->type[i]));
                assert_int_equal(dataset->split[i], row % 3 ? LP_SPLIT_TRAIN : LP_SPLIT_TEST);
                if (i == dataset->start[s])
                    continue;
                int before = atoi(lapse_dataset_event_type_name(dataset, dataset->type[i - 1]));
                assert_true(dataset->time[i - 1] < dataset->time[i] ||
                            (dataset->time[i - 1] == dataset->time[i] && before < row));
            }
        }
        lapse_dataset_close(dataset);
    }
    lp_buffer_clear(&text);
}

/* The reported bad row is the first in the text, whichever worker finds one first. */
static void the_first_bad_row_is_reported(void **state)
{
    (void)state;
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event\n");
    for (int i = 0; i < 3000; i++)
        lp_buffer_print(&text, i == 1700 || i > 1800 ? "u,bad,x\n" : "u,%d,x\n", i);
    for (int round = 0; round < 30; round++) {
        lapse_import_options options = defaults();
        options.threads = 4;
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        assert_int_equal(import_bytes(text.data, text.size, &options, 500, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
        assert_int_equal(error.line, 1702);
    }
    lp_buffer_clear(&text);
}

/* Fails the n-th allocation, for every n: an error each time, until none fails. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *text =
        "user,time,action,item,part\na,5,buy,tea,train\nb,2,\"see\",tea,test\na,1,buy,\"a \"\"cup\"\"\",valid\n";
    lp_buffer zipped = zip(text, strlen(text));
    lapse_import_options options = defaults();
    options.event = "action,item";
    options.split = "part";
    options.threads = 2;
    int64_t n = 1;
    for (;; n++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = import_bytes(zipped.data, zipped.size, &options, 16, &dataset, NULL, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK) {
            lapse_dataset_close(dataset);
            break;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_memory_equal(error.message, "out of memory", 13);
        assert_null(dataset);
    }
    print_message("%lld allocations\n", (long long)n - 1);
    assert_true(n > 30);
    lp_buffer_clear(&zipped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_tables),
        cmocka_unit_test(quoted_fields),
        cmocka_unit_test(order_and_numbers),
        cmocka_unit_test(units_of_time),
        cmocka_unit_test(columns_by_name_and_number),
        cmocka_unit_test(delimiters_can_be_chosen),
        cmocka_unit_test(without_a_header),
        cmocka_unit_test(split_columns),
        cmocka_unit_test(filters),
        cmocka_unit_test(skipped_rows),
        cmocka_unit_test(gzip_is_read),
        cmocka_unit_test(files_and_standard_input),
        cmocka_unit_test(cuts_and_threads_do_not_show),
        cmocka_unit_test(equal_times_keep_the_order_of_the_source),
        cmocka_unit_test(the_first_bad_row_is_reported),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
