/* check_fields.c: target leakage: fields that give the next event away, such as a column "next page" that an export
 * added.
 *
 * A model sees the fields of past events. A field leaks if its value at one event names the event type or action of
 * the next event: by its text, or by a rule (the value's majority successor in training) that holds for the held-out
 * events. The event's own type or action is the baseline: where it predicts the next as well, the data is
 * deterministic and nothing leaks.
 */
#include "data/check/check.h"

#include "base/text.h"
#include "data/dataset/gap_quantile.h"
#include "data/dataset/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fraction of the held-out events that a leaking field predicts. */
static const double leak_threshold = 0.9;

/* Boyer-Moore majority vote over a value's successors: a majority, if present is one, remains as candidate. */
typedef struct vote {
    int32_t candidate;
    int64_t lead;
} vote;

/* The target that a field may leak: the event type, or the action. */
typedef struct target_column {
    const char *word;
    const int32_t *column;
    const lp_names *names;
} target_column;

typedef struct leaking_field {
    const char *name, *word;
    int64_t right, by_itself; /* held-out events predicted by the field, and by the event's own type or action */
} leaking_field;

/* Counts the held-out events i that the majority successor of values[i - 1] predicts. Values are below `count`, or -1
 * for none. */
static bool count_by_votes(const lp_check_context *c, const target_column *target, const int32_t *values, int64_t count,
                           int64_t *right)
{
    const lapse_dataset *dataset = c->dataset;
    vote *votes = lp_alloc((size_t)count, sizeof *votes);
    if (!votes)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t s = 0; s < dataset->sequence_count; s++) {
            for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++) {
                bool train = c->split[i] == LP_SPLIT_TRAIN;
                if (values[i - 1] < 0 || train != (pass == 0))
                    continue;
                vote *v = &votes[values[i - 1]];
                if (!train)
                    *right += v->lead > 0 && v->candidate == target->column[i];
                else if (v->lead == 0)
                    *v = (vote){target->column[i], 1};
                else
                    v->lead += v->candidate == target->column[i] ? 1 : -1;
            }
        }
    }
    lp_free(votes);
    return true;
}

/* Counts the held-out events whose target has the name of the category before. */
static bool count_by_names(const lp_check_context *c, const target_column *target, const lp_field *field,
                           int64_t *right)
{
    const lapse_dataset *dataset = c->dataset;
    lp_intern names = {0};
    int32_t *named = lp_alloc((size_t)field->categories.count, sizeof *named); /* [categories]: id of the target with
                                                                                * that name, or -1 */
    bool good = named != NULL, added;
    for (int64_t k = 0; good && k < target->names->count + field->categories.count; k++) {
        bool is_target = k < target->names->count;
        const char *name =
            is_target ? lp_names_get(target->names, k) : lp_names_get(&field->categories, k - target->names->count);
        size_t size = strlen(name);
        uint32_t number = lp_intern_add(&names, name, size, lp_intern_key(name, size), &added);
        good = number != LP_INTERN_NONE;
        if (good && !is_target)
            named[k - target->names->count] = number < target->names->count ? (int32_t)number : -1;
    }
    for (int64_t s = 0; good && s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            *right += c->split[i] != LP_SPLIT_TRAIN && named[field->category[i - 1]] == target->column[i];
    lp_intern_clear(&names);
    lp_free(named);
    return good;
}

/* Dense ranks: equal numbers get the same id, missing ones -1. The caller frees *values. */
static bool rank_numbers(const double *numbers, int64_t count, int32_t **values, int64_t *distinct)
{
    double *sorted = lp_grow(NULL, (size_t)count, sizeof *sorted);
    *values = lp_grow(NULL, (size_t)count, sizeof **values);
    *distinct = 0;
    if (!sorted || !*values) {
        lp_free(sorted);
        return false;
    }
    int64_t present = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(numbers[i]))
            sorted[present++] = numbers[i];
    qsort(sorted, (size_t)present, sizeof *sorted, lp_compare_numbers);
    for (int64_t i = 0; i < present; i++)
        if (*distinct == 0 || sorted[i] != sorted[*distinct - 1])
            sorted[(*distinct)++] = sorted[i];
    for (int64_t i = 0; i < count; i++) {
        const double *found = isnan(numbers[i])
                                  ? NULL
                                  : bsearch(&numbers[i], sorted, (size_t)*distinct, sizeof *sorted, lp_compare_numbers);
        (*values)[i] = found ? (int32_t)(found - sorted) : -1;
    }
    lp_free(sorted);
    return true;
}

static bool count_field(const lp_check_context *c, const target_column *target, const lp_field *field, int64_t *right)
{
    int64_t by_text = 0, by_rule = 0;
    bool good;
    if (field->type == LAPSE_FIELD_NUMBER) {
        int32_t *values;
        int64_t distinct;
        good = rank_numbers(field->number, c->dataset->event_count, &values, &distinct) &&
               count_by_votes(c, target, values, distinct, &by_rule);
        lp_free(values);
    } else {
        good = count_by_votes(c, target, field->category, field->categories.count, &by_rule) &&
               count_by_names(c, target, field, &by_text);
    }
    *right = by_text > by_rule ? by_text : by_rule;
    return good;
}

/* Sets leaks[field] for the fields that leak this target; *most becomes the field that predicts most. */
static bool find_leaks(const lp_check_context *c, const target_column *target, int64_t targets, bool *leaks,
                       leaking_field *most)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t by_itself = 0;
    if (!count_by_votes(c, target, target->column, target->names->count, &by_itself))
        return false;
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        int64_t right = 0;
        if (field->category == target->column)
            continue;
        if (!count_field(c, target, field, &right))
            return false;
        bool adds = by_itself < targets &&
                    2 * (targets - right) <= targets - by_itself; /* at most half of the baseline's errors */
        if (!adds || lp_check_fraction(right, targets) < leak_threshold)
            continue;
        leaks[f] = true;
        if (right > most->right)
            *most = (leaking_field){field->name, target->word, right, by_itself};
    }
    return true;
}

bool lp_check_fields(lp_check_context *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t targets = 0, fields = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            targets += c->split[i] != LP_SPLIT_TRAIN;
    bool leaks[LP_FIELD_LIMIT] = {false};
    leaking_field most = {0};
    const target_column types = {"event type", dataset->type, &dataset->types};
    if (targets > 0 && dataset->field_count > 0 && !find_leaks(c, &types, targets, leaks, &most))
        return false;
    if (targets > 0 && dataset->field_count > 0 && dataset->fields[0].type == LAPSE_FIELD_ACTION) {
        const target_column actions = {"action", dataset->fields[0].category, &dataset->fields[0].categories};
        if (!find_leaks(c, &actions, targets, leaks, &most))
            return false;
    }
    for (int f = 0; f < dataset->field_count; f++)
        fields += leaks[f];
    const lp_check_result found = {
        .name = "leaking-fields",
        .unit = "fields",
        .count = fields,
        .total = dataset->field_count,
        .warn = true,
        .advice = "If a field is known only after the next event, do not import it.",
    };
    char name[LP_EXCERPT_SIZE] = "";
    if (most.name)
        lp_text_excerpt(most.name, most.name + strlen(most.name), name);
    if (fields > 0)
        lp_check_add(
            c, &found,
            "The field '%s' predicts the %s of the next event in %.1f %% of valid and test events; the %s of the "
            "event itself in %.1f %%.",
            name, most.word, 100 * lp_check_fraction(most.right, targets), most.word,
            100 * lp_check_fraction(most.by_itself, targets));
    else
        lp_check_add(c, &found, "No field predicts the next event.");
    return true;
}
