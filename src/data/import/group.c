/* group.c: groups the rows of several workers by sequence and builds the sorted columns of a dataset.
 *
 *   1. names: merge the workers' string tables by first appearance
 *   2. move: event types, then fields, then times to partitions of sequences, in the order of the text (group_move.c);
 *      segments are freed as they are used up
 *   3. place: partition by partition, to their sequences (group_move.c), each of which is sorted by time (sort.c)
 *   4. prepare: split sessions, drop rows (prepare.c)
 *   5. rank: assign ids to event types and categories by descending count; to event types before 3, if 4 changes nothing
 */
#include "data/import/group.h"

#include "base/error.h"
#include "base/threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- 1. names -- */

enum { AHEAD = 16 };

static lp_rows_names *names_of(lp_grouping *a, int worker, int column)
{
    lp_import_rows *rows = &a->rows[worker];
    return column == LP_COLUMN_SEQUENCE ? &rows->sequences
           : column == LP_COLUMN_TYPE   ? &rows->types
                                        : &rows->categories[column];
}

/* A worker that has read no chunk has no tables for categories. */
static uint32_t name_count(lp_grouping *a, int worker, int column)
{
    return column < a->rows[worker].field_count ? names_of(a, worker, column)->intern.count : 0;
}

static const char *name_at(const lp_intern *intern, uint32_t index, size_t *size)
{
    *size = (size_t)(intern->offset[index + 1] - intern->offset[index]) - 1;
    return intern->bytes.data + intern->offset[index];
}

/* A merge by first appearance: the next name is always the one that comes first in the text. The slots of names soon to
 * come are prefetched. */
bool lp_group_names(lp_grouping *a, lp_intern *common, uint32_t **numbers, int column)
{
    uint32_t *next = lp_alloc((size_t)a->worker_count, sizeof *next);
    bool good = next != NULL;
    for (int w = 0; good && w < a->worker_count; w++) {
        uint32_t count = name_count(a, w, column);
        good = lp_intern_reserve(common, count);
        if (count > 0)
            lp_intern_seal(&names_of(a, w, column)->intern);
        numbers[w] = lp_grow(NULL, count, sizeof *numbers[w]);
        good = good && numbers[w];
    }
    while (good) {
        int best = -1;
        uint64_t best_position = UINT64_MAX;
        for (int w = 0; w < a->worker_count; w++) {
            if (next[w] < name_count(a, w, column) && names_of(a, w, column)->first[next[w]] < best_position) {
                best = w;
                best_position = names_of(a, w, column)->first[next[w]];
            }
        }
        if (best < 0)
            break;
        const lp_intern *names = &names_of(a, best, column)->intern;
        size_t size;
        bool added;
        if (next[best] + AHEAD < names->count) {
            const char *later = name_at(names, next[best] + AHEAD, &size);
            lp_intern_prefetch(common, lp_intern_key(later, size));
        }
        const char *name = name_at(names, next[best], &size);
        uint32_t number = lp_intern_add(common, name, size, lp_intern_key(name, size), &added);
        good = number != LP_INTERN_NONE && (column == LP_COLUMN_SEQUENCE || number < LP_ROW_TYPES);
        numbers[best][next[best]++] = number;
    }
    lp_free(next);
    lp_intern_seal(common);
    return good;
}

void lp_group_numbers_free(const lp_grouping *a, uint32_t **numbers)
{
    for (int w = 0; numbers && w < a->worker_count; w++)
        lp_free(numbers[w]);
    lp_free(numbers);
}

/* Frees the names of the workers: from here on only their global ids are needed. */
static void drop_names(lp_grouping *a)
{
    for (int w = 0; w < a->worker_count; w++) {
        lp_rows_names_clear(&a->rows[w].sequences);
        lp_rows_names_clear(&a->rows[w].types);
    }
}

/* -------------------------------------------------------------------------------------------------- 5. rank -- */

typedef struct name_rank {
    int64_t count;
    uint32_t name;
} name_rank;

static int by_count(const void *left, const void *right)
{
    const name_rank *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

/* Copies names order[0 .. count-1] of a table into buffers[0] (offsets) and buffers[1] (text). */
static bool pick_names(const lp_intern *table, const uint32_t *order, int64_t count, void **buffers, lp_names *names)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < count; i++)
        size += table->offset[order[i] + 1] - table->offset[order[i]];
    uint64_t *offset = buffers[0] = lp_alloc((size_t)count + 1, sizeof *offset);
    char *bytes = buffers[1] = lp_alloc(size, 1);
    if (!offset || !bytes)
        return false;
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = table->offset[order[i] + 1] - table->offset[order[i]];
        memcpy(bytes + offset[i], table->bytes.data + table->offset[order[i]], length);
        offset[i + 1] = offset[i] + length;
    }
    *names = (lp_names){.count = count, .offset = offset, .bytes = bytes};
    return true;
}

enum { RENUMBER_TASKS = 64 };

struct renumbering {
    int32_t *column;
    const uint32_t *numbers;
    int64_t count;
};

static void renumber_part(void *context, int task, int worker)
{
    (void)worker;
    const struct renumbering *r = context;
    int64_t last = r->count * (task + 1) / RENUMBER_TASKS;
    for (int64_t i = r->count * task / RENUMBER_TASKS; i < last; i++)
        r->column[i] = (int32_t)r->numbers[r->column[i]];
}

void lp_group_renumber(const lp_grouping *a, int32_t *column, const uint32_t *ids)
{
    struct renumbering all = {column, ids, a->dataset->event_count};
    lp_threads_run(a->threads, RENUMBER_TASKS, renumber_part, &all);
}

bool lp_group_rank(const lp_intern *table, const int64_t *counts, uint32_t *ids, void **buffers, lp_names *names)
{
    name_rank *ranks = lp_alloc(table->count, sizeof *ranks);
    uint32_t *order = lp_alloc(table->count, sizeof *order);
    bool good = ranks && order;
    int64_t count = 0;
    for (uint32_t k = 0; good && k < table->count; k++)
        if (counts[k] > 0)
            ranks[count++] = (name_rank){counts[k], k};
    if (good)
        qsort(ranks, (size_t)count, sizeof *ranks, by_count);
    for (int64_t i = 0; good && i < count; i++) {
        order[i] = ranks[i].name;
        ids[ranks[i].name] = (uint32_t)i;
    }
    good = good && pick_names(table, order, count, buffers, names);
    lp_free(ranks);
    lp_free(order);
    return good;
}

static bool rank_types(lp_grouping *a)
{
    return lp_group_rank(&a->types, a->type_count, a->type_rank, &a->dataset->buffers[4], &a->dataset->types);
}

/* Names of the remaining sequences. With sessions every name ends in /<part>, so that names stay unique. */
static bool name_sequences(lp_grouping *a, const lp_origin *origins)
{
    int64_t count = a->dataset->sequence_count;
    if (!origins) { /* all of them remain: the dataset takes the memory of their names */
        a->dataset->sequences = lp_intern_names(&a->sequences);
        a->dataset->buffers[6] = a->sequences.offset;
        a->dataset->buffers[7] = a->sequences.bytes.data;
        a->sequences = (lp_intern){0};
        return true;
    }
    lp_buffer bytes = {0};
    uint64_t *offset = lp_grow(NULL, (size_t)count + 1, sizeof *offset);
    bool good = offset != NULL;
    for (int64_t s = 0; good && s < count; s++) {
        lp_origin origin = origins[s];
        uint64_t begin = a->sequences.offset[origin.sequence], end = a->sequences.offset[origin.sequence + 1];
        offset[s] = bytes.size;
        good = lp_buffer_add(&bytes, a->sequences.bytes.data + begin, end - begin - 1);
        if (good && origin.part > 0)
            good = lp_buffer_print(&bytes, "/%" PRId64, origin.part);
        good = good && lp_buffer_add(&bytes, "", 1);
    }
    if (good)
        offset[count] = bytes.size;
    a->dataset->buffers[6] = offset;
    a->dataset->buffers[7] = bytes.data;
    a->dataset->sequences = (lp_names){.count = count, .offset = offset, .bytes = bytes.data};
    return good;
}

static bool rank(lp_grouping *a, const lp_origin *origins)
{
    bool good = true;
    if (lp_prepares(a->preparation)) {
        good = rank_types(a);
        if (good)
            lp_group_renumber(a, a->type, a->type_rank);
    }
    good = good && name_sequences(a, origins);
    for (int f = 0; good && f < a->dataset->field_count; f++)
        good = lp_group_categories(a, f);
    return good;
}

/* ------------------------------------------------------------------------------------------------ all steps -- */

static int by_index(const void *left, const void *right)
{
    const lp_rows_chunk *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

static bool gather_chunks(lp_grouping *a)
{
    int64_t count = 0;
    for (int w = 0; w < a->worker_count; w++)
        count += a->rows[w].chunk_count;
    a->chunks = lp_alloc((size_t)count, sizeof *a->chunks);
    if (!a->chunks)
        return false;
    for (int w = 0; w < a->worker_count; w++) {
        for (int64_t b = 0; b < a->rows[w].chunk_count; b++) {
            a->chunks[a->chunk_count] = a->rows[w].chunks[b];
            a->chunks[a->chunk_count++].worker = w;
        }
    }
    qsort(a->chunks, (size_t)count, sizeof *a->chunks, by_index);
    for (int64_t b = 0; b < count; b++) {
        a->chunks[b].row = a->row_count;
        a->row_count += a->chunks[b].count;
        a->longest = a->chunks[b].count > a->longest ? a->chunks[b].count : a->longest;
    }
    return true;
}

/* The ranks of event types that are counted; if events may yet be dropped, the ids that they have. */
static bool begin_ranks(lp_grouping *a)
{
    a->type_rank = lp_alloc(a->types.count, sizeof *a->type_rank);
    if (!a->type_rank)
        return false;
    if (!lp_prepares(a->preparation))
        return rank_types(a);
    for (uint32_t k = 0; k < a->types.count; k++)
        a->type_rank[k] = k;
    return true;
}

static bool prepare_and_rank(lp_grouping *a)
{
    lapse_dataset *dataset = a->dataset;
    lp_origin *origins = NULL;
    bool good = lp_prepare(a->preparation, &a->columns, a->type_count, a->types.count, &origins);
    a->start = a->columns.start;
    dataset->sequence_count = a->columns.sequence_count;
    dataset->event_count = (int64_t)a->start[dataset->sequence_count];
    good = good && (dataset->event_count == 0 || rank(a, origins));
    lp_free(origins);
    return good;
}

static bool group_rows(lp_grouping *a)
{
    a->sequence_number = lp_alloc((size_t)a->worker_count, sizeof *a->sequence_number);
    a->type_number = lp_alloc((size_t)a->worker_count, sizeof *a->type_number);
    if (!a->sequence_number || !a->type_number || !gather_chunks(a) ||
        !lp_group_names(a, &a->sequences, a->sequence_number, LP_COLUMN_SEQUENCE) ||
        !lp_group_names(a, &a->types, a->type_number, LP_COLUMN_TYPE))
        return false;
    bool good = lp_group_partition(a);
    drop_names(a);
    lp_memory_trim(); /* string tables, of which threads have freed many */
    return good && lp_group_move_rows(a) && begin_ranks(a) && lp_group_place_rows(a) && prepare_and_rank(a);
}

lapse_status lp_rows_group(lp_import_rows *rows, int worker_count, int threads, bool with_split,
                           const lp_preparation *preparation, lapse_dataset *dataset, lapse_error *error)
{
    lp_grouping a = {.rows = rows,
                     .worker_count = worker_count,
                     .threads = threads,
                     .with_split = with_split,
                     .preparation = preparation,
                     .dataset = dataset,
                     .loader = rows[0].loader};
    int fields = dataset->field_count;
    a.categories = lp_alloc((size_t)fields, sizeof *a.categories);
    bool good = a.categories && group_rows(&a);
    dataset->start = dataset->buffers[0] = a.start;
    dataset->time = dataset->buffers[1] = a.time;
    dataset->type = dataset->buffers[2] = a.type;
    dataset->split = dataset->buffers[3] = a.split;
    lp_group_numbers_free(&a, a.sequence_number);
    lp_group_numbers_free(&a, a.type_number);
    lp_free(a.chunks);
    lp_free(a.type_count);
    lp_free(a.type_rank);
    lp_partitions_clear(&a.partitions, worker_count);
    lp_free(a.scratch);
    for (int f = 0; a.categories && f < fields; f++)
        lp_intern_clear(&a.categories[f]);
    lp_free(a.categories);
    lp_intern_clear(&a.sequences);
    lp_intern_clear(&a.types);
    return good ? LAPSE_OK : lp_fail(error, LAPSE_ERROR_MEMORY, "out of memory while grouping the events");
}
