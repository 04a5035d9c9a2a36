/* test_arrow_types.c: every type of an Arrow column in every role, with and without nulls and a dictionary, in arrays with an offset:
 * the dataset is that of the same rows as text. */
#include "base/memory.h"
#include "data/import/arrow_column.h"
#include "support/arrow_case.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char *const texts[] = {"u", "U", "vu", "c>u", "C>u", "s>U", "S>vu", "i>u", "I>vu", "l>U", "L>u", "z", "Z", "vz", "i>z"};
static const char *const numbers[] = {"c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "d:19,2", "i>l", "c>g", "u"};

/* 70 rows: more than a byte and a word of a bitmap. skip: every third row has an empty cell of this column; -1: none. */
static void make_text(lp_buffer *text, int empty)
{
    lp_buffer_print(text, "user,time,item,kind,price\n");
    for (int row = 0; row < 70; row++) {
        bool none = row % 3 == 1 && row % 8 != 1;
        lp_buffer_print(text, "%d,%d,", row * 7 % 11, row);
        lp_buffer_print(text, "%d,", row * 5 % 13);
        empty == 3 && none ? (void)lp_buffer_print(text, ",") : (void)lp_buffer_print(text, "%d,", row % 5);
        empty == 4 && none ? (void)lp_buffer_print(text, "\n") : (void)lp_buffer_print(text, "%d\n", row % 9 * 3);
    }
    lp_buffer_add(text, "", 1);
}

static void every_type_in_every_role(void **state)
{
    (void)state;
    for (int empty = 2; empty < 5; empty++) {
        lp_buffer text = {0};
        make_text(&text, empty);
        lapse_import_options options = defaults();
        options.sequence = "user", options.time = "time", options.event = "item";
        options.categories = FORMATS("kind");
        options.category_count = 1;
        options.numbers = FORMATS("price");
        options.number_count = 1;
        enum { TEXTS = sizeof texts / sizeof *texts, NUMBERS = sizeof numbers / sizeof *numbers };
        for (int i = 0; i < NUMBERS; i++) {
            const char *name = texts[i % TEXTS], *other = texts[(i + 4) % TEXTS], *third = texts[(i + 9) % TEXTS];
            arrow_same_as(text.data, text.data, FORMATS(name, "l", other, third, numbers[i]), options);
            arrow_same_as(text.data, text.data, FORMATS(numbers[i % 8], numbers[i % 8], numbers[(i + 3) % 8], name, "f"), options);
        }
        lp_buffer_clear(&text);
    }
}

static void columns_of_nulls(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.categories = FORMATS("device");
    options.category_count = 1;
    static const char text[] = "user,time,item,device\na,5,x,\nb,3,y,\na,6,z,\n";
    arrow_same_as(text, text, FORMATS("u", "i", "u", "n"), options);
    arrow_same_as(text, text, FORMATS("u", "i", "u", "vu"), options);
    arrow_same_as(text, text, FORMATS("u", "i", "u", "c>u"), options);
}

static void formats_have_types(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        lp_arrow_type type;
    } cases[] = {
        {"n", {LP_ARROW_NULL, 0, 0, false}},       {"b", {LP_ARROW_BOOL, 0, 0, false}},
        {"c", {LP_ARROW_INTEGER, 1, 0, false}},    {"s", {LP_ARROW_INTEGER, 2, 0, false}},
        {"i", {LP_ARROW_INTEGER, 4, 0, false}},    {"l", {LP_ARROW_INTEGER, 8, 0, false}},
        {"C", {LP_ARROW_UNSIGNED, 1, 0, false}},   {"S", {LP_ARROW_UNSIGNED, 2, 0, false}},
        {"I", {LP_ARROW_UNSIGNED, 4, 0, false}},   {"L", {LP_ARROW_UNSIGNED, 8, 0, false}},
        {"e", {LP_ARROW_FLOAT, 2, 0, false}},      {"f", {LP_ARROW_FLOAT, 4, 0, false}},
        {"g", {LP_ARROW_FLOAT, 8, 0, false}},      {"u", {LP_ARROW_TEXT, 4, 0, false}},
        {"U", {LP_ARROW_TEXT, 8, 0, false}},       {"z", {LP_ARROW_TEXT, 4, 0, false}},
        {"Z", {LP_ARROW_TEXT, 8, 0, false}},       {"vu", {LP_ARROW_VIEW, 16, 0, false}},
        {"vz", {LP_ARROW_VIEW, 16, 0, false}},     {"tdD", {LP_ARROW_DATE, 4, 0, true}},
        {"tdm", {LP_ARROW_DATE, 8, 3, true}},      {"tss:", {LP_ARROW_TIMESTAMP, 8, 0, true}},
        {"tsm:UTC", {LP_ARROW_TIMESTAMP, 8, 3, false}}, {"tsu:", {LP_ARROW_TIMESTAMP, 8, 6, true}},
        {"tsn:Europe/Berlin", {LP_ARROW_TIMESTAMP, 8, 9, false}}, {"d:9,2", {LP_ARROW_DECIMAL, 16, 2, false}},
        {"d:19,18,128", {LP_ARROW_DECIMAL, 16, 18, false}}, {"d:9,0,32", {LP_ARROW_DECIMAL, 4, 0, false}},
        {"d:18,1,64", {LP_ARROW_DECIMAL, 8, 1, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_arrow_type type = {0};
        bool good = lp_arrow_type_parse(cases[i].format, &type);
        if (!good || type.kind != cases[i].type.kind || type.size != cases[i].type.size || type.scale != cases[i].type.scale ||
            type.local != cases[i].type.local)
            fail_msg("%s: %d %d %d %d", cases[i].format, type.kind, type.size, type.scale, type.local);
    }
    static const char *const others[] = {NULL, "", "x", "nn", "ts", "tsx:", "tss", "td", "tdx", "tts", "d:", "d:9", "d:9,-1",
                                         "d:38,19", "d:9,2,256", "d:9,2,16", "+s", "+l", "w:4", "v", "vx"};
    lp_arrow_type type;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (lp_arrow_type_parse(others[i], &type))
            fail_msg("%s has a type", others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type_in_every_role), cmocka_unit_test(columns_of_nulls),
                                       cmocka_unit_test(formats_have_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
