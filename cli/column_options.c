/* column_options.c: see column_options.h. */
#include "column_options.h"

#include <string.h>

const char *const *cli_time_unit_names(void)
{
    static const char *const names[] = {"auto", "s", "ms", "iso", NULL};
    return names;
}

const char *const *cli_bad_rows_names(void)
{
    static const char *const names[] = {"stop", "skip", NULL};
    return names;
}

void cli_columns_default(cli_columns *columns)
{
    lapse_import_options_default(&columns->import);
    columns->bad_rows = columns->import.skip_bad_rows ? "skip" : "stop";
}

void cli_columns_finish(cli_columns *columns)
{
    const char *delimiter = columns->import.delimiter;
    /* A shell passes '\t' as two characters. */
    if (delimiter && (strcmp(delimiter, "tab") == 0 || strcmp(delimiter, "\\t") == 0))
        columns->import.delimiter = "\t";
    columns->import.skip_bad_rows = strcmp(columns->bad_rows, "skip") == 0;
}
