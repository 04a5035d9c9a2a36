/* test_text.c: numbers, words, names, timestamps and durations as text. */
#include "base/timestamp.h"
#include "base/random.h"
#include "base/text.h"

#include <lapse.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse(const char *text, double *value)
{
    return lp_number_parse(text, text + strlen(text), value);
}

static void numbers_are_exact(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "+7",
                                        "1.",
                                        ".5",
                                        "00012.50",
                                        "1326506723.403",
                                        "1e3",
                                        "1E-3",
                                        "2.5e+2",
                                        "9007199254740993",
                                        "9007199254740992",
                                        "123456789012345678",
                                        "12345678901234567890123",
                                        "0.1",
                                        "0.30000000000000004",
                                        "1e22",
                                        "1e23",
                                        "1.7976931348623157e308",
                                        "4.9e-324",
                                        "2.2250738585072011e-308",
                                        "1e-400",
                                        "-1.5e-7",
                                        "179769313486231570000e288",
                                        "0.000000000000000000000000000001",
                                        "8.5e-23",
                                        "1326506723.40312345678901234567890"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 99;
        assert_true(parse(texts[i], &value));
        double expected = strtod(texts[i], NULL);
        assert_memory_equal(&value, &expected, sizeof value);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      ".",   "-",     "+",        "e5",    "1e",     "1e+", "nan",
                                        "NaN",   "inf", "-inf",  "Infinity", "0x10",  "1 ",     " 1",  "1,5",
                                        "1.2.3", "--1", "1e5.5", "1_000",    "1e400", "-1e400", "1d5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 99;
        if (parse(texts[i], &value))
            fail_msg("'%s' was accepted as a number", texts[i]);
        assert_true(value == 99);
    }
    char many[3000];
    memset(many, '1', sizeof many);
    double value;
    assert_false(lp_number_parse(many, many + sizeof many, &value));
}

/* Doubles of every magnitude and printed length are parsed like strtod. */
static void random_numbers_agree_with_strtod(void **state)
{
    (void)state;
    uint64_t seed = 20261115;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = (uint64_t)lp_random_word(&random) << 32 | lp_random_word(&random);
        double made;
        memcpy(&made, &bits, sizeof made);
        if (!isfinite(made))
            continue;
        if (i % 2)
            made = (double)(bits % 4000000000000u) / 1000;
        char text[64];
        int size = snprintf(text, sizeof text, "%.*g", (int)(1 + lp_random_below(&random, 25)), made);
        double value, expected = strtod(text, NULL);
        bool finite = isfinite(expected);
        assert_int_equal(lp_number_parse(text, text + size, &value), finite);
        if (finite)
            assert_memory_equal(&value, &expected, sizeof value);
    }
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    double value;
    assert_true(parse("12345678901234567890.5", &value));
    assert_true(value == 12345678901234567890.5);
    setlocale(LC_NUMERIC, "C");
    if (!found)
        print_message("no locale with a decimal comma is installed; tested in C only\n");
}

static void words_and_utf8(void **state)
{
    (void)state;
    const char *word = "Valid";
    assert_true(lp_text_is(word, word + 5, "valid"));
    assert_false(lp_text_is(word, word + 4, "valid"));
    assert_false(lp_text_is(word, word + 5, "vali"));
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"", true},
                 {"plain ascii text", true},
                 {"na\xC3\xAFve", true},
                 {"\xE2\x82\xAC", true},
                 {"\xF0\x9F\x8E\xB2", true},
                 {"\xC0\x80", false},
                 {"\xE0\x80\x80", false},
                 {"\xED\xA0\x80", false},
                 {"\xF4\x90\x80\x80", false},
                 {"abc\xC3", false},
                 {"\x80", false},
                 {"abcdefgh\xFFijk", false},
                 {"\xF5\x80\x80\x80", false},
                 {"abcdefghijkl\xE4", false},
                 {"\xE2\x82", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(lp_text_is_utf8(cases[i].text, cases[i].text + strlen(cases[i].text)), cases[i].good);
    static const char text[] = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x8E\xB2\xE2\x82"; /* the last character is cut */
    static const size_t sizes[] = {1, 2, 3, 4, 0};
    for (size_t i = 0, at = 0; i < sizeof sizes / sizeof *sizes; at += sizes[i++]) {
        assert_int_equal(lp_utf8_size(text + at, text + sizeof text - 1), sizes[i]);
        assert_int_equal(lp_utf8_size(text + at, text + at + 4), sizes[i]);
    }
}

static void names_are_found(void **state)
{
    (void)state;
    typedef struct row {
        const char *name;
        int number;
    } row;
    static const row one = {"one", 1}, two = {"two", 2};
    static const row *const rows[] = {&one, &two, NULL};
    static const char *const names[] = {"one", "two", NULL};
    assert_ptr_equal(lp_find_by_name(rows, "one"), &one);
    assert_ptr_equal(lp_find_by_name(rows, "two"), &two);
    assert_null(lp_find_by_name(rows, "three"));
    assert_null(lp_find_by_name(rows, NULL));
    assert_int_equal(lp_name_index("two", names), 1);
    assert_int_equal(lp_name_index("three", names), -1);
    assert_int_equal(lp_name_index(NULL, names), -1);
}

static void excerpts_fit_a_message(void **state)
{
    (void)state;
    char out[LP_EXCERPT_SIZE];
    const char *text = "a\tb\xFF"
                       "c\xC3\xA4";
    assert_string_equal(lp_text_excerpt(text, text + strlen(text), out), "a?b?c\xC3\xA4");
    char many[200];
    memset(many, 'x', sizeof many);
    assert_string_equal(lp_text_excerpt(many, many + sizeof many, out), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...");
    for (int i = 0; i < 39; i++)
        many[i] = 'x';
    memcpy(many + 39, "\xF0\x9F\x8E\xB2\xF0\x9F\x8E\xB2", 8);
    assert_int_equal(strlen(lp_text_excerpt(many, many + 47, out)), 46);
}

/* ------------------------------------------------------------------------------------------------- moments --- */

static void moments_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double time;
    } cases[] = {{"1326506723.403", 1326506723.403},
                 {" 12 ", 12},
                 {"-5.5", -5.5},
                 {"1970-01-01", 0},
                 {"1970-01-01T00:00:00Z", 0},
                 {"2012-01-14T02:05:23.403Z", 1326506723.403},
                 {"2012-01-14 02:05:23.403123 UTC", 1326506723.403123},
                 {"2012-01-14T04:05:23.403+02:00", 1326506723.403},
                 {"2012-01-13T21:05:23,403-0500", 1326506723.403},
                 {"2012-01-14t02:05z", 1326506700},
                 {"2012-01-14 02:05:23 +00", 1326506723},
                 {"2000-02-29T12:00:00Z", 951825600},
                 {"2024-02-29", 1709164800},
                 {"1969-12-31T23:59:59.75Z", -0.25},
                 {"1969-12-31T23:59:58.123456789Z", -1.876543211},
                 {"2016-12-31T23:59:60Z", 1483228800},
                 {"0001-01-01", -62135596800.0},
                 {"2012-01-14T02:05:23", 1326506723},
                 {"2012-01-14 02:05:23.403", 1326506723.403},
                 {"2012-01-14T02:05", 1326506700},
                 {"2012/01/14", 1326499200},
                 {"2012/1/14 2:05", 1326506700},
                 {"14/01/2012", 1326499200},
                 {"1/14/2012 2:05:23 AM", 1326506723},
                 {"14.1.2012 14:05", 1326549900},
                 {"1/14/2012 12:05 AM", 1326499500},
                 {"1/14/2012 12:05 pm", 1326542700},
                 {"05/05/2012", 1336176000},
                 {"9999-12-31T23:59:59Z", 253402300799.0},
                 {"2026-11-15T12:00:00.123456789123456789123Z", 1794744000.123456789}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double time = 99;
        lapse_error error = {0};
        if (lapse_time_parse(cases[i].text, &time, &error) != LAPSE_OK)
            fail_msg("'%s': %s", cases[i].text, error.message);
        if (time != cases[i].time)
            fail_msg("'%s' gave %.17g", cases[i].text, time);
    }
}

#define NOT_TIME "' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z"
#define NOT_ISO "' is not a time in ISO 8601 such as 2026-11-15T12:00:00Z"

static void bad_moments_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "'" NOT_TIME},
        {"soon", "'soon" NOT_TIME},
        {"nan", "'nan" NOT_TIME},
        {"inf", "'inf" NOT_TIME},
        {"0x10", "'0x10" NOT_TIME},
        {"03/01/2012", "'03/01/2012' may have the day or the month first: write the year first, such as 2026-11-15"},
        {"31/02/2012", "'31/02/2012' has a date that does not exist"},
        {"12/31/2012 13:00 PM", "'12/31/2012 13:00 PM' has an hour, minute or second that does not exist"},
        {"2012-01-14T1:05", "'2012-01-14T1:05" NOT_ISO},
        {"2011-02-29", "'2011-02-29' has a date that does not exist"},
        {"1900-02-29", "'1900-02-29' has a date that does not exist"},
        {"2012-13-01", "'2012-13-01' has a date that does not exist"},
        {"2012-00-10", "'2012-00-10' has a date that does not exist"},
        {"0000-01-01", "'0000-01-01' has a date that does not exist"},
        {"2012-01-14T24:00:00Z", "'2012-01-14T24:00:00Z' has an hour, minute or second that does not exist"},
        {"2012-01-14T10:30:60Z", "'2012-01-14T10:30:60Z' has an hour, minute or second that does not exist"},
        {"2012-01-14T10:30:00X", "'2012-01-14T10:30:00X' has a zone that is not Z, UTC or an offset such as +02:00"},
        {"2012-01-14T10:30:00+25:00",
         "'2012-01-14T10:30:00+25:00' has a zone that is not Z, UTC or an offset such as +02:00"},
        {"2012-01-14T10:30:00+02:00x", "'2012-01-14T10:30:00+02:00x" NOT_ISO},
        {"2012-1-14", "'2012-1-14" NOT_ISO},
        {"2012-01-14T10", "'2012-01-14T10" NOT_ISO},
        {"2012-01-14T10:30:00.Z", "'2012-01-14T10:30:00.Z" NOT_ISO},
        {"1326506723403", "'1326506723403' lies outside the years 1 to 9999: unix times are seconds"},
        {"0001-01-01T00:00:00+01:00", "'0001-01-01T00:00:00+01:00' lies outside the years 1 to 9999"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double time = 99;
        lapse_error error = {0};
        assert_int_equal(lapse_time_parse(cases[i].text, &time, &error), LAPSE_ERROR_INPUT);
        assert_string_equal(error.message, cases[i].message);
        assert_true(time == 99);
    }
    assert_int_equal(lapse_time_parse(NULL, NULL, NULL), LAPSE_ERROR_USAGE);
}

/* Every day of eight hundred years, formatted and parsed, against the day before. */
static void the_calendar_has_no_gaps(void **state)
{
    (void)state;
    double time = -11676096000.0; /* 1600-01-01 */
    char text[64];
    for (int day = 0; day < 292194; day++, time += 86400) {
        double back;
        lapse_time_format(time, text, sizeof text);
        assert_int_equal(lapse_time_parse(text, &back, NULL), LAPSE_OK);
        assert_true(back == time);
    }
    assert_string_equal(text, "2399-12-31T00:00:00Z");
}

static void moments_are_written(void **state)
{
    (void)state;
    char text[64], small[5];
    assert_string_equal(lapse_time_format(1794744000, text, sizeof text), "2026-11-15T12:00:00Z");
    assert_string_equal(lapse_time_format(1326506723.403, text, sizeof text), "2012-01-14T02:05:23.403Z");
    assert_string_equal(lapse_time_format(-0.25, text, sizeof text), "1969-12-31T23:59:59.750Z");
    assert_string_equal(lapse_time_format(0.9999, text, sizeof text), "1970-01-01T00:00:01Z");
    assert_string_equal(lapse_time_format(951782400, text, sizeof text), "2000-02-29T00:00:00Z");
    assert_string_equal(lapse_time_format(1e15, text, sizeof text), "1000000000000000");
    assert_string_equal(lapse_time_format(NAN, text, sizeof text), "nan");
    assert_string_equal(lapse_time_format(0, small, sizeof small), "1970");
}

/* ---------------------------------------------------------------------------------------- lengths of time ---- */

static void lengths_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {{"90s", 90},     {"15m", 900},    {"3h", 10800},      {"2d", 172800}, {"1w", 604800}, {"2y", 63115200},
                 {"250ms", 0.25}, {"0.5 h", 1800}, {" 1.5d ", 129600}, {"0s", 0},      {"1e2s", 100},  {"3H", 10800}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds = 99;
        assert_int_equal(lapse_duration_parse(cases[i].text, &seconds, NULL), LAPSE_OK);
        assert_true(seconds == cases[i].seconds);
    }
    static const char *const bad[] = {"", "s", "90", "three days", "1x", "nan s", "infs", "1h30m", "0x1s", "1 month"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double seconds = 99;
        lapse_error error = {0};
        char message[200];
        snprintf(message, sizeof message,
                 "'%s' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y",
                 bad[i]);
        assert_int_equal(lapse_duration_parse(bad[i], &seconds, &error), LAPSE_ERROR_INPUT);
        assert_string_equal(error.message, message);
        assert_true(seconds == 99);
    }
    lapse_error error = {0};
    double seconds;
    assert_int_equal(lapse_duration_parse("-1d", &seconds, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "'-1d' is out of range: a length of time is 0 to 9999 years");
    assert_int_equal(lapse_duration_parse("1e300y", &seconds, &error), LAPSE_ERROR_INPUT);
    assert_int_equal(lapse_duration_parse(NULL, &seconds, &error), LAPSE_ERROR_USAGE);
}

static void lengths_are_written(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 seconds"},
                 {1, "1 second"},
                 {0.25, "250 milliseconds"},
                 {0.001, "1 millisecond"},
                 {45, "45 seconds"},
                 {59.99, "1 minute"},
                 {59.96, "1 minute"},
                 {59.9, "59.9 seconds"},
                 {60, "1 minute"},
                 {5400, "1.5 hours"},
                 {3599.9, "1 hour"},
                 {86400, "1 day"},
                 {259200, "3 days"},
                 {604800, "7 days"},
                 {31557600, "1 year"},
                 {3155760000.0, "100 years"},
                 {63115200000.0, "2000 years"},
                 {-259200, "-3 days"},
                 {1e-5, "0.01 milliseconds"},
                 {0.9999, "1 second"},
                 {NAN, "unknown"},
                 {INFINITY, "unknown"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        assert_string_equal(lapse_duration_format(cases[i].seconds, text, sizeof text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(random_numbers_agree_with_strtod),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(words_and_utf8),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(excerpts_fit_a_message),
        cmocka_unit_test(moments_are_read),
        cmocka_unit_test(bad_moments_say_why),
        cmocka_unit_test(the_calendar_has_no_gaps),
        cmocka_unit_test(moments_are_written),
        cmocka_unit_test(lengths_are_read),
        cmocka_unit_test(lengths_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
