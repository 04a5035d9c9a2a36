/* check_split.c: whether what is held out (valid and test) is what a model in use would meet: event types it can have learned,
 * times that lie ahead, an order that is not arbitrary. */
#include "data/check/check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* From which share on a finding is a warning. */
static const double many_untrained = 0.01, many_tied_targets = 0.01;

/* Event types that occur, but never in training. */
static bool check_types(lp_checking *c)
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
    const lp_found found = {
        .name = "untrained-event-types",
        .unit = "event_types",
        .count = types,
        .total = dataset->types.count,
        .warn = lp_check_share(events, held_out) >= many_untrained,
        .advice = "A model that learns from events alone cannot predict them: raise --min-count at the import, or know "
                  "that these cases are lost.",
    };
    if (types == 0)
        lp_check_add(c, &found, "Every event type occurs in training.");
    else
        lp_check_add(c, &found,
                     "Event types that never occur in training, %" PRId64 " of them in test alone: %" PRId64
                     " of %" PRId64 " valid and test events are of these.",
                     test_alone, events, held_out);
    return true;
}

/* Bytes of a sequence's name before what a cut into sessions added. */
static size_t source_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : strlen(name);
}

/* Sequences of the source with events in several splits; sessions of one stand together. */
static void check_divided(lp_checking *c)
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
    const lp_found found = {
        .name = "divided-sequences",
        .unit = cut ? "sequences of the source" : "sequences",
        .count = divided,
        .total = total,
        .advice = "Where a model is to serve sequences it has never met, keep each in one split.",
    };
    if (divided == 0)
        lp_check_add(c, &found, "Every sequence is in one split.");
    else if (strcmp(rule, "column") == 0)
        lp_check_add(c, &found, "Sequences with events in several splits, as the column of the source says.");
    else if (c->rule->divides)
        lp_check_add(c, &found, "Sequences with events in several splits, by design of the rule '%s'.", rule);
    else
        lp_check_add(c, &found,
                     "Sequences of the source that were cut into sessions, with sessions in several splits.");
}

/* Held-out events that a training event of their sequence follows: what came later has been learned from. */
static void check_past(lp_checking *c)
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
    const lp_found found = {
        .name = "past-targets",
        .unit = "valid and test events",
        .count = past,
        .total = held_out,
        .warn = true,
        .advice = "Hold out the last events of a sequence or all of it: --split-by leave-one-out, sequence or time.",
    };
    if (past == 0)
        lp_check_add(c, &found, "No training event follows a valid or test event of its sequence.");
    else
        lp_check_add(
            c, &found,
            "Valid and test events that a training event of their own sequence follows, so that a model learns "
            "from their future.");
}

static void check_tied_targets(lp_checking *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t tied = 0, target_position = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++) {
            bool test = c->split[i] == LP_SPLIT_TEST;
            target_position += test;
            tied += test && dataset->time[i] == dataset->time[i - 1];
        }
    }
    const lp_found found = {
        .name = "tied-targets",
        .unit = "test events asked for",
        .count = tied,
        .total = target_position,
        .warn = lp_check_share(tied, target_position) >= many_tied_targets,
        .advice = "The order of the two is that of the source, by chance or by design (sorted rows give the answer "
                  "away): shuffle ties, or import finer times.",
    };
    if (tied == 0)
        lp_check_add(c, &found, "No test event has the time of the event before it.");
    else
        lp_check_add(c, &found, "Test events with the time of the event before them, which the model sees.");
}

/* Test events that some training event of the whole dataset is later than. */
static void check_later_training(lp_checking *c)
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
    const lp_found found = {
        .name = "later-training",
        .unit = "test events",
        .count = earlier,
        .total = tests,
        .advice = "What others did later (a fashion, a new item) is known in training, which flatters scores: to score "
                  "a model as in use, split by time, or by a column that holds out what is newest.",
    };
    char moment[64];
    lapse_time_format(newest, moment, sizeof moment);
    if (earlier == 0)
        lp_check_add(c, &found, "No test event is earlier than the newest training event, of %s.", moment);
    else
        lp_check_add(c, &found, "Test events earlier than the newest training event, which is of %s.", moment);
}

bool lp_check_splits(lp_checking *c)
{
    if (!check_types(c))
        return false;
    check_divided(c);
    check_past(c);
    check_tied_targets(c);
    check_later_training(c);
    return true;
}
