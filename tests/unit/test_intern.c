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

/* Names are looked up in groups. In the first round all but the last one are added between the beginning and the end of
 * the lookup, so that the table grows then. Every third name is long; long ones have one of four keys. */
static void groups_find_what_was_added(void **state)
{
    (void)state;
    enum { FEW = 22, COUNT = 150 * FEW };
    static char name[COUNT][32];
    lp_intern intern = {0};
    lp_intern_query query[FEW];
    uint32_t id[FEW];
    bool added;
    add(&intern, "", &added);
    for (int round = 0; round < 2; round++) {
        for (int first = 0; first < COUNT; first += FEW) {
            for (int i = 0; i < FEW; i++) {
                char *text = name[first + i];
                snprintf(text, sizeof name[0], "%s%d", i % 3 ? "" : "a long name ", first + i);
                size_t size = strlen(text);
                uint64_t key = size > LP_INTERN_SHORT ? (uint64_t)i % 4 : lp_intern_key(text, size);
                query[i] = (lp_intern_query){.name = text, .size = size, .key = key};
                lp_intern_begin(&intern, &query[i]);
            }
            for (int i = 0; round == 0 && i < FEW - 1; i++)
                lp_intern_add(&intern, query[i].name, query[i].size, query[i].key, &added);
            assert_int_equal(lp_intern_find(&intern, query, FEW, id), round > 0);
            for (int i = 0; i < FEW; i++) {
                bool known = round > 0 || i < FEW - 1;
                assert_int_equal(id[i], known ? (uint32_t)(first + i + 1) : LP_INTERN_NONE);
                if (!known)
                    lp_intern_add(&intern, query[i].name, query[i].size, query[i].key, &added);
            }
        }
    }
    lp_intern_clear(&intern);
}

static void reserved_slots_are_enough(void **state)
{
    (void)state;
    lp_intern intern = {0};
    char name[32];
    assert_true(lp_intern_reserve(&intern, 1000));
    const lp_intern_slot *slots = intern.slots;
    for (uint32_t i = 0; i < 1000; i++) {
        bool added;
        snprintf(name, sizeof name, "name %u", i);
        assert_int_equal(add(&intern, name, &added), i);
    }
    assert_ptr_equal(intern.slots, slots);
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
        cmocka_unit_test(numbers_follow_first_appearance), cmocka_unit_test(many_names_stay_apart),
        cmocka_unit_test(groups_find_what_was_added),      cmocka_unit_test(reserved_slots_are_enough),
        cmocka_unit_test(equal_hashes_do_not_mix_names),   cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
