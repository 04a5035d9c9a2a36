/* table.c: see table.h. Cells are kept until all are known, because widths depend on the last one too. */
#define _GNU_SOURCE /* vasprintf */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

void cli_table_add(cli_table *table, const char *format, ...)
{
    char *cell = NULL;
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        char **cells = realloc(table->cells, capacity * sizeof *cells);
        if (!cells) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&cell, format, arguments) < 0)
        table->failed = true;
    else
        table->cells[table->count++] = cell;
    va_end(arguments);
}

/* Spaces are held back until something follows them, so that no line ends in one. */
static void print_row(const cli_table *table, FILE *file, size_t first, const int *width, int indent)
{
    int owed = indent;
    for (size_t column = 0; table->align[column] && first + column < table->count; column++) {
        const char *cell = table->cells[first + column];
        int space = width[column] - cli_text_width(cell);
        if (table->align[column] == 'r')
            owed += space;
        if (*cell) {
            fprintf(file, "%*s", owed, "");
            cli_text_print(file, cell);
            owed = 0;
        }
        owed += 2 + (table->align[column] == 'r' ? 0 : space);
    }
    fputc('\n', file);
}

bool cli_table_print(cli_table *table, FILE *file, int indent)
{
    size_t columns = strlen(table->align);
    int *width = calloc(columns, sizeof *width);
    bool whole = !table->failed && width;
    for (size_t i = 0; i < table->count && whole; i++) {
        int cell = cli_text_width(table->cells[i]);
        if (cell > width[i % columns])
            width[i % columns] = cell;
    }
    for (size_t i = 0; i < table->count && whole; i += columns)
        print_row(table, file, i, width, indent);
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(width);
    memset(table, 0, sizeof *table);
    return whole;
}
