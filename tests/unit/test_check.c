/* test_check.c: each finding of the checks is provoked by a few rows, and absent from clean data. */
#include "support/small_data.h"
#include "support/table_text.h"

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

/* 2026-11-15T12:00:00Z */
static const double now = 1794744000;

static lapse_check_options by(const char *rule)
{
    lapse_check_options options;
    lapse_check_options_default(&options);
    options.split_by = rule;
    options.now = now;
    return options;
}

static lapse_check check_of(const lapse_dataset *dataset, const char *rule)
{
    lapse_check check;
    lapse_error error = {0};
    lapse_check_options options = by(rule);
    if (lapse_dataset_check(dataset, &options, &check, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return check;
}

static lapse_check check_text(const char *text, const char *rule, lapse_import_options options)
{
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    if (import_bytes(text, strlen(text), &options, 64, &dataset, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_check check = check_of(dataset, rule);
    lapse_dataset_close(dataset);
    return check;
}

static const lapse_finding *find(const lapse_check *check, const char *name)
{
    for (int i = 0; i < check->finding_count; i++)
        if (strcmp(check->findings[i].name, name) == 0)
            return &check->findings[i];
    fail_msg("there is no finding %s", name);
    return NULL;
}

static void expect(const lapse_check *check, const char *name, const char *severity, int64_t count, int64_t total,
                   const char *text)
{
    const lapse_finding *finding = find(check, name);
    if (finding->count != count || finding->total != total || strcmp(finding->text, text) != 0 ||
        strcmp(lapse_severity_name(finding->severity), severity) != 0)
        fail_msg("%s: %s, %d of %d: %s", name, lapse_severity_name(finding->severity), (int)finding->count,
                 (int)finding->total, finding->text);
    assert_true((finding->count == 0) == (*finding->advice == 0));
}

/* ---------------------------------------------------------------------------------------------- the events --- */

static void nothing_is_found_where_nothing_is(void **state)
{
    (void)state;
    /* Sequences one after another in time, so that those that start last also have the newest events. */
    static const int lengths[] = {3, 3, 3, 3, 3};
    static const double time[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    static const int32_t type[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 1, 0};
    lapse_dataset *dataset = small_dataset(5, lengths, time, type, 3, NULL);
    lapse_check check = check_of(dataset, "time");
    static const char *const names[] = {"tied-times",    "future-times",          "duplicates",        "repeats",
                                        "single-events", "untrained-event-types", "divided-sequences", "past-targets",
                                        "tied-targets",  "later-training",        "leaking-fields"};
    assert_int_equal(check.finding_count, sizeof names / sizeof *names);
    for (int i = 0; i < check.finding_count; i++) {
        assert_string_equal(check.findings[i].name, names[i]);
        assert_int_equal(check.findings[i].severity, LAPSE_SEVERITY_OK);
        assert_int_equal(check.findings[i].count, 0);
        assert_string_equal(check.findings[i].advice, "");
        assert_true(strlen(check.findings[i].text) > 10);
    }
    assert_string_equal(check.split_by, "time");
    assert_true(check.train_events == 9 && check.valid_events == 3 && check.test_events == 3 && check.now == now);
    lapse_dataset_close(dataset);
}

static void events_are_looked_at(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\na,1,y\na,1,x\na,2,x\nb,1,x\nb,5,x\nb,6,y\nc,1,x\nc,9,y\nc,1794744000,"
                       "y\nc,1794744001,x\n";
    lapse_check check = check_text(text, "sequence", defaults());
    expect(&check, "tied-times", "warning", 3, 11,
           "Events with the same timestamp as another event of their sequence; their order: sequence by first "
           "appearance, then time; ties keep the order of the source.");
    expect(&check, "future-times", "warning", 1, 11,
           "Events later than 2026-11-15T12:00:00Z; the latest is at 2026-11-15T12:00:01Z.");
    expect(&check, "duplicates", "warning", 1, 11,
           "Events with the same sequence, timestamp and event type as an earlier event.");
    expect(&check, "repeats", "note", 3, 11, "Events with the event type of the event before them in their sequence.");
}

/* A row number taken for the sequence. */
static void sequences_of_one_event(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    static const struct {
        int sequences, single; /* of these sequences, the first have one event */
        const char *severity;
    } cases[] = {{20, 20, "warning"}, {20, 18, "warning"}, {20, 17, "note"}, {20, 1, "note"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_buffer text = {0};
        lp_buffer_print(&text, "user,time,event\n");
        for (int s = 0; s < cases[i].sequences; s++) {
            lp_buffer_print(&text, "u%d,1,x\n", s);
            if (s >= cases[i].single)
                lp_buffer_print(&text, "u%d,2,y\n", s);
        }
        lp_buffer_add(&text, "", 1);
        lapse_check check = check_text(text.data, "sequence", options);
        expect(&check, "single-events", cases[i].severity, cases[i].single, cases[i].sequences,
               "Sequences of one event, which have no history; the sequence column is 'user'.");
        lp_buffer_clear(&text);
    }
}

/* Few ties and duplicates are a note. Control characters of the file are replaced. */
static void few_are_a_note(void **state)
{
    (void)state;
    enum { EVENTS = 300 };
    static const int lengths[] = {EVENTS / 3, EVENTS / 3, EVENTS / 3};
    double time[EVENTS];
    int32_t type[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        time[i] = i == 7 ? 6 : i;
        type[i] = i == 7 ? 0 : i % 2;
    }
    lapse_dataset *dataset = small_dataset(3, lengths, time, type, 2, NULL);
    lapse_check check = check_of(dataset, "sequence");
    expect(&check, "tied-times", "note", 2, EVENTS,
           "Events with the same timestamp as another event of their sequence; their order: not recorded.");
    expect(&check, "duplicates", "note", 1, EVENTS,
           "Events with the same sequence, timestamp and event type as an earlier event.");
    const char *name = "order", *value = "\033[2Jwild\n";
    dataset->property_count = 1;
    dataset->property_name = &name;
    dataset->property_value = &value;
    check = check_of(dataset, "sequence");
    expect(&check, "tied-times", "note", 2, EVENTS,
           "Events with the same timestamp as another event of their sequence; their order: ?[2Jwild?.");
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------- the splits --- */

static void splits_are_looked_at(void **state)
{
    (void)state;
    /* Times start at 0 in every sequence. */
    lapse_dataset *dataset = small_dataset_spelled("abcab abcd abe af b", NULL);
    lapse_check check = check_of(dataset, "leave-one-out");
    assert_true(check.train_events == 9 && check.valid_events == 3 && check.test_events == 3);
    expect(
        &check, "untrained-event-types", "warning", 2, 6,
        "Event types that do not occur in training, 2 of them only in test: 2 of 6 valid and test events have them.");
    expect(&check, "divided-sequences", "note", 3, 5,
           "Sequences with events in several splits, by design of --split-by leave-one-out.");
    expect(&check, "past-targets", "ok", 0, 6, "No training event follows a valid or test event of its sequence.");
    expect(&check, "later-training", "ok", 0, 3,
           "No test event is earlier than the newest training event, at 1970-01-01T00:00:02Z.");
    lapse_dataset_close(dataset);
    dataset = small_dataset_spelled("abcab abc cc", "tvete evt vv");
    check = check_of(dataset, NULL);
    assert_string_equal(check.split_by, "column");
    expect(&check, "divided-sequences", "note", 2, 3,
           "Sequences with events in several splits, according to the split column.");
    expect(
        &check, "past-targets", "warning", 4, 7,
        "Valid and test events followed by a training event of their sequence: the model is trained on their future.");
    expect(&check, "later-training", "note", 2, 3,
           "Test events earlier than the newest training event, at 1970-01-01T00:00:03Z.");
    expect(
        &check, "untrained-event-types", "warning", 1, 3,
        "Event types that do not occur in training, 0 of them only in test: 3 of 7 valid and test events have them.");
    lapse_dataset_close(dataset);
}

static void tied_targets_are_told(void **state)
{
    (void)state;
    lapse_check check = check_text("user,time,event\na,1,x\na,2,y\na,2,z\nb,1,x\nb,2,y\nb,3,z\nc,3,z\nc,3,z\n",
                                   "leave-one-out", defaults());
    expect(&check, "tied-targets", "warning", 1, 2,
           "Test events with the timestamp of the event before them, which the model sees.");
}

/* Sessions of one user in several splits. */
static void sessions_belong_together(void **state)
{
    (void)state;
    const char *text = "user,time,event\na,1,x\na,50,x\na,100,x\nb,200,x\nab,300,x\nab/1,400,x\nab/1,450,x\n";
    lapse_import_options options = defaults();
    options.session_gap = 10;
    lapse_check check = check_text(text, "time", options); /* 7 sessions, of which the last two are held out */
    expect(&check, "divided-sequences", "note", 1, 4, "Sequences of the source whose sessions are in several splits.");
    assert_string_equal(find(&check, "divided-sequences")->unit, "sequences of the source");
    options.session_gap = 0;
    check = check_text(text, "time", options);
    expect(&check, "divided-sequences", "ok", 0, 4, "Every sequence is in one split.");
}

/* ---------------------------------------------------------------------------------------------- the fields --- */

/* Ten sequences of 20 random events of four types, with two fields per event that a test chooses: a word and a
 * number. */
static lapse_check check_fields(const char *what, bool with_action)
{
    lp_buffer text = {0};
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 21);
    lp_buffer_print(&text, "user,time,event,word,count,act\n");
    for (int s = 0; s < 10; s++) {
        int next = (int)lp_random_below(&random, 4), next_act = (int)lp_random_below(&random, 3);
        for (int i = 0; i < 20; i++) {
            int type = next, act = next_act, noise = (int)lp_random_below(&random, 4);
            next = strcmp(what, "law") == 0 ? (type + 1) % 4 : (int)lp_random_below(&random, 4);
            next_act = (int)lp_random_below(&random, 3);
            lp_buffer_print(&text, "u%d,%d,k%d,", s, 100 * s + i, type);
            if (strcmp(what, "name") == 0)
                lp_buffer_print(&text, "k%d,%d,", next, noise);
            else if (strcmp(what, "rule") == 0)
                lp_buffer_print(&text, "w%d,%d,", 3 - next, noise);
            else if (strcmp(what, "number") == 0)
                lp_buffer_print(&text, "w%d,%d.5,", noise, -7 * next);
            else if (strcmp(what, "act") == 0)
                lp_buffer_print(&text, "v%d,,", next_act);
            else if (strcmp(what, "unique") == 0)
                lp_buffer_print(&text, "w%d,%d,", 20 * s + i, 20 * s + i);
            else
                lp_buffer_print(&text, "w%d,%d,", type, type);
            lp_buffer_print(&text, "a%d\n", act);
        }
    }
    lp_buffer_add(&text, "", 1);
    static const char *const categories[] = {"word"}, *const numbers[] = {"count"};
    lapse_import_options options = defaults();
    options.categories = categories;
    options.category_count = 1;
    options.numbers = numbers;
    options.number_count = 1;
    options.action = with_action ? "act" : NULL;
    options.event = "event";
    lapse_check check = check_text(text.data, "sequence", options);
    lp_buffer_clear(&text);
    return check;
}

static void fields_that_tell_the_next_event(void **state)
{
    (void)state;
    static const struct {
        const char *what, *begins;
        bool with_action;
    } told[] = {
        {"name", "The field 'word' predicts the event type of the next event in 100.0 % of valid and test events; ",
         false},
        {"name", "The field 'word' predicts the event type of the next event in 100.0 % of valid and test events; ",
         true},
        {"rule", "The field 'word' predicts the event type of the next event in 100.0 % of valid and test events; ",
         false},
        {"number", "The field 'count' predicts the event type of the next event in 100.0 % of valid and test events; ",
         false},
        {"act", "The field 'word' predicts the action of the next event in 100.0 % of valid and test events; ", true},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        lapse_check check = check_fields(told[i].what, told[i].with_action);
        const lapse_finding *finding = find(&check, "leaking-fields");
        if (finding->count != 1 || strncmp(finding->text, told[i].begins, strlen(told[i].begins)) != 0)
            fail_msg("%s: %d, %s", told[i].what, (int)finding->count, finding->text);
        assert_int_equal(finding->severity, LAPSE_SEVERITY_WARNING);
        assert_int_equal(finding->total, told[i].with_action ? 3 : 2);
    }
    /* A copy of the event is no leak; nor are unique values, nor a deterministic law. */
    static const char *const well[] = {"copy", "unique", "law"};
    for (int i = 0; i < 3; i++) {
        lapse_check check = check_fields(well[i], i % 2);
        expect(&check, "leaking-fields", "ok", 0, i % 2 ? 3 : 2, "No field predicts the next event.");
    }
}

/* ------------------------------------------------------------------------------------------------ refusals --- */

static void refuse(const lapse_dataset *dataset, const lapse_check_options *options, const char *message)
{
    lapse_check check;
    lapse_error error = {0};
    assert_int_equal(lapse_dataset_check(dataset, options, &check, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
}

static void what_cannot_be_checked(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("ab ab", NULL);
    lapse_check_options options = by("coin");
    refuse(dataset, &options, "--split-by cannot be 'coin'; it can be one of: column, sequence, leave-one-out, time");
    options = by("leave-one-out");
    refuse(dataset, &options,
           "leave-one-out requires a sequence of at least 3 events: one each for train, valid and test");
    options = by(NULL);
    options.now = INFINITY;
    refuse(dataset, &options, "now must be a finite timestamp");
    lapse_dataset_close(dataset);
    dataset = small_dataset_spelled("abc abc abc", NULL);
    lapse_check check;
    options = by(NULL);
    options.now = NAN;
    assert_int_equal(lapse_dataset_check(dataset, &options, &check, NULL), LAPSE_OK);
    assert_true(check.now > 1.7e9); /* the system clock */
    assert_string_equal(check.split_by, "sequence");
    options.task = "recommend";
    assert_int_equal(lapse_dataset_check(dataset, &options, &check, NULL), LAPSE_OK);
    assert_string_equal(check.split_by, "leave-one-out");
    lapse_dataset_close(dataset);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *text = "user,time,event,word,count,act\na,1,x,p,1,go\na,2,y,q,2,go\nb,1,x,p,,stop\nb,2,y,q,2,go\nc,1,x,"
                       "p,1,go\nc,2,y,q,2,go\n";
    static const char *const categories[] = {"word"}, *const numbers[] = {"count"};
    lapse_import_options import = defaults();
    import.categories = categories;
    import.category_count = 1;
    import.numbers = numbers;
    import.number_count = 1;
    import.action = "act";
    import.event = "event";
    lapse_dataset *dataset = NULL;
    assert_int_equal(import_bytes(text, strlen(text), &import, 64, &dataset, NULL, NULL), LAPSE_OK);
    lapse_check_options options = by("sequence");
    for (int64_t n = 1;; n++) {
        lapse_check check;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lapse_dataset_check(dataset, &options, &check, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK) {
            assert_true(n > 15);
            break;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_memory_equal(error.message, "out of memory", 13);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_where_nothing_is),
        cmocka_unit_test(events_are_looked_at),
        cmocka_unit_test(sequences_of_one_event),
        cmocka_unit_test(few_are_a_note),
        cmocka_unit_test(splits_are_looked_at),
        cmocka_unit_test(tied_targets_are_told),
        cmocka_unit_test(sessions_belong_together),
        cmocka_unit_test(fields_that_tell_the_next_event),
        cmocka_unit_test(what_cannot_be_checked),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
