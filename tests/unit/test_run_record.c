/* test_run_record.c: the file of a finished run: each of its numbers at its limit and one beyond, and without memory. */
#include "search/run_record.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* A record of two epochs, two metrics and two groups. */
static const char good[] =
    "{\"key\": \"this run\",\"diverged\": false, \"stopped\": true, \"score\": -0.5, \"epochs\": 2, "
    "\"best_epoch\": 2, \"seconds\": 3, \"parameters\": 7, \"metrics\": 2, \"cases\": 9, \"sequences\": 4, "
    "\"curve\": [[1,0.25],[2,0.5]], \"groups\": [[0,4,1,2],[3,5,3,4]]}\n";

static lapse_status parse(const char *text, lp_run_record *record, lapse_error *error)
{
    return lp_run_record_parse(record, "this run", "a path", text, strlen(text), error);
}

static void a_record_is_read(void **state)
{
    (void)state;
    lp_run_record r;
    assert_int_equal(parse(good, &r, NULL), LAPSE_OK);
    assert_true(!r.diverged && r.stopped && r.score == -0.5 && r.epochs == 2 && r.best_epoch == 2 && r.seconds == 3);
    assert_true(r.parameters == 7 && r.metrics == 2 && r.cases == 9 && r.sequences == 4 && r.group_count == 2);
    assert_true(r.curve[0].seconds == 1 && r.curve[0].score == 0.25 && r.curve[1].seconds == 2 &&
                r.curve[1].score == 0.5);
    assert_true(r.groups[0].group == 0 && r.groups[0].cases == 4 && r.groups[1].group == 3 && r.groups[1].cases == 5);
    assert_true(r.groups[1].sums[0] == 3 && r.groups[1].sums[1] == 4);
    assert_true(lp_run_record_mean(&r, 0) == 4.0 / 9 && lp_run_record_mean(&r, 1) == 6.0 / 9);
    lp_run_record_clear(&r);
}

static void limits(void **state)
{
    (void)state;
    char last[64], beyond[64];
    snprintf(last, sizeof last, "[%d,5,", LP_RECORD_GROUPS - 1);
    snprintf(beyond, sizeof beyond, "[%d,5,", LP_RECORD_GROUPS);
    const struct {
        const char *from, *to;
        bool good;
    } cases[] = {
        {"\"best_epoch\": 2", "\"best_epoch\": 0", true},
        {"\"best_epoch\": 2", "\"best_epoch\": 3", false},
        {"\"best_epoch\": 2", "\"best_epoch\": -1", false},
        {"\"epochs\": 2", "\"epochs\": 1", false},
        {"\"epochs\": 2", "\"epochs\": 3", false},
        {"\"epochs\": 2", "\"epochs\": -1", false},
        {"\"seconds\": 3", "\"seconds\": 0", true},
        {"\"seconds\": 3", "\"seconds\": -0.001", false},
        {"\"parameters\": 7", "\"parameters\": 0", true},
        {"\"parameters\": 7", "\"parameters\": -1", false},
        {"\"parameters\": 7", "\"parameters\": 9223372036854775807", true},
        {"\"parameters\": 7", "\"parameters\": 9223372036854775808", false},
        {"\"metrics\": 2", "\"metrics\": 1", false},
        {"\"metrics\": 2", "\"metrics\": 3", false},
        {"\"cases\": 9", "\"cases\": 8", false},
        {"\"cases\": 9", "\"cases\": 10", false},
        {"\"sequences\": 4", "\"sequences\": 0", true},
        {"\"sequences\": 4", "\"sequences\": -1", false},
        {"[1,0.25]", "[0,0.25]", true},
        {"[1,0.25]", "[-1,0.25]", false},
        {"[1,0.25]", "[1,null]", true},
        {"[1,0.25],", "", false},
        {"[0,4,", "[2,4,", true},
        {"[0,4,", "[3,4,", false}, /* twice the same group */
        {"[0,4,", "[-1,4,", false},
        {"[3,5,", last, true},
        {"[3,5,", beyond, false},
        {"[0,4,1,2],[3,5,", "[0,0,1,2],[3,9,", false},
        {"[0,4,1,2],[3,5,", "[0,1,1,2],[3,8,", true},
        {"[0,4,1,2]", "[0,4,1,null]", false},
        {"\"diverged\": false", "\"diverged\": 0", false},
        {"\"stopped\": true, ", "", false},
        {"\"stopped\": true", "\"stopped\": true, \"unknown\": [1, {}]", true},
        {"\"stopped\": true", "\"stopped\": true, \"stopped\": true", false},
        {"this run", "this run and more", true},
        {"this run", "this ru", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        const char *at = strstr(good, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].to, at + strlen(cases[i].from));
        lp_run_record record;
        lapse_status status = parse(text, &record, NULL);
        if (status != (cases[i].good ? LAPSE_OK : LAPSE_ERROR_FORMAT))
            fail_msg("%s for %s: %d", cases[i].to, cases[i].from, status);
        if (status == LAPSE_OK)
            lp_run_record_clear(&record);
    }
}

static void a_lack_of_memory_is_no_damage(void **state)
{
    (void)state;
    lp_run_record record;
    int64_t before = lp_memory_count();
    assert_int_equal(parse(good, &record, NULL), LAPSE_OK);
    int64_t count = lp_memory_count() - before;
    lp_run_record_clear(&record);
    assert_true(count >= 3);
    for (int64_t n = 1; n <= count; n++) {
        lp_memory_fail_at(n);
        lapse_status status = parse(good, &record, NULL);
        lp_memory_fail_at(0);
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read),
        cmocka_unit_test(limits),
        cmocka_unit_test(a_lack_of_memory_is_no_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
