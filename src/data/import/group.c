/* group.c: groups the rows of several workers by sequence and builds the sorted columns of a dataset.
 *
 * A counting sort by sequence, in passes over the rows in the order of the text, so that equal times keep that order:
 *   1. names: merge the workers' string tables by first appearance
 *   2. count: rows of each sequence
 *   3. offsets: prefix sums give the start of each sequence
 *   4. move: scatter event types, then fields, then times; segments are freed as they are used up
 *   5. sort: each sequence by time, where it is not sorted yet (sort.c)
 *   6. prepare: split sessions, drop rows (prepare.c)
 *   7. rank: assign ids to event types and categories by descending count
 * The chunks are divided into one part per thread; a part counts and moves its own rows. Offsets are summed in the
 * order of parts, so the result does not depend on the number of threads.
 */
#include "data/import/group.h"

#include "base/error.h"
#include "base/threads.h"
#include "data/import/sort.h"

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

/* ------------------------------------------------------------------------------------------------- 2. count -- */

void lp_group_part(const lp_grouping *a, int part, int64_t *first, int64_t *last)
{
    *first = a->chunk_count * part / a->parts;
    *last = a->chunk_count * (part + 1) / a->parts;
}

static void **segment_column(lp_segment *segment, int column)
{
    return column == LP_COLUMN_TIME       ? (void **)&segment->time
           : column == LP_COLUMN_SEQUENCE ? (void **)&segment->sequence
           : column == LP_COLUMN_TYPE     ? (void **)&segment->type
                                          : &segment->field[column];
}

static lp_segment *segment_of(const lp_grouping *a, const lp_rows_chunk *chunk)
{
    return a->rows[chunk->worker].segments[chunk->segment];
}

static void *load(const lp_grouping *a, const lp_rows_chunk *chunk, int column, double *scratch)
{
    const lp_rows_loader *loader = a->rows[chunk->worker].loader;
    if (loader) {
        loader->load(loader->context, chunk, column, scratch);
        return scratch;
    }
    bool wide = column == LP_COLUMN_TIME || (column >= 0 && a->dataset->fields[column].type == LAPSE_FIELD_NUMBER);
    char *values = *segment_column(segment_of(a, chunk), column);
    return values + (size_t)chunk->first * (wide ? sizeof(double) : sizeof(uint32_t));
}

uint32_t *lp_group_sequences(const lp_grouping *a, int part, const lp_rows_chunk *chunk)
{
    uint32_t *sequence =
        (uint32_t *)load(a, chunk, LP_COLUMN_SEQUENCE, a->scratch ? a->scratch + 2 * part * a->longest : NULL);
    const uint32_t *number = a->sequence_number ? a->sequence_number[chunk->worker] : NULL;
    for (int64_t i = 0; number && i < chunk->count; i++)
        sequence[i] = number[sequence[i]];
    return sequence;
}

const void *lp_group_values(const lp_grouping *a, int part, const lp_rows_chunk *chunk, int column)
{
    return load(a, chunk, column, a->scratch ? a->scratch + (2 * part + 1) * a->longest : NULL);
}

const lp_rows_chunk *lp_group_next(const lp_grouping *a, int64_t *at, int64_t last)
{
    while (*at < last && a->chunks[*at].count == 0)
        ++*at;
    return *at < last ? &a->chunks[(*at)++] : NULL;
}

/* Whether the counting pass replaces local ids of sequences by global ones: in segments it always does. */
static bool stores_global(const lp_grouping *a)
{
    return !a->rows[0].loader || (int64_t)a->sequences.count <= a->rows[0].loader->id_limit;
}

static void count_part(void *context, int part, int worker)
{
    (void)worker;
    lp_grouping *a = context;
    uint64_t *count = a->cursor + (size_t)part * a->sequences.count;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *sequence = lp_group_sequences(a, part, chunk);
        const lp_rows_loader *loader = a->rows[chunk->worker].loader;
        for (int64_t i = 0; i < chunk->count; i++)
            count[sequence[i]]++;
        if (loader && stores_global(a))
            loader->store(loader->context, chunk, sequence);
    }
}

/* Frees the map to global ids, unless rows still have local ones. */
static void drop_sequence_numbers(lp_grouping *a)
{
    if (!stores_global(a))
        return;
    lp_group_numbers_free(a, a->sequence_number);
    a->sequence_number = NULL;
}

/* ------------------------------------------------------------------------------------------------- 3. offsets -- */

/* Replaces counts by offsets (exclusive prefix sums). */
static void set_offsets(lp_grouping *a)
{
    size_t sequences = a->sequences.count;
    uint64_t offset = 0;
    for (size_t s = 0; s < sequences; s++) {
        for (int p = 0; p < a->parts; p++) {
            uint64_t *cursor = &a->cursor[(size_t)p * sequences + s];
            uint64_t count = *cursor;
            *cursor = offset;
            offset += count;
        }
    }
    a->row_count = (int64_t)offset;
}

/* The starts of the sequences, from the cursors, which are freed. */
static bool set_starts(lp_grouping *a)
{
    size_t sequences = a->sequences.count;
    a->start = lp_grow(NULL, sequences + 1, sizeof *a->start);
    if (!a->start)
        return false;
    memcpy(a->start, a->cursor, sequences * sizeof *a->start);
    a->start[sequences] = (uint64_t)a->row_count;
    lp_free(a->cursor);
    a->cursor = NULL;
    return true;
}

/* -------------------------------------------------------------------------------------------------- 4. move -- */

void lp_group_copied(const lp_grouping *a, const lp_rows_chunk *chunk, int column)
{
    if (a->rows[chunk->worker].loader)
        return;
    lp_segment *segment = segment_of(a, chunk);
    if (atomic_fetch_sub(&segment->left, chunk->count) != chunk->count)
        return;
    void **values = segment_column(segment, column);
    lp_free(*values);
    *values = NULL;
}

static void move_times(void *context, int part, int worker)
{
    (void)worker;
    lp_grouping *a = context;
    uint64_t *cursor = a->cursor + (size_t)part * a->sequences.count;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *sequence = lp_group_sequences(a, part, chunk);
        const double *time = lp_group_values(a, part, chunk, LP_COLUMN_TIME);
        for (int64_t i = 0; i < chunk->count; i++) {
            LP_GROUP_PREFETCH(a->time, cursor, sequence, i, chunk->count);
            a->time[cursor[sequence[i]]++] = time[i];
        }
        lp_group_copied(a, chunk, LP_COLUMN_TIME);
    }
}

/* Also counts the rows of each event type: the time of that is hidden by the cache misses of the move. */
static void move_types(void *context, int part, int worker)
{
    (void)worker;
    lp_grouping *a = context;
    int64_t *count = a->type_count + (size_t)part * a->types.count;
    uint64_t *cursor = a->cursor + (size_t)part * a->sequences.count;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *sequence = lp_group_sequences(a, part, chunk);
        const uint32_t *type = lp_group_values(a, part, chunk, LP_COLUMN_TYPE);
        for (int64_t i = 0; i < chunk->count; i++) {
            LP_GROUP_PREFETCH(a->type, cursor, sequence, i, chunk->count);
            uint64_t index = cursor[sequence[i]]++;
            uint32_t number = a->type_number[chunk->worker][type[i] >> 2];
            a->type[index] = (int32_t)number;
            count[number]++;
            if (a->split)
                a->split[index] = type[i] & 3;
        }
        lp_group_copied(a, chunk, LP_COLUMN_TYPE);
    }
}

static void rewind_segments(lp_grouping *a)
{
    for (int w = 0; w < a->worker_count; w++)
        for (int64_t s = 0; s < a->rows[w].segment_count; s++)
            atomic_store(&a->rows[w].segments[s]->left, a->rows[w].segments[s]->used);
}

/* Resets cursors and segments. After a pass the cursors of a part are at the start of the next part, and those of the last
 * part at the start of the next sequence. */
static void rewind_parts(lp_grouping *a)
{
    size_t sequences = a->sequences.count, last = (size_t)(a->parts - 1) * sequences;
    for (size_t s = sequences; s-- > 0;) {
        for (size_t at = last + s; at > s; at -= sequences)
            a->cursor[at] = a->cursor[at - sequences];
        a->cursor[s] = s > 0 ? a->cursor[last + s - 1] : 0;
    }
    rewind_segments(a);
}

void lp_group_move(lp_grouping *a, int column, void (*move)(void *grouping, int part, int worker))
{
    const lp_rows_loader *loader = a->rows[0].loader;
    lp_threads_run(a->threads, a->parts, move, a);
    rewind_parts(a);
    if (loader) {
        loader->drop(loader->context, column);
        lp_memory_trim();
    }
}

/* Times are last: a loader reads them from the table, so that every other column is freed by then. */
static bool move_rows(lp_grouping *a)
{
    size_t rows = (size_t)a->row_count;
    a->type = lp_alloc_raw(rows, sizeof *a->type);
    a->split = a->with_split ? lp_alloc_raw(rows, sizeof *a->split) : NULL;
    a->type_count = lp_alloc((size_t)a->parts * a->types.count, sizeof *a->type_count);
    if (!a->type || (a->with_split && !a->split) || !a->type_count)
        return false;
    lp_group_move(a, LP_COLUMN_TYPE, move_types);
    for (size_t i = a->types.count; i < (size_t)a->parts * a->types.count; i++)
        a->type_count[i % a->types.count] += a->type_count[i];
    for (int f = 0; f < a->dataset->field_count; f++)
        if (!lp_group_field(a, f))
            return false;
    a->time = lp_alloc_raw(rows, sizeof *a->time);
    if (!a->time)
        return false;
    lp_group_move(a, LP_COLUMN_TIME, move_times);
    return true;
}

/* -------------------------------------------------------------------------------------------------- 7. rank -- */

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

static void renumber(const lp_grouping *a, int32_t *column, const uint32_t *numbers)
{
    struct renumbering all = {column, numbers, a->dataset->event_count};
    lp_threads_run(a->threads, RENUMBER_TASKS, renumber_part, &all);
}

bool lp_group_rank(const lp_grouping *a, const lp_intern *table, const int64_t *counts, int32_t *column, void **buffers,
                   lp_names *names)
{
    name_rank *ranks = lp_alloc(table->count, sizeof *ranks);
    uint32_t *order = lp_alloc(table->count, sizeof *order), *numbers = lp_alloc(table->count, sizeof *numbers);
    bool good = ranks && order && numbers;
    int64_t count = 0;
    for (uint32_t k = 0; good && k < table->count; k++)
        if (counts[k] > 0)
            ranks[count++] = (name_rank){counts[k], k};
    if (good)
        qsort(ranks, (size_t)count, sizeof *ranks, by_count);
    for (int64_t i = 0; good && i < count; i++) {
        order[i] = ranks[i].name;
        numbers[ranks[i].name] = (uint32_t)i;
    }
    good = good && pick_names(table, order, count, buffers, names);
    if (good)
        renumber(a, column, numbers);
    lp_free(ranks);
    lp_free(order);
    lp_free(numbers);
    return good;
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
    lapse_dataset *dataset = a->dataset;
    bool good = lp_group_rank(a, &a->types, a->type_count, a->type, &dataset->buffers[4], &dataset->types) &&
                name_sequences(a, origins);
    for (int f = 0; good && f < dataset->field_count; f++)
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
    return true;
}

/* A part needs one cursor per sequence, so with very many sequences there are fewer parts. */
static bool make_cursors(lp_grouping *a)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < a->chunk_count; b++) {
        rows += a->chunks[b].count;
        a->longest = a->chunks[b].count > a->longest ? a->chunks[b].count : a->longest;
    }
    int64_t most = a->sequences.count ? rows / 4 / a->sequences.count : 1;
    a->parts = most < 1 ? 1 : most < a->threads ? (int)most : a->threads;
    a->cursor = lp_alloc((size_t)a->parts * a->sequences.count, sizeof *a->cursor);
    if (a->rows[0].loader)
        a->scratch = lp_grow(NULL, (size_t)a->parts * 2 * (size_t)a->longest, sizeof *a->scratch);
    return a->cursor && (a->scratch || !a->rows[0].loader);
}

static bool sort_and_prepare(lp_grouping *a)
{
    void *field[LP_FIELD_LIMIT];
    size_t field_size[LP_FIELD_LIMIT];
    lapse_dataset *dataset = a->dataset;
    for (int f = 0; f < dataset->field_count; f++) {
        field[f] = dataset->fields[f].buffers[0];
        field_size[f] = dataset->fields[f].type == LAPSE_FIELD_NUMBER ? sizeof(double) : sizeof(int32_t);
    }
    lp_sequence_columns columns = {a->start, a->sequences.count,   a->time, a->type,
                                   a->split, dataset->field_count, field,   field_size};
    lp_origin *origins = NULL;
    bool good = lp_sort_sequences(&columns, a->threads, &a->preparation->report->moved_rows) &&
                lp_prepare(a->preparation, &columns, a->type_count, a->types.count, &origins);
    a->start = columns.start;
    dataset->sequence_count = columns.sequence_count;
    dataset->event_count = (int64_t)a->start[columns.sequence_count];
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
    drop_names(a);
    lp_memory_trim(); /* string tables, of which threads have freed many */
    if (!make_cursors(a))
        return false;
    lp_threads_run(a->threads, a->parts, count_part, a);
    drop_sequence_numbers(a);
    set_offsets(a);
    rewind_segments(a);
    if (!move_rows(a))
        return false;
    if (a->rows[0].loader)
        a->rows[0].loader->drop(a->rows[0].loader->context, LP_COLUMN_SEQUENCE);
    return set_starts(a) && sort_and_prepare(a);
}

lapse_status lp_rows_group(lp_import_rows *rows, int worker_count, int threads, bool with_split,
                           const lp_preparation *preparation, lapse_dataset *dataset, lapse_error *error)
{
    lp_grouping a = {.rows = rows,
                     .worker_count = worker_count,
                     .threads = threads,
                     .with_split = with_split,
                     .preparation = preparation,
                     .dataset = dataset};
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
    lp_free(a.cursor);
    lp_free(a.scratch);
    for (int f = 0; a.categories && f < fields; f++)
        lp_intern_clear(&a.categories[f]);
    lp_free(a.categories);
    lp_intern_clear(&a.sequences);
    lp_intern_clear(&a.types);
    return good ? LAPSE_OK : lp_fail(error, LAPSE_ERROR_MEMORY, "out of memory while grouping the events");
}
