/* test_simulate.c: simulations are reproducible and valid, files have their contents, and invalid options are
 * rejected. */
#include "base/memory.h"
#include "simulate/simulate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/simulated.h"

#define DAY 86400.0

/* Compares the events of the users that both have, up to `until`. */
static void assert_same_events(const lapse_simulation *a, const lapse_simulation *b, double query_time)
{
    int64_t users = a->sequence_count < b->sequence_count ? a->sequence_count : b->sequence_count;
    for (int64_t user = 0; user < users; user++) {
        int64_t i = a->start[user], j = b->start[user];
        for (; i < a->start[user + 1] && a->time[i] < query_time; i++, j++) {
            assert_true(j < b->start[user + 1]);
            assert_true(a->time[i] == b->time[j]);
            assert_int_equal(a->type[i], b->type[j]);
        }
        assert_true(j == b->start[user + 1] || b->time[j] >= query_time);
    }
}

static void test_same_seed_same_events(void **state)
{
    (void)state;
    lapse_simulation *a = simulate(50, 0, 7), *b = simulate(50, 0, 7), *other = simulate(50, 0, 8);
    assert_int_equal(a->event_count, b->event_count);
    assert_same_events(a, b, INFINITY);
    assert_true(a->time[0] != other->time[0]);
    lapse_simulation_free(a);
    lapse_simulation_free(b);
    lapse_simulation_free(other);
}

static void test_user_depends_on_no_other_and_on_no_end(void **state)
{
    (void)state;
    lapse_simulation *few = simulate(20, 90, 3), *many = simulate(60, 90, 3), *longer = simulate(20, 180, 3);
    assert_same_events(few, many, INFINITY);
    assert_same_events(longer, few, LP_SIMULATE_EPOCH + 90 * DAY);
    assert_true(longer->event_count > few->event_count);
    lapse_simulation_free(few);
    lapse_simulation_free(many);
    lapse_simulation_free(longer);
}

static void test_order_and_range(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(300, 0, 1);
    assert_int_equal(s->start[0], 0);
    assert_int_equal(s->start[s->sequence_count], s->event_count);
    assert_int_equal(lapse_simulation_event_count(s), s->event_count);
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            assert_true(s->time[i] > LP_SIMULATE_EPOCH && s->time[i] < LP_SIMULATE_EPOCH + 180 * DAY);
            assert_true(i == s->start[user] || s->time[i] > s->time[i - 1]);
            assert_true(s->type[i] >= 0 && s->type[i] < s->law.type_count);
            char text[32];
            snprintf(text, sizeof text, "%.3f", s->time[i]);
            assert_true(strtod(text, NULL) == s->time[i]);
        }
    }
    lapse_simulation_free(s);
}

static void test_size_of_the_default_shop(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(0, 0, 1);
    assert_int_equal(s->sequence_count, 4000);
    assert_int_equal(s->law.type_count, 16);
    assert_in_range(s->event_count, 140000, 200000);
    lapse_simulation_free(s);
}

/* ----------------------------------------------------------------------------------------- files and errors -- */

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/lapse-simulate-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void test_events_file(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(7, 60, 2);
    char path[300], line[256], name[LP_SIMULATE_NAME_SIZE];
    snprintf(path, sizeof path, "%s/shop.csv", folder);
    assert_int_equal(lapse_simulation_save(s, path, NULL), LAPSE_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "user,time,item,action,category\n");
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            const lp_law_type *type = &s->law.types[s->type[i]];
            char expected[256];
            snprintf(expected, sizeof expected, "%s,%.3f,%s,%s,%s\n", lp_simulation_user_name(user, name), s->time[i],
                     type->item, type->action, type->category);
            assert_non_null(fgets(line, sizeof line, file));
            assert_string_equal(line, expected);
            assert_int_equal(lp_simulation_user_find(s, name), user);
        }
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    lapse_simulation_free(s);
}

static void test_law_file(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(7, 60, 2);
    char path[300], line[1024], name[64];
    snprintf(path, sizeof path, "%s/law.csv", folder);
    assert_int_equal(lapse_simulation_save_law(s, path, NULL), LAPSE_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(
        line,
        "user,time,event,view coffee,view vegetables,view kibble,view detergent,view camera,view tripod,view tent,view "
        "stove,buy coffee,buy vegetables,buy kibble,buy detergent,buy camera,buy tripod,buy tent,buy stove\n");
    for (int64_t user = 0, i = 0; i < s->event_count; i++) {
        while (i >= s->start[user + 1])
            user++;
        assert_non_null(fgets(line, sizeof line, file));
        double time, given, p[16];
        long long number;
        int used = 0;
        assert_int_equal(sscanf(line, "u%lld,%lf,%63[^,]%n", &number, &time, name, &used), 3);
        assert_int_equal(number, user + 1);
        assert_true(time == s->time[i]);
        assert_string_equal(name, s->law.types[s->type[i]].name);
        lp_simulation_probabilities(s, user, i, p);
        const char *rest = line + used;
        for (int k = 0; k < 16; k++) {
            assert_int_equal(sscanf(rest, ",%lf%n", &given, &used), 1);
            assert_true(fabs(given - p[k]) <= 1e-5 * p[k]);
            rest += used;
        }
        assert_string_equal(rest, "\n");
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    lapse_simulation_free(s);
}

static void test_unwritable_files(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(2, 30, 1);
    char path[300];
    snprintf(path, sizeof path, "%s/nowhere/shop.csv", folder);
    lapse_error error = {0};
    assert_int_equal(lapse_simulation_save(s, path, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    assert_string_equal(error.file, path);
    error = (lapse_error){0};
    assert_int_equal(lapse_simulation_save_law(s, path, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    lapse_simulation_free(s);
}

static void assert_refused(lapse_simulate_options options, const char *message)
{
    lapse_simulation *simulation = (lapse_simulation *)&options;
    lapse_error error = {0};
    assert_int_equal(lapse_simulate(&options, &simulation, &error), LAPSE_ERROR_USAGE);
    assert_null(simulation);
    assert_string_equal(error.message, message);
}

static void test_wrong_options(void **state)
{
    (void)state;
    lapse_simulate_options good;
    lapse_simulate_options_default(&good);
    assert_string_equal(good.preset, "shop");
    lapse_simulate_options o = good;
    o.preset = "bazaar";
    assert_refused(o, "there is no preset 'bazaar' to simulate; the presets are: shop, cycle, catalogue, sessions");
    o.preset = NULL;
    assert_refused(o, "there is no preset '' to simulate; the presets are: shop, cycle, catalogue, sessions");
    o = good;
    o.sequences = -1;
    assert_refused(o, "sequences is -1; it must be 1 to 10000000, or 0 for the preset's default");
    o.sequences = 10000001;
    assert_refused(o, "sequences is 10000001; it must be 1 to 10000000, or 0 for the preset's default");
    o = good;
    const double bad_days[] = {-1, 3661, INFINITY};
    const char *const shown[] = {"-1", "3661", "inf"};
    for (int i = 0; i < 3; i++) {
        char message[200];
        snprintf(message, sizeof message, "days is %s; it must be above 0, up to 3660, or 0 for the preset's default",
                 shown[i]);
        o.days = bad_days[i];
        assert_refused(o, message);
    }
    o.days = NAN;
    lapse_simulation *simulation;
    assert_int_equal(lapse_simulate(&o, &simulation, NULL), LAPSE_ERROR_USAGE);
}

static void test_user_names(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(4, 1, 1);
    const char *const wrong[] = {"",    "u",   "u0", "u01", "u5",  "u-1",
                                 "u+1", "u 1", "x1", "1",   "u1x", "u99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lp_simulation_user_find(s, wrong[i]), -1);
    assert_int_equal(lp_simulation_user_find(s, "u1"), 0);
    assert_int_equal(lp_simulation_user_find(s, "u4"), 3);
    lapse_simulation_free(s);
}

/* A history so short that most users have no events. */
static void test_empty_users(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(50, 0.01, 1);
    assert_true(s->event_count < 50);
    char path[300];
    snprintf(path, sizeof path, "%s/short.csv", folder);
    assert_int_equal(lapse_simulation_save_law(s, path, NULL), LAPSE_OK);
    unlink(path);
    lapse_simulation_free(s);
    lapse_simulation_free(NULL);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.sequences = 120;
    char path[300];
    snprintf(path, sizeof path, "%s/memory.csv", folder);
    int failures = 0;
    for (int n = 1;; n++) {
        lapse_simulation *simulation = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lapse_simulate(&options, &simulation, &error);
        if (status == LAPSE_OK)
            status = lapse_simulation_save(simulation, path, &error);
        if (status == LAPSE_OK)
            status = lapse_simulation_save_law(simulation, path, &error);
        lp_memory_fail_at(0);
        lapse_simulation_free(simulation);
        unlink(path);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_int_equal(strncmp(error.message, "out of memory: ", 15), 0);
        failures++;
    }
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_events),
        cmocka_unit_test(test_user_depends_on_no_other_and_on_no_end),
        cmocka_unit_test(test_order_and_range),
        cmocka_unit_test(test_size_of_the_default_shop),
        cmocka_unit_test(test_events_file),
        cmocka_unit_test(test_law_file),
        cmocka_unit_test(test_unwritable_files),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_user_names),
        cmocka_unit_test(test_empty_users),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
