/* test_csv.c: delimited text into datasets: what is read, what is refused and with which words, and that neither blocks nor
 * threads show in the result. */
#include "base/memory.h"
#include "base/random.h"
#include "data/blocks.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/import.h"

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

static lapse_status import_bytes(const void *data, size_t size, const lapse_import_options *options, int64_t block_size,
                                 lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    lp_source source;
    lp_import_tuning tuning = {block_size, 1000};
    lapse_status status = lp_source_open_memory(&source, "t.csv", data, size, error);
    if (status == LAPSE_OK)
        status = lp_import(&source, options, &tuning, dataset, report, error);
    lp_source_close(&source);
    return status;
}

static lapse_import_options defaults(void)
{
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.threads = 1;
    return options;
}

/* Everything in a dataset as text, to compare whole: "sequence: time kind, time kind; ..." */
static char *show(const lapse_dataset *dataset)
{
    lp_buffer text = {0};
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        lp_buffer_print(&text, "%s:", lapse_dataset_sequence_name(dataset, s));
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            lp_buffer_print(&text, " %.17g %s", dataset->time[i], lapse_dataset_kind_name(dataset, dataset->kind[i]));
            if (dataset->split)
                lp_buffer_print(&text, " (%s)", lp_split_name((lp_split)dataset->split[i]));
            lp_buffer_print(&text, "%s", i + 1 < dataset->start[s + 1] ? "," : ";");
        }
    }
    lp_buffer_add(&text, "", 1);
    return text.data;
}

static void expect_with(const char *text, size_t size, const lapse_import_options *options, const char *expected)
{
    static const int64_t blocks[] = {1, 7, 64, LP_BLOCK_SIZE};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        if (import_bytes(text, size, options, blocks[b], &dataset, NULL, &error) != LAPSE_OK)
            fail_msg("%s:%ld:%ld: %s", error.file, (long)error.line, (long)error.column, error.message);
        char *shown = show(dataset);
        assert_string_equal(shown, expected);
        lp_free(shown);
        lapse_dataset_close(dataset);
    }
}

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
    assert_int_equal(lapse_dataset_kind_count(dataset), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(lapse_dataset_kind_name(dataset, i), names[i]);
    assert_null(lapse_dataset_kind_name(dataset, 4));
    assert_null(lapse_dataset_kind_name(dataset, -1));
    assert_null(lapse_dataset_sequence_name(dataset, 2));
    assert_int_equal(lapse_dataset_sequence_count(dataset), 2);
    assert_int_equal(lapse_dataset_event_count(dataset), 7);
    assert_int_equal(report.moved_rows, 4);
    assert_int_equal(report.rows, 7);
    assert_int_equal(report.bytes, strlen(text));
    const double *times;
    const int32_t *kinds;
    int64_t count;
    lapse_dataset_sequence(dataset, 1, &times, &kinds, &count);
    assert_int_equal(count, 2);
    assert_true(times[0] == 0 && times[1] == 1 && kinds[0] == 1 && kinds[1] == 2);
    lapse_dataset_sequence(dataset, 2, &times, &kinds, &count);
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
    text = "3,1,2\nx,5,a\n"; /* names win over numbers */
    expect_with(text, strlen(text), &options, "a: 5 x;");
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
    const char *text = "user,time,event,part\na,1,x,train\na,2,x,Valid\na,3,x,TEST\nb,1,x,validation\nb,2,x,val\nb,3,x,dev\n";
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
    assert_int_equal(lapse_dataset_kind_count(dataset), 2);
    assert_int_equal(report.rows, 9);
    assert_int_equal(report.rare_rows, 2);
    assert_int_equal(report.rare_kinds, 2);
    assert_int_equal(report.short_sequences, 4);
    assert_int_equal(report.short_rows, 4);
    assert_string_equal(lp_dataset_property_find(dataset, "rows.rare"), "2 left out with 2 rare kinds of event");
    assert_string_equal(lp_dataset_property_find(dataset, "rows.short"), "4 left out with 4 short sequences");
    lapse_dataset_close(dataset);
    options.min_events = 9;
    lapse_error error = {0};
    assert_int_equal(import_bytes(text, strlen(text), &options, 64, &dataset, &report, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "no event is left: 2 were of kinds that occur fewer than 2 times, and 7 in sequences with "
                                       "fewer than 9 events");
}

/* Bad rows are left out, counted, and leave no trace: no name of theirs is in the dataset. */
static void skipped_rows(void **state)
{
    (void)state;
    const char *text = "user,time,event\nghost,soon,spook\na,1,x\nb,2\n,3,x\nc,4,\n\"d\nd\",nan,x\n\"e\"e,1,x\na,1e12,x\nf,5,\xFF\n"
                       "a,2,y\n\"open,9,x\nb,3,x\n";
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    static const int64_t blocks[] = {1, 5, 20, LP_BLOCK_SIZE};
    for (int b = 0; b < 4; b++) {
        lapse_dataset *dataset = NULL;
        lapse_import_report report;
        lapse_error error = {0};
        assert_int_equal(import_bytes(text, strlen(text), &options, blocks[b], &dataset, &report, &error), LAPSE_OK);
        char *shown = show(dataset);
        assert_string_equal(shown, "a: 1 x, 2 y;b: 3 x;");
        lp_free(shown);
        assert_int_equal(lapse_dataset_kind_count(dataset), 2);
        assert_int_equal(report.rows, 12);
        assert_int_equal(report.bad_rows, 9);
        assert_int_equal(report.first_bad_row.line, 2);
        assert_int_equal(report.first_bad_row.column, 2);
        assert_string_equal(lp_dataset_property_find(dataset, "rows.bad"), "9 left out because they were malformed");
        lapse_dataset_close(dataset);
    }
}

/* ----------------------------------------------------------------------------------------- what is refused --- */

typedef struct refusal {
    const char *text;
    int64_t line, column;
    const char *message;
} refusal;

static void refuse_with(const char *text, size_t size, const lapse_import_options *options, lapse_status status, int64_t line,
                        int64_t column, const char *message)
{
    static const int64_t blocks[] = {1, 7, 64, LP_BLOCK_SIZE};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        assert_int_equal(import_bytes(text, size, options, blocks[b], &dataset, NULL, &error), status);
        assert_null(dataset);
        assert_string_equal(error.message, message);
        assert_int_equal(error.line, line);
        assert_int_equal(error.column, column);
        if (status == LAPSE_ERROR_INPUT)
            assert_string_equal(error.file, "t.csv");
    }
}

#define HEAD "user,time,event\na,1,x\n"
#define NOT_TIME "' is not a time: expected unix seconds, unix milliseconds, or ISO 8601 with a zone such as 2026-11-15T12:00:00Z"
#define AFTER_QUOTE "a quoted field goes on after its closing quote; a quote inside it is written twice"
#define OPEN_QUOTE "a quoted field begins in this line and does not end: its closing quote is missing"

static void bad_rows_say_where_and_why(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {HEAD "b,2\n", 3, 0, "this row has 2 fields, but the header has 3"},
        {HEAD "b\n", 3, 0, "this row has 1 field, but the header has 3"},
        {HEAD "\n\nb,2,x,y\n", 5, 0, "this row has 4 fields, but the header has 3"},
        {HEAD ",2,x\n", 3, 1, "the name of the sequence is empty"},
        {HEAD "b,2,\n", 3, 3, "the name of the event is empty"},
        {HEAD "b,2,\r\n", 3, 3, "the name of the event is empty"},
        {HEAD "b,2,\"\"\n", 3, 3, "the name of the event is empty"},
        {HEAD "b,,x\n", 3, 2, "'' is not a time: it is empty"},
        {HEAD "b,soon,x\n", 3, 2, "'soon' is not a time in unix seconds"},
        {HEAD "b,nan,x\n", 3, 2, "'nan' is not a time in unix seconds"},
        {HEAD "b,inf,x\n", 3, 2, "'inf' is not a time in unix seconds"},
        {HEAD "b,0x1F,x\n", 3, 2, "'0x1F' is not a time in unix seconds"},
        {HEAD "b,1e999,x\n", 3, 2, "'1e999' is not a time in unix seconds"},
        {HEAD "b,2012-01-14T02:05:23Z,x\n", 3, 2, "'2012-01-14T02:05:23Z' is not a time in unix seconds"},
        {HEAD "b,-99999999999,x\n", 3, 2, "'-99999999999' lies outside the years 1 to 9999"},
        {HEAD "b,1326506723403,x\n", 3, 2,
         "'1326506723403' looks like milliseconds, but the first row has seconds: say which with --time-unit"},
        {"user,time,event\na,1326506723403,x\nb,5,x\n", 3, 2,
         "'5' looks like seconds, but the first row has milliseconds: say which with --time-unit"},
        {"user,time,event\na,1326506723403,x\nb,then,x\n", 3, 2, "'then' is not a time in unix milliseconds"},
        {"user,time,event\na,2012-01-14T02:05:23Z,x\nb,5,x\n", 3, 2,
         "'5' is not a time in ISO 8601 such as 2026-11-15T12:00:00Z"},
        {"user,time,event\na,2012-01-14T02:05:23,x\n", 2, 2,
         "'2012-01-14T02:05:23' has no zone: append Z for UTC, or an offset such as +02:00"},
        {"user,time,event\na,soon,x\n", 2, 2, "'soon" NOT_TIME},
        {"user,time,event\na,NaN,x\n", 2, 2, "'NaN" NOT_TIME},
        {"user,time,event\na,1e300,x\n", 2, 2, "'1e300' lies outside the years 1 to 9999"},
        {HEAD "\"b\"c,2,x\n", 3, 1, AFTER_QUOTE},
        {HEAD "b,2,\"x\" \n", 3, 3, AFTER_QUOTE},
        {HEAD "b,2,\"x\n\n\" y\nz\n", 3, 3, AFTER_QUOTE},
        {HEAD "b,2,\"x\nc,3,y\n", 3, 0, OPEN_QUOTE},
        {HEAD "\"b\n\",\"2,x\nc,3,y", 4, 0, OPEN_QUOTE},
        {HEAD "b,2,\"x", 3, 0, OPEN_QUOTE},
        {HEAD "b\xE4,2,x\n", 3, 1, "the name of the sequence is not valid UTF-8 text"},
        {HEAD "b,2,caf\xE9\n", 3, 3, "the name of the event is not valid UTF-8 text"},
        {"user,time,event\n\"a\nb\",1,x\n\"c\n\nd\",soon,x\n", 4, 2, "'soon' is not a time in unix seconds"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_import_options options = defaults();
        refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, cases[i].line, cases[i].column,
                    cases[i].message);
    }
    lapse_import_options options = defaults();
    options.split = "event";
    options.event = "4";
    const char *text = "user,time,event,kind\na,1,train,x\na,2,holdout,x\n";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 3, 3,
                "'holdout' is not a split: expected train, valid or test");
    options = defaults();
    options.header = false;
    refuse_with("a,1,x\nb\n", 8, &options, LAPSE_ERROR_INPUT, 2, 0, "this row has 1 field, but the first row has 3");
}

static void structural_faults_always_stop(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {"", 0, 0, "the file is empty: a header and rows were expected"},
        {"\n\r\n\n", 0, 0, "the file has only empty lines: a header and rows were expected"},
        {"user,time,event", 0, 0, "the file has a header but no rows"},
        {"user,time,event\n\n", 0, 0, "the file has a header but no rows"},
        {"user,time,event,time\na,1,x,1\n", 1, 4, "the header names two columns 'time': columns 2 and 4"},
        {"a,b,c,b,a\n1,2,3,4,5\n", 1, 4, "the header names two columns 'b': columns 2 and 4"},
        {"who,time,event\na,1,x\n", 1, 0, "no column looks like the sequence: name it with --sequence; the columns are: who, time, event"},
        {"user,moment,event\na,1,x\n", 1, 0, "no column looks like the time: name it with --time; the columns are: user, moment, event"},
        {"user,time,what\na,1,x\n", 1, 0, "no column looks like the event: name it with --event; the columns are: user, time, what"},
        {"user\na\n", 1, 0, "no column looks like the time: name it with --time; the columns are: user"},
        {"\"user\"x,time,event\na,1,x\n", 1, 1, AFTER_QUOTE},
        {"user,\"time,event\na,1,x\n", 1, 0, OPEN_QUOTE},
        {"us\xFF" "er,time,event\na,1,x\n", 1, 1, "the header is not valid UTF-8 text"},
        {"\xFF\xFEu", 1, 0, "this is UTF-16 text: save it as UTF-8"},
    };
    for (int skip = 0; skip < 2; skip++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            lapse_import_options options = defaults();
            options.skip_bad_rows = skip;
            refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, cases[i].line, cases[i].column,
                        cases[i].message);
        }
    }
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    refuse_with("user,time,event\na,soon,x\nb,2\n", 29, &options, LAPSE_ERROR_INPUT, 2, 2,
                "every row is bad (2); the first: 'soon" NOT_TIME);
}

static void missing_columns_list_those_that_exist(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\n";
    lapse_import_options options = defaults();
    options.sequence = "usr";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'usr' for the sequence; the columns are: user, time, event");
    options = defaults();
    options.time = "4";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column '4' for the time; the columns are: user, time, event");
    options = defaults();
    options.event = "event,what";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'what' for the event; the columns are: user, time, event");
    options = defaults();
    options.split = "part";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'part' for the split; the columns are: user, time, event");
    options = defaults();
    options.header = false;
    options.time = "when";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'when' for the time: without a header, columns are numbers from 1 to 3");
    options = defaults();
    options.header = false;
    refuse_with("a,1\n", 4, &options, LAPSE_ERROR_INPUT, 1, 0,
                "the first row has only 2 fields, and no column was named for the event (--event)");
    options = defaults();
    options.event = "time";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 1, 0,
                "one column was chosen twice: time, sequence, event and split must be different columns");
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\n";
    lapse_import_options options = defaults();
    options.time_unit = "days";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0, "'days' is not a unit of time: give auto, s, ms or iso");
    options = defaults();
    options.delimiter = "ab";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "'ab' is not a delimiter: give one character that is neither a quote nor a line end");
    options.delimiter = "\"";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "'\"' is not a delimiter: give one character that is neither a quote nor a line end");
    options = defaults();
    options.min_events = -1;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "the least number of events (-1) and the least count (1) must not be negative");
    options = defaults();
    options.threads = -2;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "-2 threads cannot be used: give 1 or more, or 0 for all cores");
    options = defaults();
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "no input was given: name a CSV or TSV file, or - for standard input");
    options.input = "/nonexistent/events.csv";
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot open: No such file or directory");
    assert_string_equal(error.file, "/nonexistent/events.csv");
    options.input = "/";
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot read: Is a directory");
}

#define BINARY "this looks like a binary file, not text: it has a NUL byte"

static void binary_files_are_refused(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    refuse_with("\x7F" "ELF\0\0\0", 7, &options, LAPSE_ERROR_INPUT, 1, 0, BINARY);
    refuse_with("user,time,event\na,1,x\0y\n", 24, &options, LAPSE_ERROR_INPUT, 2, 0, BINARY);
    /* Far behind the beginning, after bad rows, also inside quotes. */
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event\n");
    for (int i = 0; i < 1000; i++)
        lp_buffer_print(&text, "a,%d,x\n", i);
    lp_buffer_print(&text, "a,3,\"x\n");
    lp_buffer_add(&text, "y\0z\"\na,4\n", 9);
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 1002, 0, BINARY);
    options.skip_bad_rows = false;
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 1002, 0, BINARY);
    memcpy(text.data + 16, "a,n,x\n", 6);
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 2, 2, "'n" NOT_TIME);
    lp_buffer_clear(&text);
}

#define LONG_LINE "this line is longer than 1 MiB, the most a line may have"

static void long_lines_are_refused(void **state)
{
    (void)state;
    enum { LONG = 10000000 };
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event\na,1,x\nb,2,");
    lp_buffer_reserve(&text, LONG + 100);
    memset(text.data + text.size, 'y', LONG);
    text.size += LONG;
    lp_buffer_print(&text, "\nc,3,z\nd,4,z");
    lapse_import_options options = defaults();
    lapse_error error = {0};
    lapse_dataset *dataset = NULL;
    static const int64_t blocks[] = {1000, 100000, LP_BLOCK_SIZE};
    for (int b = 0; b < 3; b++) {
        assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, NULL, &error), LAPSE_ERROR_INPUT);
        assert_string_equal(error.message, LONG_LINE);
        assert_int_equal(error.line, 3);
    }
    options.skip_bad_rows = true;
    for (int b = 0; b < 3; b++) {
        lapse_import_report report;
        assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, &report, &error), LAPSE_OK);
        char *shown = show(dataset);
        assert_string_equal(shown, "a: 1 x;c: 3 z;d: 4 z;");
        lp_free(shown);
        assert_int_equal(report.bad_rows, 1);
        assert_int_equal(report.first_bad_row.line, 3);
        lapse_dataset_close(dataset);
    }
    /* The whole text one line: no header can be told. */
    memset(text.data, 'y', text.size);
    assert_int_equal(import_bytes(text.data, text.size, &options, LP_BLOCK_SIZE, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, LONG_LINE);
    assert_int_equal(error.line, 1);
    lp_buffer_clear(&text);
}

/* Lines of just the longest length, one less and one more, with and without a line end behind. */
static void the_limit_of_a_line_is_exact(void **state)
{
    (void)state;
    for (int extra = -1; extra <= 1; extra++) {
        for (int last = 0; last < 2; last++) {
            lp_buffer text = {0};
            lp_buffer_print(&text, "user,time,event\na,1,");
            size_t begin = text.size - 4, size = (size_t)(LP_BLOCK_LIMIT + extra) - 1 - 4; /* without its line end */
            lp_buffer_reserve(&text, size + 100);
            memset(text.data + text.size, 'y', size);
            text.size += size;
            assert_int_equal(text.size - begin + 1, LP_BLOCK_LIMIT + extra);
            lp_buffer_print(&text, last ? "\n" : "\nb,1,x\n");
            lapse_import_options options = defaults();
            for (int64_t block = 5000; block <= LP_BLOCK_SIZE; block = block * 14 < LP_BLOCK_SIZE ? block * 14 : block * 15) {
                lapse_dataset *dataset = NULL;
                lapse_error error = {0};
                lapse_status status = import_bytes(text.data, text.size, &options, block, &dataset, NULL, &error);
                assert_int_equal(status, extra > 0 ? LAPSE_ERROR_INPUT : LAPSE_OK);
                lapse_dataset_close(dataset);
            }
            lp_buffer_clear(&text);
        }
    }
}

/* Small files kept in the tree, read as a person would. */
static void hostile_files_are_refused(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {"empty.csv", 0, 0, "the file is empty: a header and rows were expected"},
        {"header_only.csv", 0, 0, "the file has a header but no rows"},
        {"missing_column.csv", 1, 0,
         "no column looks like the time: name it with --time; the columns are: customer, when exactly, event"},
        {"duplicate_header.csv", 1, 4, "the header names two columns 'user': columns 1 and 4"},
        {"bad_time.csv", 3, 2, "'yesterday' is not a time in unix seconds"},
        {"nan.csv", 3, 2, "'NaN' is not a time in unix seconds"},
        {"no_zone.csv", 2, 2, "'2012-01-14T02:05:23' has no zone: append Z for UTC, or an offset such as +02:00"},
        {"short_row.csv", 3, 0, "this row has 2 fields, but the header has 3"},
        {"many_columns.csv", 2, 0, "this row has 5001 fields, but the header has 3"},
        {"open_quote.csv", 3, 0, OPEN_QUOTE},
        {"only_quotes.csv", 1, 0, OPEN_QUOTE},
        {"latin1.csv", 2, 3, "the name of the event is not valid UTF-8 text"},
        {"binary.csv", 1, 0, BINARY},
        {"utf16.csv", 1, 0, "this is UTF-16 text: save it as UTF-8"},
        {"bare_return.csv", 1, 0, "the lines end with a carriage return alone: save the file with line feeds"},
        {"lying_bom.csv", 1, 0,
         "no column looks like the sequence: name it with --sequence; the columns are: \xEF\xBB\xBFuser, time, event"},
        {"truncated.csv.gz", 0, 0, "the gzip data is truncated: the file ends before its contents do"},
        {"damaged.csv.gz", 0, 0, "the gzip data is damaged: invalid distances set"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/hostile/%s", cases[i].text);
        lapse_import_options options = defaults();
        options.input = path;
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
        assert_string_equal(error.message, cases[i].message);
        assert_string_equal(error.file, path);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
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
    refuse_with(padded.data, padded.size, &options, LAPSE_ERROR_INPUT, 0, 0,
                "the gzip data is followed by bytes that are not gzip");
    /* Cut anywhere it is truncated, but for the ends of members. */
    for (size_t size = 2; size < one.size; size++) {
        if (size == one.size - two.size || size == one.size - two.size - empty.size)
            continue;
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lapse_status status = import_bytes(one.data, size, &options, 64, &dataset, NULL, &error);
        if (size == one.size - two.size + 1 || size == one.size - two.size - empty.size + 1) {
            assert_string_equal(error.message, "the gzip data is followed by bytes that are not gzip");
        } else {
            assert_int_equal(status, LAPSE_ERROR_INPUT);
            assert_string_equal(error.message, "the gzip data is truncated: the file ends before its contents do");
        }
    }
    one.data[15] ^= 0x55;
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    assert_int_equal(import_bytes(one.data, one.size, &options, 64, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
    assert_memory_equal(error.message, "the gzip data is damaged: ", 26);
    lp_buffer_clear(&one);
    lp_buffer_clear(&two);
    lp_buffer_clear(&empty);
    lp_buffer_clear(&padded);
}

/* A file and standard input give what memory gives. */
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
    static const char *const kinds[] = {"view", "buy", "\"say \"\"hi\"\"\"", "\"two\nlines\"", "a rather long name of an event"};
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
        lp_buffer_print(text, "user %u,%u.%03u,%s%s", user, lp_random_below(random, 1000), lp_random_below(random, 1000),
                        kinds[lp_random_below(random, 5)], end);
}

/* The same text in every cut and on several threads: the same dataset, report and first bad row. */
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
        static const int64_t blocks[] = {LP_BLOCK_SIZE, 1, 3, 17, 100, 1000, 5000, 33333};
        for (int b = 0; b < 8; b++) {
            for (options.threads = 1; options.threads <= 5; options.threads += 2) {
                lapse_dataset *dataset = NULL;
                lapse_import_report report;
                lapse_error error = {0};
                assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, &report, &error), LAPSE_OK);
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

/* Whichever worker meets a bad row first, the one that comes first in the text is reported. */
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

/* With the n-th allocation failing, for every n: a clean refusal until nothing fails any more. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *text = "user,time,action,item,part\na,5,buy,tea,train\nb,2,\"see\",tea,test\na,1,buy,\"a \"\"cup\"\"\",valid\n";
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
        cmocka_unit_test(without_a_header),
        cmocka_unit_test(split_columns),
        cmocka_unit_test(filters),
        cmocka_unit_test(skipped_rows),
        cmocka_unit_test(bad_rows_say_where_and_why),
        cmocka_unit_test(structural_faults_always_stop),
        cmocka_unit_test(missing_columns_list_those_that_exist),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(binary_files_are_refused),
        cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(the_limit_of_a_line_is_exact),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(gzip_is_read),
        cmocka_unit_test(files_and_standard_input),
        cmocka_unit_test(cuts_and_threads_do_not_show),
        cmocka_unit_test(the_first_bad_row_is_reported),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
