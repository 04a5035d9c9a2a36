/* table.h: text tables with aligned columns. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_table {
    const char *align; /* one letter per column: 'l' left, 'r' right */
    char **cells;      /* owned, in row-major order */
    size_t count, capacity;
    bool failed; /* out of memory: cells are missing */
} cli_table;

/* Initialize a table with {.align = "lrr"}. */
void cli_table_add(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the rows, indented, and frees the cells; false if out of memory. */
bool cli_table_print(cli_table *table, FILE *file, int indent);

#endif
