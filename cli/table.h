/* table.h: rows of text in aligned columns. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_table {
    const char *align; /* one letter a column: 'l' left, 'r' right */
    char **cells;      /* owned, row by row */
    size_t count, capacity;
    bool failed; /* memory ran out: the table is not whole */
} cli_table;

/* A table starts as {.align = "lrr"}. */
void cli_table_add(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the rows, indented, and frees the cells; false where memory had run out. */
bool cli_table_print(cli_table *table, FILE *file, int indent);

#endif
