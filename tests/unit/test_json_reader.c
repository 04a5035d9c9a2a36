/* test_json_reader.c: valid and malformed JSON, decoded strings, integers, members. */
#include "base/json_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A copy of exactly the text's size, so that tools see a read past its end. */
static bool is_valid(const char *text, size_t size)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    bool valid = lp_json_valid(copy, size);
    free(copy);
    return valid;
}

static void texts_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"{}", true},
        {" { } ", true},
        {"[]", true},
        {"\"a\"", true},
        {"{\"a\":{\"b\":[1,-2.5e+3,true,false,null,\"c\"]}}", true},
        {"\t\r\n[ 1 , 2 ]\n", true},
        {"0", true},
        {"-0", true},
        {"0.0", true},
        {"1E9", true},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"", true},
        {"\"\xc3\xa9\"", true},
        {"{\"a\":1,\"a\":2}", true},
        {"", false},
        {" ", false},
        {"{", false},
        {"}", false},
        {"{\"a\"}", false},
        {"{\"a\":}", false},
        {"{\"a\":1,}", false},
        {"{,}", false},
        {"{a:1}", false},
        {"[1,]", false},
        {"[1 2]", false},
        {"{} {}", false},
        {"{}x", false},
        {"01", false},
        {"-", false},
        {"- 1", false},
        {"+1", false},
        {"1.", false},
        {".5", false},
        {"1e", false},
        {"1e+", false},
        {"tru", false},
        {"truex", false},
        {"\"a", false},
        {"\"\\\"", false},
        {"\"\\x\"", false},
        {"\"\\u12\"", false},
        {"\"\\u12g4\"", false},
        {"\"\\u0000\"", false},
        {"\"\\ud83d\"", false},
        {"\"\\ud83dx\"", false},
        {"\"\\ud83d\\u0041\"", false},
        {"\"\\ude00\"", false},
        {"\"\t\"", false},
        {"\"\xff\"", false},
        {"\"\xc3\"", false},
        {"\"\xed\xa0\x80\"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_valid(cases[i].text, strlen(cases[i].text)) != cases[i].valid)
            fail_msg("%s is%s valid", cases[i].text, cases[i].valid ? "" : " not");
    assert_false(is_valid("\"a\0b\"", 5));
    /* No beginning of a valid object is valid. */
    const char *whole = cases[4].text;
    for (size_t size = 0; size < strlen(whole); size++)
        assert_false(is_valid(whole, size));
}

static void depth_is_limited(void **state)
{
    (void)state;
    char text[200];
    for (int depth = 60; depth < 70; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_int_equal(is_valid(text, 2 * (size_t)depth), depth <= 64);
    }
    static char deep[1 << 20];
    memset(deep, '[', sizeof deep);
    assert_false(is_valid(deep, sizeof deep));
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"\"", ""},
        {" \"a b\"", "a b"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00E9\\u20ac\\ud83d\\uDE00.\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80."},
        {"\"\xe2\x82\xac\"", "\xe2\x82\xac"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_json json = {cases[i][0], cases[i][0] + strlen(cases[i][0])};
        lp_json_text text;
        char out[64];
        assert_true(lp_json_string(&json, &text));
        assert_true(json.at == json.end);
        assert_true((size_t)(text.end - text.begin) < sizeof out);
        lp_json_decode(text, out);
        assert_string_equal(out, cases[i][1]);
    }
}

static void integers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {" -7", true, -7},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"99999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_json json = {cases[i].text, cases[i].text + strlen(cases[i].text)};
        int64_t value;
        assert_int_equal(lp_json_integer(&json, &value), cases[i].good);
        assert_true(json.at == (cases[i].good ? json.end : cases[i].text));
        assert_true(!cases[i].good || value == cases[i].value);
    }
}

static void members_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t members;
    } cases[] = {{"{}", 0}, {"{\"a\":1}", 1}, {" {\"a\":{\"b\":1,\"c\":2},\"d\":[1,2]}", 2}, {"[1,2]", 0}, {"3", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_json json = {cases[i].text, cases[i].text + strlen(cases[i].text)};
        assert_int_equal(lp_json_members(&json), cases[i].members);
        assert_true(json.at == cases[i].text);
    }
}

static void values_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool number, flag;
        double value;
        size_t left; /* bytes after the value */
    } cases[] = {
        {"12,", true, false, 12, 1},   {" -2.5e3 ", true, false, -2500, 1}, {"null]", true, false, NAN, 1},
        {"\"1\"", false, false, 0, 0}, {"[1]", false, false, 0, 0},         {"1e999", false, false, 0, 0},
        {" true}", false, true, 1, 1}, {"false", false, true, 0, 0},        {"nul", false, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *end = text + strlen(text);
        lp_json json = {text, end};
        double value = -1;
        bool flag = false;
        assert_int_equal(lp_json_number(&json, &value), cases[i].number);
        assert_true(json.at == (cases[i].number ? end - cases[i].left : text));
        if (cases[i].number)
            assert_true(value == cases[i].value || (isnan(value) && isnan(cases[i].value)));
        json.at = text;
        assert_int_equal(lp_json_bool(&json, &flag), cases[i].flag);
        if (cases[i].flag)
            assert_true(flag == (cases[i].value == 1) && json.at == end - cases[i].left);
    }
    lp_json json = {" {\"a\": [1, 2]} ,", NULL};
    json.end = json.at + strlen(json.at);
    lp_json_text any;
    assert_true(lp_json_any(&json, &any));
    assert_true(any.end - any.begin == 13 && *any.begin == '{' && any.end[-1] == '}' && strcmp(json.at, " ,") == 0);
}

static void malformed_text_is_located(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t where;
    } cases[] = {{"{\"a\": 1,\n x}", 10}, {"[1, 2", 5}, {"[1] 2", 4}, {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t where = 99;
        assert_false(lp_json_check(cases[i].text, strlen(cases[i].text), &where));
        assert_int_equal(where, cases[i].where);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),     cmocka_unit_test(malformed_text_is_located),
        cmocka_unit_test(texts_are_checked),   cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(strings_are_decoded), cmocka_unit_test(integers_are_read),
        cmocka_unit_test(members_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
