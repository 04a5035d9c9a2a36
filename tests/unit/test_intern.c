/* test_intern.c: string interning. */
#include "data/dataset/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static uint32_t add(lp_intern *intern, const char *name, bool *added)
{
    size_t size = strlen(name);
    return lp_intern_add(intern, name, size, lp_intern_key(name, size), added);
}

static void numbers_follow_first_appearance(void **state)
{
    (void)state;
    static const char *const names[] = {"a",       "b",        "ab",        "ba", "abc", "abcd",
                                        "abcdefg", "abcdefgh", "abcdefghi", "aa", "aaa"};
    lp_intern intern = {0};
    bool added;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
            assert_int_equal(add(&intern, names[i], &added), i);
            assert_int_equal(added, round == 0);
        }
    }
    lp_intern_seal(&intern);
    lp_names view = lp_intern_names(&intern);
    assert_int_equal(view.count, sizeof names / sizeof *names);
    for (int64_t i = 0; i < view.count; i++)
        assert_string_equal(lp_names_get(&view, i), names[i]);
    lp_intern_clear(&intern);
}

/* Many names of every length up to 12, each found again after the table has grown. */
static void many_names_stay_apart(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    lp_intern intern = {0};
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            bool added;
            snprintf(name, sizeof name, "%s%u", i % 3 ? "" : "number ", i);
            assert_int_equal(add(&intern, name, &added), i);
            assert_int_equal(added, round == 0);
        }
    }
    lp_intern_clear(&intern);
}

/* Long names with equal hashes remain two names. */
static void equal_hashes_do_not_mix_names(void **state)
{
    (void)state;
    lp_intern intern = {0};
    bool added;
    assert_int_equal(lp_intern_add(&intern, "first long name", 15, 42, &added), 0);
    assert_int_equal(lp_intern_add(&intern, "other long name", 15, 42, &added), 1);
    assert_true(added);
    assert_int_equal(lp_intern_add(&intern, "first long name", 15, 42, &added), 0);
    assert_int_equal(lp_intern_add(&intern, "other long name", 15, 42, &added), 1);
    assert_false(added);
    lp_intern_clear(&intern);
}

/* After a failed allocation a name can be added later, and nothing else has changed. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 12; n++) {
        lp_intern intern = {0};
        lp_memory_fail_at(n);
        char name[32];
        for (uint32_t i = 0; i < 400; i++) {
            bool added;
            snprintf(name, sizeof name, "a longer name %u", i);
            uint32_t number = add(&intern, name, &added);
            if (number == LP_INTERN_NONE)
                number = add(&intern, name, &added);
            assert_int_equal(number, i);
            assert_true(added);
        }
        lp_memory_fail_at(0);
        assert_int_equal(intern.count, 400);
        lp_intern_clear(&intern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_follow_first_appearance),
        cmocka_unit_test(many_names_stay_apart),
        cmocka_unit_test(equal_hashes_do_not_mix_names),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
