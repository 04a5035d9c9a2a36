/* test_simulate_catalogue.c: the preset "catalogue" is a function of its seed, its items form a tree, and its events
 * have the documented dependencies: series and brands at short lags, repeat purchases at long ones, new items late. */
#include "simulate/simulate_goods.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY 86400.0

static lapse_simulation *simulate(int64_t items, int64_t sequences, uint64_t seed)
{
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.preset = "catalogue";
    options.items = items;
    options.sequences = sequences;
    options.seed = seed;
    lapse_simulation *simulation = NULL;
    lapse_error error = {0};
    if (lapse_simulate(&options, &simulation, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return simulation;
}

static void test_goods_are_a_tree(void **state)
{
    (void)state;
    static const int64_t sizes[] = {100, 101, 997, 20000, 1700000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        lp_goods *goods = lp_goods_new(sizes[i], 0, 180, 5 + i);
        assert_non_null(goods);
        int32_t next = 0, department = 0;
        for (int32_t c = 0; c < goods->category_count; c++) {
            const lp_goods_category *category = &goods->categories[c];
            assert_int_equal(category->first, next);
            assert_true(category->count >= 1);
            next += category->count;
            assert_in_range(category->department, department, department + 1);
            department = category->department;
            assert_int_equal(goods->categories[category->complement].department, department);
            assert_int_equal(lp_goods_category_of(goods, category->first), c);
            assert_int_equal(lp_goods_category_of(goods, next - 1), c);
            assert_true(lp_goods_release(goods, category->first) == 0);
        }
        assert_int_equal(next, goods->item_count);
        assert_int_equal(department, goods->department_count - 1);
        lp_goods_free(goods);
    }
}

/* Samples satisfy their conditions, and reach every released item of a category. */
static void test_draws(void **state)
{
    (void)state;
    lp_goods *goods = lp_goods_new(600, 0, 180, 11);
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 0);
    int met[600] = {0};
    for (int i = 0; i < 20000; i++) {
        int32_t department = i % goods->department_count;
        int32_t category = lp_goods_sample_category(goods, department, &random);
        assert_int_equal(goods->categories[category].department, department);
        int32_t brand = i % (LP_GOODS_BRANDS + 1) - 1;
        int32_t item = lp_goods_sample(goods, category, brand, 180, &random);
        assert_int_equal(lp_goods_category_of(goods, item), category);
        int32_t other = lp_goods_sample_series(goods, item, 180, &random), first = goods->categories[category].first;
        assert_int_equal((other - first) / LP_GOODS_SERIES, (item - first) / LP_GOODS_SERIES);
        assert_int_equal(lp_goods_brand(goods, category, other), lp_goods_brand(goods, category, item));
        met[item]++;
    }
    int missed = 0;
    for (int i = 0; i < 600; i++)
        missed += met[i] == 0;
    assert_true(missed < 6);
    for (int i = 0; i < 5000; i++) {
        int32_t item = lp_goods_sample(goods, lp_goods_sample_category(goods, -1, &random), -1, 20, &random);
        assert_true(lp_goods_release(goods, item) <= 20);
    }
    lp_goods_free(goods);
}

static void test_same_seed_same_events(void **state)
{
    (void)state;
    lapse_simulation *few = simulate(2000, 50, 7), *many = simulate(2000, 80, 7), *other = simulate(2000, 50, 8);
    assert_true(few->event_count < many->event_count);
    for (int64_t i = 0; i < few->event_count; i++) {
        assert_true(few->time[i] == many->time[i]);
        assert_int_equal(few->type[i], many->type[i]);
    }
    assert_memory_equal(few->start, many->start, 51 * sizeof *few->start);
    assert_true(few->time[0] != other->time[0]);
    lapse_simulation_free(few);
    lapse_simulation_free(many);
    lapse_simulation_free(other);
}

static void test_events(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(0, 2000, 1);
    const lp_goods *goods = s->goods;
    assert_int_equal(goods->item_count, 20000);
    assert_in_range(s->event_count, 12 * 2000, 20 * 2000);
    int64_t soon = 0, soon_near = 0, late = 0, late_near = 0, again = 0, fresh = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            assert_in_range(s->type[i], 0, goods->item_count - 1);
            double day = (s->time[i] - LP_SIMULATE_EPOCH) / DAY;
            assert_true(day > 0 && day <= 180.001);
            double age = day - lp_goods_release(goods, s->type[i]);
            assert_true(age >= 0);
            fresh += age < day && age < 10;
            if (i == s->start[user])
                continue;
            double lag = s->time[i] - s->time[i - 1];
            assert_true(lag > 0);
            bool near = lp_goods_category_of(goods, s->type[i]) == lp_goods_category_of(goods, s->type[i - 1]);
            soon += lag < 120;
            soon_near += lag < 120 && near;
            late += lag > DAY;
            late_near += lag > DAY && near;
            for (int64_t j = s->start[user]; lag > DAY && j < i; j++)
                again += s->type[j] == s->type[i];
        }
    }
    assert_true(soon_near > 0.8 * (double)soon);
    assert_true(late_near < 0.5 * (double)late);
    assert_true(again > 0.1 * (double)late);
    assert_true(fresh > 100);
    lapse_simulation_free(s);
}

/* ----------------------------------------------------------------------------------------- files and errors -- */

static char path[300];

static int make_path(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/lapse-goods-XXXXXX", base ? base : "/tmp");
    int handle = mkstemp(path);
    return handle < 0 ? -1 : close(handle);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

/* Items of one category share its text, those of one series a word of the name and the brand. */
static void test_items_file(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(1500, 3, 2);
    const lp_goods *goods = s->goods;
    assert_int_equal(lapse_simulation_save_catalogue(s, path, NULL), LAPSE_OK);
    FILE *file = fopen(path, "r");
    char line[256], series[64], brand[64], category[64], old_series[64] = "", old_brand[64] = "", old_category[64] = "";
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "item,name,brand,category\n");
    for (int32_t item = 0; item < goods->item_count; item++) {
        int number;
        char name_end[64];
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(
            sscanf(line, "i%d,%*s %63s %63[^,],%63[^,],%63[^\n]", &number, series, name_end, brand, category), 5);
        assert_int_equal(number, item + 1);
        assert_string_equal(name_end, category);
        int32_t first = goods->categories[lp_goods_category_of(goods, item)].first;
        if (item > first)
            assert_string_equal(category, old_category);
        else
            assert_string_not_equal(category, old_category);
        if ((item - first) % LP_GOODS_SERIES) {
            assert_string_equal(series, old_series);
            assert_string_equal(brand, old_brand);
        } else {
            assert_string_not_equal(series, old_series);
        }
        memcpy(old_series, series, sizeof series);
        memcpy(old_brand, brand, sizeof brand);
        memcpy(old_category, category, sizeof category);
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    lapse_simulation_free(s);
}

static void test_refused(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(100, 3, 1);
    lapse_error error;
    assert_int_equal(lapse_simulation_save_law(s, path, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(
        error.message,
        "the preset 'catalogue' has no table of probabilities, because its law has no closed form; use another preset");
    static _Alignas(64) char unread[64]; /* stands for a model and a dataset: the preset is refused before */
    lapse_evaluate_options evaluate;
    lapse_scores scores;
    lapse_evaluate_options_default(&evaluate);
    assert_int_equal(lapse_simulation_evaluate(s, (void *)unread, (void *)unread, &evaluate, &scores, &error),
                     LAPSE_ERROR_USAGE);
    assert_string_equal(
        error.message,
        "the preset 'catalogue' has no best possible score, because its law has no closed form; use another preset");
    lapse_simulation_free(s);
    static const int64_t wrong[] = {-1, 1, 99, 20000001, INT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lapse_simulate_options options = {.preset = "catalogue", .items = wrong[i]};
        assert_int_equal(lapse_simulate(&options, &s, &error), LAPSE_ERROR_USAGE);
        assert_null(s);
        assert_non_null(strstr(error.message, "; it must be 100 to 20000000, or 0 for 20000"));
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    lapse_simulate_options options = {.preset = "catalogue", .items = 200, .sequences = 5, .seed = 1};
    for (int64_t n = 1;; n++) {
        lapse_simulation *s = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lapse_simulate(&options, &s, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK) {
            lapse_simulation_free(s);
            assert_true(n > 4);
            return;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goods_are_a_tree),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_same_seed_same_events),
        cmocka_unit_test(test_events),
        cmocka_unit_test_setup_teardown(test_items_file, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_refused, make_path, remove_path),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
