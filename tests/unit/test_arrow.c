/* test_arrow.c: the import of Arrow streams: every type gives the dataset that the same rows give as CSV; broken streams
 * are errors. */
#include "base/memory.h"
#include "base/random.h"
#include "data/import/arrow.h"
#include "data/import/arrow_ahead.h"
#include "support/arrow_case.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char plain[] = "user,time,event\n7,100,3\n8,90,5\n7,50,3\n8,120,-4\n9,10,100\n7,50,5\n";
static const char words[] = "user,time,event\nanna,100,view\nb,90,a name of more than twelve bytes\nanna,50,view\n"
                            "\xc3\xa9t\xc3\xa9,120,buy\nb,10,view\nb,10,buy\n";

/* Names of every length and form, in an order at random: numbers that have ids by their value, texts that are almost such,
 * texts that are cached, and longer ones. Some rows are dropped, so that the others are not adjacent. */
static void names_at_random_give_the_dataset_of_the_text(void **state)
{
    (void)state;
    static const char *const names[] = {"0",
                                        "00",
                                        "007",
                                        "7",
                                        "10",
                                        "255",
                                        "65535",
                                        "65536",
                                        "1048577",
                                        "12345678",
                                        "123456789",
                                        "99999999",
                                        "00000000",
                                        "1234567a",
                                        "a1234567",
                                        "-5",
                                        "1.5",
                                        "x",
                                        "a b",
                                        "/",
                                        ":",
                                        "12:4",
                                        "12/4",
                                        "eight to",
                                        "nine by",
                                        "sixteen of bytes",
                                        "seventeen of them",
                                        "a name that is far longer than all others",
                                        "\xc3\xa9t\xc3\xa9",
                                        "\xe2\x82\xac 5",
                                        "~"};
    enum { COUNT = sizeof names / sizeof *names, ROWS = 600 };
    static const char *const formats[] = {"u", "U", "vu"};
    const uint64_t seed = 20261117;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, 0, 0);
    for (int bad = 0; bad < 2; bad++) {
        lp_buffer text = {0};
        lapse_import_options options = defaults();
        options.skip_bad_rows = bad;
        options.sequence = "user";
        options.event = "event";
        assert_true(lp_buffer_print(&text, "user,time,event\n"));
        for (int i = 0; i < ROWS; i++) {
            const char *user = bad && lp_random_below(&random, 9) == 0 ? "" : names[lp_random_below(&random, COUNT)];
            const char *event = names[lp_random_below(&random, i < ROWS / 2 ? 3 : COUNT)];
            assert_true(lp_buffer_print(&text, "%s,%d,%s\n", user, (int)lp_random_below(&random, 1000), event));
        }
        assert_true(lp_buffer_add(&text, "", 1));
        for (int f = 0; f < 3; f++)
            arrow_same_as(text.data, text.data, FORMATS(formats[f], "l", formats[2 - f]), options);
        lp_buffer_clear(&text);
    }
}

/* The ranges of a batch, which are requested before it is checked. */
static void memory_of_a_batch_is_requested_once(void **state)
{
    (void)state;
    static const int32_t offsets[] = {0, 100, 250, 1000, 990};
    static const char text[1000];
    lp_arrow_values values = {.type = {.kind = LP_ARROW_TEXT, .size = 4},
                              .length = 4,
                              .data = (const uint8_t *)offsets,
                              .text = text,
                              .text_size = 1000};
    lp_arrow_range ranges[LP_ARROW_RANGES];
    assert_int_equal(lp_arrow_ranges(&values, 1, 2, ranges), 2);
    assert_ptr_equal(ranges[0].begin, offsets + 1);
    assert_ptr_equal(ranges[0].end, offsets + 3);
    assert_ptr_equal(ranges[1].begin, text + 100);
    assert_ptr_equal(ranges[1].end, text + 1000);
    for (int steps = 0; steps < 40; steps++) {
        assert_int_equal(lp_arrow_ranges(&values, 0, 3, ranges), 2);
        lp_arrow_ahead ahead = {.ranges = ranges, .count = 2};
        lp_arrow_ahead_begin(&ahead, steps);
        for (int i = 0; i <= steps; i++)
            lp_arrow_ahead_step(&ahead);
        assert_int_equal(ahead.current, 2);
    }
    assert_int_equal(lp_arrow_ranges(&values, 3, 1, ranges), 1); /* the offset falls */
    values.text_size = 999;
    assert_int_equal(lp_arrow_ranges(&values, 1, 2, ranges), 1); /* it is outside the text */
    assert_int_equal(lp_arrow_ranges(&values, 1, 0, ranges), 0);
    values.type = (lp_arrow_type){.kind = LP_ARROW_BOOL};
    assert_int_equal(lp_arrow_ranges(&values, 0, 4, ranges), 0);
}

static void every_type_of_name_gives_the_dataset_of_the_text(void **state)
{
    (void)state;
    static const char *const numbers[] = {"c", "s", "i", "l", "i>l", "c>i", "l>u", "vu", "u", "U", "z"};
    static const char *const texts[] = {"u", "U", "vu", "z", "Z", "vz", "c>u", "S>vu", "L>U", "s>u", "i>u"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        arrow_same_as(plain, plain, FORMATS(numbers[i], "l", numbers[i]), defaults());
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        arrow_same_as(words, words, FORMATS(texts[i], "g", texts[i]), defaults());
    arrow_same_as("user,time,event\n250,1,40000\n250,2,65535\n", "user,time,event\n250,1,40000\n250,2,65535\n",
            FORMATS("C", "I", "S"), defaults());
    arrow_same_as("user,time,event\n18446744073709551615,1,4000000000\n",
            "user,time,event\n18446744073709551615,1,4000000000\n", FORMATS("L", "L", "I"), defaults());
    arrow_same_as("user,time,event\ntrue,1,1.50\nfalse,2,-0.25\n", "user,time,event\ntrue,1,1.5\nfalse,2,-0.25\n",
            FORMATS("b", "i", "d:9,2"), defaults());
    arrow_same_as("user,time,event\n2026-11-15,1,2026-11-15T12:00:00.250Z\n",
            "user,time,event\n2026-11-15,1,2026-11-15T12:00:00.250Z\n", FORMATS("tdD", "i", "tsm:UTC"), defaults());
}

/* Names of every size, many of which differ in the last byte only, and numbers: few of them, so that they are found in the
 * cache of recent names, or many. Names in runs share their first eight bytes, and many an entry of the cache. Distinct
 * names make the import leave the cache in the middle of a batch, and the table grow while names are looked up. */
static void names_of_every_size_stay_apart(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    static const char *const types[] = {"u", "U", "vu", "i>u", "s>vu"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    const uint64_t seed = 20261116;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, 0, 0);
    char run[6];
    lp_buffer mixed = {0}, runs = {0}, numbers = {0}, distinct = {0};
    lp_buffer *const texts[] = {&mixed, &runs, &numbers, &distinct};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (int t = 0; t < TEXTS; t++)
        assert_true(lp_buffer_print(texts[t], "user,time,event\n"));
    for (int i = 0; i < ROWS; i++) {
        bool many = i > ROWS / 2;
        int size = 1 + (int)lp_random_below(&random, 20), last = (int)lp_random_below(&random, many ? 26 : 2);
        int user = (int)lp_random_below(&random, many ? 100000 : 5) - 2;
        assert_true(lp_buffer_print(&mixed, "%.*s%c,%d,%.*s%c\n", size, letters, letters[last], i % 97, size,
                                    letters + 20 - size, letters[last]));
        for (int j = 0; i % 4 == 0 && j < 6; j++)
            run[j] = letters[lp_random_below(&random, 26)];
        assert_true(lp_buffer_print(&runs, "the user%.6s,%d,an event%.4s\n", run, i % 97, run));
        assert_true(lp_buffer_print(&numbers, "%d,%d,%d\n", user, i % 97, size * last));
        assert_true(lp_buffer_print(&distinct, "%.*s%d,%d,%d%.*s\n", size, letters, i % 900, i % 97, i % 700, size - 1,
                                    letters));
    }
    for (int t = 0; t < TEXTS; t++)
        assert_true(lp_buffer_add(texts[t], "", 1));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        arrow_same_as(mixed.data, mixed.data, FORMATS(types[i], "i", types[i]), defaults());
        arrow_same_as(runs.data, runs.data, FORMATS(types[i], "i", types[i]), defaults());
        arrow_same_as(distinct.data, distinct.data, FORMATS(types[i], "i", types[i]), defaults());
    }
    arrow_same_as(numbers.data, numbers.data, FORMATS("l", "l", "s"), defaults());
    arrow_same_as(numbers.data, numbers.data, FORMATS("i", "tss:UTC", "i>l"), defaults());
    for (int t = 0; t < TEXTS; t++)
        lp_buffer_clear(texts[t]);
}

/* Texts of small numbers have ids by their number: so few others that the import goes on with it, and names that a number
 * could be taken for. With many names the numbers may be larger. */
static void texts_of_numbers_stay_apart(void **state)
{
    (void)state;
    enum { ROWS = 6000 };
    static const char *const similar[] = {"7",        "07", "0", "00", "12345678", "123456789", "+7", "-7", "7:",
                                          "99999999", "7 ", "/", "7a", "1234567",  "01234567",  "70", "8e", "7\x01"};
    enum { SIMILAR = sizeof similar / sizeof *similar };
    static const char *const types[] = {"u", "U", "vu"};
    lp_buffer few = {0}, many = {0};
    assert_true(lp_buffer_print(&few, "user,time,event\n") && lp_buffer_print(&many, "user,time,event\n"));
    for (int i = 0; i < ROWS; i++) {
        const char *name = similar[i / 40 % SIMILAR];
        if (i < 2000)
            assert_true(i % 20 ? lp_buffer_print(&few, "%d,%d,%d\n", i % 300, i, i % 77)
                               : lp_buffer_print(&few, "%s,%d,%s\n", name, i, name));
        assert_true(lp_buffer_print(&many, "%d,%d,%d\n", i % 3000 * 29, i, i % 3 ? i : i * 100000));
    }
    assert_true(lp_buffer_add(&few, "", 1) && lp_buffer_add(&many, "", 1));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        arrow_same_as(few.data, few.data, FORMATS(types[i], "i", types[i]), defaults());
        arrow_same_as(many.data, many.data, FORMATS(types[i], "i", types[i]), defaults());
    }
    arrow_same_as(many.data, many.data, FORMATS("l", "i", "i"), defaults());
    lp_buffer_clear(&few);
    lp_buffer_clear(&many);
}

static void floats_are_named_with_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double number;
        int size;
        const char *name;
    } cases[] = {{5, 8, "5.0"},          {0.1, 8, "0.1"},
                 {-2.5, 8, "-2.5"},      {1e15, 8, "1000000000000000.0"},
                 {1e16, 8, "1e+16"},     {1.5e-5, 8, "1.5e-05"},
                 {0.0001, 8, "0.0001"},  {1.0 / 3, 8, "0.3333333333333333"},
                 {(float)0.1, 4, "0.1"}, {16777216, 4, "16777216.0"},
                 {0, 8, "0.0"},          {123.456, 8, "123.456"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[LP_ARROW_NAME_SIZE];
        int64_t value;
        memcpy(&value, &cases[i].number, sizeof value);
        size_t size = lp_arrow_name((lp_arrow_type){.kind = LP_ARROW_FLOAT, .size = cases[i].size}, value, name);
        assert_string_equal(name, cases[i].name);
        assert_int_equal(size, strlen(name));
    }
}

static void every_type_of_time_gives_the_same_times(void **state)
{
    (void)state;
    static const char iso[] = "user,time,event\na,2026-11-15T12:00:00Z,x\na,1969-12-31T23:59:59Z,y\nb,2001-01-01T00:00:"
                              "00Z,x\nb,2001-01-02T00:00:00Z,x\n";
    static const char days[] = "user,time,event\na,2026-11-15,x\na,1969-12-31,y\n";
    static const char parts[] =
        "user,time,event\na,2026-11-15T12:00:00.123Z,x\na,1969-12-31T23:59:59.999Z,y\nb,1970-01-01T00:00:00.001Z,x\n";
    static const char *const types[] = {"tss:", "tsm:", "tsu:UTC", "tsn:Europe/Zurich", "u", "i>u", "i>tss:"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        arrow_same_as(iso, iso, FORMATS("u", types[i], "u"), defaults());
    arrow_same_as(days, days, FORMATS("u", "tdD", "u"), defaults());
    arrow_same_as(days, days, FORMATS("u", "tdm", "u"), defaults());
    static const char *const fine[] = {"tsm:", "tsu:UTC", "tsn:", "vu"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        arrow_same_as(parts, parts, FORMATS("u", fine[i], "u"), defaults());
    static const char unix_ms[] = "user,time,event\na,1326506723403,x\na,1326506723404,y\n";
    arrow_same_as(unix_ms, unix_ms, FORMATS("u", "l", "u"), defaults());
    arrow_same_as(unix_ms, unix_ms, FORMATS("u", "g", "u"), defaults());
    static const char *const numbers[] = {"g", "u", "d:20,2", "vu"};
    static const char fractions[] = "user,time,event\na,1326506723.25,x\na,17.5,y\n";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        arrow_same_as(fractions, fractions, FORMATS("u", numbers[i], "u"), defaults());
    static const char halves[] =
        "user,time,event\na,0.25,x\na,65504,y\na,1.5,y\na,-2047,x\na,5.9604644775390625e-08,y\n";
    static const char *const floats[] = {"e", "f", "g"};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        arrow_same_as(halves, halves, FORMATS("u", floats[i], "u"), defaults());
}

static void times_without_a_zone_are_local_times(void **state)
{
    (void)state;
    /* The second one occurs twice, the third does not occur. */
    static const char text[] = "user,time,event\na,2026-07-01T12:00:00,x\na,2026-10-25T02:30:00.125,y\n"
                               "b,2026-03-29T02:30:00,x\nb,1970-01-01T00:00:00.001,x\nb,,x\n";
    static const char days[] = "user,time,event\na,2026-07-01,x\na,2026-01-01,y\nb,1900-05-01,x\n";
    static const char *const types[] = {"tsm:", "tsu:", "tsn:", "u", "i>u", "i>tsn:", "vu"};
    static const char *const zones[] = {"Europe/Berlin", "UTC", "-03:30"};
    for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
        lapse_import_options options = defaults();
        options.skip_bad_rows = true;
        options.timezone = zones[z];
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            arrow_same_as(text, text, FORMATS("u", types[i], "u"), options);
        arrow_same_as(days, days, FORMATS("u", "tdD", "u"), options);
        arrow_same_as(days, days, FORMATS("u", "tdm", "u"), options);
        arrow_same_as(days, days, FORMATS("u", "i>tdD", "u"), options);
    }
    /* An instant has no local time. */
    static const char instants[] = "user,time,event\na,2026-07-01T12:00:00Z,x\na,2026-10-25T02:30:00Z,y\n";
    lapse_import_options options = defaults();
    options.timezone = "Europe/Berlin";
    arrow_same_as(instants, instants, FORMATS("u", "tsm:UTC", "u"), options);
    arrow_same_as(instants, instants, FORMATS("u", "tsn:America/New_York", "u"), options);
    options.timezone = "Nowhere/Land";
    lapse_dataset *made = NULL;
    lapse_error error = {0};
    assert_int_not_equal(arrow_import(instants, FORMATS("u", "tsm:", "u"), &options, 2, 0, NULL, 16384, &made, NULL, &error),
                         LAPSE_OK);
    assert_non_null(strstr(error.message, "Nowhere/Land"));
}

static void units_of_numbers_are_those_of_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *unit;
    } cases[] = {
        {"user,time,event\na,1794744000123456789,x\na,1794744000123456788,y\nb,-1794744000123456789,x\n", "auto"},
        {"user,time,event\na,2794744000123456789,x\na,9223372036854775807,y\nb,17,x\n", "ns"},
        {"user,time,event\na,1794744000123456,x\na,1794744000123457,y\n", "auto"},
        {"user,time,event\na,,x\na,1794744000,x\na,1794744000123,y\nb,1794744001,z\n", "auto"},
        {"user,time,event\na,1794744000,x\na,17,y\n", "ms"},
        {"user,time,event\na,1794744000,x\na,99999999999999,y\n", "s"},
    };
    static const char *const types[] = {"l", "u", "i>l"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            lapse_import_options options = defaults();
            options.time_unit = cases[i].unit;
            options.skip_bad_rows = true;
            arrow_same_as(cases[i].text, cases[i].text, FORMATS("u", types[t], "u"), options);
        }
    }
}

/* Values decide where names do not: the report has the same choices, runners-up and ignored columns. */
static void columns_are_found_as_those_of_the_text_are(void **state)
{
    (void)state;
    lp_buffer text = {0};
    lp_buffer_print(&text, "id,user_id,session,timestamp,created,item,action,note\n");
    for (int i = 0; i < 60; i++)
        lp_buffer_print(&text, "%d,u%d,s%d,%d,2026-11-%02dT12:00:00Z,i%d,%s,\n", i, i % 5, i % 9, 1000 + i, 1 + i % 28,
                        i % 7, i % 2 ? "view" : "buy");
    lp_buffer_add(&text, "", 1);
    lapse_import_options options = defaults();
    options.event = "item";
    arrow_same_as(text.data, text.data, FORMATS("l", "u", "i>u", "l", "tsm:UTC", "vu", "c>u", "n"), options);
    options.time = "created";
    arrow_same_as(text.data, text.data, FORMATS("l", "u", "i>u", "l", "u", "vu", "c>u", "n"), options);
    lp_buffer_clear(&text);
}

static void numbers_are_rounded_as_their_text_is(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        int scale;
        double number;
    } cases[] = {{1794744000123456789, 9, 1794744000.123456789},
                 {-1794744000123456789, 9, -1794744000.123456789},
                 {9007199254740993, 0, 9007199254740992.0},
                 {9007199254740995, 0, 9007199254740996.0},
                 {INT64_MAX, 18, 9.223372036854775807},
                 {INT64_MIN, 9, -9223372036.854775808},
                 {1326506723403, 3, 1326506723.403},
                 {999999999999999999, 18, 0.999999999999999999},
                 {9007199254740993000, 3, 9007199254740993.0},
                 {1, 9, 1e-9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double made = lp_arrow_number((lp_arrow_type){.kind = LP_ARROW_TIMESTAMP, .size = 8, .scale = cases[i].scale},
                                      cases[i].value);
        assert_memory_equal(&made, &cases[i].number, sizeof made);
    }
}

static void fields_splits_and_filters_are_those_of_the_text(void **state)
{
    (void)state;
    static const char text[] =
        "user,time,item,action,device,price,part\na,5,x,view,phone,1.5,train\na,3,y,buy,,-20,test\n"
        "b,1,x,view,phone,,train\nb,2,x,view,a tablet of 18 inch,7,valid\na,4,x,search,phone,3,train\n"
        "c,1,z,view,a tablet of 18 inch,3,train\n";
    lapse_import_options options = defaults();
    options.event = "item";
    options.action = "action";
    options.categories = FORMATS("device");
    options.category_count = 1;
    options.numbers = FORMATS("price");
    options.number_count = 1;
    options.split = "part";
    arrow_same_as(text, text, FORMATS("u", "i", "u", "i>u", "vu", "g", "i>u"), options);
    arrow_same_as(text, text, FORMATS("i>u", "f", "vu", "u", "c>u", "f", "vu"), options);
    arrow_same_as(text, text, FORMATS("i>u", "f", "vu", "u", "c>u", "u", "u"), options);
    options.min_events = 2;
    arrow_same_as(text, text, FORMATS("u", "i", "u", "i>u", "u", "g", "u"), options);
    options = defaults();
    options.event = "action,device,item";
    arrow_same_as(text, text, FORMATS("u", "i", "u", "i>u", "vu", "g", "u"), options);
    options.session_gap = 1;
    options.deduplicate = "consecutive";
    arrow_same_as(text, text, FORMATS("u", "i", "c>u", "i>u", "vu", "g", "u"), options);
}

static void bad_rows_are_dropped_or_errors_as_in_a_text(void **state)
{
    (void)state;
    static const char text[] =
        "user,time,event,price\na,1,x,1\n,2,y,1\nb,,y,2\nc,3,,2\na,4,x,\nd,5,z\xff,1\ne,6,q,inf\n";
    static const char *const formats[] = {"u", "i", "vu", "u"};
    lapse_import_options options = defaults();
    options.numbers = FORMATS("price");
    options.number_count = 1;
    options.skip_bad_rows = true;
    arrow_same_as(text, text, formats, options);
    arrow_same_as(text, text, FORMATS("i>u", "l", "u", "g"), options);
    arrow_same_as(text, text, FORMATS("U", "tss:", "S>u", "f"), options);
    options.skip_bad_rows = false;
    lapse_dataset *made = NULL;
    lapse_error error = {0};
    assert_int_equal(arrow_import(text, formats, &options, 2, 1, NULL, 16384, &made, NULL, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "the name of the sequence is empty");
    assert_int_equal(error.line, 2);
    assert_int_equal(error.column, 1);
    assert_null(made);
}

/* ---------------------------------------------------------------------------------------- broken streams ----- */

#define SPOIL(name, statement)                                                        \
    static void name(struct ArrowSchema *schema, struct ArrowArray *array)            \
    {                                                                                 \
        (void)schema;                                                                 \
        if (array) {                                                                  \
            struct ArrowArray *user = array->children[0], *time = array->children[1]; \
            (void)user;                                                               \
            (void)time;                                                               \
            statement;                                                                \
        }                                                                             \
    }

static int64_t huge = INT64_MAX - 2;
SPOIL(negative_length, user->length = -1)
SPOIL(negative_rows, array->length = -7)
SPOIL(negative_offset, time->offset = -1)
SPOIL(too_long, array->length = 100)
SPOIL(huge_offset, user->offset = huge)
SPOIL(huge_rows, array->offset = huge; array->length = huge)
SPOIL(no_children, array->n_children = 2)
SPOIL(child_missing, array->children[1] = NULL)
SPOIL(child_released, user->release(user))
SPOIL(no_buffers, user->buffers = NULL)
SPOIL(no_values, time->buffers[1] = NULL)
SPOIL(no_bitmap, time->null_count = 2; time->buffers[0] = NULL)
SPOIL(few_buffers, user->n_buffers = 2)
SPOIL(no_text, user->buffers[2] = NULL)
SPOIL(falling_offsets, ((int32_t *)user->buffers[1])[1] = 1000)
SPOIL(negative_offsets, ((int32_t *)user->buffers[1])[1] = -5)
SPOIL(outside_dictionary, ((int8_t *)array->children[2]->buffers[1])[1] = 99)
SPOIL(below_dictionary, ((int8_t *)array->children[2]->buffers[1])[1] = -1)
SPOIL(no_dictionary, array->children[2]->dictionary = NULL)
SPOIL(dictionary_released, array->children[2]->dictionary->release(array->children[2]->dictionary))
SPOIL(dictionary_offsets, ((int32_t *)array->children[2]->dictionary->buffers[1])[1] = 77)
SPOIL(dictionary_length, array->children[2]->dictionary->length = -3)
SPOIL(view_buffer, ((int32_t *)array->children[3]->buffers[1])[6] = 5)
SPOIL(view_offset, ((int32_t *)array->children[3]->buffers[1])[7] = 1 << 30)
SPOIL(no_view_sizes, array->children[3]->buffers[array->children[3]->n_buffers - 1] = NULL)
SPOIL(view_size, ((int32_t *)array->children[3]->buffers[1])[4] = -1)

static void bad_format(struct ArrowSchema *schema, struct ArrowArray *array)
{
    if (!array)
        ((char *)schema->children[1]->format)[0] = '?';
}

static void not_a_table(struct ArrowSchema *schema, struct ArrowArray *array)
{
    if (!array)
        ((char *)schema->format)[1] = 'l';
}

static void column_released(struct ArrowSchema *schema, struct ArrowArray *array)
{
    if (!array)
        schema->children[2]->release(schema->children[2]);
}

static void broken_streams_are_errors(void **state)
{
    (void)state;
    static const char text[] =
        "user,time,event,long\na,1,x,a name of many bytes\nb,2,y,another name of many bytes\na,3,x,b\n";
    static const char *const formats[] = {"u", "l", "c>u", "vu"};
    static const struct {
        arrow_spoil spoil;
        const char *message;
    } cases[] = {
        {negative_length, "negative length"},
        {negative_rows, "wrong length"},
        {negative_offset, "negative length"},
        {too_long, "shorter than its table"},
        {huge_offset, "too large"},
        {huge_rows, "wrong length"},
        {no_children, "number of columns"},
        {child_missing, "missing or already released"},
        {child_released, "already released"},
        {no_buffers, "no buffers"},
        {no_values, "no values"},
        {no_bitmap, "no bitmap"},
        {few_buffers, "number of buffers"},
        {no_text, "no text"},
        {falling_offsets, "outside its array"},
        {negative_offsets, "outside its array"},
        {outside_dictionary, "outside its array"},
        {below_dictionary, "outside its array"},
        {no_dictionary, "no dictionary"},
        {dictionary_released, "already released"},
        {dictionary_offsets, "outside its array"},
        {dictionary_length, "negative length"},
        {view_buffer, "outside its array"},
        {view_offset, "outside its array"},
        {no_view_sizes, "no sizes of its buffers"},
        {view_size, "outside its array"},
        {bad_format, "has the Arrow type '?'"},
        {not_a_table, "not a table"},
        {column_released, "already released"},
    };
    lapse_import_options options = defaults();
    options.categories = FORMATS("long");
    options.category_count = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int skip = 0; skip < 2; skip++) {
            lapse_dataset *made = NULL;
            lapse_error error = {0};
            options.skip_bad_rows = skip;
            lapse_status status = arrow_import(text, formats, &options, 2, 1, cases[i].spoil, 16384, &made, NULL, &error);
            if (status != LAPSE_ERROR_INPUT || !strstr(error.message, cases[i].message))
                fail_msg("case %d: status %d: %s", (int)i, (int)status, error.message);
            assert_null(made);
        }
    }
}

SPOIL(offsets_of_row_3, ((int32_t *)user->buffers[1])[user->offset + 3] = 1000)

static void the_first_error_does_not_depend_on_batches(void **state)
{
    (void)state;
    static const char text[] = "user,time,event\na,1,x\nb,,y\na,3,x\nb,4,y\n";
    static const int64_t batches[] = {1, 2, 3, 16384};
    for (size_t i = 0; i < 2 * sizeof batches / sizeof *batches; i++) {
        lapse_import_options options = defaults();
        lapse_dataset *made = NULL;
        lapse_error error = {0};
        options.skip_bad_rows = i % 2;
        assert_int_equal(
            arrow_import(text, FORMATS("u", "l", "u"), &options, 4, 1, offsets_of_row_3, batches[i / 2], &made, NULL, &error),
            LAPSE_ERROR_INPUT);
        assert_int_equal(error.line, i % 2 ? 3 : 2);
        assert_int_equal(error.column, i % 2 ? 1 : 2);
        assert_non_null(strstr(error.message, i % 2 ? "outside its array" : "the time is missing"));
    }
}

static void columns_of_other_types_are_named_in_the_error(void **state)
{
    (void)state;
    static const struct {
        const char *formats[3];
        const char *message;
    } cases[] = {{{"u", "b", "u"}, "the column 'time' has the Arrow type 'b', which cannot be the time"},
                 {{"u", "l", "tts"}, "the column 'event' has the Arrow type 'tts', which cannot be the event"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_import_options options = defaults();
        lapse_dataset *made = NULL;
        lapse_error error = {0};
        assert_int_equal(
            arrow_import("user,time,event\n1,2,3\n", cases[i].formats, &options, 2, 0, NULL, 16384, &made, NULL, &error),
            LAPSE_ERROR_INPUT);
        assert_non_null(strstr(error.message, cases[i].message));
    }
    lapse_import_options options = defaults();
    lapse_dataset *made = NULL;
    lapse_error error = {0};
    options.event = "nothing";
    assert_int_equal(arrow_import(plain, FORMATS("u", "l", "u"), &options, 2, 0, NULL, 16384, &made, NULL, &error),
                     LAPSE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "the columns are: user, time, event"));
    struct ArrowArrayStream released = {0};
    assert_int_equal(lapse_dataset_from_arrow(&released, &options, &made, NULL, &error), LAPSE_ERROR_INPUT);
    assert_int_equal(lapse_dataset_from_arrow(NULL, &options, &made, NULL, &error), LAPSE_ERROR_USAGE);
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    static const char *const formats[] = {"u", "l", "c>u"};
    lapse_import_options options = defaults();
    int failures = 0;
    for (int64_t n = 1;; n++) {
        lapse_dataset *made = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = arrow_import(words, formats, &options, 2, 1, NULL, 2, &made, NULL, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK) {
            lapse_dataset_close(made);
            break;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(made);
        failures++;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_at_random_give_the_dataset_of_the_text),
        cmocka_unit_test(memory_of_a_batch_is_requested_once),
        cmocka_unit_test(every_type_of_name_gives_the_dataset_of_the_text),
        cmocka_unit_test(names_of_every_size_stay_apart),
        cmocka_unit_test(texts_of_numbers_stay_apart),
        cmocka_unit_test(floats_are_named_with_the_fewest_digits),
        cmocka_unit_test(every_type_of_time_gives_the_same_times),
        cmocka_unit_test(times_without_a_zone_are_local_times),
        cmocka_unit_test(units_of_numbers_are_those_of_the_text),
        cmocka_unit_test(columns_are_found_as_those_of_the_text_are),
        cmocka_unit_test(numbers_are_rounded_as_their_text_is),
        cmocka_unit_test(fields_splits_and_filters_are_those_of_the_text),
        cmocka_unit_test(bad_rows_are_dropped_or_errors_as_in_a_text),
        cmocka_unit_test(broken_streams_are_errors),
        cmocka_unit_test(the_first_error_does_not_depend_on_batches),
        cmocka_unit_test(columns_of_other_types_are_named_in_the_error),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
