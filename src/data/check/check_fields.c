/* check_fields.c: fields that give the next event away, such as a column "next page" that an export added.
 *
 * A model sees the fields of past events. A field tells too much if its value at one event names the event type of the next, or
 * its action: by its very text, or by a rule that training shows (the value's most frequent successor) and the held-out
 * events obey. The event type or action of the event itself is held against it: where that tells as much, the law of the data is
 * simply strict.
 */
#include "data/check/check.h"

#include "base/text.h"
#include "data/dataset/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From which share of the held-out events on a field tells too much. */
static const double telling = 0.9;

/* A value's majority successor, found in one pass: whoever has more than half of the votes is left with some. */
typedef struct vote {
    int32_t answer;
    int64_t lead;
} vote;

/* What is to be told: the event types, or their actions. */
typedef struct answer_column {
    const char *word;
    const int32_t *column;
    const lp_names *names;
} answer_column;

typedef struct telling_field {
    const char *name, *word;
    int64_t right, by_itself; /* held-out events whose answer it told, and the event itself */
} telling_field;

/* Held-out events that values[i - 1], below `count` or -1, tells the answer of. */
static bool count_by_votes(const lp_checking *c, const answer_column *answers, const int32_t *values, int64_t count,
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
                    *right += v->lead > 0 && v->answer == answers->column[i];
                else if (v->lead == 0)
                    *v = (vote){answers->column[i], 1};
                else
                    v->lead += v->answer == answers->column[i] ? 1 : -1;
            }
        }
    }
    lp_free(votes);
    return true;
}

/* The same by text: a category that is called as the next answer. */
static bool count_by_names(const lp_checking *c, const answer_column *answers, const lp_field *field, int64_t *right)
{
    const lapse_dataset *dataset = c->dataset;
    lp_intern names = {0};
    int32_t *named = lp_alloc((size_t)field->categories.count, sizeof *named); /* the answer of that name */
    bool good = named != NULL, added;
    for (int64_t k = 0; good && k < answers->names->count + field->categories.count; k++) {
        bool answer = k < answers->names->count;
        const char *name =
            answer ? lp_names_get(answers->names, k) : lp_names_get(&field->categories, k - answers->names->count);
        size_t size = strlen(name);
        uint32_t number = lp_intern_add(&names, name, size, lp_intern_key(name, size), &added);
        good = number != LP_INTERN_NONE;
        if (good && !answer)
            named[k - answers->names->count] = number < answers->names->count ? (int32_t)number : -1;
    }
    for (int64_t s = 0; good && s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            *right += c->split[i] != LP_SPLIT_TRAIN && named[field->category[i - 1]] == answers->column[i];
    lp_intern_clear(&names);
    lp_free(named);
    return good;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Numbers as categories: equal ones get the same value, missing ones -1. values is the caller's. */
static bool rank_numbers(const double *numbers, int64_t count, int32_t **values, int64_t *distinct)
{
    double *sorted = lp_grow(NULL, (size_t)count, sizeof *sorted);
    *values = lp_grow(NULL, (size_t)count, sizeof **values);
    *distinct = 0;
    if (!sorted || !*values) {
        lp_free(sorted);
        return false;
    }
    int64_t there = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(numbers[i]))
            sorted[there++] = numbers[i];
    qsort(sorted, (size_t)there, sizeof *sorted, by_value);
    for (int64_t i = 0; i < there; i++)
        if (*distinct == 0 || sorted[i] != sorted[*distinct - 1])
            sorted[(*distinct)++] = sorted[i];
    for (int64_t i = 0; i < count; i++) {
        const double *found =
            isnan(numbers[i]) ? NULL : bsearch(&numbers[i], sorted, (size_t)*distinct, sizeof *sorted, by_value);
        (*values)[i] = found ? (int32_t)(found - sorted) : -1;
    }
    lp_free(sorted);
    return true;
}

static bool count_field(const lp_checking *c, const answer_column *answers, const lp_field *field, int64_t *right)
{
    int64_t by_text = 0, by_rule = 0;
    bool good;
    if (field->type == LAPSE_FIELD_NUMBER) {
        int32_t *values;
        int64_t distinct;
        good = rank_numbers(field->number, c->dataset->event_count, &values, &distinct) &&
               count_by_votes(c, answers, values, distinct, &by_rule);
        lp_free(values);
    } else {
        good = count_by_votes(c, answers, field->category, field->categories.count, &by_rule) &&
               count_by_names(c, answers, field, &by_text);
    }
    *right = by_text > by_rule ? by_text : by_rule;
    return good;
}

/* Adds the fields that tell these answers to tells[field], and keeps the one that tells most. */
static bool look_for(const lp_checking *c, const answer_column *answers, int64_t target_position, bool *tells,
                     telling_field *most)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t by_itself = 0;
    if (!count_by_votes(c, answers, answers->column, answers->names->count, &by_itself))
        return false;
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        int64_t right = 0;
        if (field->category == answers->column)
            continue;
        if (!count_field(c, answers, field, &right))
            return false;
        bool adds = by_itself < target_position &&
                    2 * (target_position - right) <= target_position - by_itself; /* half of the errors, or fewer */
        if (!adds || lp_check_share(right, target_position) < telling)
            continue;
        tells[f] = true;
        if (right > most->right)
            *most = (telling_field){field->name, answers->word, right, by_itself};
    }
    return true;
}

bool lp_check_fields(lp_checking *c)
{
    const lapse_dataset *dataset = c->dataset;
    int64_t target_position = 0, fields = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            target_position += c->split[i] != LP_SPLIT_TRAIN;
    bool tells[LP_FIELD_LIMIT] = {false};
    telling_field most = {0};
    const answer_column types = {"event type", dataset->type, &dataset->types};
    if (target_position > 0 && dataset->field_count > 0 && !look_for(c, &types, target_position, tells, &most))
        return false;
    if (target_position > 0 && dataset->field_count > 0 && dataset->fields[0].type == LAPSE_FIELD_ACTION) {
        const answer_column actions = {"action", dataset->fields[0].category, &dataset->fields[0].categories};
        if (!look_for(c, &actions, target_position, tells, &most))
            return false;
    }
    for (int f = 0; f < dataset->field_count; f++)
        fields += tells[f];
    const lp_found found = {
        .name = "telling-fields",
        .unit = "fields",
        .count = fields,
        .total = dataset->field_count,
        .warn = true,
        .advice = "Where a field is only known afterwards, leave it out of the import.",
    };
    char name[LP_EXCERPT_SIZE] = "";
    if (most.name)
        lp_text_excerpt(most.name, most.name + strlen(most.name), name);
    if (fields > 0)
        lp_check_add(c, &found,
                     "The field '%s' of an event tells the %s of the next in %.1f %% of valid and test events, "
                     "against %.1f %% by the %s of the event itself.",
                     name, most.word, 100 * lp_check_share(most.right, target_position),
                     100 * lp_check_share(most.by_itself, target_position), most.word);
    else
        lp_check_add(c, &found, "No field of an event gives the next one away.");
    return true;
}
