/* csv_cell.h: cells of CSV output. */
#ifndef CLI_CSV_CELL_H
#define CLI_CSV_CELL_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a text cell, quoted where CSV needs it. safe: a text that a spreadsheet would run as a formula (it begins with =, +, -, @, a
 * tab or a line break) gets an apostrophe before it, which spreadsheets take as the mark of a text. */
void cli_csv_field(FILE *file, const char *text, bool safe);

/* The help of --csv-safe. */
#define CLI_CSV_SAFE_HELP \
    "CSV whose text cells are not run as formulas by spreadsheets: an apostrophe before =, +, -, @, tab and line breaks"

#endif
