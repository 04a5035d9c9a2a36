/* test_split.c: fractions, seeds and errors of splits. */
#include "support/small_data.h"

#include "data/import/import.h"
#include "data/dataset/split.h"
#include "lapse_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static const lp_split_rule *rule(const char *name)
{
    const lp_split_rule *found = lp_split_rule_find(name);
    assert_non_null(found);
    return found;
}

/* A dataset of `sequences` sequences of 1 to 4 events; with a split column where `split` is given. */
static lapse_dataset *make(int sequences, const char *split)
{
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event,part\n");
    for (int s = 0; s < sequences; s++)
        for (int i = 0; i <= s % 4; i++)
            lp_buffer_print(&text, "u%d,%d,x,%s\n", s, i, split ? split : "-");
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.split = split ? "part" : NULL;
    lp_source source;
    lapse_dataset *dataset = NULL;
    assert_int_equal(lp_source_open_memory(&source, "t", text.data, text.size, NULL), LAPSE_OK);
    assert_int_equal(lp_import(&source, &options, NULL, &dataset, NULL, NULL), LAPSE_OK);
    lp_source_close(&source);
    lp_buffer_clear(&text);
    return dataset;
}

static void shares_are_exact(void **state)
{
    (void)state;
    static const int cases[][4] = {{3, 1, 1, 1},     {4, 2, 1, 1},      {5, 3, 1, 1},
                                   {9, 7, 1, 1},     {10, 8, 1, 1},     {15, 12, 2, 1},
                                   {99, 79, 10, 10}, {100, 80, 10, 10}, {1234, 987, 124, 123}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lapse_dataset *dataset = make(cases[c][0], NULL);
        uint8_t *split = NULL;
        assert_int_equal(lp_split_make(dataset, rule("sequence"), 7, &split, NULL), LAPSE_OK);
        int counts[LP_SPLIT_COUNT] = {0};
        for (int64_t s = 0; s < dataset->sequence_count; s++) {
            counts[split[dataset->start[s]]]++;
            for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++)
                assert_int_equal(split[i], split[dataset->start[s]]);
        }
        for (int part = 0; part < LP_SPLIT_COUNT; part++)
            assert_int_equal(counts[part], cases[c][1 + part]);
        lp_free(split);
        lapse_dataset_close(dataset);
    }
}

static void seeds_decide(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(200, NULL);
    uint8_t *first = NULL, *again = NULL, *other = NULL;
    size_t size = (size_t)dataset->event_count;
    assert_int_equal(lp_split_make(dataset, rule("sequence"), 1, &first, NULL), LAPSE_OK);
    assert_int_equal(lp_split_make(dataset, rule("sequence"), 1, &again, NULL), LAPSE_OK);
    assert_int_equal(lp_split_make(dataset, rule("sequence"), 2, &other, NULL), LAPSE_OK);
    assert_memory_equal(first, again, size);
    assert_memory_not_equal(first, other, size);
    lp_free(first);
    lp_free(again);
    lp_free(other);
    lapse_dataset_close(dataset);
}

/* Frozen: models store only their seed. */
static void the_split_of_a_seed_never_changes(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(20, NULL);
    uint8_t *split = NULL;
    assert_int_equal(lp_split_make(dataset, rule("sequence"), 42, &split, NULL), LAPSE_OK);
    char shown[21] = {0};
    for (int64_t s = 0; s < 20; s++)
        shown[s] = "tve"[split[dataset->start[s]]];
    assert_string_equal(shown, "tttetttvvttttetttttt");
    lp_free(split);
    lapse_dataset_close(dataset);
}

/* Sessions go to a split as a whole, by their start; a gap of exactly 30 minutes does not end one. */
static void sessions_are_split_by_their_start(void **state)
{
    (void)state;
    /* sessions: a 0..1800, a 4000..4001, b 100..200, b 3000, c 5000; by start: a, b, b, a, c */
    const int lengths[] = {4, 3, 1};
    const double time[] = {0, 1800, 4000, 4001, 100, 200, 3000, 5000};
    const int32_t type[8] = {0};
    lapse_dataset *dataset = small_dataset(3, lengths, time, type, 1, NULL);
    uint8_t *split = NULL;
    assert_int_equal(lp_split_make(dataset, rule("session"), 3, &split, NULL), LAPSE_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(split[i], ((const uint8_t[]){0, 0, 1, 1, 0, 0, 0, 2})[i]);
    lp_free(split);
    lapse_dataset_close(dataset);
    const double close[] = {0, 1, 2, 3, 0, 1, 2, 0};
    dataset = small_dataset(3, lengths, close, type, 1, NULL);
    assert_int_equal(lp_split_make(dataset, rule("session"), 3, &split, NULL), LAPSE_OK); /* three sessions */
    lp_free(split);
    lapse_dataset_close(dataset);
    const int two[] = {4, 3};
    lapse_error error;
    dataset = small_dataset(2, two, close, type, 1, NULL);
    assert_int_equal(lp_split_make(dataset, rule("session"), 3, &split, &error), LAPSE_ERROR_USAGE);
    assert_non_null(strstr(error.message, "2 sessions cannot be split"));
    lapse_dataset_close(dataset);
}

static void the_column_is_taken_as_it_is(void **state)
{
    (void)state;
    const char *text = "user,time,event,part\na,2,x,test\na,1,x,train\nb,1,x,valid\n";
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.split = "part";
    lp_source source;
    lapse_dataset *dataset = NULL;
    assert_int_equal(lp_source_open_memory(&source, "t", text, strlen(text), NULL), LAPSE_OK);
    assert_int_equal(lp_import(&source, &options, NULL, &dataset, NULL, NULL), LAPSE_OK);
    lp_source_close(&source);
    uint8_t *split = NULL;
    assert_int_equal(lp_split_make(dataset, rule("column"), 5, &split, NULL), LAPSE_OK);
    assert_memory_equal(split, "\0\2\1", 3);
    assert_ptr_not_equal(split, dataset->split);
    lp_free(split);
    lapse_dataset_close(dataset);
}

/* The splits of a dataset's events as letters, t, v and e (test), with a space between sequences. */
static void expect_rule(lapse_dataset *dataset, const char *name, const char *expected)
{
    uint8_t *split = NULL;
    char shown[200] = "";
    size_t used = 0;
    assert_int_equal(lp_split_make(dataset, rule(name), 1, &split, NULL), LAPSE_OK);
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++)
            shown[used++] = "tve"[split[i]];
        shown[used++] = s + 1 < dataset->sequence_count ? ' ' : 0;
    }
    assert_string_equal(shown, expected);
    lp_free(split);
    lapse_dataset_close(dataset);
}

static void the_last_of_each_sequence_is_left_out(void **state)
{
    (void)state;
    expect_rule(small_dataset_spelled("abcab a ab abc abcd", NULL), "leave-one-out", "tttve t tt tve ttve");
    expect_rule(small_dataset_spelled("abc", NULL), "leave-one-out", "tve");
    /* An explicit rule takes precedence over a column. */
    expect_rule(small_dataset_spelled("abc ab", "eee vt"), "leave-one-out", "tve tt");
    expect_rule(small_dataset_spelled("abc ab", "eee vt"), "column", "eee vt");
}

static void later_starts_are_tested(void **state)
{
    (void)state;
    static const int lengths[] = {2, 1, 1, 3, 1, 1, 1, 1, 1, 2};
    static const double time[] = {50, 51, 90, 10, 20, 500, 501, 30, 40, 60, 70, 80, 90, 600};
    int32_t type[14] = {0};
    /* The last two start at the same time: the later one in the file is test. The end of a sequence has no effect. */
    expect_rule(small_dataset(10, lengths, time, type, 1, NULL), "time", "tt v t ttt t t t t t ee");
    static const int two_each[] = {1, 1, 1};
    static const double backwards[] = {3, 2, 1};
    expect_rule(small_dataset(3, two_each, backwards, type, 1, NULL), "time", "e v t");
    static const double equal[] = {1, 1, 1};
    expect_rule(small_dataset(3, two_each, equal, type, 1, NULL), "time", "t v e");
    static const double zeros[] = {-0.0, 0.0, -0.0};
    expect_rule(small_dataset(3, two_each, zeros, type, 1, NULL), "time", "t v e");
}

/* The fractions are exact for the time rule too, for every seed. */
static void the_seed_is_for_chance_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"time", "leave-one-out"};
    for (int n = 0; n < 2; n++) {
        lapse_dataset *dataset = make(123, NULL);
        uint8_t *first = NULL, *other = NULL;
        assert_int_equal(lp_split_make(dataset, rule(names[n]), 1, &first, NULL), LAPSE_OK);
        assert_int_equal(lp_split_make(dataset, rule(names[n]), 2, &other, NULL), LAPSE_OK);
        assert_memory_equal(first, other, (size_t)dataset->event_count);
        lp_free(first);
        lp_free(other);
        lapse_dataset_close(dataset);
    }
}

static void rules_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"column", "sequence", "leave-one-out", "time", "session", NULL};
    for (int i = 0; i < 6; i++) {
        if (!names[i]) {
            assert_null(lapse_split_by_names()[i]);
            continue;
        }
        assert_string_equal(lapse_split_by_names()[i], names[i]);
        assert_string_equal(lp_split_rule_name(rule(names[i])), names[i]);
    }
    assert_null(lp_split_rule_find("coin"));
    assert_null(lp_split_rule_find(""));
    assert_null(lp_split_rule_find(NULL));
    lapse_dataset *plain = make(5, NULL), *marked = make(5, "train");
    assert_ptr_equal(lp_split_rule_default(plain, "classify"), rule("sequence"));
    assert_ptr_equal(lp_split_rule_default(plain, "recommend"), rule("leave-one-out"));
    assert_ptr_equal(lp_split_rule_default(marked, "classify"), rule("column"));
    assert_ptr_equal(lp_split_rule_default(marked, "recommend"), rule("column"));
    lapse_dataset_close(plain);
    lapse_dataset_close(marked);
}

static void refuse(lapse_dataset *dataset, const char *name, const char *message)
{
    uint8_t *split = NULL;
    lapse_error error = {0};
    assert_int_equal(lp_split_make(dataset, rule(name), 1, &split, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
    assert_null(split);
    lapse_dataset_close(dataset);
}

static void empty_splits_are_refused(void **state)
{
    (void)state;
    refuse(make(1, NULL), "sequence",
           "1 sequence cannot be split into train, valid and test: at least 3 are required, or a split column in the "
           "source");
    refuse(make(2, NULL), "time",
           "2 sequences cannot be split into train, valid and test: at least 3 are required, or a split column in the "
           "source");
    refuse(make(5, "test"), "column",
           "the split column has no 'train' events: add some, or choose another --split-by rule such as 'sequence'");
    refuse(make(5, "train"), "column",
           "the split column has no 'valid' events: add some, or choose another --split-by rule such as 'sequence'");
    refuse(make(5, NULL), "column",
           "the dataset has no split column: import it with --split-column COLUMN, or choose another --split-by rule");
    refuse(make(2, NULL), "leave-one-out",
           "leave-one-out requires a sequence of at least 3 events: one each for train, valid and test");
}

/* The end of the observation: of whole sequences that of the data; of sequences that are divided, the first time that is held out, if
 * nothing of the training is later. */
static void ends_of_the_observation(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *column; /* of each sequence of 4 events, at 0, 10000, .. 110000 */
        double end;                /* NAN: refused */
    } cases[] = {
        {"sequence", NULL, 110000},
        {"time", NULL, 110000},
        {"session", NULL, 100000},
        {"leave-one-out", NULL, NAN},
        {"column", "tttt vvvv eeee", 110000},
        {"column", "tttt tttt vvee", 110000},
        {"column", "tttt tttv ttve", NAN},
        {"column", "ttte tttv vvee", NAN},
        {"column", "tttt tttt tvee", 90000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_dataset *dataset = small_dataset_spelled("abcd abcd abcd", cases[i].column);
        double *time = (double *)(uintptr_t)dataset->time, end = -1;
        for (int k = 0; k < 12; k++)
            time[k] = 10000.0 * k;
        uint8_t *split = NULL;
        lapse_error error = {0};
        assert_int_equal(lp_split_make(dataset, rule(cases[i].rule), 1, &split, &error), LAPSE_OK);
        lapse_status status = lp_split_end(dataset, rule(cases[i].rule), split, LP_SPLIT_TRAIN, &end, &error);
        if (isnan(cases[i].end) ? status != LAPSE_ERROR_USAGE || !strstr(error.message, "has no time up to which")
                                : status != LAPSE_OK || end != cases[i].end)
            fail_msg("case %zu, %s: status %d, end %g, '%s'", i, cases[i].rule, (int)status, end, error.message);
        lp_free(split);
        lapse_dataset_close(dataset);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const int allocations[] = {2, 3, 2, 3, 3};
    for (int r = 0; lapse_split_by_names()[r]; r++) {
        lapse_dataset *dataset = small_dataset_spelled("abc abc ab a", "ttt vvv tt e");
        for (int64_t n = 1;; n++) {
            uint8_t *split = NULL;
            lp_memory_fail_at(n);
            lapse_status status = lp_split_make(dataset, rule(lapse_split_by_names()[r]), 1, &split, NULL);
            lp_memory_fail_at(0);
            if (status == LAPSE_OK) {
                assert_int_equal(n, allocations[r]);
                lp_free(split);
                break;
            }
            assert_int_equal(status, LAPSE_ERROR_MEMORY);
            assert_null(split);
        }
        lapse_dataset_close(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_exact),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(the_split_of_a_seed_never_changes),
        cmocka_unit_test(sessions_are_split_by_their_start),
        cmocka_unit_test(the_column_is_taken_as_it_is),
        cmocka_unit_test(the_last_of_each_sequence_is_left_out),
        cmocka_unit_test(later_starts_are_tested),
        cmocka_unit_test(the_seed_is_for_chance_alone),
        cmocka_unit_test(rules_have_names),
        cmocka_unit_test(empty_splits_are_refused),
        cmocka_unit_test(ends_of_the_observation),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
