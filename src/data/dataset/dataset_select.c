/* dataset_select.c: some sequences of a dataset, whole or up to an event, as a dataset of its own. */
#include "data/dataset/dataset.h"

#include <string.h>

static bool copy_names(lp_arena *arena, const lp_names *from, const int64_t *chosen, int64_t count, lp_names *to)
{
    size_t size = 0;
    for (int64_t i = 0; i < count; i++)
        size += strlen(lp_names_get(from, chosen ? chosen[i] : i)) + 1;
    uint64_t *offset = lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *offset);
    char *bytes = lp_arena_alloc(arena, size + 1);
    if (!offset || !bytes)
        return false;
    for (int64_t i = 0; i < count; i++) {
        const char *name = lp_names_get(from, chosen ? chosen[i] : i);
        memcpy(bytes + offset[i], name, strlen(name) + 1);
        offset[i + 1] = offset[i] + strlen(name) + 1;
    }
    *to = (lp_names){.count = count, .offset = offset, .bytes = bytes};
    return true;
}

/* The chosen events of a column; NULL if out of memory. */
static void *copy_column(lapse_dataset *to, const lapse_dataset *from, const int64_t *sequences, const void *column,
                         size_t size)
{
    char *copy = lp_arena_alloc(&to->arena, (size_t)to->event_count * size);
    for (int64_t i = 0; copy && i < to->sequence_count; i++)
        memcpy(copy + to->start[i] * size, (const char *)column + from->start[sequences[i]] * size,
               (to->start[i + 1] - to->start[i]) * size);
    return copy;
}

static bool copy_field(lapse_dataset *to, const lapse_dataset *from, const int64_t *sequences, int f)
{
    const lp_field *field = &from->fields[f];
    lp_field *made = &to->fields[f];
    *made = (lp_field){.name = lp_arena_text(&to->arena, field->name), .type = field->type};
    if (!made->name)
        return false;
    if (field->type == LAPSE_FIELD_NUMBER)
        return (made->number = copy_column(to, from, sequences, field->number, sizeof *field->number)) != NULL;
    return copy_names(&to->arena, &field->categories, NULL, field->categories.count, &made->categories) &&
           (made->category = copy_column(to, from, sequences, field->category, sizeof *field->category)) != NULL;
}

static bool copy(lapse_dataset *to, const lapse_dataset *from, const int64_t *sequences, const int64_t *events,
                 int64_t count)
{
    uint64_t *start = lp_arena_alloc(&to->arena, ((size_t)count + 1) * sizeof *start);
    if (!start)
        return false;
    for (int64_t i = 0; i < count; i++)
        start[i + 1] =
            start[i] + (events ? (uint64_t)events[i] : from->start[sequences[i] + 1] - from->start[sequences[i]]);
    to->sequence_count = count;
    to->event_count = (int64_t)start[count];
    to->start = start;
    to->time = copy_column(to, from, sequences, from->time, sizeof *from->time);
    to->type = copy_column(to, from, sequences, from->type, sizeof *from->type);
    to->fields = lp_arena_alloc(&to->arena, (size_t)from->field_count * sizeof *to->fields + 1);
    bool good = to->time && to->type && to->fields &&
                copy_names(&to->arena, &from->types, NULL, from->types.count, &to->types) &&
                copy_names(&to->arena, &from->sequences, sequences, count, &to->sequences);
    for (; good && to->field_count < from->field_count; to->field_count++)
        good = copy_field(to, from, sequences, to->field_count);
    return good;
}

lapse_status lp_dataset_select(const lapse_dataset *dataset, const int64_t *sequences, const int64_t *events,
                               int64_t count, lapse_dataset **selected, lapse_error *error)
{
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    if (!made || !copy(made, dataset, sequences, events, count)) {
        lapse_dataset_close(made);
        return lp_fail_memory(error, "a part of the dataset", (size_t)count * sizeof *sequences);
    }
    *selected = made;
    return LAPSE_OK;
}

lapse_status lapse_dataset_select(const lapse_dataset *dataset, const int64_t *sequences, int64_t count,
                                  lapse_dataset **selected, lapse_error *error)
{
    LP_REQUIRE(error, dataset, sequences, selected);
    for (int64_t i = 0; i < count; i++)
        if (sequences[i] < 0 || sequences[i] >= dataset->sequence_count)
            return lp_fail(error, LAPSE_ERROR_USAGE, "there is no sequence %lld, but %lld sequences",
                           (long long)sequences[i], (long long)dataset->sequence_count);
    if (count < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "a dataset has at least one sequence");
    return lp_dataset_select(dataset, sequences, NULL, count, selected, error);
}
