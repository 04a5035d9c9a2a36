/* check.c: data-quality checks on the events of a dataset, and the entry point of all checks. Every check adds a
 * finding, also when it finds nothing, so that a reader sees what was checked. */
#include "data/check/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Fractions of the events (of the sequences: many_single) from which a finding is a warning. */
static const double many_ties = 0.05, many_duplicates = 0.01, many_single = 0.9;

const char *lapse_severity_name(lapse_severity severity)
{
    static const char *const names[] = {"ok", "note", "warning"};
    return (unsigned)severity < 3 ? names[severity] : "?";
}

void lapse_check_options_default(lapse_check_options *options)
{
    *options = (lapse_check_options){.task = "classify", .seed = 1, .now = NAN};
}

void lp_check_add(lp_check_context *c, const lp_check_result *found, const char *format, ...)
{
    lapse_check *check = c->check;
    if (check->finding_count == LAPSE_FINDING_LIMIT)
        return;
    lapse_finding *finding = &check->findings[check->finding_count++];
    *finding = (lapse_finding){
        .name = found->name,
        .unit = found->unit,
        .severity = found->count == 0 ? LAPSE_SEVERITY_OK
                    : found->warn     ? LAPSE_SEVERITY_WARNING
                                      : LAPSE_SEVERITY_NOTE,
        .count = found->count,
        .total = found->total,
    };
    char sentence[2 * sizeof finding->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    lp_wording_write(lp_wording(), sentence, finding->text, sizeof finding->text);
    lp_wording_write(lp_wording(), found->count == 0 ? "" : found->advice, finding->advice, sizeof finding->advice);
    for (char *at = finding->text; *at; at++) /* control characters of a file must not reach a terminal */
        *at = (unsigned char)*at < ' ' || *at == 127 ? '?' : *at;
}

/* Events with the same timestamp as a neighbour in their sequence. */
static void check_ties(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t ties = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        uint64_t first = dataset->start[s], end = dataset->start[s + 1];
        for (uint64_t i = first; i < end; i++)
            ties += (i > first && dataset->time[i - 1] == dataset->time[i]) ||
                    (i + 1 < end && dataset->time[i + 1] == dataset->time[i]);
    }
    const lp_check_result found = {
        .name = "tied-times",
        .unit = "events",
        .count = ties,
        .total = dataset->event_count,
        .warn = lp_check_fraction(ties, dataset->event_count) >= many_ties,
        .advice = "If the order within one timestamp matters, import finer timestamps, or rows in the right order.",
    };
    const char *order = lp_dataset_property_find(dataset, "order");
    lp_check_add(c, &found,
                 ties == 0 ? "No two events of a sequence have the same timestamp."
                           : "Events with the same timestamp as another event of their sequence; their order: %.160s.",
                 order ? order : "not recorded");
}

static void check_future(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t later = 0;
    double latest = dataset->time[0];
    for (int64_t i = 0; i < dataset->event_count; i++) {
        later += dataset->time[i] > c->check->now;
        latest = dataset->time[i] > latest ? dataset->time[i] : latest;
    }
    const lp_check_result found = {
        .name = "future-times",
        .unit = "events",
        .count = later,
        .total = dataset->event_count,
        .warn = true,
        .advice = "Check the time unit and the clocks of the source, and remove such rows.",
    };
    char now[64], last[64];
    lapse_time_format(c->check->now, now, sizeof now);
    lapse_time_format(latest, last, sizeof last);
    lp_check_add(c, &found,
                 later == 0 ? "No event is later than %s; the latest is at %s."
                            : "Events later than %s; the latest is at %s.",
                 now, last);
}

/* last_group[type] is the first event of the last group of equal timestamps that had the type. This makes the check
 * linear: a group may be as long as the dataset. */
static bool check_duplicates(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    uint64_t *last_group = lp_grow(NULL, (size_t)dataset->types.count, sizeof *last_group);
    if (!last_group)
        return false;
    memset(last_group, 0xFF, (size_t)dataset->types.count * sizeof *last_group);
    int64_t duplicates = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        uint64_t group = dataset->start[s];
        for (uint64_t i = group; i < dataset->start[s + 1]; i++) {
            group = dataset->time[i] == dataset->time[group] ? group : i;
            duplicates += last_group[dataset->type[i]] == group;
            last_group[dataset->type[i]] = group;
        }
    }
    lp_free(last_group);
    const lp_check_result found = {
        .name = "duplicates",
        .unit = "events",
        .count = duplicates,
        .total = dataset->event_count,
        .warn = lp_check_fraction(duplicates, dataset->event_count) >= many_duplicates,
        .advice = "If they record one event twice, import with " LP_OPTION("--deduplicate exact") ".",
    };
    lp_check_add(c, &found,
                 duplicates == 0 ? "No two events have the same sequence, timestamp and event type."
                                 : "Events with the same sequence, timestamp and event type as an earlier event.");
    return true;
}

static void check_repeats(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t repeats = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            repeats += dataset->type[i] == dataset->type[i - 1];
    const lp_check_result found = {
        .name = "repeats",
        .unit = "events",
        .count = repeats,
        .total = dataset->event_count,
        .advice = "If a repeat carries no information (a page reload), import with " LP_OPTION(
            "--deduplicate consecutive") ": repeats are "
                                         "easy to predict and raise every score.",
    };
    lp_check_add(c, &found,
                 repeats == 0 ? "No event has the event type of the event before it."
                              : "Events with the event type of the event before them in their sequence.");
}

/* Sequences of one event have no history: a column that differs in every row was taken for the sequence. */
static void check_single(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t single = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        single += dataset->start[s + 1] - dataset->start[s] == 1;
    const lp_check_result found = {
        .name = "single-events",
        .unit = "sequences",
        .count = single,
        .total = dataset->sequence_count,
        .warn = lp_check_fraction(single, dataset->sequence_count) >= many_single,
        .advice = "If the sequence column is a row or order number, import with " LP_OPTION(
            "--sequence") " and the column of the user; " LP_OPTION("--min-events 2") " drops such sequences.",
    };
    const char *column = lp_dataset_property_find(dataset, "column.sequence");
    lp_check_add(c, &found,
                 single == 0 ? "Every sequence has several events."
                             : "Sequences of one event, which have no history; the sequence column is '%.80s'.",
                 column ? column : "not recorded");
}

static bool check_all(lp_check_context *c)
{
    check_ties(c);
    check_future(c);
    if (!check_duplicates(c))
        return false;
    check_repeats(c);
    check_single(c);
    return lp_check_splits(c) && lp_check_fields(c);
}

static lapse_status choose_rule(const lapse_dataset *dataset, const lapse_check_options *options,
                                const lp_split_rule **rule, lapse_error *error)
{
    *rule = options->split_by ? lp_split_rule_find(options->split_by)
                              : lp_split_rule_default(dataset, options->task ? options->task : "");
    if (*rule)
        return LAPSE_OK;
    return lp_fail(
        error, LAPSE_ERROR_USAGE,
        LP_OPTION("--split-by") " cannot be '%.40s'; it can be one of: column, sequence, leave-one-out, time",
        options->split_by);
}

lapse_status lapse_dataset_check(const lapse_dataset *dataset, const lapse_check_options *options, lapse_check *check,
                                 lapse_error *error)
{
    LP_REQUIRE(error, dataset, options, check);
    const lp_split_rule *rule;
    uint8_t *split;
    LP_TRY(choose_rule(dataset, options, &rule, error));
    if (isinf(options->now))
        return lp_fail(error, LAPSE_ERROR_USAGE, "now must be a finite timestamp");
    LP_TRY(lp_split_make(dataset, rule, options->seed, &split, error));
    lapse_check made = {.split_by = lp_split_rule_name(rule), .seed = options->seed};
    made.now = isnan(options->now) ? (double)time(NULL) : options->now;
    int64_t events[LP_SPLIT_COUNT] = {0};
    for (int64_t i = 0; i < dataset->event_count; i++)
        events[split[i]]++;
    made.train_events = events[LP_SPLIT_TRAIN];
    made.valid_events = events[LP_SPLIT_VALID];
    made.test_events = events[LP_SPLIT_TEST];
    bool good = check_all(&(lp_check_context){dataset, rule, split, &made});
    lp_free(split);
    if (!good)
        return lp_fail_memory(error, "a check", (size_t)dataset->types.count * sizeof(uint64_t));
    *check = made;
    return LAPSE_OK;
}
