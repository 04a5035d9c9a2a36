#include "data/fingerprint.h"

#include <xxhash.h>

uint64_t lp_dataset_fingerprint(const lapse_dataset *dataset)
{
    uint64_t parts[5] = {
        XXH3_64bits(dataset->start, (size_t)(dataset->sequence_count + 1) * sizeof *dataset->start),
        XXH3_64bits(dataset->time, (size_t)dataset->event_count * sizeof *dataset->time),
        XXH3_64bits(dataset->kind, (size_t)dataset->event_count * sizeof *dataset->kind),
        XXH3_64bits(dataset->kinds.bytes, (size_t)dataset->kinds.offset[dataset->kinds.count]),
        dataset->split ? XXH3_64bits(dataset->split, (size_t)dataset->event_count) : 0,
    };
    return XXH3_64bits(parts, sizeof parts);
}
