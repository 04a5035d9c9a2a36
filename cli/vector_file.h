/* vector_file.h: vectors of items and of histories as files, for programs that search for nearest vectors. */
#ifndef CLI_VECTOR_FILE_H
#define CLI_VECTOR_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "helpers.h"
#include "lapse.h"

/* A table of vectors. The last number of each is the bias of an item, or 1 for a history, so that the product of both is the score. */
typedef struct cli_vector_table {
    int64_t count;
    int dims;             /* numbers of a row of `vectors`, without the last one */
    const float *vectors; /* [count x dims] */
    const float *last;    /* [count]; NULL: all are 1 */
    const char *columns;  /* names of the columns before the vector, and of the last number after it, in CSV */
    const char *last_column;
    void (*label)(const void *context, int64_t row, FILE *file); /* prints the columns before the vector */
    const void *context;
} cli_vector_table;

/* Whether the name of a file ends in .csv or .npy. */
bool cli_vector_file_known(const char *path);

/* Writes the file, which is replaced as a whole or not at all: CSV with labels, or a NumPy array of float32 without. */
int cli_vector_file_write(const char *path, const cli_vector_table *table);

#endif
