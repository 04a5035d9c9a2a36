/* group_move.c: moves the columns of rows to their sequences.
 *
 * There may be more sequences than the caches of a CPU have lines, and then every row that is written would miss them. So
 * the rows move twice. A pass over the rows in the order of the text appends each to its partition, a range of sequences:
 * there are so few that the end of each stays in the cache. The rows of a partition have their final place in the column,
 * but are not grouped yet; in the second pass a partition at a time, which fits the cache, is grouped through a spare copy.
 * Until then the bits of an event type that are not used are the index of the sequence in its partition.
 *
 * Both passes keep the order of the text, so the result does not depend on partitions, parts and threads. The partitions are
 * cut by a sample of the rows: exact counts of each sequence would take as long as a pass. */
#include "data/import/group.h"

#include "base/threads.h"
#include "data/import/column_memory.h"

#include <string.h>

enum {
    PARTITIONS = 250,         /* wanted; usually there are as many, so that a byte has their number */
    PARTITION_ROWS = 1 << 20, /* about, at most, unless there is one sequence */
    BLOCK = 1024              /* rows that are moved at once */
};

/* ---------------------------------------------------------------------------------------------- partitions ---- */

void lp_partitions_clear(lp_partitions *partitions, int worker_count)
{
    for (int w = 0; w < worker_count; w++) {
        lp_free(partitions->of_name ? partitions->of_name[w] : NULL);
        lp_free(partitions->index ? partitions->index[w] : NULL);
    }
    lp_free(partitions->of_name);
    lp_free(partitions->index);
    lp_free(partitions->of_row);
    lp_free(partitions->first);
    lp_free(partitions->begin);
    lp_free(partitions->next);
    lp_free(partitions->lines);
    *partitions = (lp_partitions){0};
}

static int bits_of(uint64_t below)
{
    return below > 1 ? 64 - __builtin_clzll(below - 1) : 0;
}

/* The rows of each sequence in the chunks that are sampled, from the workers' counts; *total is their sum. */
static int64_t *sampled_rows(const lp_grouping *a, int64_t *total)
{
    int64_t *rows = lp_alloc(a->sequences.count, sizeof *rows);
    *total = 0;
    for (int w = 0; rows && w < a->worker_count; w++) {
        for (size_t i = 0; i < a->rows[w].sampled_capacity && i < a->rows[w].sequences.intern.count; i++) {
            rows[a->sequence_number[w][i]] += a->rows[w].sampled[i];
            *total += a->rows[w].sampled[i];
        }
    }
    return rows;
}

/* Cuts the sequences into partitions. A thread has a spare copy of a partition: the more threads, the smaller they are. */
static bool cut_sequences(lp_grouping *a)
{
    lp_partitions *all = &a->partitions;
    int64_t least = a->row_count / PARTITION_ROWS, wanted = 4 * a->threads > PARTITIONS ? 4 * a->threads : PARTITIONS;
    int64_t total, held = 0, *rows = sampled_rows(a, &total), most = total / (wanted > least ? wanted : least) + 1;
    uint64_t sequences = a->sequences.count, first = 0;
    bool good = rows != NULL;
    a->type_bits = bits_of(a->types.count);
    uint64_t most_width = UINT64_C(1) << (a->type_bits < 16 ? 16 : 32 - a->type_bits);
    for (uint64_t s = 1; good && s <= sequences; s++) {
        uint64_t width = s - first;
        held += rows[s - 1];
        if (s < sequences && held + rows[s] <= most && width < most_width)
            continue;
        good = lp_reserve(&all->first, &all->capacity, (size_t)all->count + 2, sizeof *all->first);
        if (good)
            all->first[++all->count] = (uint32_t)s;
        all->widest = (int64_t)width > all->widest ? (int64_t)width : all->widest;
        first = s;
        held = 0;
    }
    all->size = all->count <= 1 << 8 ? 1 : all->count <= 1 << 16 ? 2 : 4;
    lp_free(rows);
    return good;
}

/* A statement for the type of the numbers of partitions. */
#define FOR_SIZE(size, statement) \
    do {                          \
        if ((size) == 1) {        \
            statement(uint8_t)    \
        } else if ((size) == 2) { \
            statement(uint16_t)   \
        } else {                  \
            statement(uint32_t)   \
        }                         \
    } while (0)

/* The partition of each local id, and the index in it, in small tables: they are read for every row. */
static bool set_names(lp_grouping *a)
{
    lp_partitions *all = &a->partitions;
    size_t sequences = a->sequences.count;
    uint32_t *of_sequence = lp_grow(NULL, sequences, sizeof *of_sequence);
    all->of_name = lp_alloc((size_t)a->worker_count, sizeof *all->of_name);
    all->index = lp_alloc((size_t)a->worker_count, sizeof *all->index);
    bool good = of_sequence && all->of_name && all->index;
    for (int64_t p = 0; good && p < all->count; p++)
        for (uint32_t s = all->first[p]; s < all->first[p + 1]; s++)
            of_sequence[s] = (uint32_t)p;
    for (int w = 0; good && w < a->worker_count; w++) {
        size_t names = a->rows[w].sequences.intern.count;
        const uint32_t *number = a->sequence_number[w];
        uint16_t *index = all->index[w] = lp_grow(NULL, names, sizeof *index);
        void *of_name = all->of_name[w] = lp_grow(NULL, names, (size_t)all->size);
        good = index && of_name;
#define SET(element)                                              \
    for (size_t i = 0; good && i < names; i++) {                  \
        uint32_t partition = of_sequence[number[i]];              \
        ((element *)of_name)[i] = (element)partition;             \
        index[i] = (uint16_t)(number[i] - all->first[partition]); \
    }
        FOR_SIZE(all->size, SET);
    }
    lp_free(of_sequence);
    return good;
}

bool lp_group_partition(lp_grouping *a)
{
    return cut_sequences(a) && set_names(a);
}

static void assign_part(void *context, int part, int worker)
{
    lp_grouping *a = context;
    const lp_partitions *all = &a->partitions;
    uint64_t *count = all->begin + part * all->count;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *sequence = lp_group_values(a, worker, chunk, LP_COLUMN_SEQUENCE);
        const void *of_name = all->of_name[chunk->worker];
#define ASSIGN(element)                                        \
    {                                                          \
        element *of_row = (element *)all->of_row + chunk->row; \
        for (int64_t i = 0; i < chunk->count; i++)             \
            of_row[i] = ((element *)of_name)[sequence[i]];     \
        for (int64_t i = 0; i < chunk->count; i++)             \
            count[of_row[i]]++;                                \
    }
        FOR_SIZE(all->size, ASSIGN);
    }
}

/* The partition of every row, and where each part of the text begins in each partition. */
static bool assign_rows(lp_grouping *a)
{
    lp_partitions *all = &a->partitions;
    all->of_row = lp_column_alloc((size_t)a->row_count, (size_t)all->size, a->threads);
    all->begin = lp_alloc((size_t)a->parts * (size_t)all->count, sizeof *all->begin);
    all->next = lp_alloc((size_t)a->parts * (size_t)all->count, sizeof *all->next);
    all->lines = lp_alloc((size_t)a->threads * (size_t)all->count, LP_APPEND_LINE);
    if (!all->of_row || !all->begin || !all->next || !all->lines)
        return false;
    lp_threads_run(a->threads, a->parts, assign_part, a);
    uint64_t at = 0;
    for (int64_t p = 0; p < all->count; p++) {
        uint64_t first = at;
        for (int part = 0; part < a->parts; part++) {
            uint64_t *begin = &all->begin[part * all->count + p], count = *begin;
            *begin = at;
            at += count;
        }
        if (all->first[p + 1] - all->first[p] > 1 && at - first > (uint64_t)all->longest)
            all->longest = (int64_t)(at - first);
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------- chunks ---- */

void lp_group_part(const lp_grouping *a, int part, int64_t *first, int64_t *last)
{
    *first = a->chunk_count * part / a->parts;
    *last = a->chunk_count * (part + 1) / a->parts;
}

const lp_rows_chunk *lp_group_next(const lp_grouping *a, int64_t *at, int64_t last)
{
    while (*at < last && a->chunks[*at].count == 0)
        ++*at;
    return *at < last ? &a->chunks[(*at)++] : NULL;
}

static void **segment_column(lp_segment *segment, int column)
{
    return column == LP_COLUMN_TIME       ? (void **)&segment->time
           : column == LP_COLUMN_SEQUENCE ? (void **)&segment->sequence
           : column == LP_COLUMN_TYPE     ? (void **)&segment->type
                                          : &segment->field[column];
}

const void *lp_group_values(const lp_grouping *a, int worker, const lp_rows_chunk *chunk, int column)
{
    bool wide = column == LP_COLUMN_TIME || (column >= 0 && a->dataset->fields[column].type == LAPSE_FIELD_NUMBER);
    if (a->loader && wide) {
        double *out = a->scratch + worker * a->longest;
        a->loader->load(a->loader->context, chunk, column, out);
        return out;
    }
    lp_segment *segment = a->loader ? a->loader->ids : a->rows[chunk->worker].segments[chunk->segment];
    char *values = *segment_column(segment, column);
    return values + (size_t)chunk->first * (wide ? sizeof(double) : sizeof(uint32_t));
}

void lp_group_copied(const lp_grouping *a, const lp_rows_chunk *chunk, int column)
{
    if (a->loader)
        return;
    lp_segment *segment = a->rows[chunk->worker].segments[chunk->segment];
    if (atomic_fetch_sub(&segment->left, chunk->count) != chunk->count)
        return;
    for (int c = column == LP_COLUMN_TYPE ? LP_COLUMN_SEQUENCE : column; c <= column; c++) {
        void **values = segment_column(segment, c);
        lp_free(*values);
        *values = NULL;
    }
}

/* ---------------------------------------------------------------------------------- 1. rows to partitions ---- */

void lp_group_append_ids(const lp_grouping *a, int worker, int part, const lp_rows_chunk *chunk, const uint32_t *values,
                         const uint32_t *number, int32_t *column)
{
    uint32_t block[BLOCK];
    for (int64_t done = 0; done < chunk->count; done += BLOCK) {
        int few = (int)(chunk->count - done < BLOCK ? chunk->count - done : BLOCK);
        for (int i = 0; i < few; i++)
            block[i] = number[values[done + i]];
        lp_group_append(a, worker, part, (uint64_t)(chunk->row + done), block, few, column, sizeof *column);
    }
}

static void move_times(void *context, int part, int worker)
{
    lp_grouping *a = context;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const void *times = lp_group_values(a, worker, chunk, LP_COLUMN_TIME);
        lp_group_append(a, worker, part, (uint64_t)chunk->row, times, chunk->count, a->time, sizeof *a->time);
        lp_group_copied(a, chunk, LP_COLUMN_TIME);
    }
    lp_group_append_end(a, worker, part, a->time, sizeof *a->time);
}

static void move_splits(void *context, int part, int worker)
{
    lp_grouping *a = context;
    uint8_t block[BLOCK];
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *type = lp_group_values(a, worker, chunk, LP_COLUMN_TYPE);
        for (int64_t done = 0; done < chunk->count; done += BLOCK) {
            int few = (int)(chunk->count - done < BLOCK ? chunk->count - done : BLOCK);
            for (int i = 0; i < few; i++)
                block[i] = type[done + i] & 3;
            lp_group_append(a, worker, part, (uint64_t)(chunk->row + done), block, few, a->split, sizeof *a->split);
        }
    }
    lp_group_append_end(a, worker, part, a->split, sizeof *a->split);
}

/* Also counts the rows of each event type. Short loops, so that cache misses overlap. */
static void append_types(const lp_grouping *a, int worker, int part, const lp_rows_chunk *chunk,
                         const uint32_t *sequence, const uint32_t *type)
{
    const uint32_t *number = a->type_number[chunk->worker];
    const uint16_t *sequence_index = a->partitions.index[chunk->worker];
    int64_t *count = a->type_count + (size_t)worker * a->types.count;
    uint32_t block[BLOCK];
    for (int64_t done = 0; done < chunk->count; done += BLOCK) {
        int few = (int)(chunk->count - done < BLOCK ? chunk->count - done : BLOCK);
        for (int i = 0; i < few; i++)
            block[i] = (uint32_t)((uint64_t)sequence_index[sequence[done + i]] << a->type_bits);
        for (int i = 0; i < few; i++) {
            uint32_t id = number[type[done + i] >> 2];
            block[i] |= id;
            count[id]++;
        }
        lp_group_append(a, worker, part, (uint64_t)(chunk->row + done), block, few, a->type, sizeof *a->type);
    }
}

static void move_types(void *context, int part, int worker)
{
    lp_grouping *a = context;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        append_types(a, worker, part, chunk, lp_group_values(a, worker, chunk, LP_COLUMN_SEQUENCE),
                     lp_group_values(a, worker, chunk, LP_COLUMN_TYPE));
        lp_group_copied(a, chunk, LP_COLUMN_TYPE);
    }
    lp_group_append_end(a, worker, part, a->type, sizeof *a->type);
}

void lp_group_move(lp_grouping *a, void (*move)(void *grouping, int part, int worker))
{
    const lp_partitions *all = &a->partitions;
    memcpy(all->next, all->begin, (size_t)a->parts * (size_t)all->count * sizeof *all->next);
    for (int w = 0; w < a->worker_count; w++)
        for (int64_t s = 0; s < a->rows[w].segment_count; s++)
            atomic_store(&a->rows[w].segments[s]->left, a->rows[w].segments[s]->used);
    lp_threads_run(a->threads, a->parts, move, a);
}

static bool move_to_partitions(lp_grouping *a)
{
    size_t rows = (size_t)a->row_count, types = a->types.count;
    a->type = lp_column_alloc(rows, sizeof *a->type, a->threads);
    a->split = a->with_split ? lp_column_alloc(rows, sizeof *a->split, a->threads) : NULL;
    a->type_count = lp_alloc((size_t)a->threads * types, sizeof *a->type_count);
    if (!a->type || (a->with_split && !a->split) || !a->type_count)
        return false;
    if (a->split)
        lp_group_move(a, move_splits);
    lp_group_move(a, move_types);
    for (size_t i = types; i < (size_t)a->threads * types; i++)
        a->type_count[i % types] += a->type_count[i];
    /* The ids of sequences and types are not needed any more: a loader's are where the times will be. */
    if (a->loader) {
        a->time = a->loader->ids->time;
        a->loader->ids->time = NULL;
    }
    for (int f = 0; f < a->dataset->field_count; f++)
        if (!lp_group_field(a, f))
            return false;
    a->time = a->time ? a->time : lp_column_alloc(rows, sizeof *a->time, a->threads);
    if (!a->time)
        return false;
    lp_group_move(a, move_times);
    return true;
}

/* ------------------------------------------------------------------------------- 2. partitions to sequences ---- */

/* The memory that a thread uses to group a partition. */
struct placer {
    uint32_t *next;  /* owned; [widest]: index in the partition of the next row of each sequence */
    uint32_t *index; /* owned; [longest]: index in the partition of each row */
    void *spare;     /* owned; [longest]: copy of a column, of up to 8 bytes each */
    lp_sort_space space;
    int64_t late;
    bool out_of_memory;
};

struct placing {
    lp_grouping *grouping;
    struct placer *placers; /* owned; [thread] */
};

#define PLACE(element)                   \
    for (uint64_t i = 0; i < count; i++) \
        ((element *)spare)[index[i]] = ((element *)column)[i];

/* Moves element i to index[i]. */
static void place(void *column, size_t size, uint64_t count, const uint32_t *index, void *spare)
{
    if (size == 8)
        PLACE(uint64_t)
    else if (size == 4)
        PLACE(uint32_t)
    else
        PLACE(uint8_t)
    memcpy(column, spare, count * size);
}

/* Groups the rows of a partition that has several sequences; p->next becomes the end of each sequence. */
static void place_sequences(lp_grouping *a, struct placer *p, uint64_t first, uint64_t sequences, uint64_t begin,
                            uint64_t count)
{
    uint32_t *next = p->next, *index = p->index, *type = (uint32_t *)a->type + begin, *placed = p->spare;
    const uint32_t *rank = a->type_rank;
    uint32_t mask = (uint32_t)((UINT64_C(1) << a->type_bits) - 1), at = 0;
    int bits = a->type_bits;
    memset(next, 0, sequences * sizeof *next);
    for (uint64_t i = 0; i < count; i++)
        next[(uint64_t)type[i] >> bits]++;
    for (uint64_t s = 0; s < sequences; s++) {
        uint32_t rows = next[s];
        a->start[first + s] = begin + at;
        next[s] = at;
        at += rows;
    }
    for (uint64_t i = 0; i < count; i++) {
        index[i] = next[(uint64_t)type[i] >> bits]++;
        placed[index[i]] = rank[type[i] & mask];
    }
    memcpy(type, placed, count * sizeof *type);
    place(a->time + begin, sizeof *a->time, count, index, p->spare);
    if (a->split)
        place(a->split + begin, sizeof *a->split, count, index, p->spare);
    for (int f = 0; f < a->columns.field_count; f++)
        place((char *)a->field_column[f] + begin * a->field_size[f], a->field_size[f], count, index, p->spare);
}

static void place_partition(void *context, int task, int worker)
{
    const struct placing *all = context;
    lp_grouping *a = all->grouping;
    struct placer *p = &all->placers[worker];
    const lp_partitions *partitions = &a->partitions;
    uint64_t first = partitions->first[task], sequences = partitions->first[task + 1] - first;
    uint64_t begin = partitions->begin[task], at = begin;
    uint64_t end = task + 1 < partitions->count ? partitions->begin[task + 1] : (uint64_t)a->row_count;
    if (sequences > 1) {
        place_sequences(a, p, first, sequences, begin, end - begin);
    } else { /* its rows are in order, and its index is 0 */
        a->start[first] = begin;
        for (uint64_t i = begin; i < end; i++)
            a->type[i] = (int32_t)a->type_rank[a->type[i]];
    }
    for (uint64_t s = 0; s < sequences && !p->out_of_memory; s++) {
        uint64_t next = sequences > 1 ? begin + p->next[s] : end;
        p->out_of_memory = !lp_sort_sequence(&a->columns, at, next - at, &p->space, &p->late);
        if (a->preparation->basket && !p->out_of_memory)
            lp_shuffle_ties(&a->columns, at, next - at);
        at = next;
    }
}

static void set_columns(lp_grouping *a)
{
    lapse_dataset *dataset = a->dataset;
    for (int f = 0; f < dataset->field_count; f++) {
        a->field_column[f] = dataset->fields[f].buffers[0];
        a->field_size[f] = dataset->fields[f].type == LAPSE_FIELD_NUMBER ? sizeof(double) : sizeof(int32_t);
    }
    a->columns = (lp_sequence_columns){a->start, a->sequences.count,   a->time,         a->type,
                                       a->split, dataset->field_count, a->field_column, a->field_size};
}

static bool placer_init(struct placer *p, const lp_partitions *all)
{
    p->next = lp_grow(NULL, (size_t)all->widest, sizeof *p->next);
    p->index = lp_alloc_raw((size_t)all->longest, sizeof *p->index);
    p->spare = lp_alloc_raw((size_t)all->longest, sizeof(double));
    return p->next && p->index && p->spare;
}

static void placer_clear(struct placer *p)
{
    lp_free(p->next);
    lp_free(p->index);
    lp_free(p->spare);
    lp_free(p->space.events);
}

bool lp_group_place_rows(lp_grouping *a)
{
    struct placing all = {a, lp_alloc((size_t)a->threads, sizeof *all.placers)};
    a->start = lp_alloc_raw(a->sequences.count + (size_t)1, sizeof *a->start);
    bool good = all.placers && a->start && a->partitions.longest <= UINT32_MAX; /* the limit of an index */
    for (int t = 0; good && t < a->threads; t++)
        good = placer_init(&all.placers[t], &a->partitions);
    if (good) {
        a->start[a->sequences.count] = (uint64_t)a->row_count;
        set_columns(a);
        lp_threads_run(a->threads, (int)a->partitions.count, place_partition, &all);
    }
    for (int t = 0; all.placers && t < a->threads; t++) {
        a->preparation->report->moved_rows += all.placers[t].late;
        good = good && !all.placers[t].out_of_memory;
        placer_clear(&all.placers[t]);
    }
    lp_free(all.placers);
    return good;
}

bool lp_group_move_rows(lp_grouping *a)
{
    a->parts = a->chunk_count < 8 * a->threads ? (int)a->chunk_count : 8 * a->threads;
    if (a->loader)
        a->scratch = lp_alloc_raw((size_t)a->threads * (size_t)a->longest, sizeof *a->scratch);
    bool good = (!a->loader || a->scratch) && assign_rows(a) && move_to_partitions(a);
    lp_free(a->partitions.of_row);
    a->partitions.of_row = NULL;
    return good;
}
