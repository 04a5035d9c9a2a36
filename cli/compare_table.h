/* compare_table.h: the table of `lapse compare` as text, Markdown, CSV or JSON, and its line of progress. */
#ifndef CLI_COMPARE_TABLE_H
#define CLI_COMPARE_TABLE_H

#include "console.h"
#include "lapse_lab.h"

typedef struct cli_sweep_format {
    const char *name;  /* "text", "markdown", "csv" or "json" */
    const char *title; /* NULL: none */
    const char *data;  /* path */
    bool csv_safe;     /* as cli_csv_field */
    bool no_times;     /* without seconds, which differ between equal runs */
    bool cells;        /* all cells of the grid with their validation scores */
    bool test_scores;  /* with the table's scores too */
    bool pairs;        /* JSON: paired tests of all pairs of rows */
} cli_sweep_format;

/* NULL-terminated. */
const char *const *cli_sweep_format_names(void);

/* Prints the table; false if out of memory. */
bool cli_sweep_print(FILE *file, const lapse_sweep *sweep, const cli_sweep_format *format);

/* The line of progress: redrawn on a terminal, otherwise one line for each run that ends. */
typedef struct cli_sweep_bar {
    bool terminal, open;
    double drawn; /* by cli_clock */
    int done;     /* of the newest line; -1: none */
    const char *metric;
} cli_sweep_bar;

cli_sweep_bar cli_sweep_bar_new(const char *metric);
void cli_sweep_bar_update(cli_sweep_bar *bar, const lapse_sweep_progress *progress);
void cli_sweep_bar_end(cli_sweep_bar *bar);

#endif
