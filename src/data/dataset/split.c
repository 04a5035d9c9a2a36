/* split.c: the rules, and their table.
 *
 *   column         what the source says of each event
 *   sequence       whole sequences by chance: 80 % train, 10 % valid, 10 % test
 *   leave-one-out  the last event of a sequence is test, the one before valid; a sequence of fewer than 3 only trains
 *   time           whole sequences by when they start: the first 80 % train, then 10 % valid, the latest 10 % test
 *
 * Shares are exact rather than a coin for each sequence: sequences are put in an order, and the order is cut. A
 * sequence's random number depends on the seed and its place in the dataset alone.
 */
#include "data/dataset/split.h"

#include "base/random.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A sequence, and the number that orders it. */
typedef struct ticket {
    union {
        uint64_t number;
        double time;
    };
    int64_t sequence;
} ticket;

static int by_place(const ticket *a, const ticket *b)
{
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static int by_number(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return by_place(a, b);
}

static int by_time(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return by_place(a, b);
}

/* One ticket for each sequence; the caller's. */
static lapse_status make_tickets(const lapse_dataset *dataset, ticket **tickets, lapse_error *error)
{
    int64_t count = dataset->sequence_count;
    if (count < 3)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "%" PRId64
                       " sequence%s cannot be split into train, valid and test: at least 3 are needed, or a column "
                       "of the source that says which split each event is in",
                       count, count == 1 ? "" : "s");
    *tickets = lp_alloc((size_t)count, sizeof **tickets);
    return *tickets ? LAPSE_OK : lp_fail_memory(error, "the split", (size_t)count * sizeof **tickets);
}

/* Cuts the order of the tickets, which are freed. */
static void cut(const lapse_dataset *dataset, ticket *tickets, uint8_t *split)
{
    int64_t count = dataset->sequence_count;
    int64_t valid_end = (count * 9 + 5) / 10, train_end = (count * 8 + 5) / 10;
    valid_end = valid_end < count - 1 ? valid_end : count - 1;
    train_end = train_end < valid_end - 1 ? train_end : valid_end - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t s = tickets[i].sequence;
        lp_split part = i < train_end ? LP_SPLIT_TRAIN : i < valid_end ? LP_SPLIT_VALID : LP_SPLIT_TEST;
        memset(split + dataset->start[s], part, dataset->start[s + 1] - dataset->start[s]);
    }
    lp_free(tickets);
}

static lapse_status split_by_sequence(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    ticket *tickets = NULL;
    LP_TRY(make_tickets(dataset, &tickets, error));
    for (int64_t i = 0; i < dataset->sequence_count; i++) {
        lp_random_block block = lp_philox(seed, LP_PURPOSE_SPLIT, 0, (uint64_t)i);
        tickets[i] = (ticket){.number = (uint64_t)block.word[0] << 32 | block.word[1], .sequence = i};
    }
    qsort(tickets, (size_t)dataset->sequence_count, sizeof *tickets, by_number);
    cut(dataset, tickets, split);
    return LAPSE_OK;
}

static lapse_status split_by_time(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    ticket *tickets = NULL;
    LP_TRY(make_tickets(dataset, &tickets, error));
    for (int64_t i = 0; i < dataset->sequence_count; i++)
        tickets[i] = (ticket){.time = dataset->time[dataset->start[i]], .sequence = i};
    qsort(tickets, (size_t)dataset->sequence_count, sizeof *tickets, by_time);
    cut(dataset, tickets, split);
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
                       "no sequence has the 3 events that leave-one-out needs: one to learn from, one to validate "
                       "with and one to test");
    return LAPSE_OK;
}

static lapse_status split_by_column(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    (void)seed;
    if (!dataset->split)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the dataset cannot be split by a column, since none was imported: import it with "
                       "--split-column COLUMN, or choose another rule");
    memcpy(split, dataset->split, (size_t)dataset->event_count);
    int64_t counts[LP_SPLIT_COUNT] = {0};
    for (int64_t i = 0; i < dataset->event_count; i++)
        counts[split[i]]++;
    for (int part = LP_SPLIT_TRAIN; part <= LP_SPLIT_VALID; part++)
        if (counts[part] == 0)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "no event is in the split '%s': mark some in the split column, or choose another rule than "
                           "'column', such as 'sequence'",
                           lp_split_name((lp_split)part));
    return LAPSE_OK;
}

enum { COLUMN, SEQUENCE, LEAVE_ONE_OUT, TIME, RULES };

static const char *const names[RULES + 1] = {
    [COLUMN] = "column",
    [SEQUENCE] = "sequence",
    [LEAVE_ONE_OUT] = "leave-one-out",
    [TIME] = "time",
};

static const lp_split_rule rules[RULES] = {
    [COLUMN] = {true, split_by_column},
    [SEQUENCE] = {false, split_by_sequence},
    [LEAVE_ONE_OUT] = {true, leave_one_out},
    [TIME] = {false, split_by_time},
};

const char *const *lapse_split_by_names(void)
{
    return names;
}

const lp_split_rule *lp_split_rule_find(const char *name)
{
    int place = lp_name_index(name, names);
    return place < 0 ? NULL : &rules[place];
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
    if (status == LAPSE_OK)
        *split = made;
    else
        lp_free(made);
    return status;
}
