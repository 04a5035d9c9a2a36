/* fuzz_dataset.c: fuzzes the dataset file. Checksums would reject nearly every input, so they are corrected first; a
 * dataset that opens is read completely.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_dataset.c LIBRARY -o fuzz_dataset
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "data/dataset/dataset.h"
#include "data/dataset/split.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Offsets of docs/dataset.md. */
enum {
    HEADER = 64,
    ENTRY = 64,
    COUNT_AT = 24,
    TABLE_SUM_AT = 48,
    SUM_AT = 56,
    OFFSET_AT = 32,
    SIZE_AT = 40,
    COLUMN_SUM_AT = 48
};

static uint64_t number_at(const char *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

static void put_sum(char *place, const char *data, size_t size)
{
    uint64_t sum = XXH3_64bits(data, size);
    memcpy(place, &sum, sizeof sum);
}

static void seal(char *bytes, uint64_t size)
{
    static const char start[16] = {(char)0x89, 'L', 'A', 'P', 'S', 'E', '\r', '\n', 1, 0, 0, 0, 4, 3, 2, 1};
    if (size < HEADER)
        return;
    memcpy(bytes, start, sizeof start);
    memcpy(bytes + 16, &size, sizeof size);
    uint32_t count;
    memcpy(&count, bytes + COUNT_AT, sizeof count);
    uint64_t fits = (size - HEADER) / ENTRY;
    for (uint64_t i = 0; i < count && i < fits; i++) {
        char *entry = bytes + HEADER + i * ENTRY;
        uint64_t offset = number_at(entry + OFFSET_AT), length = number_at(entry + SIZE_AT);
        if (offset <= size && length <= size - offset)
            put_sum(entry + COLUMN_SUM_AT, bytes + offset, length);
    }
    if (count <= fits)
        put_sum(bytes + TABLE_SUM_AT, bytes + HEADER, count * (size_t)ENTRY);
    put_sum(bytes + SUM_AT, bytes, SUM_AT);
}

static double read_fields(const lapse_dataset *dataset, int64_t sequence, int64_t count)
{
    lapse_field field;
    double sum = 0;
    for (int f = 0; lapse_dataset_field(dataset, f, &field); f++) {
        const int32_t *categories;
        const double *numbers;
        lapse_dataset_field_values(dataset, f, sequence, &categories, &numbers);
        sum += (double)strlen(field.name);
        for (int64_t i = 0; i < count; i++)
            sum += numbers ? numbers[i] : (double)strlen(lapse_dataset_category_name(dataset, f, categories[i]));
    }
    return sum;
}

/* Reads everything that a caller may read. */
static void read_whole(const lapse_dataset *dataset)
{
    double sum = 0;
    for (int64_t s = 0; s < lapse_dataset_sequence_count(dataset); s++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(dataset, s, &times, &types, &count);
        sum += (double)strlen(lapse_dataset_sequence_name(dataset, s));
        for (int64_t i = 0; i < count; i++)
            sum += times[i] + (double)strlen(lapse_dataset_event_type_name(dataset, types[i]));
        sum += read_fields(dataset, s, count);
    }
    const char *name, *value;
    for (int i = 0; lapse_dataset_property(dataset, i, &name, &value); i++)
        sum += (double)strlen(name) + (double)strlen(value);
    uint8_t *split = NULL;
    lapse_check check;
    lapse_check_options checked;
    lapse_check_options_default(&checked);
    (void)lapse_dataset_check(dataset, &checked, &check, NULL);
    if (lp_split_make(dataset, lp_split_rule_default(dataset, "classify"), 1, &split, NULL) == LAPSE_OK)
        lp_free(split);
    static volatile double kept;
    kept = sum;
    (void)kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *bytes = malloc(size), path[64];
    int handle = memfd_create("fuzz", 0);
    if (!bytes || handle < 0)
        abort();
    memcpy(bytes, data, size);
    seal(bytes, size);
    if (write(handle, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    lapse_dataset *dataset = NULL;
    lapse_error error;
    if (lapse_dataset_open(path, &dataset, &error) == LAPSE_OK)
        read_whole(dataset);
    else if (error.status != LAPSE_ERROR_FORMAT)
        abort();
    lapse_dataset_close(dataset);
    close(handle);
    free(bytes);
    return 0;
}
