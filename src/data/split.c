/* split.c: exact shares rather than a coin for each sequence: sequences are ordered by a random number of their own,
 * and the order is cut. A sequence's number depends on the seed and its place in the dataset alone. */
#include "data/split.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct ticket {
    uint64_t number;
    int64_t sequence;
} ticket;

static int by_number(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static lapse_status by_chance(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error)
{
    int64_t count = dataset->sequence_count;
    if (count < 3)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "%" PRId64
                       " sequence%s cannot be split into train, valid and test: at least 3 are needed, or a column "
                       "of the source that says which split each event is in",
                       count, count == 1 ? "" : "s");
    ticket *tickets = lp_alloc((size_t)count, sizeof *tickets);
    if (!tickets)
        return lp_fail_memory(error, "the split", (size_t)count * sizeof *tickets);
    for (int64_t i = 0; i < count; i++) {
        lp_random_block block = lp_philox(seed, LP_PURPOSE_SPLIT, 0, (uint64_t)i);
        tickets[i] = (ticket){(uint64_t)block.word[0] << 32 | block.word[1], i};
    }
    qsort(tickets, (size_t)count, sizeof *tickets, by_number);
    int64_t valid_end = (count * 9 + 5) / 10, train_end = (count * 8 + 5) / 10;
    valid_end = valid_end < count - 1 ? valid_end : count - 1;
    train_end = train_end < valid_end - 1 ? train_end : valid_end - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t s = tickets[i].sequence;
        lp_split part = i < train_end ? LP_SPLIT_TRAIN : i < valid_end ? LP_SPLIT_VALID : LP_SPLIT_TEST;
        memset(split + dataset->start[s], part, dataset->start[s + 1] - dataset->start[s]);
    }
    lp_free(tickets);
    return LAPSE_OK;
}

static lapse_status check(const lapse_dataset *dataset, const uint8_t *split, lapse_error *error)
{
    int64_t counts[LP_SPLIT_COUNT] = {0};
    for (int64_t i = 0; i < dataset->event_count; i++)
        counts[split[i]]++;
    for (int part = LP_SPLIT_TRAIN; part <= LP_SPLIT_VALID; part++)
        if (counts[part] == 0)
            return lp_fail(
                error, LAPSE_ERROR_USAGE,
                "no event is in the split '%s': mark some in the split column, or import without that column to "
                "split by sequence",
                lp_split_name((lp_split)part));
    return LAPSE_OK;
}

lapse_status lp_split_make(const lapse_dataset *dataset, uint64_t seed, uint8_t **split, lapse_error *error)
{
    uint8_t *made = lp_alloc((size_t)dataset->event_count, 1);
    if (!made)
        return lp_fail_memory(error, "the split", (size_t)dataset->event_count);
    lapse_status status = LAPSE_OK;
    if (dataset->split)
        memcpy(made, dataset->split, (size_t)dataset->event_count);
    else
        status = by_chance(dataset, seed, made, error);
    if (status == LAPSE_OK)
        status = check(dataset, made, error);
    if (status == LAPSE_OK)
        *split = made;
    else
        lp_free(made);
    return status;
}
