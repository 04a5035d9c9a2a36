/* golden_file.c: reads files of expected numbers. */
#include "support/golden_file.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int golden_open(golden_file *file, const char *path)
{
    lapse_error error;
    *file = (golden_file){.path = path};
    if (lp_map_open(&file->map, path, &error) != LAPSE_OK) {
        print_error("%s: %s (run the tests in the root of the repository)\n", error.file, error.message);
        return -1;
    }
    uint64_t size = 0;
    for (int i = 0; i < 8; i++)
        size |= (uint64_t)(unsigned char)file->map.data[i] << (8 * i);
    if (size <= file->map.size - 8)
        file->header = json_loadb(file->map.data + 8, size, JSON_REJECT_DUPLICATES, NULL);
    file->data = file->map.data + 8 + size;
    return file->header ? 0 : -1;
}

void golden_close(golden_file *file)
{
    json_decref(file->header);
    lp_map_close(&file->map);
}

double golden_setting(const golden_file *file, const char *case_name, const char *name)
{
    char full[GOLDEN_NAME_SIZE];
    snprintf(full, sizeof full, "%s%s%s", case_name, *case_name ? "." : "", name);
    const char *text = json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), full));
    if (!text)
        fail_msg("%s has no setting '%s'", file->path, full);
    return strtod(text, NULL);
}

static double element(const char *type, const char *bytes, size_t i)
{
    float single;
    double wide;
    int32_t whole;
    if (strcmp(type, "F64") == 0)
        return memcpy(&wide, bytes + i * sizeof wide, sizeof wide), wide;
    if (strcmp(type, "F32") == 0)
        return memcpy(&single, bytes + i * sizeof single, sizeof single), (double)single;
    assert_string_equal(type, "I32");
    return memcpy(&whole, bytes + i * sizeof whole, sizeof whole), (double)whole;
}

double *golden_tensor(const golden_file *file, const char *case_name, const char *part, int64_t rows, int64_t cols,
                      size_t *count)
{
    char full[GOLDEN_NAME_SIZE];
    const char *type;
    json_int_t found_rows, found_cols, begin, end;
    snprintf(full, sizeof full, "%s.%s", case_name, part);
    json_t *entry = json_object_get(file->header, full);
    if (!entry)
        fail_msg("%s has no tensor '%s'", file->path, full);
    assert_int_equal(json_unpack(entry, "{s:s, s:[I,I], s:[I,I]}", "dtype", &type, "shape", &found_rows, &found_cols,
                                 "data_offsets", &begin, &end),
                     0);
    if ((rows >= 0 && found_rows != rows) || found_cols != cols)
        fail_msg("'%s' is %lld x %lld, and should be %lld x %lld", full, (long long)found_rows, (long long)found_cols,
                 (long long)rows, (long long)cols);
    *count = (size_t)(found_rows * found_cols);
    assert_true(file->data + end <= file->map.data + file->map.size);
    double *out = calloc(*count + 1, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < *count; i++)
        out[i] = element(type, file->data + begin, i);
    return out;
}
