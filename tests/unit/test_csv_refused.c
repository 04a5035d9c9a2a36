/* test_csv_refused.c: tables that cannot be imported: position and message of each error. */
#include "support/table_text.h"

#include "base/memory.h"
#include "data/import/chunks.h"
#include "data/dataset/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------- what is refused --- */

typedef struct refusal {
    const char *text;
    int64_t line, column;
    const char *message;
} refusal;

#define HEAD "user,time,event\na,1,x\n"
#define NOT_TIME                                                                                            \
    "' is not a time: expected unix seconds, milliseconds, microseconds or nanoseconds, or a date such as " \
    "2026-11-15T12:00:00Z"
#define OTHER_UNIT(unit) "' has another magnitude than the other rows, which have " unit ": set --time-unit"
#define UNCERTAIN \
    "dates may have the day or the month first; set --sequence user --time time --event event --time-unit dmy"
#define AFTER_QUOTE "text follows the closing quote of a field; a quote inside a quoted field must be doubled"
#define OPEN_QUOTE "a quoted field that begins in this line has no closing quote"

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
        {HEAD "b,soon,x\n", 3, 2, "'soon' is not a number, as the other times are"},
        {HEAD "b,nan,x\n", 3, 2, "'nan' is not a number, as the other times are"},
        {HEAD "b,inf,x\n", 3, 2, "'inf' is not a number, as the other times are"},
        {HEAD "b,0x1F,x\n", 3, 2, "'0x1F' is not a number, as the other times are"},
        {HEAD "b,1e999,x\n", 3, 2, "'1e999' is not a number, as the other times are"},
        {HEAD "b,2012-01-14T02:05:23Z,x\n", 3, 2, "'2012-01-14T02:05:23Z' is not a number, as the other times are"},
        {HEAD "b,1326506723403,x\n", 3, 2, "'1326506723403" OTHER_UNIT("seconds")},
        {"user,time,event\na,1326506723403,x\nb,5,x\n", 3, 2, "'5" OTHER_UNIT("milliseconds")},
        {"user,time,event\na,5,x\nb,1326506723403,x\nb,1326506723404,x\n", 2, 2, "'5" OTHER_UNIT("milliseconds")},
        {"user,time,event\na,1326506723403000,x\nb,1326506723404,x\n", 3, 2,
         "'1326506723404" OTHER_UNIT("microseconds")},
        {"user,time,event\na,1326506723403000000,x\nb,then,x\n", 3, 2, "'then' is not a time in unix nanoseconds"},
        {"user,time,event\na,03/01/2024,x\nb,04/01/2024,x\n", 1, 0, UNCERTAIN},
        {"user,time,event\na,03/25/2024,x\nb,25/03/2024,x\n", 1, 0, UNCERTAIN},
        {"user,time,event\na,03/25/2024,x\nb,2024-03-26,x\n", 3, 2,
         "'2024-03-26' is not a date such as 11/15/2026 (month first)"},
        {"user,time,event\na,25.03.2024 25:00,x\n", 2, 2,
         "'25.03.2024 25:00' has an hour, minute or second that does not exist"},
        {"user,time,event\na,1326506723403,x\nb,then,x\n", 3, 2, "'then' is not a time in unix milliseconds"},
        {"user,time,event\na,2012-01-14T02:05:23Z,x\nb,5,x\n", 3, 2,
         "'5' is not a time in ISO 8601 such as 2026-11-15T12:00:00Z"},
        {"user,time,event\na,2012-01-14T02:05:23+25,x\n", 2, 2,
         "'2012-01-14T02:05:23+25' has a zone that is not Z, UTC or an offset such as +02:00"},
        {"user,time,event\na,soon,x\n", 2, 2, "'soon" NOT_TIME},
        {"user,time,event\na,NaN,x\n", 2, 2, "'NaN" NOT_TIME},
        {"user,time,event\na,1e300,x\n", 2, 2, "'1e300' lies outside the years 1 to 9999"},
        {HEAD "\"b\"c,2,x\n", 3, 1, AFTER_QUOTE},
        {HEAD "b,2,\"x\" \n", 3, 3, AFTER_QUOTE},
        {HEAD "b,2,\"x\n\n\" y\nz\n", 3, 3, AFTER_QUOTE},
        {HEAD "b,2,\"x\nc,3,y\n", 3, 0, OPEN_QUOTE},
        {HEAD "\"b\n\",\"2,x\nc,3,y", 4, 0, OPEN_QUOTE},
        {HEAD "b,2,\"x", 3, 0, OPEN_QUOTE},
        {"user,time,event\n\"a\nb\",1,x\n\"c\n\nd\",soon,x\n", 4, 2, "'soon' is not a number, as the other times are"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_import_options options = defaults();
        refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, cases[i].line, cases[i].column,
                    cases[i].message);
    }
    lapse_import_options options = defaults();
    options.split = "event";
    options.event = "4";
    const char *text = "user,time,event,event type\na,1,train,x\na,2,holdout,x\n";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 3, 3,
                "'holdout' is not a split: expected train, valid or test");
    options = defaults();
    options.encoding = "utf-8"; /* otherwise it is found to be Latin-1 */
    refuse_with(HEAD "b\xE4,2,x\n", strlen(HEAD "b\xE4,2,x\n"), &options, LAPSE_ERROR_INPUT, 3, 1,
                "the name of the sequence is not valid UTF-8 text");
    refuse_with(HEAD "b,2,caf\xE9\n", strlen(HEAD "b,2,caf\xE9\n"), &options, LAPSE_ERROR_INPUT, 3, 3,
                "the name of the event is not valid UTF-8 text");
    options = defaults();
    options.header = false;
    refuse_with("a,1,x\nb\n", 8, &options, LAPSE_ERROR_INPUT, 2, 0, "this row has 1 field, but the first row has 3");
}

static void structural_faults_always_stop(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {"", 0, 0, "the file is empty: it must have a header and rows"},
        {"\n\r\n\n", 0, 0, "the file has only empty lines: it must have a header and rows"},
        {"user,time,event", 0, 0, "the file has a header but no rows"},
        {"user,time,event\n\n", 0, 0, "the file has a header but no rows"},
        {"user,time,event,time\na,1,x,1\n", 1, 4, "the header names two columns 'time': columns 2 and 4"},
        {"a,b,c,b,a\n1,2,3,4,5\n", 1, 4, "the header names two columns 'b': columns 2 and 4"},
        {"who,time,event\na,1,x\n", 1, 0,
         "no column was recognized as the sequence: select it with --sequence; the columns are: who, time, event"},
        {"user,moment,event\na,1,x\n", 1, 0,
         "no column was recognized as the time: select it with --time; the columns are: user, moment, event"},
        {"user\na\n", 1, 0, "no column was recognized as the time: select it with --time; the columns are: user"},
        {"\"user\"x,time,event\na,1,x\n", 1, 1, AFTER_QUOTE},
        {"user,\"time,event\na,1,x\n", 1, 0, OPEN_QUOTE},
        {"us\xFF"
         "er,time,event\na,1,x\n",
         1, 1, "the header is not valid UTF-8 text"},
    };
    for (int skip = 0; skip < 2; skip++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            lapse_import_options options = defaults();
            options.skip_bad_rows = skip;
            refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, cases[i].line,
                        cases[i].column, cases[i].message);
        }
    }
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    refuse_with("user,time,event\na,soon,x\nb,2\n", 29, &options, LAPSE_ERROR_INPUT, 2, 2,
                "all 2 rows are malformed; the first: 'soon" NOT_TIME);
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
                "no column was recognized as the event: select it with --event; the columns are: 1, 2");
    /* Too many to fit the message. */
    lp_buffer wide = {0};
    for (int i = 1; i <= 100; i++)
        lp_buffer_print(&wide, "column number %d%s", i, i < 100 ? "," : "\n");
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    options = defaults();
    assert_int_equal(import_bytes(wide.data, wide.size, &options, 64, &dataset, NULL, &error), LAPSE_ERROR_INPUT);
    assert_true(strlen(error.message) < 400);
    assert_string_equal(error.message + strlen(error.message) - 21, "column number 13, ...");
    lp_buffer_clear(&wide);
    options = defaults();
    options.event = options.time = "time";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 1, 0,
                "a column is selected twice: time, sequence, event and split must be different columns");
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\n";
    lapse_import_options options = defaults();
    options.time_unit = "days";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "--time-unit is 'days'; it must be auto, s, ms, us, ns, iso, mdy, dmy, text, compact, excel or relative");
    options = defaults();
    options.delimiter = "ab";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "delimiter is 'ab'; it must be one character that is neither a quote nor a line end");
    options.delimiter = "\"";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "delimiter is '\"'; it must be one character that is neither a quote nor a line end");
    options = defaults();
    options.min_events = -1;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "--min-events is -1 and --min-count is 1; they must not be negative");
    options = defaults();
    options.threads = -2;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "threads is -2; it must be 1 to 4096, or 0 for all cores");
    options.threads = 4097;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "threads is 4097; it must be 1 to 4096, or 0 for all cores");
    options = defaults();
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "no input: give a CSV, TSV or JSON Lines file, or - for standard input");
    options.input = "/nonexistent/events.csv";
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot open: No such file or directory");
    assert_string_equal(error.file, "/nonexistent/events.csv");
    options.input = "/";
    assert_int_equal(lapse_dataset_read(&options, &dataset, NULL, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot read: Is a directory");
}

#define BINARY "this is a binary file, not text: it has a NUL byte"

static void binary_files_are_refused(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.skip_bad_rows = true;
    refuse_with("\x7F"
                "ELF\0\0\0",
                7, &options, LAPSE_ERROR_INPUT, 1, 0, BINARY);
    refuse_with("user,time,event\na,1,x\0y\n", 24, &options, LAPSE_ERROR_INPUT, 2, 0, BINARY);
    /* Far from the beginning, after malformed rows, also inside quotes. */
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
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 2, 2, "'n' is not a number, as the other times are");
    lp_buffer_clear(&text);
}

#define LONG_LINE "this line is longer than the limit of 1 MiB"

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
    static const int64_t blocks[] = {1000, 100000, LP_CHUNK_SIZE};
    for (int b = 0; b < 3; b++) {
        assert_int_equal(import_bytes(text.data, text.size, &options, blocks[b], &dataset, NULL, &error),
                         LAPSE_ERROR_INPUT);
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
    /* The whole text is one line: there is no header. */
    memset(text.data, 'y', text.size);
    assert_int_equal(import_bytes(text.data, text.size, &options, LP_CHUNK_SIZE, &dataset, NULL, &error),
                     LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, LONG_LINE);
    assert_int_equal(error.line, 1);
    lp_buffer_clear(&text);
}

/* Lines of the maximum length, one less and one more, with and without a line end. */
static void the_limit_of_a_line_is_exact(void **state)
{
    (void)state;
    for (int extra = -1; extra <= 1; extra++) {
        for (int last = 0; last < 2; last++) {
            lp_buffer text = {0};
            lp_buffer_print(&text, "user,time,event\na,1,");
            size_t begin = text.size - 4, size = (size_t)(LP_CHUNK_LIMIT + extra) - 1 - 4; /* without its line end */
            lp_buffer_reserve(&text, size + 100);
            memset(text.data + text.size, 'y', size);
            text.size += size;
            assert_int_equal(text.size - begin + 1, LP_CHUNK_LIMIT + extra);
            lp_buffer_print(&text, last ? "\n" : "\nb,1,x\n");
            lapse_import_options options = defaults();
            for (int64_t block = 5000; block <= LP_CHUNK_SIZE;
                 block = block * 14 < LP_CHUNK_SIZE ? block * 14 : block * 15) {
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

/* Small files of the tree, imported with default options. */
static void hostile_files_are_refused(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {"empty.csv", 0, 0, "the file is empty: it must have a header and rows"},
        {"header_only.csv", 0, 0, "the file has a header but no rows"},
        {"duplicate_header.csv", 1, 4, "the header names two columns 'user': columns 1 and 4"},
        {"bad_time.csv", 3, 2, "'yesterday' is not a time in unix seconds"},
        {"nan.csv", 3, 2, "'NaN' is not a number, as the other times are"},
        {"short_row.csv", 3, 0, "this row has 2 fields, but the header has 3"},
        {"many_columns.csv", 2, 0, "this row has 5001 fields, but the header has 3"},
        {"open_quote.csv", 3, 0, OPEN_QUOTE},
        {"only_quotes.csv", 1, 0, OPEN_QUOTE},
        {"binary.csv", 1, 0, BINARY},
        {"bare_return.csv", 1, 0, "lines end with a bare carriage return: save the file with line feeds"},
        {"truncated.csv.gz", 0, 0, "the gzip data is truncated"},
        {"damaged.csv.gz", 0, 0, "the gzip data is corrupt: invalid distances set"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_say_where_and_why),
        cmocka_unit_test(structural_faults_always_stop),
        cmocka_unit_test(missing_columns_list_those_that_exist),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(binary_files_are_refused),
        cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(the_limit_of_a_line_is_exact),
        cmocka_unit_test(hostile_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
