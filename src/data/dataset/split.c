/* split.c: the table of split rules. docs/dataset.md defines them exactly.
 *
 *   column         the split column of the source
 *   sequence       whole sequences in random order: 80 % train, 10 % valid, 10 % test
 *   leave-one-out  per sequence: last event test, the one before valid, others train; under 3 events: all train
 *   time           whole sequences by the time of their first event: first 80 % train, then 10 % valid, 10 % test
 *   session        whole sessions, likewise; a session ends where no event follows within 30 minutes
 *
 * Fractions are exact: sequences are sorted by a key, and the sorted list is divided. The random key of a sequence
 * depends only on the seed and on its index in the dataset.
 */
#include "data/dataset/split.h"

#include "base/assert.h"
#include "base/random.h"
#include "base/text.h"
#include "lapse_lab.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_GAP (30 * 60.0) /* seconds */

/* A sequence, or a session, and its sort key. */
typedef struct sort_key {
    union {
        uint64_t number;
        double time;
    };
    int64_t index;       /* of the sequence or session */
    uint64_t first, end; /* events */
} sort_key;

static int by_index(const sort_key *a, const sort_key *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

static int by_number(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return by_index(a, b);
}

static int by_time(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return by_index(a, b);
}

/* One key per sequence or session (unit); the caller frees them. */
static lapse_status new_keys(int64_t count, const char *unit, sort_key **keys, lapse_error *error)
{
    if (count < 3)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "%" PRId64
                       " %s%s cannot be split into train, valid and test: at least 3 are required, or a split column "
                       "in the source",
                       count, unit, count == 1 ? "" : "s");
    *keys = lp_alloc((size_t)count, sizeof **keys);
    return *keys ? LAPSE_OK : lp_fail_memory(error, "the split", (size_t)count * sizeof **keys);
}

/* Divides the sorted keys 80/10/10 with at least one in each split. Frees keys. */
static void assign_splits(sort_key *keys, int64_t count, uint8_t *split)
{
    int64_t valid_end = (count * 9 + 5) / 10, train_end = (count * 8 + 5) / 10;
    valid_end = valid_end < count - 1 ? valid_end : count - 1;
    train_end = train_end < valid_end - 1 ? train_end : valid_end - 1;
    LP_ASSERT(0 < train_end && train_end < valid_end && valid_end < count);
    for (int64_t i = 0; i < count; i++) {
        LP_ASSERT(i == 0 || keys[i - 1].index != keys[i].index);
        lp_split part = i < train_end ? LP_SPLIT_TRAIN : i < valid_end ? LP_SPLIT_VALID : LP_SPLIT_TEST;
        memset(split + keys[i].first, part, keys[i].end - keys[i].first);
    }
    lp_free(keys);
}

static lapse_status split_by_sequence(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    sort_key *keys = NULL;
    LP_TRY(new_keys(dataset->sequence_count, "sequence", &keys, error));
    for (int64_t i = 0; i < dataset->sequence_count; i++) {
        lp_random_block block = lp_philox(seed, LP_PURPOSE_SPLIT, 0, (uint64_t)i);
        keys[i] = (sort_key){.number = (uint64_t)block.word[0] << 32 | block.word[1],
                             .index = i,
                             .first = dataset->start[i],
                             .end = dataset->start[i + 1]};
    }
    qsort(keys, (size_t)dataset->sequence_count, sizeof *keys, by_number);
    assign_splits(keys, dataset->sequence_count, split);
    return LAPSE_OK;
}

static lapse_status split_by_time(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    sort_key *keys = NULL;
    LP_TRY(new_keys(dataset->sequence_count, "sequence", &keys, error));
    for (int64_t i = 0; i < dataset->sequence_count; i++)
        keys[i] = (sort_key){.time = dataset->time[dataset->start[i]],
                             .index = i,
                             .first = dataset->start[i],
                             .end = dataset->start[i + 1]};
    qsort(keys, (size_t)dataset->sequence_count, sizeof *keys, by_time);
    assign_splits(keys, dataset->sequence_count, split);
    return LAPSE_OK;
}

/* The number of sessions; fills keys, if that is not NULL. */
static int64_t find_sessions(const lapse_dataset *dataset, sort_key *keys)
{
    int64_t count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t first = dataset->start[s], end; first < dataset->start[s + 1]; first = end, count++) {
            for (end = first + 1; end < dataset->start[s + 1]; end++)
                if (dataset->time[end] - dataset->time[end - 1] > SESSION_GAP)
                    break;
            if (keys)
                keys[count] = (sort_key){.time = dataset->time[first], .index = count, .first = first, .end = end};
        }
    return count;
}

static lapse_status split_by_session(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    sort_key *keys = NULL;
    int64_t count = find_sessions(dataset, NULL);
    LP_TRY(new_keys(count, "session", &keys, error));
    find_sessions(dataset, keys);
    qsort(keys, (size_t)count, sizeof *keys, by_time);
    assign_splits(keys, count, split);
    return LAPSE_OK;
}

static lapse_status leave_one_out(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    bool some = false;
    memset(split, LP_SPLIT_TRAIN, (size_t)dataset->event_count);
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        uint64_t end = dataset->start[s + 1];
        if (end - dataset->start[s] < 3)
            continue;
        split[end - 1] = LP_SPLIT_TEST;
        split[end - 2] = LP_SPLIT_VALID;
        some = true;
    }
    if (!some)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "leave-one-out requires a sequence of at least 3 events: one each for train, valid and test");
    return LAPSE_OK;
}

static lapse_status split_by_column(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    if (!dataset->split)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the dataset has no split column: import it with " LP_OPTION(
                           "--split-column COLUMN") ", or choose another " LP_OPTION("--split-by") " rule");
    memcpy(split, dataset->split, (size_t)dataset->event_count);
    int64_t counts[LP_SPLIT_COUNT] = {0};
    for (int64_t i = 0; i < dataset->event_count; i++)
        counts[split[i]]++;
    for (int part = LP_SPLIT_TRAIN; part <= LP_SPLIT_VALID; part++)
        if (counts[part] == 0)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "the split column has no '%s' events: add some, or choose another " LP_OPTION(
                               "--split-by") " rule such as "
                                             "'sequence'",
                           lp_split_name((lp_split)part));
    return LAPSE_OK;
}

enum { COLUMN, SEQUENCE, LEAVE_ONE_OUT, TIME, SESSION, RULES };

static const char *const names[RULES + 1] = {
    [COLUMN] = "column", [SEQUENCE] = "sequence", [LEAVE_ONE_OUT] = "leave-one-out",
    [TIME] = "time",     [SESSION] = "session",
};

static const lp_split_rule rules[RULES] = {
    [COLUMN] = {true, false, split_by_column},      [SEQUENCE] = {false, false, split_by_sequence},
    [LEAVE_ONE_OUT] = {true, false, leave_one_out}, [TIME] = {false, false, split_by_time},
    [SESSION] = {true, true, split_by_session},
};

const char *const *lapse_split_by_names(void)
{
    return names;
}

const lp_split_rule *lp_split_rule_find(const char *name)
{
    int index = lp_name_index(name, names);
    return index < 0 ? NULL : &rules[index];
}

const char *lp_split_rule_name(const lp_split_rule *rule)
{
    return names[rule - rules];
}

const lp_split_rule *lp_split_rule_default(const lapse_dataset *dataset, const char *task)
{
    if (dataset->split)
        return &rules[COLUMN];
    return &rules[strcmp(task, "recommend") == 0 ? LEAVE_ONE_OUT : SEQUENCE];
}

lapse_status lp_split_make(const lapse_dataset *dataset, const lp_split_rule *rule, uint64_t seed, uint8_t **split,
                           lapse_error *error)
{
    uint8_t *made = lp_alloc((size_t)dataset->event_count, 1);
    if (!made)
        return lp_fail_memory(error, "the split", (size_t)dataset->event_count);
    lapse_status status = rule->make(dataset, seed, made, error);
    for (int64_t i = 0; status == LAPSE_OK && i < dataset->event_count; i++)
        LP_ASSERT(made[i] <= LP_SPLIT_NONE);
    if (status == LAPSE_OK)
        *split = made;
    else
        lp_free(made);
    return status;
}

lapse_status lp_split_end(const lapse_dataset *dataset, const lp_split_rule *rule, const uint8_t *split,
                          lp_split wanted, double *end, lapse_error *error)
{
    double last = -INFINITY, last_seen = -INFINITY, first_later = INFINITY;
    bool divided = false;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        uint64_t later = 0;
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            double time = dataset->time[i];
            last = fmax(last, time);
            if (split[i] > (uint8_t)wanted)
                first_later = fmin(first_later, time);
            else
                last_seen = fmax(last_seen, time);
            later += split[i] > (uint8_t)wanted;
        }
        divided |= later > 0 && later < dataset->start[s + 1] - dataset->start[s];
    }
    *end = divided ? first_later : last;
    if (!divided || rule->at_a_time || last_seen <= first_later)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the split by '%s' has no time up to which all its training sequences are observed: "
                   "use " LP_OPTION("--split-by sequence") ", time or session",
                   lp_split_rule_name(rule));
}
