/* fingerprint.c: hashes all columns and names of a dataset with XXH3. */
#include "data/dataset/fingerprint.h"

#include <string.h>
#include <xxhash.h>

uint64_t lp_dataset_fingerprint(const lapse_dataset *dataset)
{
    uint64_t parts[5] = {
        XXH3_64bits(dataset->start, (size_t)(dataset->sequence_count + 1) * sizeof *dataset->start),
        XXH3_64bits(dataset->time, (size_t)dataset->event_count * sizeof *dataset->time),
        XXH3_64bits(dataset->type, (size_t)dataset->event_count * sizeof *dataset->type),
        XXH3_64bits(dataset->types.bytes, (size_t)dataset->types.offset[dataset->types.count]),
        dataset->split ? XXH3_64bits(dataset->split, (size_t)dataset->event_count) : 0,
    };
    uint64_t whole = XXH3_64bits(parts, sizeof parts);
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        bool number = field->type == LAPSE_FIELD_NUMBER;
        uint64_t more[5] = {
            whole,
            (uint64_t)field->type,
            XXH3_64bits(field->name, strlen(field->name)),
            number ? XXH3_64bits(field->number, (size_t)dataset->event_count * sizeof *field->number)
                   : XXH3_64bits(field->category, (size_t)dataset->event_count * sizeof *field->category),
            number ? 0
                   : XXH3_64bits(field->categories.bytes, (size_t)field->categories.offset[field->categories.count]),
        };
        whole = XXH3_64bits(more, sizeof more);
    }
    return whole;
}

uint64_t lapse_dataset_fingerprint(const lapse_dataset *dataset)
{
    return lp_dataset_fingerprint(dataset);
}
