/* group_fields.c: groups the fields of rows by sequence, one field at a time, so that only one has its string tables
 * merged at once. */
#include "data/import/group.h"

#include <string.h>

static void move_field(void *context, int part, int worker)
{
    lp_grouping *a = context;
    bool number = a->dataset->fields[a->field].type == LAPSE_FIELD_NUMBER;
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const void *values = lp_group_values(a, worker, chunk, a->field);
        if (number)
            lp_group_append(a, worker, part, (uint64_t)chunk->row, values, chunk->count, a->moved, sizeof(double));
        else
            lp_group_append_ids(a, worker, part, chunk, values, a->category_number[chunk->worker], a->moved);
        lp_group_copied(a, chunk, a->field);
    }
    lp_group_append_end(a, worker, part, a->moved, number ? sizeof(double) : sizeof(uint32_t));
}

bool lp_group_field(lp_grouping *a, int f)
{
    lp_field *field = &a->dataset->fields[f];
    bool number = field->type == LAPSE_FIELD_NUMBER, stored = a->loader && !number;
    size_t rows = (size_t)a->row_count;
    /* A loader's ids are where the column will be: they move to the memory of the times, which is free, and back. */
    if (!stored)
        field->buffers[0] = lp_alloc_raw(rows, number ? sizeof(double) : sizeof(int32_t));
    a->field = f;
    a->moved = stored ? (void *)a->time : field->buffers[0];
    a->category_number = lp_alloc((size_t)a->worker_count, sizeof *a->category_number);
    bool good =
        a->category_number && a->moved && (number || lp_group_names(a, &a->categories[f], a->category_number, f));
    if (good)
        lp_group_move(a, move_field);
    if (good && stored) {
        field->buffers[0] = memcpy(a->loader->ids->field[f], a->moved, rows * sizeof(int32_t));
        a->loader->ids->field[f] = NULL;
    }
    lp_group_numbers_free(a, a->category_number);
    return good;
}

bool lp_group_categories(lp_grouping *a, int f)
{
    lp_field *field = &a->dataset->fields[f];
    const lp_intern *categories = &a->categories[f];
    int32_t *column = field->buffers[0];
    if (field->type == LAPSE_FIELD_NUMBER) {
        field->number = field->buffers[0];
        return true;
    }
    int64_t *count = lp_alloc(categories->count, sizeof *count);
    uint32_t *ids = lp_alloc(categories->count, sizeof *ids);
    bool good = count && ids;
    for (int64_t i = 0; good && i < a->dataset->event_count; i++)
        count[column[i]]++;
    good = good && lp_group_rank(categories, count, ids, &field->buffers[1], &field->categories);
    if (good)
        lp_group_renumber(a, column, ids);
    lp_free(count);
    lp_free(ids);
    field->category = column;
    return good;
}
