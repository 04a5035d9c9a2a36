/* test_names.c: lookups by hash table and by linear search agree, also for missing names; equal names are
 * found. */
#include "base/random.h"
#include "data/dataset/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* `count` names, "n0", "n7", "n14", ..., and one that is empty. */
static lp_names make_names(lp_arena *arena, int count)
{
    uint64_t *offset = lp_arena_alloc(arena, ((size_t)count + 2) * sizeof *offset);
    char *bytes = lp_arena_alloc(arena, (size_t)count * 12 + 1);
    assert_true(offset && bytes);
    for (int i = 0; i < count; i++)
        offset[i + 1] = offset[i] + (uint64_t)sprintf(bytes + offset[i], "n%d", 7 * i) + 1;
    bytes[offset[count]] = 0;
    offset[count + 1] = offset[count] + 1;
    return (lp_names){.count = count + 1, .offset = offset, .bytes = bytes};
}

static void found_as_before(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 7, 8, 9, 31, 1000, 30000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        lp_arena arena = {0};
        lp_names plain = make_names(&arena, counts[c]), copy;
        assert_true(lp_names_copy(&arena, &plain, &copy));
        assert_int_equal(copy.slots != NULL, plain.count > 8);
        for (int64_t i = 0; i < plain.count; i++)
            assert_int_equal(lp_names_find(&copy, lp_names_get(&plain, i)), i);
        for (int i = 0; i < 2000; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i * 3);
            int64_t wanted = i * 3 % 7 == 0 && i * 3 / 7 < counts[c] ? i * 3 / 7 : -1;
            assert_int_equal(lp_names_find(&copy, name), wanted);
            if (i < 20)
                assert_int_equal(lp_names_find(&plain, name), wanted);
        }
        assert_int_equal(lp_names_find(&copy, "N0"), -1);
        assert_int_equal(lp_names_find(&copy, "n0 "), -1);
        lp_arena_clear(&arena);
    }
}

static void out_of_memory(void **state)
{
    (void)state;
    lp_arena arena = {0};
    lp_names plain = make_names(&arena, 5000), copy;
    int n = 1;
    for (;; n++) {
        lp_memory_fail_at(n);
        bool good = lp_names_copy(&arena, &plain, &copy);
        lp_memory_fail_at(0);
        if (good)
            break;
    }
    assert_true(n > 1);
    lp_arena_clear(&arena);
}

/* Two equal names are found wherever they are; with one name changed to another one's text. */
static void equal_names_are_found(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 9, 1000, 30000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        lp_arena arena = {0};
        lp_names names = make_names(&arena, counts[c]);
        int64_t first = -1, second = -1;
        assert_int_equal(lp_names_unique(&names, &first, &second), LAPSE_OK);
        assert_int_equal(first, -1);
        lp_random random = lp_random_start(c, LP_PURPOSE_TEST, 0);
        for (int i = 0; i < 20 && counts[c] > 1; i++) {
            /* Names of the same length swap their text. */
            int64_t a = lp_random_below(&random, (uint32_t)counts[c] - 1), b = a + 1;
            uint64_t size = names.offset[b] - names.offset[a];
            if (names.offset[b + 1] - names.offset[b] != size)
                continue;
            char *bytes = (char *)(uintptr_t)names.bytes, kept[16];
            memcpy(kept, bytes + names.offset[b], size);
            memcpy(bytes + names.offset[b], bytes + names.offset[a], size);
            assert_int_equal(lp_names_unique(&names, &first, &second), LAPSE_ERROR_FORMAT);
            assert_true(first == a && second == b);
            memcpy(bytes + names.offset[b], kept, size);
        }
        lp_memory_fail_at(1);
        assert_int_equal(lp_names_unique(&names, &first, &second), LAPSE_ERROR_MEMORY);
        lp_memory_fail_at(0);
        lp_arena_clear(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_as_before), cmocka_unit_test(out_of_memory),
                                       cmocka_unit_test(equal_names_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
