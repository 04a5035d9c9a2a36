/* test_group.c: rows are grouped by sequence in the order of the text, whatever the sizes of sequences, chunks and parts. The
 * expected dataset is made by plain loops. */
#include "base/memory.h"
#include "base/random.h"
#include "data/dataset/dataset.h"
#include "data/import/arrow.h"
#include "support/arrow_stream.h"
#include "support/small_data.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 12000 };

/* A row of the text; names are numbers. */
typedef struct row {
    int sequence, time, type, split, category, number, index;
} row;

typedef struct example {
    row rows[MOST];
    int count;
    int order[MOST]; /* the rows by first appearance of their sequence, then time, then place in the text */
    lp_buffer text;
} example;

static const char *const splits[] = {"train", "valid", "test"};

static int first_of[MOST]; /* [sequence]: its first row */

static int by_place(const void *left, const void *right)
{
    const row *a = *(const row *const *)left, *b = *(const row *const *)right;
    if (a->sequence != b->sequence)
        return first_of[a->sequence] < first_of[b->sequence] ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Fills order and text of rows whose other values are set. */
static void finish(example *e)
{
    static const row *sorted[MOST];
    for (int i = e->count - 1; i >= 0; i--)
        first_of[e->rows[i].sequence] = i;
    for (int i = 0; i < e->count; i++) {
        e->rows[i].index = i;
        sorted[i] = &e->rows[i];
    }
    qsort(sorted, (size_t)e->count, sizeof *sorted, by_place);
    e->text.size = 0;
    assert_true(lp_buffer_print(&e->text, "user,time,event,part,device,price\n"));
    for (int i = 0; i < e->count; i++) {
        const row *r = &e->rows[i];
        e->order[i] = sorted[i]->index;
        assert_true(lp_buffer_print(&e->text, "%d,%d,e%d,%s,c%d,%d\n", r->sequence, r->time, r->type, splits[r->split],
                                    r->category, r->number));
    }
    assert_true(lp_buffer_add(&e->text, "", 1));
}

static void is_expected(const example *e, const lapse_dataset *dataset, const char *name)
{
    char wanted[16];
    int64_t sequence = -1;
    assert_int_equal(dataset->event_count, e->count);
    for (int i = 0; i < e->count; i++) {
        const row *r = &e->rows[e->order[i]];
        if (i == 0 || r->sequence != e->rows[e->order[i - 1]].sequence) {
            snprintf(wanted, sizeof wanted, "%d", r->sequence);
            sequence++;
            assert_int_equal(dataset->start[sequence], i);
            assert_string_equal(lp_names_get(&dataset->sequences, sequence), wanted);
        }
        snprintf(wanted, sizeof wanted, "e%d", r->type);
        if (strcmp(lp_names_get(&dataset->types, dataset->type[i]), wanted) != 0)
            fail_msg("%s: event %d of %d is %s instead of %s", name, i, e->count,
                     lp_names_get(&dataset->types, dataset->type[i]), wanted);
        assert_true(dataset->time[i] == r->time);
        if (!dataset->split)
            continue;
        snprintf(wanted, sizeof wanted, "c%d", r->category);
        assert_int_equal(dataset->split[i], r->split);
        assert_string_equal(lp_names_get(&dataset->fields[0].categories, dataset->fields[0].category[i]), wanted);
        assert_true(dataset->fields[1].number[i] == r->number);
    }
    assert_int_equal(dataset->sequence_count, sequence + 1);
    assert_int_equal(dataset->start[sequence + 1], e->count);
}

/* Imports the text as CSV and as Arrow, with and without fields. */
static void is_grouped(example *e, const char *name)
{
    static const char *const categories[] = {"device"}, *const numbers[] = {"price"};
    static const char *const formats[] = {"u", "l", "u", "u", "u", "l"}, *const views[] = {"vu", "g",  "vu",
                                                                                           "U",  "vu", "g"};
    static const struct {
        int threads, chunk, batch, array;
    } cases[] = {{2, 4096, 300, 5000}, {1, 1 << 20, 16384, MOST}, {3, 1000, 64, MOST}, {40, 4096, 1000, 77}};
    finish(e);
    for (size_t i = 0; i < 2 * (size_t)small_effort(sizeof cases / sizeof *cases, 1); i++) {
        lapse_import_options options = defaults();
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        struct ArrowArrayStream stream;
        const lp_arrow_tuning tuning = {cases[i / 2].batch};
        options.threads = cases[i / 2].threads;
        options.sequence = "user";
        options.time = "time";
        options.event = "event";
        if (i % 2) {
            options.split = "part";
            options.categories = categories;
            options.numbers = numbers;
            options.category_count = options.number_count = 1;
        }
        if (import_bytes(e->text.data, e->text.size - 1, &options, cases[i / 2].chunk, &dataset, NULL, &error) !=
            LAPSE_OK)
            fail_msg("%s: %s", name, error.message);
        is_expected(e, dataset, name);
        lapse_dataset_close(dataset);
        arrow_stream_init(&stream, e->text.data, i / 2 % 2 ? views : formats, cases[i / 2].array, 3, NULL);
        if (lp_arrow_import(&stream, &options, &tuning, &dataset, NULL, &error) != LAPSE_OK)
            fail_msg("%s: %s", name, error.message);
        is_expected(e, dataset, name);
        lapse_dataset_close(dataset);
    }
}

static int below(lp_random *random, int limit)
{
    return (int)lp_random_below(random, (uint64_t)limit);
}

static void rows_are_grouped_by_sequence_and_time(void **state)
{
    (void)state;
    static example e;
    static const struct {
        const char *name;
        int rows, sequences, types;
        enum { EVEN, SKEWED, TOGETHER, ALTERNATING } how;
    } cases[] = {
        {"one row", 1, 1, 1, EVEN},
        {"one sequence", 1500, 1, 3, EVEN},
        {"one type", 1500, 400, 1, EVEN},
        {"each row its own sequence", 1500, 1500, 7, TOGETHER},
        {"few rows of many sequences", 3000, 2000, 900, EVEN},
        {"more types than fit 8 bits", 3000, 70, 700, EVEN},
        {"one sequence has most rows", 4000, 600, 20, SKEWED},
        {"rows of a sequence together", 3000, 90, 20, TOGETHER},
        /* Every sequence is a partition: more than a byte numbers. */
        {"long and short sequences in turn", 10200, 400, 20, ALTERNATING},
    };
    const uint64_t seed = 20261118;
    print_message("seed %llu\n", (unsigned long long)seed);
    lp_random random = lp_random_start(seed, 0, 0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        e.count = cases[c].rows;
        for (int i = 0; i < e.count; i++) {
            int even = below(&random, cases[c].sequences);
            int sequence = cases[c].how == SKEWED     ? (even % 3 ? 5 : even)
                           : cases[c].how == TOGETHER ? (int)((int64_t)i * cases[c].sequences / e.count)
                           : cases[c].how == EVEN     ? even
                           : i < cases[c].sequences   ? i
                                                      : even / 2 * 2;
            e.rows[i] = (row){.sequence = sequence,
                              .time = below(&random, 1000),
                              .type = below(&random, cases[c].types),
                              .split = below(&random, 3),
                              .category = below(&random, 40),
                              .number = below(&random, 100000) - 50000};
        }
        is_grouped(&e, cases[c].name);
    }
    lp_buffer_clear(&e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_grouped_by_sequence_and_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
