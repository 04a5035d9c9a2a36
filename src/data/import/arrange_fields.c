/* arrange_fields.c: the fields of rows into columns of a dataset: moved like times and event types, one field at a time, so that
 * only one has its names merged at once. */
#include "data/import/arrange.h"

#include "base/threads.h"

static void move_field(void *context, int part, int worker)
{
    (void)worker;
    lp_arrangement *a = context;
    uint64_t *cursor = a->cursor + (size_t)part * a->sequences.count;
    lp_field *field = &a->dataset->fields[a->field];
    double *numbers = field->type == LAPSE_FIELD_NUMBER ? field->blocks[0] : NULL;
    int32_t *categories = field->blocks[0];
    int64_t first, last;
    lp_arrange_part(a, part, &first, &last);
    for (const lp_rows_block *block; (block = lp_arrange_next(a, &first, last));) {
        lp_segment *segment = lp_arrange_segment(a, block);
        const lp_row *row = segment->row + block->first;
        const double *number = (const double *)segment->field[a->field] + block->first;
        const uint32_t *category = (const uint32_t *)segment->field[a->field] + block->first;
        for (int64_t i = 0; i < block->count; i++) {
            uint64_t place = cursor[row[i].sequence]++;
            if (numbers)
                numbers[place] = number[i];
            else
                categories[place] = (int32_t)a->category_number[block->worker][category[i]];
        }
        if (lp_arrange_emptied(segment, block->count)) {
            lp_free(segment->field[a->field]);
            segment->field[a->field] = NULL;
        }
    }
}

bool lp_arrange_field(lp_arrangement *a, int f)
{
    lp_field *field = &a->dataset->fields[f];
    bool number = field->type == LAPSE_FIELD_NUMBER;
    a->field = f;
    a->category_number = lp_alloc((size_t)a->worker_count, sizeof *a->category_number);
    field->blocks[0] = lp_grow(NULL, (size_t)a->row_count, number ? sizeof(double) : sizeof(int32_t));
    bool good = a->category_number && field->blocks[0] &&
                (number || lp_arrange_names(a, &a->categories[f], a->category_number, f));
    if (good) {
        lp_arrange_rewind(a);
        lp_threads_run(a->threads, a->parts, move_field, a);
    }
    for (int w = 0; a->category_number && w < a->worker_count; w++)
        lp_free(a->category_number[w]);
    lp_free(a->category_number);
    return good;
}

bool lp_arrange_categories(lp_arrangement *a, int f)
{
    lp_field *field = &a->dataset->fields[f];
    const lp_intern *categories = &a->categories[f];
    int32_t *column = field->blocks[0];
    if (field->type == LAPSE_FIELD_NUMBER) {
        field->number = field->blocks[0];
        return true;
    }
    int64_t *count = lp_alloc(categories->count, sizeof *count);
    uint32_t *number = lp_alloc(categories->count, sizeof *number);
    bool good = count && number;
    for (int64_t i = 0; good && i < a->dataset->event_count; i++)
        count[column[i]]++;
    good = good && lp_arrange_rank(categories, count, number, &field->blocks[1], &field->categories);
    if (good)
        lp_arrange_renumber(a, column, number);
    lp_free(count);
    lp_free(number);
    field->category = column;
    return good;
}
