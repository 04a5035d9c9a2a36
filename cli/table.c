/* table.c: see table.h. Cells are stored until the table is printed, because the column widths depend on all of them. */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

void cli_table_add(cli_table *table, const char *format, ...)
{
    va_list arguments;
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
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *cell = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (!cell) {
        table->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(cell, (size_t)length + 1, format, arguments);
    va_end(arguments);
    table->cells[table->count++] = cell;
}

/* Spaces are printed only before a cell that follows them, so that no line ends in a space. */
static void print_row(const cli_table *table, FILE *file, size_t first, const int *width, int indent)
{
    int spaces = indent;
    for (size_t column = 0; table->align[column] && first + column < table->count; column++) {
        const char *cell = table->cells[first + column];
        int space = width[column] - cli_text_width(cell);
        if (table->align[column] == 'r')
            spaces += space;
        if (*cell) {
            fprintf(file, "%*s", spaces, "");
            cli_text_print(file, cell);
            spaces = 0;
        }
        spaces += 2 + (table->align[column] == 'r' ? 0 : space);
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
