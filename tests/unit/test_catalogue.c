/* test_catalogue.c: item features of a catalogue; malformed tables are rejected with line and column. */
#include "data/import/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/small_data.h"

/* A dataset's event types "a" and "b". */
static const uint64_t known_offset[] = {0, 2, 4};
static const lp_names known = {.count = 2, .offset = known_offset, .bytes = "a\0b"};

static lapse_status read_text(lp_catalogue *catalogue, const char *text, size_t size,
                              const lp_catalogue_columns *columns, lapse_error *error)
{
    static const lp_catalogue_columns usual = {0};
    assert_int_equal(lp_catalogue_start(catalogue, &known, error), LAPSE_OK);
    return lp_catalogue_read_memory(catalogue, "items.csv", text, size, columns ? columns : &usual, error);
}

/* "a: brand=x name=red; b: ...": the whole catalogue. */
static char *tell(const lp_catalogue *catalogue)
{
    lp_buffer out = {0};
    lp_names items = lp_intern_names(&catalogue->items), features = lp_intern_names(&catalogue->features);
    for (int64_t i = 0; i < items.count; i++) {
        lp_buffer_print(&out, "%s%s:", i ? "; " : "", lp_names_get(&items, i));
        for (uint64_t f = catalogue->start[i]; f < catalogue->start[i + 1]; f++)
            lp_buffer_print(&out, " %s", lp_names_get(&features, catalogue->feature[f]));
    }
    lp_buffer_add(&out, "", 1);
    return out.data;
}

static void assert_told(const char *text, const lp_catalogue_columns *columns, const char *expected)
{
    lp_catalogue catalogue;
    lapse_error error = {0};
    if (read_text(&catalogue, text, strlen(text), columns, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    char *told = tell(&catalogue);
    assert_string_equal(told, expected);
    lp_free(told);
    lp_catalogue_clear(&catalogue);
}

static void test_features(void **state)
{
    (void)state;
    assert_told("item,name,brand\nb,Red Kettle,X\nc,\"red, Red; KETTLE!\",X\n", NULL,
                "a:; b: name=red name=kettle brand=X; c: name=red name=kettle brand=X");
    /* Features of a single item are dropped; empty fields have none; blanks around a value are ignored. */
    assert_told("item,brand\nb, X \nc,X\nd,Y\ne,\n", NULL, "a:; b: brand=X; c: brand=X; d:; e:");
    /* The same text in two columns is two features; non-ASCII letters are unchanged. */
    assert_told("item\ttitle\tcolour\nb\tÉté 2\tété\nc\tÉté 2\tété\n", NULL,
                "a:; b: title=Été title=2 colour=été; c: title=Été title=2 colour=été");
    /* Quotes, CR LF, a byte-order mark, empty lines, no line end at the end. */
    assert_told("\xEF\xBB\xBFitem,brand\r\n\r\n\"b\",\"X \"\"Y\"\"\nZ\"\r\nc,\"X \"\"Y\"\"\nZ\"", NULL,
                "a:; b: brand=X \"Y\"\nZ; c: brand=X \"Y\"\nZ");
}

static void test_columns(void **state)
{
    (void)state;
    static const lp_catalogue_columns named = {"sku", "kind"}, numbered = {"2", "1,3"}, none = {NULL, ""};
    assert_told("kind,sku,name\nold lamp,b,one two\nold lamp,c,one two\n", &named,
                "a:; b: kind=old kind=lamp name=one two; c: kind=old kind=lamp name=one two");
    assert_told("kind,sku,name\nold lamp,b,one two\nold lamp,c,one two\n", &numbered,
                "a:; b: kind=old kind=lamp name=one name=two; c: kind=old kind=lamp name=one name=two");
    assert_told("name,id\none two,b\none two,c\n", &none, "a:; b: name=one two; c: name=one two");
}

static void test_counts(void **state)
{
    (void)state;
    static const char text[] = "item,brand\nz,X\na,X\ny,X\n";
    lp_catalogue catalogue;
    assert_int_equal(read_text(&catalogue, text, strlen(text), NULL, NULL), LAPSE_OK);
    assert_int_equal(catalogue.known, 2);
    assert_int_equal(catalogue.described, 3);
    assert_int_equal(catalogue.described_new, 2);
    assert_int_equal(catalogue.items.count, 4);
    lp_catalogue_clear(&catalogue);
}

/* --------------------------------------------------------------------------------------------------- refused -- */

static void assert_refused_bytes(const char *text, size_t size, const lp_catalogue_columns *columns, int64_t line,
                                 int64_t column, const char *message)
{
    lp_catalogue catalogue;
    lapse_error error = {0};
    assert_int_equal(read_text(&catalogue, text, size, columns, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, message);
    assert_int_equal(error.line, line);
    assert_int_equal(error.column, column);
    assert_string_equal(error.file, "items.csv");
    lp_catalogue_clear(&catalogue);
}

static void assert_refused(const char *text, int64_t line, int64_t column, const char *message)
{
    assert_refused_bytes(text, strlen(text), NULL, line, column, message);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("", 0, 0, "the file is empty: it must have a header and rows");
    assert_refused("\n\n", 0, 0, "the catalogue has only empty lines: it must have a header and rows");
    assert_refused("item,brand\n", 0, 0, "the catalogue has a header but no rows");
    assert_refused("item\na\n", 1, 0, "the catalogue has no column besides the item: the items have no features");
    assert_refused("thing,brand\na,X\n", 1, 0,
                   "no column was recognized as the item: select it with --item; the columns are: thing, brand");
    assert_refused("item,brand\na,X\n\nb,X\na,Y\n", 5, 1, "item 'a' has two rows: the first is line 2");
    assert_refused("item,brand\na,X,Z\n", 2, 0, "this row has 3 fields, but the header has 2");
    assert_refused("item,brand\na\n", 2, 0, "this row has 1 field, but the header has 2");
    assert_refused("item,brand\n,X\n", 2, 1, "the name of the item is empty");
    assert_refused("\xEF\xBB\xBFitem,brand\na,\xff\n", 2, 2, "the field is not valid UTF-8 text");
    assert_refused("item,brand\na,\"X\"Y\n", 2, 2,
                   "text follows the closing quote of a field; a quote inside a quoted field must be doubled");
    assert_refused("item,brand\na,X\nb,\"X\nc,Y\n", 3, 0,
                   "a quoted field that begins in this line has no closing quote");
    assert_refused_bytes("item,brand\na,X\nb,\0Y\n", 20, NULL, 3, 0,
                         "this is a binary file, not text: it has a NUL byte");
    static const lp_catalogue_columns no_item = {"sku", NULL}, no_words = {NULL, "brand,color"};
    assert_refused_bytes("item,brand\na,X\n", 15, &no_item, 1, 0,
                         "there is no column 'sku' for the item; the columns are: item, brand");
    assert_refused_bytes("item,brand\na,X\n", 15, &no_words, 1, 0,
                         "there is no column 'color' for words; the columns are: item, brand");
}

/* Line numbers are correct beyond the first chunk, and a long list of words takes linear time. */
static void test_many_rows(void **state)
{
    (void)state;
    lp_buffer text = {0};
    lp_buffer_print(&text, "item,name,brand\n");
    for (int i = 0; i < 60000; i++)
        lp_buffer_print(&text, "i%d,word%d of the name,B%d\n", i, i % 100, i % 7);
    lp_buffer_print(&text, "long,");
    for (int i = 0; i < 100000; i++)
        lp_buffer_print(&text, "w%d ", i);
    lp_buffer_print(&text, ",B1\n");
    lp_catalogue catalogue;
    assert_int_equal(read_text(&catalogue, text.data, text.size, NULL, NULL), LAPSE_OK);
    assert_int_equal(catalogue.described, 60001);
    assert_int_equal(catalogue.features.count, 100 + 3 + 7);
    assert_int_equal(catalogue.start[catalogue.items.count], 60000 * 5 + 1);
    lp_catalogue_clear(&catalogue);
    lp_buffer_print(&text, "i77,x,y\n");
    assert_refused_bytes(text.data, text.size, NULL, 60003, 1, "item 'i77' has two rows: the first is line 79");
    lp_buffer_clear(&text);
}

/* Random mutations of a valid file are either read or rejected. */
static void test_hostile(void **state)
{
    (void)state;
    static const char good[] = "item,name,brand\nb,\"Red \"\"Kettle\",X\nc,red,X\n\nd,\"a\nb\",Y\n";
    uint64_t seed = 20261115;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
    static const char bytes[] = "\",\n\r\0\xff;\tab1";
    for (int round = 0; round < small_effort(20000, 2000); round++) {
        char text[2 * sizeof good];
        size_t size = sizeof good - 1;
        memcpy(text, good, size);
        for (uint32_t changes = 1 + lp_random_below(&random, 4); changes > 0 && size > 0; changes--) {
            size_t at = lp_random_below(&random, (uint32_t)size);
            uint32_t how = lp_random_below(&random, 3);
            if (how == 0)
                text[at] = bytes[lp_random_below(&random, sizeof bytes - 1)];
            else if (how == 1)
                size = at;
            else if (2 * size - at < sizeof text)
                memcpy(text + size, text + at, size - at), size += size - at;
        }
        lp_catalogue catalogue;
        lapse_error error = {0};
        lapse_status status = read_text(&catalogue, text, size, NULL, &error);
        assert_true(status == LAPSE_OK || (status == LAPSE_ERROR_INPUT && error.message[0]));
        lp_catalogue_clear(&catalogue);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char text[] = "item,name,brand\nb,Red Kettle,X\nc,red,X\n";
    static const lp_catalogue_columns usual = {0};
    for (int64_t n = 1;; n++) {
        lp_catalogue catalogue = {0};
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lp_catalogue_start(&catalogue, &known, &error);
        if (status == LAPSE_OK)
            status = lp_catalogue_read_memory(&catalogue, "items.csv", text, strlen(text), &usual, &error);
        lp_memory_fail_at(0);
        lp_catalogue_clear(&catalogue);
        if (status == LAPSE_OK) {
            assert_true(n > 15);
            return;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),      cmocka_unit_test(test_columns),   cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_many_rows), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
