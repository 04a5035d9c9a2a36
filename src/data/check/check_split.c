/* check_split.c: checks of the train/validation/test split: untrained event types, leakage of the future, arbitrary
 * order. */
#include "data/check/check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Fractions from which a finding is a warning. */
static const double many_untrained = 0.01, many_tied_targets = 0.01;

/* Event types that do not occur in training. */
static bool check_types(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    uint8_t *where = lp_alloc((size_t)dataset->types.count, 1); /* a bit for each split */
    if (!where)
        return false;
    for (int64_t i = 0; i < dataset->event_count; i++)
        where[dataset->type[i]] |= (uint8_t)(1 << c->split[i]);
    int64_t types = 0, test_alone = 0, events = 0, held_out = 0;
    for (int64_t k = 0; k < dataset->types.count; k++) {
        types += !(where[k] & 1 << LP_SPLIT_TRAIN);
        test_alone += where[k] == 1 << LP_SPLIT_TEST;
    }
    for (int64_t i = 0; i < dataset->event_count; i++) {
        held_out += c->split[i] != LP_SPLIT_TRAIN;
        events += !(where[dataset->type[i]] & 1 << LP_SPLIT_TRAIN);
    }
    lp_free(where);
    const lp_check_result found = {
        .name = "untrained-event-types",
        .unit = "event_types",
        .count = types,
        .total = dataset->types.count,
        .warn = lp_check_fraction(events, held_out) >= many_untrained,
        .advice = "A model trained on events alone cannot predict them: import with a larger " LP_OPTION(
            "--min-count") ", or accept that "
                           "these cases are lost.",
    };
    lp_check_add(c, &found,
                 types == 0 ? "Every event type occurs in training."
                            : "Event types that do not occur in training, %" PRId64 " of them only in test: %" PRId64
                              " of %" PRId64 " valid and test events have them.",
                 test_alone, events, held_out);
    return true;
}

/* Length of a sequence's name without the session number that the import appended. */
static size_t source_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : strlen(name);
}

/* Sequences of the source with events in several splits. Sessions of one sequence are adjacent. */
static void check_divided(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    const char *gap = lp_dataset_property_find(dataset, "session_gap"), *before = NULL;
    bool cut = gap && strcmp(gap, "none") != 0;
    int64_t total = 0, divided = 0;
    unsigned where = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        const char *name = lp_names_get(&dataset->sequences, s);
        bool same = cut && before && source_length(name) == source_length(before) &&
                    memcmp(name, before, source_length(name)) == 0;
        before = name;
        if (!same) {
            total++;
            where = 0;
        }
        bool was = where & (where - 1);
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++)
            where |= 1u << c->split[i];
        divided += !was && where & (where - 1);
    }
    const char *rule = lp_split_rule_name(c->rule);
    const lp_check_result found = {
        .name = "divided-sequences",
        .unit = cut ? "sequences of the source" : "sequences",
        .count = divided,
        .total = total,
        .advice = "If the model will serve new sequences, keep each sequence in one split: " LP_OPTION(
            "--split-by sequence") " or time.",
    };
    if (divided == 0)
        lp_check_add(c, &found, "Every sequence is in one split.");
    else if (strcmp(rule, "column") == 0)
        lp_check_add(c, &found, "Sequences with events in several splits, according to the split column.");
    else if (c->rule->within_sequences)
        lp_check_add(c, &found, "Sequences with events in several splits, by design of " LP_OPTION("--split-by %s") ".",
                     rule);
    else
        lp_check_add(c, &found, "Sequences of the source whose sessions are in several splits.");
}

/* Held-out events followed by a training event of their sequence: the model is trained on their future. */
static void check_past(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t past = 0, held_out = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        bool train_follows = false;
        for (uint64_t i = dataset->start[s + 1]; i-- > dataset->start[s];) {
            bool train = c->split[i] == LP_SPLIT_TRAIN;
            train_follows = train_follows || train;
            held_out += !train;
            past += !train && train_follows;
        }
    }
    const lp_check_result found = {
        .name = "past-targets",
        .unit = "valid and test events",
        .count = past,
        .total = held_out,
        .warn = true,
        .advice = "Hold out the last events of a sequence or all of it: " LP_OPTION(
            "--split-by leave-one-out") ", sequence or time.",
    };
    lp_check_add(
        c, &found,
        past == 0
            ? "No training event follows a valid or test event of its sequence."
            : "Valid and test events followed by a training event of their sequence: the model is trained on their "
              "future.");
}

static void check_tied_targets(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t tied = 0, targets = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++) {
            bool test = c->split[i] == LP_SPLIT_TEST;
            targets += test;
            tied += test && dataset->time[i] == dataset->time[i - 1];
        }
    }
    const lp_check_result found = {
        .name = "tied-targets",
        .unit = "test targets",
        .count = tied,
        .total = targets,
        .warn = lp_check_fraction(tied, targets) >= many_tied_targets,
        .advice =
            "The order of the two is that of the source, which may be arbitrary or sorted (then it leaks the target): "
            "import with " LP_FLAG("--basket") ", which shuffles ties, or import finer timestamps.",
    };
    lp_check_add(c, &found,
                 tied == 0 ? "No test event has the timestamp of the event before it."
                           : "Test events with the timestamp of the event before them, which the model sees.");
}

/* Test events earlier than the newest training event of any sequence. */
static void check_later_training(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    double newest = -INFINITY;
    int64_t earlier = 0, tests = 0;
    for (int64_t i = 0; i < dataset->event_count; i++)
        if (c->split[i] == LP_SPLIT_TRAIN && dataset->time[i] > newest)
            newest = dataset->time[i];
    for (int64_t i = 0; i < dataset->event_count; i++) {
        tests += c->split[i] == LP_SPLIT_TEST;
        earlier += c->split[i] == LP_SPLIT_TEST && dataset->time[i] < newest;
    }
    const lp_check_result found = {
        .name = "later-training",
        .unit = "test events",
        .count = earlier,
        .total = tests,
        .advice = "Training and test overlap in time; " LP_OPTION("--split-by time") " gives scores as in production.",
    };
    char timestamp[64];
    lapse_time_format(newest, timestamp, sizeof timestamp);
    lp_check_add(c, &found,
                 earlier == 0 ? "No test event is earlier than the newest training event, at %s."
                              : "Test events earlier than the newest training event, at %s.",
                 timestamp);
}

bool lp_check_splits(lp_check_context *c)
{
    if (!check_types(c))
        return false;
    check_divided(c);
    check_past(c);
    check_tied_targets(c);
    check_later_training(c);
    return true;
}
