/* batch_vocabulary.c: samples negatives, lists the distinct items of each shard, and forms the union of the lists. */
#include "data/batch/batch_vocabulary.h"

#include "base/assert.h"

lapse_status lp_batch_vocabulary_init(lp_batch_vocabulary *lists, lapse_error *error)
{
    size_t threads = (size_t)lists->threads;
    lists->marks = lp_alloc(threads, sizeof *lists->marks);
    lists->lists = lp_alloc(threads, sizeof *lists->lists);
    lists->sequences = lp_alloc(threads, sizeof *lists->sequences);
    bool good = lists->marks && lists->lists && lists->sequences;
    for (int i = 0; good && i < lists->threads; i++)
        good = (lists->marks[i] = lp_alloc((size_t)lists->items, sizeof(lp_mark))) != NULL;
    if (good)
        return LAPSE_OK;
    lp_batch_vocabulary_clear(lists);
    return lp_fail_memory(error, "the batch vocabulary", threads * (size_t)lists->items * sizeof(lp_mark));
}

void lp_batch_vocabulary_clear(lp_batch_vocabulary *lists)
{
    for (int i = 0; lists->marks && i < lists->threads; i++)
        lp_free(lists->marks[i]);
    lp_free(lists->marks);
    lp_free(lists->lists);
    lp_free(lists->sequences);
    *lists = (lp_batch_vocabulary){0};
}

/* The item list of one shard, while it is built. */
typedef struct item_list {
    lp_mark *marks;
    uint32_t stamp; /* equals lp_mark.list of the items that the list has */
    int32_t *items;
    int count, capacity;
    int64_t catalogue; /* all items */
} item_list;

/* A stamp that no mark has yet. Stamps make clearing the marks between lists unnecessary; after the last one, all
 * marks are cleared. */
static uint32_t next_stamp(lp_mark *marks, int64_t items, uint32_t *given)
{
    if (++*given == 0) {
        for (int64_t i = 0; i < items; i++)
            marks[i] = (lp_mark){0};
        *given = 1;
    }
    return *given;
}

static int32_t index_of(item_list *list, int32_t item)
{
    lp_mark *mark = &list->marks[item];
    if (mark->list != list->stamp) {
        LP_ASSERT(list->count < list->capacity);
        mark->list = list->stamp;
        mark->index = list->count;
        list->items[list->count++] = item;
    }
    LP_ASSERT(list->items[mark->index] == item);
    return mark->index;
}

/* Replaces item ids by their indices in the list. Local copies tell the compiler that ids does not alias them. */
static void renumber(item_list *list, int32_t *ids, int count)
{
    lp_mark *const marks = list->marks;
    const uint32_t stamp = list->stamp;
    for (int i = 0; i < count; i++) {
        LP_ASSERT(ids[i] >= 0 && ids[i] < list->catalogue);
        const lp_mark *mark = &marks[ids[i]];
        ids[i] = mark->list == stamp ? mark->index : index_of(list, ids[i]);
    }
}

/* What the negatives of a shard are sampled from: the catalogue, or the targets of the shard. */
typedef struct shard_pool {
    lp_negatives negatives;
    const int32_t *targets; /* NULL: a sample is an item */
} shard_pool;

static int32_t item_of_sample(const shard_pool *pool, int32_t sample)
{
    return pool->targets ? pool->targets[sample] : sample;
}

enum { ATTEMPTS = 100 }; /* rejections until an item of the sequence itself is accepted */

/* Rejection sampling: replaces the negatives of labels from .. to - 1 that occur in their own sequence. */
static void reject_seen(const shard_pool *pool, const lp_mark *marks, uint32_t seen, lp_batch *batch, int from, int to,
                        uint32_t step)
{
    const lp_negatives *negatives = &pool->negatives;
    int count = negatives->count;
    for (int a = from; a < to; a++)
        for (int n = 0; n < count; n++) {
            int32_t *item = &batch->negative[(size_t)a * (size_t)count + (size_t)n];
            for (uint32_t attempt = 1; marks[*item].sequence == seen && attempt < ATTEMPTS; attempt++)
                *item = item_of_sample(pool, lp_negatives_sample(negatives, step, (uint64_t)a, n, attempt));
        }
}

/* Stamps the items of a sequence as seen. */
static uint32_t mark_seen(lp_batch_vocabulary *lists, int worker, int64_t sequence)
{
    lp_mark *marks = lists->marks[worker];
    uint32_t stamp = next_stamp(marks, lists->items, &lists->sequences[worker]);
    for (uint64_t i = lists->dataset->start[sequence]; i < lists->dataset->start[sequence + 1]; i++)
        marks[lists->type[i]].sequence = stamp;
    return stamp;
}

static void sample_negatives(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step)
{
    const int32_t *segment = lp_batch_segments(batch, shard);
    const int32_t *position = batch->target_position + batch->shard_targets[shard];
    int from = batch->shard_labels[shard], end = batch->shard_labels[shard + 1];
    size_t count = (size_t)lists->negatives->count;
    int32_t *samples = batch->negative + (size_t)from * count;
    shard_pool pool = {*lists->negatives, NULL};
    if (pool.negatives.sampling == LP_NEGATIVES_IN_BATCH) {
        pool.negatives.items = end - from;
        pool.targets = batch->target + from;
    }
    lp_negatives_fill(&pool.negatives, step, (uint64_t)from, end - from, samples);
    for (size_t i = 0; pool.targets && i < (size_t)(end - from) * count; i++)
        samples[i] = item_of_sample(&pool, samples[i]);
    if (!lists->negatives->unseen)
        return;
    for (int w = batch->shard_window[shard], s = 0; w < batch->shard_window[shard + 1]; w++, s++) {
        int to = from;
        while (to < end && position[batch->label_row[to]] < segment[s + 1])
            to++;
        if (to > from)
            reject_seen(&pool, lists->marks[worker], mark_seen(lists, worker, batch->sequence[w]), batch, from, to,
                        step);
        from = to;
    }
    LP_ASSERT(from == end); /* every label belongs to a window of the shard */
}

/* Adds the samples that all targets of the step share. */
static void add_shared(const lp_negatives *negatives, uint32_t step, item_list *list)
{
    int32_t samples[64];
    enum { MOST = sizeof samples / sizeof *samples };
    for (int first = 0; first < negatives->shared; first += MOST) {
        int count = negatives->shared - first < MOST ? negatives->shared - first : MOST;
        lp_negatives_shared(negatives, step, first, count, samples);
        renumber(list, samples, count);
    }
}

void lp_batch_vocabulary_make(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step)
{
    const lp_negatives *negatives = lists->negatives;
    lp_mark *marks = lists->marks[worker];
    if (negatives->count > 0)
        sample_negatives(lists, batch, shard, worker, step);
    size_t offset = (size_t)shard * (size_t)batch->item_capacity;
    item_list list = {marks,
                      next_stamp(marks, lists->items, &lists->lists[worker]),
                      batch->item + offset,
                      0,
                      batch->item_capacity,
                      lists->items};
    int token = batch->shard_token[shard], label = batch->shard_labels[shard];
    int tokens = batch->shard_token[shard + 1] - token, count = batch->shard_labels[shard + 1] - label;
    renumber(&list, batch->type + token, tokens);
    renumber(&list, batch->target + label, count);
    renumber(&list, batch->negative + (size_t)label * (size_t)negatives->count, count * negatives->count);
    add_shared(negatives, step, &list);
    LP_ASSERT(list.count > 0 || (tokens == 0 && negatives->shared == 0));
    batch->shard_items[shard] = list.count;
    for (int i = 0; negatives->corrected && i < list.count; i++)
        batch->logq[offset + (size_t)i] = lp_negatives_logq(negatives, list.items[i], tokens);
}

/* ------------------------------------------------------------------------------------------------ row union -- */

lapse_status lp_row_union_init(lp_row_union *rows, const lp_batch *batch, lapse_error *error)
{
    size_t most = (size_t)batch->shard_count * (size_t)batch->item_capacity;
    *rows = (lp_row_union){.row = lp_alloc(most, sizeof *rows->row),
                           .first = lp_alloc(most + 1, sizeof *rows->first),
                           .item_index = lp_alloc(most, sizeof *rows->item_index)};
    if (rows->row && rows->first && rows->item_index)
        return LAPSE_OK;
    lp_row_union_clear(rows);
    return lp_fail_memory(error, "the row union", 3 * most * sizeof(int32_t));
}

void lp_row_union_clear(lp_row_union *rows)
{
    lp_free(rows->row);
    lp_free(rows->first);
    lp_free(rows->item_index);
    *rows = (lp_row_union){0};
}

/* Whether every row has an entry, and their entries lie end to end. */
static bool is_union(const lp_row_union *rows, const lp_batch *batch)
{
    int entries = 0;
    bool good = rows->first[0] == 0;
    for (int shard = 0; shard < batch->shard_count; shard++)
        entries += batch->shard_items[shard];
    for (int i = 0; i < rows->count; i++)
        good = good && rows->first[i] < rows->first[i + 1];
    return good && rows->first[rows->count] == entries;
}

/* Whether the entries of each row ascend, so that its gradients are added in the order of shards, and name this row. */
static bool entries_match(const lp_row_union *rows, const lp_batch *batch)
{
    bool good = true;
    for (int i = 0; i < rows->count; i++)
        for (int e = rows->first[i]; e < rows->first[i + 1]; e++)
            good = good && batch->item[rows->item_index[e]] == rows->row[i] &&
                   (e == rows->first[i] || rows->item_index[e - 1] < rows->item_index[e]);
    return good;
}

/* The union of one list is the list. */
static void copy_list(lp_row_union *rows, const int32_t *items, int count)
{
    rows->count = count;
    for (int32_t i = 0; i < count; i++) {
        rows->row[i] = items[i];
        rows->first[i] = rows->item_index[i] = i;
    }
    rows->first[count] = count;
}

void lp_row_union_of_lists(lp_row_union *rows, lp_batch_vocabulary *lists, int lists_count, int stride,
                           const int32_t *items, const int *counts)
{
    if (lists_count == 1) {
        copy_list(rows, items, counts[0]);
        return;
    }
    lp_mark *marks = lists->marks[0];
    item_list list = {marks, next_stamp(marks, lists->items, &lists->lists[0]), rows->row, 0, lists_count * stride,
                      lists->items};
    int32_t *next = rows->first + 1; /* next[i]: the number of entries of row i, then where they begin, then where
                                      * they end */
    for (int l = 0; l < lists_count; l++)
        for (int i = 0; i < counts[l]; i++) {
            int before = list.count;
            int32_t row = index_of(&list, items[(size_t)l * (size_t)stride + (size_t)i]);
            next[row] = list.count > before ? 1 : next[row] + 1;
        }
    int32_t sum = 0;
    for (int i = 0; i < list.count; i++) {
        int32_t entries = next[i];
        next[i] = sum;
        sum += entries;
    }
    for (int l = 0; l < lists_count; l++)
        for (int i = 0; i < counts[l]; i++)
            rows->item_index[next[marks[items[l * stride + i]].index]++] = l * stride + i;
    rows->first[0] = 0;
    rows->count = list.count;
}

void lp_row_union_make(lp_row_union *rows, lp_batch_vocabulary *lists, const lp_batch *batch)
{
    lp_row_union_of_lists(rows, lists, batch->shard_count, batch->item_capacity, batch->item, batch->shard_items);
    LP_ASSERT(is_union(rows, batch));
    LP_ASSERT(entries_match(rows, batch));
}
