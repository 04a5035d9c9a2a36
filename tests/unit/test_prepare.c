/* test_prepare.c: sessions, deduplication and k-core filtering: small tables by hand, and random ones against a naive
 * implementation. */
#include "support/table_text.h"

#include "base/random.h"
#include "data/dataset/dataset.h"
#include "lapse_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect(const char *rows, const lapse_import_options *options, const char *expected)
{
    char text[2000];
    snprintf(text, sizeof text, "user,time,event\n%s", rows);
    expect_with(text, strlen(text), options, expected);
}

static lapse_import_report report_of(const char *rows, const lapse_import_options *options, lapse_dataset **dataset)
{
    char text[2000];
    lapse_import_report report;
    lapse_error error = {0};
    snprintf(text, sizeof text, "user,time,event\n%s", rows);
    if (import_bytes(text, strlen(text), options, 64, dataset, &report, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return report;
}

/* ------------------------------------------------------------------------------------------------ sessions --- */

static void sequences_are_cut_at_gaps(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.session_gap = 10;
    /* A gap of exactly the length starts no session; times are sorted first; every name gets its session number. */
    expect("a,30,z\na,0,x\na,10,y\nb,5,x\na,20.5,y\n", &options, "a/1: 0 x, 10 y;a/2: 20.5 y, 30 z;b/1: 5 x;");
    options.session_gap = 1e9;
    expect("a,1,x\na,2,x\n", &options, "a/1: 1 x, 2 x;");
    options.session_gap = 1e-3;
    expect("a,1,x\na,1,y\na,2,x\n", &options, "a/1: 1 x, 1 y;a/2: 2 x;");
    options.session_gap = 0;
    expect("a,1,x\na,2e9,x\n", &options, "a: 1 x, 2000000000 x;");
    /* Names of sessions cannot collide with names of the source. */
    options.session_gap = 10;
    expect("a,1,x\na/1,1,y\na,99,x\na/2,1,y\n", &options, "a/1: 1 x;a/2: 99 x;a/1/1: 1 y;a/2/1: 1 y;");
}

/* The minimums apply to sessions; dropped sessions leave a gap in the numbers. */
static void parts_may_be_too_short(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.session_gap = 10;
    options.min_events = 2;
    const char *rows = "a,0,x\na,1,x\na,50,x\na,90,y\na,91,x\nb,7,x\n";
    expect(rows, &options, "a/1: 0 x, 1 x;a/3: 90 y, 91 x;");
    lapse_dataset *dataset = NULL;
    lapse_import_report report = report_of(rows, &options, &dataset);
    assert_int_equal(report.cut_sequences, 1);
    assert_int_equal(report.sessions, 4);
    assert_int_equal(report.short_sequences, 2);
    assert_int_equal(report.short_rows, 2);
    assert_string_equal(lp_dataset_property_find(dataset, "session_gap"), "10 seconds");
    assert_string_equal(lp_dataset_property_find(dataset, "sessions"),
                        "4 in total; 1 sequences of the source have several");
    assert_string_equal(lp_dataset_property_find(dataset, "sequences"), "2");
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------- duplicates --- */

static void duplicates_are_dropped(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    const char *rows = "a,1,x\na,1,y\na,1,x\na,2,x\na,2,x\nb,1,x\na,3,x\na,3,y\na,3,y\n";
    options.deduplicate = "none";
    expect(rows, &options, "a: 1 x, 1 y, 1 x, 2 x, 2 x, 3 x, 3 y, 3 y;b: 1 x;");
    options.deduplicate = "exact";
    expect(rows, &options, "a: 1 x, 1 y, 2 x, 3 x, 3 y;b: 1 x;");
    lapse_dataset *dataset = NULL;
    assert_int_equal(report_of(rows, &options, &dataset).duplicate_rows, 3);
    assert_string_equal(lp_dataset_property_find(dataset, "rows.duplicate"), "3 duplicates, dropped");
    assert_string_equal(lp_dataset_property_find(dataset, "deduplicate"), "exact");
    lapse_dataset_close(dataset);
    options.deduplicate = "consecutive";
    expect(rows, &options, "a: 1 x, 1 y, 1 x, 3 y;b: 1 x;");
    /* A repeat that starts a session is retained; one whose predecessor was dropped is not. */
    options.session_gap = 10;
    expect("a,1,x\na,5,x\na,12,x\na,30,x\na,31,y\n", &options, "a/1: 1 x;a/2: 30 x, 31 y;");
    /* The first event of a sequence is never a duplicate. */
    options = defaults();
    options.deduplicate = "exact";
    expect("a,1,x\nb,1,x\nb,1,x\nc,1,x\n", &options, "a: 1 x;b: 1 x;c: 1 x;");
}

/* Dropped duplicates do not count. */
static void duplicates_do_not_count(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.deduplicate = "exact";
    options.min_count = 2;
    options.min_events = 2;
    expect("a,1,x\na,1,x\na,2,y\na,3,y\nb,1,y\nb,1,y\n", &options, "a: 2 y, 3 y;");
}

static void fields_and_splits_go_along(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    static const char *const categories[] = {"page"}, *const numbers[] = {"price"};
    options.categories = categories;
    options.category_count = 1;
    options.numbers = numbers;
    options.number_count = 1;
    options.split = "part";
    options.deduplicate = "consecutive";
    options.session_gap = 10;
    options.min_count = 2;
    const char *text = "user,time,event,page,price,part\na,2,x,p2,2,valid\na,1,x,p1,1,train\na,3,rare,p3,3,test\na,4,y,"
                       "p4,4,test\nb,1,y,p4,,train\na,40,x,p1,5.5,test\n";
    expect_with(
        text, strlen(text), &options,
        "a/1: 1 x (train) [p1] <1>, 4 y (test) [p4] <4>;a/2: 40 x (test) [p1] <5.5>;b/1: 1 y (train) [p4] <nan>;");
}

/* ------------------------------------------------------------------------------------------------ minimums --- */

static void minimums_may_be_repeated(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.min_count = 2;
    options.min_events = 2;
    /* z is rare, which leaves c short, which leaves y rare, which leaves b short, which leaves w rare. */
    const char *rows = "a,1,x\na,2,x\na,3,w\nb,1,w\nb,2,y\nc,1,y\nc,2,z\n";
    expect(rows, &options, "a: 1 x, 2 x, 3 w;b: 1 w, 2 y;");
    options.min_rounds = "iterated";
    expect(rows, &options, "a: 1 x, 2 x;");
    lapse_dataset *dataset = NULL;
    lapse_import_report report = report_of(rows, &options, &dataset);
    assert_int_equal(report.rounds, 3);
    assert_int_equal(report.rare_event_types, 3);
    assert_int_equal(report.rare_rows, 3);
    assert_int_equal(report.short_sequences, 2);
    assert_int_equal(report.short_rows, 2);
    assert_string_equal(lp_dataset_property_find(dataset, "min_rounds"), "iterated");
    assert_string_equal(lp_dataset_property_find(dataset, "rounds"), "3 iterations until both minimums hold");
    lapse_dataset_close(dataset);
    options.min_rounds = "once";
    report = report_of(rows, &options, &dataset);
    assert_int_equal(report.rounds, 1);
    assert_null(lp_dataset_property_find(dataset, "rounds"));
    lapse_dataset_close(dataset);
    options.min_rounds = "iterated";
    options.min_count = 3;
    options.min_events = 4;
    const char *text = "user,time,event\na,1,x\na,2,x\na,3,x\nb,1,y\n";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 0, 0,
                "no event is left: 1 have event types that occur fewer than 3 times, and 3 are in sequences with fewer "
                "than 4 events");
}

/* The source's sequences and event types are filtered before sessions are cut, and cut where they would be without it. */
static void the_source_is_filtered_first(void **state)
{
    (void)state;
    /* users a and b have 4 events in two sessions each, c has 2; y has two users, but one without c; z has one */
    const char *rows = "a,1,x\na,2,y\na,40,x\na,41,z\nb,1,x\nb,12,z\nb,20,z\nb,50,x\nc,1,y\nc,2,x\n";
    struct {
        int64_t min_sequence_events, min_users, min_events;
        double gap;
        const char *left;
        int64_t inactive_rows, inactive_sequences, unpopular_rows, unpopular_types, short_sequences;
    } cases[] = {
        {3, 1, 1, 0, "a: 1 x, 2 y, 40 x, 41 z;b: 1 x, 12 z, 20 z, 50 x;", 2, 1, 0, 0, 0},
        {3, 1, 1, 15, "a/1: 1 x, 2 y;a/2: 40 x, 41 z;b/1: 1 x, 12 z, 20 z;b/2: 50 x;", 2, 1, 0, 0, 0},
        {1, 3, 1, 0, "a: 1 x, 40 x;b: 1 x, 50 x;c: 2 x;", 0, 0, 5, 2, 0},
        {1, 2, 1, 0, "a: 1 x, 2 y, 40 x, 41 z;b: 1 x, 12 z, 20 z, 50 x;c: 1 y, 2 x;", 0, 0, 0, 0, 0},
        {3, 2, 1, 15, "a/1: 1 x;a/2: 40 x, 41 z;b/1: 1 x, 12 z, 20 z;b/2: 50 x;", 2, 1, 1, 1, 0},
        {3, 2, 2, 15, "a/2: 40 x, 41 z;b/1: 1 x, 12 z, 20 z;", 2, 1, 1, 1, 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lapse_import_options options = defaults();
        options.min_sequence_events = cases[c].min_sequence_events;
        options.min_users = cases[c].min_users;
        options.min_events = cases[c].min_events;
        options.session_gap = cases[c].gap;
        expect(rows, &options, cases[c].left);
        lapse_dataset *dataset = NULL;
        lapse_import_report report = report_of(rows, &options, &dataset);
        assert_int_equal(report.inactive_rows, cases[c].inactive_rows);
        assert_int_equal(report.inactive_sequences, cases[c].inactive_sequences);
        assert_int_equal(report.unpopular_rows, cases[c].unpopular_rows);
        assert_int_equal(report.unpopular_event_types, cases[c].unpopular_types);
        assert_int_equal(report.short_sequences, cases[c].short_sequences);
        assert_int_equal(report.rows, lapse_dataset_event_count(dataset) + report.inactive_rows +
                                          report.unpopular_rows + report.short_rows);
        lapse_dataset_close(dataset);
    }
    lapse_import_options options = defaults();
    options.min_users = 2;
    options.deduplicate = "consecutive"; /* what is dropped before is not between two equal events */
    expect("a,1,x\na,2,z\na,3,x\nb,1,x\n", &options, "a: 1 x;b: 1 x;");
    options.min_users = 9;
    const char *text = "user,time,event\na,1,x\nb,1,x\n";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 0, 0,
                "no event is left: 0 are in sequences with fewer than 1 events before sessions, 2 have event types of "
                "fewer than 9 sequences, and 0 are dropped by --min-count and --min-events");
    options.min_users = -1;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "--min-sequence-events is 1 and --min-users is -1; they must not be negative");
}

/* Every event type depends on the previous sequence, so each iteration removes one from both ends: the number of
 * iterations is half the number of sequences, and the time stays linear. The event type in the middle is dropped with
 * its two sequences. */
static void long_chains_end(void **state)
{
    (void)state;
    enum { LINKS = 100000 };
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event\nkept,1,k\nkept,2,k\n");
    for (int i = 0; i < LINKS; i++)
        lp_buffer_print(&text, "u%d,1,e%d\nu%d,2,e%d\n", i, i, i, i + 1);
    lapse_import_options options = defaults();
    options.min_count = 2;
    options.min_events = 2;
    options.min_rounds = "iterated";
    lapse_dataset *dataset = NULL;
    lapse_import_report report;
    assert_int_equal(import_bytes(text.data, text.size, &options, 1 << 20, &dataset, &report, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_event_count(dataset), 2);
    assert_int_equal(report.rare_event_types, LINKS);
    assert_int_equal(report.rounds, LINKS / 2);
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* -------------------------------------------------------------------------------------- rules told plainly --- */

enum { MOST = 400, USERS = 12, TYPES = 9 };

typedef struct plain_event {
    int user, time, type, part;
    bool gone;
} plain_event;

/* A naive implementation: applies every rule to every event until nothing changes. */
static void tell_plainly(plain_event *events, int count, const lapse_import_options *options)
{
    for (int i = 0; i < count; i++) {
        bool follows = i > 0 && events[i - 1].user == events[i].user;
        bool cut = follows && options->session_gap > 0 && events[i].time - events[i - 1].time > options->session_gap;
        events[i].part = follows ? events[i - 1].part + cut : 1;
        for (int j = 0; strcmp(options->deduplicate, "exact") == 0 && j < i; j++)
            events[i].gone = events[i].gone || (events[j].user == events[i].user && events[j].time == events[i].time &&
                                                events[j].type == events[i].type);
        if (strcmp(options->deduplicate, "consecutive") == 0)
            events[i].gone = follows && !cut && events[i - 1].type == events[i].type;
    }
    for (bool changed = true; changed;) {
        changed = false;
        int types[TYPES] = {0};
        for (int i = 0; i < count; i++)
            types[events[i].type] += !events[i].gone;
        for (int i = 0; i < count; i++) {
            bool rare = !events[i].gone && types[events[i].type] < options->min_count;
            events[i].gone = events[i].gone || rare;
            changed = changed || rare;
        }
        for (int first = 0, last; first < count; first = last) {
            int left = 0;
            for (last = first;
                 last < count && events[last].user == events[first].user && events[last].part == events[first].part;
                 last++)
                left += !events[last].gone;
            for (int i = first; left < options->min_events && i < last; i++) {
                changed = changed || !events[i].gone;
                events[i].gone = true;
            }
        }
        changed = changed && strcmp(options->min_rounds, "iterated") == 0;
    }
}

static char *show_plainly(const plain_event *events, int count, bool with_parts)
{
    lp_buffer text = {0};
    const plain_event *before = NULL;
    for (int i = 0; i < count; i++) {
        const plain_event *event = &events[i];
        if (event->gone)
            continue;
        if (before && before->user == event->user && before->part == event->part) {
            lp_buffer_print(&text, ",");
        } else {
            lp_buffer_print(&text, "%su%d", before ? ";" : "", event->user);
            if (with_parts)
                lp_buffer_print(&text, "/%d", event->part);
            lp_buffer_print(&text, ":");
        }
        lp_buffer_print(&text, " %d k%d", event->time, event->type);
        before = event;
    }
    lp_buffer_print(&text, "%s", before ? ";" : "");
    lp_buffer_add(&text, "", 1);
    return text.data;
}

static int random_events(lp_random *random, plain_event *events, lp_buffer *text)
{
    int count = 0;
    for (int user = 0; user < USERS; user++) {
        int length = 1 + (int)lp_random_below(random, MOST / USERS), time = 0;
        for (int i = 0; i < length; i++) {
            uint32_t type = lp_random_below(random, TYPES);
            time += (int)(lp_random_below(random, 3) * lp_random_below(random, 15));
            events[count] = (plain_event){.user = user, .time = time, .type = (int)lp_random_below(random, type + 1)};
            lp_buffer_print(text, "u%d,%d,k%d\n", user, time, events[count++].type);
        }
    }
    return count;
}

static void rules_told_plainly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 20);
        plain_event events[MOST];
        lp_buffer text = {0};
        lapse_import_options options = defaults();
        options.threads = 1 + (int)(seed % 3);
        options.session_gap = (double)(seed % 4 * 9);
        options.deduplicate = lapse_deduplicate_names()[seed / 4 % 3];
        options.min_rounds = lapse_min_rounds_names()[seed / 12 % 2];
        options.min_count = lp_random_below(&random, 30);
        options.min_events = lp_random_below(&random, 14);
        lp_buffer_print(&text, "user,time,event\n");
        int count = random_events(&random, events, &text);
        tell_plainly(events, count, &options);
        char *expected = show_plainly(events, count, options.session_gap > 0);
        lapse_dataset *dataset = NULL;
        lapse_import_report report;
        lapse_status status = import_bytes(text.data, text.size, &options, 1000, &dataset, &report, NULL);
        if (status == LAPSE_OK) {
            char *shown = show(dataset);
            if (strcmp(shown, expected) != 0)
                fail_msg("seed %d: %s, should be %s", (int)seed, shown, expected);
            lp_free(shown);
            assert_int_equal(report.rows, report.duplicate_rows + report.rare_rows + report.short_rows +
                                              lapse_dataset_event_count(dataset));
            lapse_dataset_close(dataset);
        } else if (*expected) {
            fail_msg("seed %d: nothing, should be %s", (int)seed, expected);
        }
        lp_free(expected);
        lp_buffer_clear(&text);
    }
}

/* ------------------------------------------------------------------------------------------------ refusals --- */

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const double gaps[] = {-1, NAN, INFINITY};
    static const char *const messages[] = {
        "--session-gap is -1 seconds; it must be a duration, or 0 to disable it",
        "--session-gap is nan seconds; it must be a duration, or 0 to disable it",
        "--session-gap is inf seconds; it must be a duration, or 0 to disable it",
    };
    lapse_import_options options = defaults();
    for (int i = 0; i < 3; i++) {
        options.session_gap = gaps[i];
        refuse_with("x", 1, &options, LAPSE_ERROR_USAGE, 0, 0, messages[i]);
    }
    options = defaults();
    options.deduplicate = "all";
    refuse_with("x", 1, &options, LAPSE_ERROR_USAGE, 0, 0,
                "deduplicate is 'all'; it must be none, exact or consecutive");
    options = defaults();
    options.min_rounds = "twice";
    refuse_with("x", 1, &options, LAPSE_ERROR_USAGE, 0, 0,
                "--min-rounds is 'twice'; it must be once or iterated (repeat until both minimums hold)");
    options.min_rounds = NULL;
    options.deduplicate = NULL;
    expect("a,1,x\na,1,x\n", &options, "a: 1 x, 1 x;");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *text =
        "user,time,event,page\na,1,x,p\na,2,x,q\na,3,w,p\na,99,x,p\na,99,x,p\nb,1,w,p\nb,2,y,q\nc,1,y,p\nc,2,z,q\n";
    static const char *const categories[] = {"page"};
    lapse_import_options options = defaults();
    options.categories = categories;
    options.category_count = 1;
    options.session_gap = 50;
    options.deduplicate = "exact";
    options.min_count = 2;
    options.min_events = 2;
    options.min_rounds = "iterated";
    for (int64_t n = 1;; n++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = import_bytes(text, strlen(text), &options, 64, &dataset, NULL, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK) {
            char *shown = show(dataset);
            assert_string_equal(shown, "a/1: 1 x [p], 2 x [q];");
            lp_free(shown);
            lapse_dataset_close(dataset);
            assert_true(n > 40);
            break;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_memory_equal(error.message, "out of memory", 13);
        assert_null(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_cut_at_gaps),    cmocka_unit_test(parts_may_be_too_short),
        cmocka_unit_test(duplicates_are_dropped),       cmocka_unit_test(duplicates_do_not_count),
        cmocka_unit_test(fields_and_splits_go_along),   cmocka_unit_test(minimums_may_be_repeated),
        cmocka_unit_test(the_source_is_filtered_first), cmocka_unit_test(long_chains_end),
        cmocka_unit_test(rules_told_plainly),           cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
