#include "data/batch/batch_vocabulary.h"

lapse_status lp_batch_vocabulary_init(lp_batch_vocabulary *lists, lapse_error *error)
{
    size_t threads = (size_t)lists->threads;
    lists->marks = lp_alloc(threads, sizeof *lists->marks);
    lists->lists = lp_alloc(threads, sizeof *lists->lists);
    lists->owners = lp_alloc(threads, sizeof *lists->owners);
    bool good = lists->marks && lists->lists && lists->owners;
    for (int i = 0; good && i < lists->threads; i++)
        good = (lists->marks[i] = lp_alloc((size_t)lists->items, sizeof(lp_mark))) != NULL;
    if (good)
        return LAPSE_OK;
    lp_batch_vocabulary_clear(lists);
    return lp_fail_memory(error, "lists of items", threads * (size_t)lists->items * sizeof(lp_mark));
}

void lp_batch_vocabulary_clear(lp_batch_vocabulary *lists)
{
    for (int i = 0; lists->marks && i < lists->threads; i++)
        lp_free(lists->marks[i]);
    lp_free(lists->marks);
    lp_free(lists->lists);
    lp_free(lists->owners);
    *lists = (lp_batch_vocabulary){0};
}

/* One shard being listed. */
typedef struct listing {
    lp_mark *marks;
    uint32_t number; /* of this list */
    int32_t *items;  /* the list */
    int count;
} listing;

/* A number that no mark has yet; after the last one, all marks are wiped. */
static uint32_t next_number(lp_mark *marks, int64_t items, uint32_t *given)
{
    if (++*given == 0) {
        for (int64_t i = 0; i < items; i++)
            marks[i] = (lp_mark){0};
        *given = 1;
    }
    return *given;
}

static int32_t place_of(listing *list, int32_t item)
{
    lp_mark *mark = &list->marks[item];
    if (mark->list != list->number) {
        mark->list = list->number;
        mark->place = list->count;
        list->items[list->count++] = item;
    }
    return mark->place;
}

/* place_of for each of them. What the list consists of is kept out of memory that ids might lie in. */
static void renumber(listing *list, int32_t *ids, int count)
{
    lp_mark *const marks = list->marks;
    const uint32_t number = list->number;
    for (int i = 0; i < count; i++) {
        const lp_mark *mark = &marks[ids[i]];
        ids[i] = mark->list == number ? mark->place : place_of(list, ids[i]);
    }
}

enum { ATTEMPTS = 100 }; /* to find an item that a sequence does not have, before any will do */

/* Draws again where one of the places from .. to - 1 got an item that its sequence has. */
static void replace_owned(const lp_batch_vocabulary *lists, const lp_mark *marks, uint32_t owner, lp_batch *batch,
                          int from, int to, uint32_t step)
{
    const lp_negatives *negatives = lists->negatives;
    int count = negatives->count;
    for (int a = from; a < to; a++)
        for (int n = 0; n < count; n++) {
            int32_t *item = &batch->negative[(size_t)a * (size_t)count + (size_t)n];
            for (uint32_t attempt = 1; marks[*item].owner == owner && attempt < ATTEMPTS; attempt++)
                *item = lp_negatives_draw(negatives, step, (uint64_t)a, n, attempt);
        }
}

/* Marks the items of a sequence as its own. */
static uint32_t mark_owned(lp_batch_vocabulary *lists, int worker, int64_t sequence)
{
    lp_mark *marks = lists->marks[worker];
    uint32_t owner = next_number(marks, lists->items, &lists->owners[worker]);
    for (uint64_t i = lists->dataset->start[sequence]; i < lists->dataset->start[sequence + 1]; i++)
        marks[lists->type[i]].owner = owner;
    return owner;
}

static void draw_shard(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step)
{
    const int32_t *segment = lp_batch_segments(batch, shard);
    int target_position = batch->shard_targets[shard], end = batch->shard_targets[shard + 1];
    lp_negatives_fill(lists->negatives, step, (uint64_t)target_position, end - target_position,
                      batch->negative + (size_t)target_position * (size_t)lists->negatives->count);
    if (!lists->negatives->unseen)
        return;
    for (int w = batch->shard_window[shard], s = 0; w < batch->shard_window[shard + 1]; w++, s++) {
        int to = target_position;
        while (to < end && batch->target_position[to] < segment[s + 1])
            to++;
        if (to > target_position)
            replace_owned(lists, lists->marks[worker], mark_owned(lists, worker, batch->sequence[w]), batch,
                          target_position, to, step);
        target_position = to;
    }
}

/* Adds the draws that all places share. */
static void list_shared(const lp_negatives *negatives, uint32_t step, listing *list)
{
    int32_t drawn[64];
    enum { MOST = sizeof drawn / sizeof *drawn };
    for (int first = 0; first < negatives->shared; first += MOST) {
        int count = negatives->shared - first < MOST ? negatives->shared - first : MOST;
        lp_negatives_shared(negatives, step, first, count, drawn);
        renumber(list, drawn, count);
    }
}

void lp_batch_vocabulary_make(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step)
{
    const lp_negatives *negatives = lists->negatives;
    lp_mark *marks = lists->marks[worker];
    if (negatives->count > 0)
        draw_shard(lists, batch, shard, worker, step);
    size_t place = (size_t)shard * (size_t)batch->item_capacity;
    listing list = {marks, next_number(marks, lists->items, &lists->lists[worker]), batch->item + place, 0};
    int token = batch->shard_token[shard], target_position = batch->shard_targets[shard];
    int tokens = batch->shard_token[shard + 1] - token, count = batch->shard_targets[shard + 1] - target_position;
    renumber(&list, batch->type + token, tokens);
    renumber(&list, batch->target + target_position, count);
    renumber(&list, batch->negative + (size_t)target_position * (size_t)negatives->count, count * negatives->count);
    list_shared(negatives, step, &list);
    batch->shard_items[shard] = list.count;
    for (int i = 0; negatives->corrected && i < list.count; i++)
        batch->shift[place + (size_t)i] = lp_negatives_logq(negatives, list.items[i], tokens);
}

/* ------------------------------------------------------------------------------------------------ unions ----- */

lapse_status lp_union_init(lp_union *rows, const lp_batch *batch, lapse_error *error)
{
    size_t most = (size_t)batch->shard_count * (size_t)batch->item_capacity;
    *rows = (lp_union){.row = lp_alloc(most, sizeof *rows->row),
                       .first = lp_alloc(most + 1, sizeof *rows->first),
                       .place = lp_alloc(most, sizeof *rows->place)};
    if (rows->row && rows->first && rows->place)
        return LAPSE_OK;
    lp_union_clear(rows);
    return lp_fail_memory(error, "lists of items", 3 * most * sizeof(int32_t));
}

void lp_union_clear(lp_union *rows)
{
    lp_free(rows->row);
    lp_free(rows->first);
    lp_free(rows->place);
    *rows = (lp_union){0};
}

/* That of one shard is its list. */
static void copy_list(lp_union *rows, const lp_batch *batch)
{
    rows->count = batch->shard_items[0];
    for (int32_t i = 0; i < rows->count; i++) {
        rows->row[i] = batch->item[i];
        rows->first[i] = rows->place[i] = i;
    }
    rows->first[rows->count] = rows->count;
}

void lp_union_make(lp_union *rows, lp_batch_vocabulary *lists, const lp_batch *batch)
{
    if (batch->shard_count == 1) {
        copy_list(rows, batch);
        return;
    }
    lp_mark *marks = lists->marks[0];
    listing list = {marks, next_number(marks, lists->items, &lists->lists[0]), rows->row, 0};
    int32_t *next = rows->first + 1; /* next[i]: the places of row i, then where they begin, then where they end */
    for (int shard = 0; shard < batch->shard_count; shard++) {
        const int32_t *items = batch->item + (size_t)shard * (size_t)batch->item_capacity;
        for (int i = 0; i < batch->shard_items[shard]; i++) {
            int before = list.count;
            int32_t place = place_of(&list, items[i]);
            next[place] = list.count > before ? 1 : next[place] + 1;
        }
    }
    int32_t sum = 0;
    for (int i = 0; i < list.count; i++) {
        int32_t places = next[i];
        next[i] = sum;
        sum += places;
    }
    for (int shard = 0; shard < batch->shard_count; shard++) {
        int32_t first = shard * batch->item_capacity;
        for (int i = 0; i < batch->shard_items[shard]; i++)
            rows->place[next[marks[batch->item[first + i]].place]++] = first + i;
    }
    rows->first[0] = 0;
    rows->count = list.count;
}
