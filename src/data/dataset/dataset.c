/* dataset.c: accessors of a dataset, whether it was imported or mapped from a file. */
#include "data/dataset/dataset.h"

#include <string.h>

const char *lp_split_name(lp_split split)
{
    static const char *const names[LP_SPLIT_COUNT] = {"train", "valid", "test"};
    return (unsigned)split < LP_SPLIT_COUNT ? names[split] : "?";
}

const char *lp_field_type_name(lapse_field_type type)
{
    static const char *const names[] = {"action", "category", "number"};
    return (unsigned)type < 3 ? names[type] : "?";
}

int64_t lapse_dataset_sequence_count(const lapse_dataset *dataset)
{
    return dataset->sequence_count;
}

int64_t lapse_dataset_event_count(const lapse_dataset *dataset)
{
    return dataset->event_count;
}

int64_t lapse_dataset_event_type_count(const lapse_dataset *dataset)
{
    return dataset->types.count;
}

const char *lapse_dataset_event_type_name(const lapse_dataset *dataset, int64_t type)
{
    return type >= 0 && type < dataset->types.count ? lp_names_get(&dataset->types, type) : NULL;
}

const char *lapse_dataset_sequence_name(const lapse_dataset *dataset, int64_t sequence)
{
    return sequence >= 0 && sequence < dataset->sequences.count ? lp_names_get(&dataset->sequences, sequence) : NULL;
}

void lapse_dataset_sequence_names(const lapse_dataset *dataset, const char **bytes, const uint64_t **offsets)
{
    *bytes = dataset->sequences.bytes;
    *offsets = dataset->sequences.offset;
}

void lapse_dataset_event_type_names(const lapse_dataset *dataset, const char **bytes, const uint64_t **offsets)
{
    *bytes = dataset->types.bytes;
    *offsets = dataset->types.offset;
}

void lapse_dataset_sequence(const lapse_dataset *dataset, int64_t sequence, const double **times, const int32_t **types,
                            int64_t *count)
{
    bool exists = sequence >= 0 && sequence < dataset->sequence_count;
    uint64_t first = exists ? dataset->start[sequence] : 0;
    *times = dataset->time + first;
    *types = dataset->type + first;
    *count = exists ? (int64_t)(dataset->start[sequence + 1] - first) : 0;
}

const uint64_t *lapse_dataset_offsets(const lapse_dataset *dataset)
{
    return dataset->start;
}

static const lp_field *field_at(const lapse_dataset *dataset, int field)
{
    return field >= 0 && field < dataset->field_count ? &dataset->fields[field] : NULL;
}

bool lapse_dataset_field(const lapse_dataset *dataset, int index, lapse_field *field)
{
    const lp_field *found = field_at(dataset, index);
    if (found)
        *field = (lapse_field){found->name, found->type, found->categories.count};
    return found != NULL;
}

const char *lapse_dataset_category_name(const lapse_dataset *dataset, int field, int64_t category)
{
    const lp_field *found = field_at(dataset, field);
    bool exists = found && category >= 0 && category < found->categories.count;
    return exists ? lp_names_get(&found->categories, category) : NULL;
}

void lapse_dataset_field_values(const lapse_dataset *dataset, int field, int64_t sequence, const int32_t **categories,
                                const double **numbers)
{
    const lp_field *found = field_at(dataset, field);
    bool exists = found && sequence >= 0 && sequence < dataset->sequence_count;
    *categories = exists && found->category ? found->category + dataset->start[sequence] : NULL;
    *numbers = exists && found->number ? found->number + dataset->start[sequence] : NULL;
}

bool lapse_dataset_property(const lapse_dataset *dataset, int index, const char **name, const char **value)
{
    if (index < 0 || index >= dataset->property_count)
        return false;
    *name = dataset->property_name[index];
    *value = dataset->property_value[index];
    return true;
}

const char *lp_dataset_property_find(const lapse_dataset *dataset, const char *name)
{
    for (int i = 0; i < dataset->property_count; i++)
        if (strcmp(dataset->property_name[i], name) == 0)
            return dataset->property_value[i];
    return NULL;
}

bool lp_dataset_relative(const lapse_dataset *dataset)
{
    const char *unit = lp_dataset_property_find(dataset, "time.unit");
    return unit && strcmp(unit, "relative numbers") == 0;
}

lapse_dataset *lp_dataset_share(const lapse_dataset *dataset)
{
    lapse_dataset *shared = (lapse_dataset *)(uintptr_t)dataset;
    __atomic_fetch_add(&shared->sharers, 1, __ATOMIC_RELAXED);
    return shared;
}

void lapse_dataset_close(lapse_dataset *dataset)
{
    if (!dataset || __atomic_fetch_sub(&dataset->sharers, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < sizeof dataset->buffers / sizeof *dataset->buffers; i++)
        lp_free(dataset->buffers[i]);
    for (int f = 0; f < dataset->field_count; f++)
        for (int i = 0; i < 3; i++)
            lp_free(dataset->fields[f].buffers[i]);
    lp_map_close(&dataset->map);
    lp_arena_clear(&dataset->arena);
    lp_free(dataset);
}
