/* vector_file.c: writes vectors as CSV or as a NumPy array. */
#include "vector_file.h"

#include "console.h"
#include "lapse_lab.h"

#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size > tail && strcmp(text + size - tail, end) == 0;
}

bool cli_vector_file_known(const char *path)
{
    return ends_with(path, ".csv") || ends_with(path, ".npy");
}

static float last_of(const cli_vector_table *table, int64_t row)
{
    return table->last ? table->last[row] : 1;
}

/* Nine digits tell every float from the others. */
static void write_csv(const cli_vector_table *table, FILE *file)
{
    fputs(table->columns, file);
    for (int c = 0; c < table->dims; c++)
        fprintf(file, ",v%d", c);
    fprintf(file, ",%s\n", table->last_column);
    for (int64_t i = 0; i < table->count; i++) {
        table->label(table->context, i, file);
        for (int c = 0; c < table->dims; c++)
            fprintf(file, ",%.9g", (double)table->vectors[i * table->dims + c]);
        fprintf(file, ",%.9g\n", (double)last_of(table, i));
    }
}

/* Format 1.0: a magic, the size of the header, the header padded to 64 bytes, the array. */
static void write_npy(const cli_vector_table *table, FILE *file)
{
    enum { BEFORE = 10, HEADER = 128 - BEFORE };
    char header[HEADER + 1];
    int size = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %d), }",
                        (long long)table->count, table->dims + 1);
    memset(header + size, ' ', (size_t)(HEADER - size));
    header[HEADER - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(HEADER, file);
    fputc(0, file);
    fwrite(header, 1, HEADER, file);
    for (int64_t i = 0; i < table->count; i++) {
        float last = last_of(table, i);
        fwrite(table->vectors + i * table->dims, sizeof last, (size_t)table->dims, file);
        fwrite(&last, sizeof last, 1, file);
    }
}

int cli_vector_file_write(const char *path, const cli_vector_table *table)
{
    char *text = NULL;
    size_t size = 0;
    lapse_error error;
    FILE *memory = open_memstream(&text, &size);
    if (memory && ends_with(path, ".npy"))
        write_npy(table, memory);
    else if (memory)
        write_csv(table, memory);
    bool whole = memory && !ferror(memory);
    if (memory)
        whole = fclose(memory) == 0 && whole;
    int result = CLI_DONE;
    if (!whole)
        result = cli_fail("out of memory");
    else if (lapse_file_write(path, text, size, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(text);
    return result;
}
