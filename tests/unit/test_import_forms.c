/* test_import_forms.c: texts of several encodings and forms give the dataset of the same rows in plain CSV: times as exports write
 * them, JSON arrays, lines before the header, totals, and what is not cut at the limits of chunks. */
#include "support/table_text.h"

#include "base/memory.h"
#include "data/import/text_stream.h"
#include "data/import/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* The encoding is found. */
static lapse_import_options found(void)
{
    lapse_import_options options = defaults();
    options.encoding = NULL;
    return options;
}

static void encodings_give_the_same_names(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char latin[] = "user,time,event\nJos\xE9,1,caf\xE9\n",
                      windows[] = "user,time,event\nJos\xE9,1,\x80uro\n";
    expect_with(latin, sizeof latin - 1, &options, "Jos\xC3\xA9: 1 caf\xC3\xA9;");
    expect_with(windows, sizeof windows - 1, &options, "Jos\xC3\xA9: 1 \xE2\x82\xACuro;");
    options.encoding = "latin-1"; /* in which 0x80 is a control character */
    expect_with(windows, sizeof windows - 1, &options, "Jos\xC3\xA9: 1 \xC2\x80uro;");
    options.encoding = "cp1252";
    expect_with(latin, sizeof latin - 1, &options, "Jos\xC3\xA9: 1 caf\xC3\xA9;");
    options.encoding = "ebcdic";
    refuse_with(latin, sizeof latin - 1, &options, LAPSE_ERROR_USAGE, 0, 0,
                "encoding is 'ebcdic'; it must be utf-8, utf-16le, utf-16be, windows-1250, windows-1251, windows-1252 "
                "or latin-1; "
                "iconv converts others");
}

/* "u,time,event" with a character of each size, in UTF-16 with and without a mark, and both orders of bytes. */
static void utf16_is_found(void **state)
{
    (void)state;
    static const unsigned short units[] = {
        'u', 's', 'e', 'r',    ',',    't',    'i',  'm', 'e', ',', 'e', 'v', 'e', 'n', 't', '\n', 'a', ',', '1', ',',
        'b', 'c', 'd', 0x20AC, 0xD83D, 0xDE00, '\n', 'a', ',', '2', ',', 'e', 'e', 'e', 'e', 'e',  'e', 'e', 'e', '\n'};
    enum { UNITS = sizeof units / sizeof *units };
    lapse_import_options options = found();
    for (int form = 0; form < 4; form++) {
        char text[2 * UNITS + 2];
        size_t size = 0;
        bool big = form & 1, mark = form & 2;
        for (int i = mark ? -1 : 0; i < UNITS; i++) {
            unsigned unit = i < 0 ? 0xFEFF : units[i];
            text[size++] = (char)(big ? unit >> 8 : unit);
            text[size++] = (char)(big ? unit : unit >> 8);
        }
        expect_with(text, size, &options, "a: 1 bcd\xE2\x82\xAC\xF0\x9F\x98\x80, 2 eeeeeeee;");
    }
}

/* Bytes of Cyrillic letters follow each other; those of Polish stand between Latin ones. */
static void code_pages_are_found(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char cyrillic[] = "user,time,event\n\xC0\xED\xED\xE0,1,\xE7\xE2\xEE\xED\xEE\xEA\n",
                      polish[] = "user,time,event\na,1,Op\xB3"
                                 "ata\n",
                      danish[] = "user,time,event\na,1,k\xF8"
                                 "b\n",
                      chinese[] = "user,time,event\na,1,\xB5\xC7\xC2\xBC\xCA\xD7\xD2\xB3\n";
    expect_with(cyrillic, sizeof cyrillic - 1, &options,
                "\xD0\x90\xD0\xBD\xD0\xBD\xD0\xB0: 1 \xD0\xB7\xD0\xB2\xD0\xBE\xD0\xBD\xD0\xBE\xD0\xBA;");
    expect_with(polish, sizeof polish - 1, &options,
                "a: 1 Op\xC5\x82"
                "ata;");
    expect_with(danish, sizeof danish - 1, &options,
                "a: 1 k\xC3\xB8"
                "b;");
    refuse_with(
        chinese, sizeof chinese - 1, &options, LAPSE_ERROR_INPUT, 0, 0,
        "this is neither UTF-8 nor an encoding of one byte for each character; if it is Chinese, paste: iconv -f "
        "gb18030 -t utf-8 't.csv' | lapse import - -o DATASET (Japanese: cp932, Korean: cp949)");
}

/* Logs and printed tables, as the rows that they have; errors have the numbers of their lines. */
static void lines_of_logs(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char access[] =
        "h1 - - [29/Nov/2017:07:14:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a \\\"b\\\" c\"\n"
        "h2 - - [29/Nov/2017:07:14:37 +0000] \"GET /b HTTP/1.1\" 200 5 \"-\" \"a\"\n"
        "h1 - - [29/Nov/2017:07:14:38 +0000] \"GET /b HTTP/1.1\" 404 5 \"-\" \"a\"\n"
        "h2 - - [29/Nov/2017:07:14:39 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"\n"
        "h1 - - [%s] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\"\n",
                      fields[] = "#Version: 1.0\r\n#Fields: date time c-ip page\r\n2017-11-29 07:14:36 h1 /a\r\n"
                                 "#Date: again\r\n2017-11-29 07:14:37 h1 /b\r\n",
                      pairs[] = "time=1 user=a event=\"x y\" n=1\ntime=2 user=a event=z up\ntime=3 user=b event=z\n"
                                "time=4 user=b event=\"q\\\"r\"\ntime=5 user=b event=z\n",
                      box[] =
                          "+------+------+-------+\n| user | time | event |\n+------+------+-------+\n"
                          "| a    |    1 | x \"y |\n| a    |    2 | z     |\n+------+------+-------+\n2 rows in set\n",
                      ruled[] =
                          " user | time | event\n------+------+-------\n a    |    1 | x\n b    |    2 | \n(2 rows)\n";
    char text[800];
    int size = snprintf(text, sizeof text, access, "29/Nov/2017:07:14:40 +0000");
    options.sequence = "host";
    options.event = "request";
    expect_with(text, (size_t)size, &options,
                "h1: 1511939676 GET /a HTTP/1.1, 1511939678 GET /b HTTP/1.1, 1511939680 GET /a HTTP/1.1;"
                "h2: 1511939677 GET /b HTTP/1.1, 1511939679 GET /a HTTP/1.1;");
    size = snprintf(text, sizeof text, access, "29/Nov:07");
    refuse_with(text, (size_t)size, &options, LAPSE_ERROR_INPUT, 5, 4,
                "'29/Nov:07' is not a date that is known: expected one such as 2026-11-15 12:00:00");
    options.sequence = "c-ip";
    options.event = "page";
    expect_with(fields, sizeof fields - 1, &options, "h1: 1511939676 /a, 1511939677 /b;");
    options.sequence = options.event = NULL;
    expect_with(pairs, sizeof pairs - 1, &options, "a: 1 x y, 2 z;b: 3 z, 4 q\"r, 5 z;");
    expect_with(box, sizeof box - 1, &options, "a: 1 x \"y, 2 z;");
    refuse_with(ruled, sizeof ruled - 1, &options, LAPSE_ERROR_INPUT, 4, 3, "the name of the event is empty");
    options.delimiter = "|"; /* then lines are what they are */
    refuse_with(ruled, sizeof ruled - 1, &options, LAPSE_ERROR_INPUT, 2, 0,
                "this row has 1 field, but the header has 3");
}

static void objects_in_other_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[{\"user\":\"a\",\"time\":1,\"event\":\"x]\"},{\"user\":\"a\",\"time\":2,\"event\":\"y\"}]",
        " [ {\"user\":\"a\",\n\"time\":1,\"event\":\"x]\"} ,\n\n {\"user\":\"a\",\"time\":2,\"event\":\"y\"}\n]\n",
        "{\"total\":2,\"rows\":[{\"user\":\"a\",\"time\":1,\"event\":\"x]\"},{\"user\":\"a\",\"time\":2,\"event\":"
        "\"y\"}],\"next\":null}",
        "{\n\"user\":\"a\",\n\"time\":1,\n\"event\":\"x]\"\n}\n{\n\"user\":\"a\",\n\"time\":2,\n\"event\":\"y\"\n}",
        "{\"user\":\"a\",\"time\":1,\"event\":\"x]\",\"of\":[{\"b\":1}]}\n{\"user\":\"a\",\"time\":2,\"event\":\"y\"}"
        "\n",
    };
    lapse_import_options options = found();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_with(texts[i], strlen(texts[i]), &options, "a: 1 x], 2 y;");
}

static void lines_around_a_table(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char before[] = "Report; all users\n\nuser;time;event\na;1;x\na;2;y\nb;1;x\nb;2;z\nb;3;x\n";
    expect_with(before, sizeof before - 1, &options, "a: 1 x, 2 y;b: 1 x, 2 z, 3 x;");
    static const char late[] = "Report; all users\n\nuser;time;event\na;1;x\na;2;y\nb;1;x\nb;2;z\nb;soon;x\n";
    refuse_with(late, sizeof late - 1, &options, LAPSE_ERROR_INPUT, 8, 2,
                "'soon' is not a number, as the other times are");
    static const char totals[] = "user,time,event,price\na,1,x,2\na,2,y,3\nTotal,,,5\n";
    expect_with(totals, sizeof totals - 1, &options, "a: 1 x, 2 y;");
    static const char between[] = "user,time,event,price\na,1,x,2\nTotal,,,5\na,2,y,3\n";
    refuse_with(between, sizeof between - 1, &options, LAPSE_ERROR_INPUT, 3, 3, "the name of the event is empty");
}

static void whole_numbers_are_one_name(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char mixed[] = "user,time,event\n17850,1,x\n17850.0,2,1.0\n",
                      versions[] = "user,time,event\n1.0,1,x\n1.1,2,y\n";
    expect_with(mixed, sizeof mixed - 1, &options, "17850: 1 x, 2 1.0;");
    expect_with(versions, sizeof versions - 1, &options, "1.0: 1 x;1.1: 2 y;");
}

static void times_of_exports(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        lp_date_order order;
        double time; /* 0: refused */
    } cases[] = {
        {"[29/Nov/2017:07:14:36 +0100]", LP_DATE_YEAR_FIRST, 1511936076},
        {"29 November 2017", LP_DATE_YEAR_FIRST, 1511913600},
        {"Nov 29, 2017 7:14 PM", LP_DATE_YEAR_FIRST, 1511982840},
        {"Wed, 29 Nov 2017 07:14:36 GMT", LP_DATE_YEAR_FIRST, 1511939676},
        {"Wed Nov 29 07:14:36 +0000 2017", LP_DATE_YEAR_FIRST, 1511939676},
        {"29. M\xC3\xA4rz 2017", LP_DATE_YEAR_FIRST, 1490745600},
        {"29 d\xC3\xA9"
         "c. 2017 08:00",
         LP_DATE_YEAR_FIRST, 1514534400},
        {"3/4/17 12:00 AM", LP_DATE_MONTH_FIRST, 1488585600},
        {"3/4/17, 00:00", LP_DATE_DAY_FIRST, 1491177600},
        {"3/4/69", LP_DATE_DAY_FIRST, 3132172800},
        {"2017.11.29 07.14", LP_DATE_YEAR_FIRST, 1511939640},
        {"2017-11-29 07:14:36 CET", LP_DATE_YEAR_FIRST, 1511936076},
        {"2017-11-29 07:14:36.250 -0500", LP_DATE_YEAR_FIRST, 1511957676.25},
        {"2017\xE5\xB9\xB4"
         "11\xE6\x9C\x88"
         "29\xE6\x97\xA5",
         LP_DATE_YEAR_FIRST, 1511913600},
        {"20171129", LP_DATE_YEAR_FIRST, 1511913600},
        {"20171129 07:14", LP_DATE_YEAR_FIRST, 1511939640},
        {"950301", LP_DATE_YEAR_FIRST, 794016000},
        {"171129", LP_DATE_YEAR_FIRST, 1511913600},
        {"171329", LP_DATE_YEAR_FIRST, 0},
        {"170029", LP_DATE_YEAR_FIRST, 0},
        {"171100", LP_DATE_YEAR_FIRST, 0},
        {"171131", LP_DATE_YEAR_FIRST, 0},
        {"20171129071436", LP_DATE_YEAR_FIRST, 1511939676},
        {"20171129T071436Z", LP_DATE_YEAR_FIRST, 1511939676},
        {"3/4/17", LP_DATE_YEAR_FIRST, 0}, /* which is the month? */
        {"Nov 29", LP_DATE_YEAR_FIRST, 0},
        {"31 Nov 2017", LP_DATE_YEAR_FIRST, 0},
        {"29 Nov 2017 25:00", LP_DATE_YEAR_FIRST, 0},
        {"29 Nov 2017 07:14 XYZ", LP_DATE_YEAR_FIRST, 0},
        {"12 34 56", LP_DATE_DAY_FIRST, 0},
        {"hello", LP_DATE_YEAR_FIRST, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_time_parts parts;
        lp_local local;
        double time = 0;
        const char *text = cases[i].text, *reason = lp_time_parts_read(text, text + strlen(text), &parts);
        if (!reason)
            reason = lp_time_parts_resolve(&parts, cases[i].order, NULL, &time, &local);
        if ((reason == NULL) != (cases[i].time != 0) || (!reason && time != cases[i].time))
            fail_msg("'%s': %.17g, %s", text, time, reason ? reason : "read");
    }
}

static void numbers_that_are_dates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool date;
    } cases[] = {
        {"261115", true},         {"260015", false},          {"260115", true},          {"261215", true},
        {"261315", false},        {"261100", false},          {"261101", true},          {"261130", true},
        {"261131", false},        {"260229", false},          {"240229", true},          {"20261115", true},
        {"20260015", false},      {"20261315", false},        {"20261100", false},       {"20261131", false},
        {"18991231", false},      {"19000101", true},         {"21001231", true},        {"21010101", false},
        {"20261115120000", true}, {"20261115235959", true},   {"20261115240000", false}, {"20261115126000", false},
        {"26111", false},         {"2611150", false},         {"202611151", false},      {"2026111512", false},
        {"2026111512000", false}, {"202611151200001", false}, {"2026-115", false},       {"2611:5", false},
        {"/61115", false},        {"26111/", false},          {"26111:", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (lp_time_is_compact(cases[i].text, cases[i].text + strlen(cases[i].text)) != cases[i].date)
            fail_msg("%s", cases[i].text);
}

/* The last character has no line end behind it; marks are no part of a name, unless the encoding has none. */
static void ends_and_marks_of_encodings(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char little[] = "u\0s\0e\0r\0,\0t\0i\0m\0e\0,\0e\0v\0e\0n\0t\0\n\0a\0,\0\61\0,\0x\0y\0",
                      big[] = "\0u\0s\0e\0r\0,\0t\0i\0m\0e\0,\0e\0v\0e\0n\0t\0\n\0a\0,\0\61\0,\0x\0y";
    expect_with(little, sizeof little - 1, &options, "a: 1 xy;");
    expect_with(big, sizeof big - 1, &options, "a: 1 xy;");
    expect_with(big, sizeof big - 2, &options, "a: 1 x;"); /* half of a character */
    static const struct {
        const char *byte, *name;
    } bytes[] = {{"\x80", "\xE2\x82\xAC"},
                 {"\x9F", "\xC5\xB8"},
                 {"\xA0"
                  "b",
                  "\xC2\xA0"
                  "b"},
                 {"\xFF", "\xC3\xBF"}};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        char text[64], expected[64];
        snprintf(text, sizeof text, "user,time,event\na,1,x%s\n", bytes[i].byte);
        snprintf(expected, sizeof expected, "a: 1 x%s;", bytes[i].name);
        expect_with(text, strlen(text), &options, expected);
    }
    static const char marked[] = "\xFE\xFFuser,time,event\na,1,x\n", other[] = "\xFF\xFEuser,time,event\na,1,x\n";
    options.encoding = "latin-1";
    options.sequence = "\xC3\xBE\xC3\xBFuser";
    options.time = "time", options.event = "event";
    expect_with(marked, sizeof marked - 1, &options, "a: 1 x;");
    options.sequence = "\xC3\xBF\xC3\xBEuser";
    expect_with(other, sizeof other - 1, &options, "a: 1 x;");
}

static void time_in_two_columns(void **state)
{
    (void)state;
    lapse_import_options options = found();
    static const char text[] = "user,date,hour,event\na,29.11.2017,07:14,x\na,29.11.2017,19:14:30,y\n";
    expect_with(text, sizeof text - 1, &options, "a: 1511939640 x, 1511982870 y;");
    options.time = "date";
    expect_with(text, sizeof text - 1, &options, "a: 1511913600 x, 1511913600 y;");
    options.time = "date, hour";
    expect_with(text, sizeof text - 1, &options, "a: 1511939640 x, 1511982870 y;");
    static const char digits[] = "user,day,tm,event\na,20171129,714,x\na,20171129,1914,y\n",
                      seconds[] = "user,day,tm,event\na,20171129,71400,x\na,20171129,191430,y\n";
    options.time = "day,tm";
    expect_with(digits, sizeof digits - 1, &options, "a: 1511939640 x, 1511982840 y;");
    expect_with(seconds, sizeof seconds - 1, &options, "a: 1511939640 x, 1511982870 y;");
}

/* The order of a basket is neither that of the source nor another one in each import. */
static void baskets_are_shuffled(void **state)
{
    (void)state;
    lapse_import_options options = found();
    lp_buffer text = {0};
    lapse_error error;
    lapse_dataset *dataset[2];
    lp_buffer_print(&text, "user,time,event\n");
    for (int i = 0; i < 40; i++)
        lp_buffer_print(&text, "u,%d,e%02d\n", i / 20, i);
    options.basket = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(import_bytes(text.data, text.size, &options, 64, &dataset[i], NULL, &error), LAPSE_OK);
    const double *times;
    const int32_t *types[2];
    int64_t count, same = 0, sum = 0;
    for (int i = 0; i < 2; i++)
        lapse_dataset_sequence(dataset[i], 0, &times, &types[i], &count);
    assert_int_equal(count, 40);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(types[0][i], types[1][i]);
        assert_true((times[i] < 1) == (types[0][i] < 20));
        same += types[0][i] == i;
        sum += types[0][i];
    }
    assert_true(same < 20);
    assert_int_equal(sum, 780);
    lapse_dataset_close(dataset[0]);
    lapse_dataset_close(dataset[1]);
    lp_buffer_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings_give_the_same_names),
        cmocka_unit_test(utf16_is_found),
        cmocka_unit_test(objects_in_other_forms),
        cmocka_unit_test(code_pages_are_found),
        cmocka_unit_test(lines_of_logs),
        cmocka_unit_test(lines_around_a_table),
        cmocka_unit_test(whole_numbers_are_one_name),
        cmocka_unit_test(times_of_exports),
        cmocka_unit_test(numbers_that_are_dates),
        cmocka_unit_test(ends_and_marks_of_encodings),
        cmocka_unit_test(time_in_two_columns),
        cmocka_unit_test(baskets_are_shuffled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
