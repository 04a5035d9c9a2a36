/* rows.c: growable storage for the rows that a worker reads. */
#include "data/import/rows.h"

#include <string.h>

static void free_segment(lp_segment *segment)
{
    if (!segment)
        return;
    lp_free(segment->time);
    lp_free(segment->sequence);
    lp_free(segment->type);
    for (int f = 0; f < LP_FIELD_LIMIT; f++)
        lp_free(segment->field[f]);
    lp_free(segment);
}

static bool add_fields(const lp_import_rows *rows, lp_segment *segment)
{
    bool good = true;
    for (int f = 0; good && f < rows->field_count; f++) {
        size_t size = rows->field_type[f] == LAPSE_FIELD_NUMBER ? sizeof(double) : sizeof(uint32_t);
        segment->field[f] = lp_grow(NULL, (size_t)segment->capacity, size);
        good = segment->field[f] != NULL;
    }
    return good;
}

static bool add_segment(lp_import_rows *rows, int64_t most)
{
    size_t count = (size_t)rows->segment_count + 1;
    if (!lp_reserve(&rows->segments, &rows->segment_capacity, count, sizeof *rows->segments))
        return false;
    lp_segment *segment = lp_alloc(1, sizeof *segment);
    if (!segment)
        return false;
    segment->capacity = rows->segment_rows > most ? rows->segment_rows : most;
    segment->time = lp_grow(NULL, (size_t)segment->capacity, sizeof *segment->time);
    segment->sequence = lp_grow(NULL, (size_t)segment->capacity, sizeof *segment->sequence);
    segment->type = lp_grow(NULL, (size_t)segment->capacity, sizeof *segment->type);
    if (!segment->time || !segment->sequence || !segment->type || !add_fields(rows, segment)) {
        free_segment(segment);
        return false;
    }
    rows->segments[rows->segment_count++] = segment;
    return true;
}

bool lp_rows_fields(lp_import_rows *rows, const lapse_field_type *types, int count)
{
    rows->categories = count ? lp_alloc((size_t)count, sizeof *rows->categories) : NULL;
    if (count && !rows->categories)
        return false;
    rows->field_type = types;
    rows->field_count = count;
    bool good = true;
    for (int64_t i = 0; good && i < rows->segment_count; i++)
        good = add_fields(rows, rows->segments[i]);
    return good;
}

bool lp_rows_begin(lp_import_rows *rows, int64_t index, int64_t most)
{
    if (!lp_reserve(&rows->chunks, &rows->chunk_capacity, (size_t)rows->chunk_count + 1, sizeof *rows->chunks))
        return false;
    lp_segment *segment = rows->segment_count ? rows->segments[rows->segment_count - 1] : NULL;
    if ((!segment || segment->capacity - segment->used < most) && !add_segment(rows, most))
        return false;
    segment = rows->segments[rows->segment_count - 1];
    rows->chunks[rows->chunk_count++] =
        (lp_rows_chunk){.index = index, .segment = (int32_t)(rows->segment_count - 1), .first = segment->used};
    return true;
}

uint32_t lp_rows_name(lp_rows_names *names, const char *name, size_t size, uint64_t key, uint64_t position)
{
    if (names->intern.count == names->capacity) {
        size_t capacity = names->capacity * 2 + 64;
        uint64_t *first = lp_grow(names->first, capacity, sizeof *first);
        if (!first)
            return LP_INTERN_NONE;
        names->first = first;
        names->capacity = capacity;
    }
    bool added;
    uint32_t index = lp_intern_add(&names->intern, name, size, key, &added);
    if (added && index != LP_INTERN_NONE)
        names->first[index] = position;
    return index;
}

bool lp_rows_sample(lp_import_rows *rows, int64_t chunk, const uint32_t *sequence, int64_t count)
{
    enum { SAMPLED = 16 }; /* one chunk of so many */
    if (chunk % SAMPLED != 0)
        return true;
    size_t names = rows->sequences.intern.count;
    if (!lp_reserve(&rows->sampled, &rows->sampled_capacity, names, sizeof *rows->sampled))
        return false;
    for (int64_t i = 0; i < count; i++)
        rows->sampled[sequence[i]]++;
    return true;
}

void lp_rows_names_clear(lp_rows_names *names)
{
    lp_intern_clear(&names->intern);
    lp_free_large(names->first);
    *names = (lp_rows_names){0};
}

void lp_rows_clear(lp_import_rows *rows)
{
    for (int64_t i = 0; i < rows->segment_count; i++)
        free_segment(rows->segments[i]);
    lp_free(rows->segments);
    lp_free(rows->chunks);
    lp_rows_names_clear(&rows->sequences);
    lp_free(rows->sampled);
    lp_rows_names_clear(&rows->types);
    for (int f = 0; f < rows->field_count; f++)
        lp_rows_names_clear(&rows->categories[f]);
    lp_free(rows->categories);
    *rows = (lp_import_rows){0};
}
