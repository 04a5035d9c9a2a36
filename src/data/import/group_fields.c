/* group_fields.c: groups the fields of rows by sequence, one field at a time, so that only one has its string tables
 * merged at once. */
#include "data/import/group.h"

#include "base/threads.h"

static void move_field(void *context, int part, int worker)
{
    (void)worker;
    lp_grouping *a = context;
    uint64_t *cursor = a->cursor + (size_t)part * a->sequences.count;
    lp_field *field = &a->dataset->fields[a->field];
    double *numbers = field->type == LAPSE_FIELD_NUMBER ? field->buffers[0] : NULL;
    int32_t *categories = field->buffers[0];
    int64_t first, last;
    lp_group_part(a, part, &first, &last);
    for (const lp_rows_chunk *chunk; (chunk = lp_group_next(a, &first, last));) {
        const uint32_t *sequence = lp_group_sequences(a, part, chunk);
        const void *values = lp_group_values(a, part, chunk, a->field);
        const double *number = values;
        const uint32_t *category = values;
        for (int64_t i = 0; i < chunk->count; i++) {
            LP_GROUP_PREFETCH(categories, cursor, sequence, i, chunk->count);
            uint64_t index = cursor[sequence[i]]++;
            if (numbers)
                numbers[index] = number[i];
            else
                categories[index] = (int32_t)a->category_number[chunk->worker][category[i]];
        }
        lp_group_copied(a, chunk, a->field);
    }
}

bool lp_group_field(lp_grouping *a, int f)
{
    lp_field *field = &a->dataset->fields[f];
    bool number = field->type == LAPSE_FIELD_NUMBER;
    a->field = f;
    a->category_number = lp_alloc((size_t)a->worker_count, sizeof *a->category_number);
    field->buffers[0] = lp_alloc_raw((size_t)a->row_count, number ? sizeof(double) : sizeof(int32_t));
    bool good = a->category_number && field->buffers[0] &&
                (number || lp_group_names(a, &a->categories[f], a->category_number, f));
    if (good)
        lp_group_move(a, f, move_field);
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
    bool good = count != NULL;
    for (int64_t i = 0; good && i < a->dataset->event_count; i++)
        count[column[i]]++;
    good = good && lp_group_rank(a, categories, count, column, &field->buffers[1], &field->categories);
    lp_free(count);
    field->category = column;
    return good;
}
