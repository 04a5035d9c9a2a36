/* column_options.h: options for events in text: their columns, their format, and how they are prepared. Every verb that reads
 * events has all of them (cli_verb.text), so that a text file is read the same way everywhere. */
#ifndef CLI_COLUMN_OPTIONS_H
#define CLI_COLUMN_OPTIONS_H

#include <stdio.h>

#include <lapse.h>

#include "options.h"

/* The part of a verb's settings that these options set. */
typedef struct cli_columns {
    lapse_import_options import;
    cli_list categories, numbers;
    const char *bad_rows;
    bool table; /* print the roles as a table, with reasons, samples and runners-up */
} cli_columns;

/* The rows; offsets are relative to a cli_columns. The first CLI_COLUMN_COUNT are columns whose default with a model is that of
 * the training data. Ends with a row without a name. */
enum { CLI_COLUMN_COUNT = 4 };
const cli_option *cli_column_options(void);

void cli_columns_default(cli_columns *columns);
/* Converts the typed values (tab, skip, lists) into values for the library. */
void cli_columns_finish(cli_columns *columns);

/* The name of an option that differs from its default, or NULL. */
const char *cli_columns_given(const cli_columns *columns);

/* Prints the columns that an import chose, those it ignored, and how it read times: one line each. */
void cli_columns_print(FILE *file, const lapse_import_report *report);
/* The same as members of an open JSON object. */
void cli_columns_json(cli_json *json, const lapse_import_report *report);

/* The usual names of columns, for the help: a cli_verb's note. */
#define CLI_COLUMN_NOTES "Columns are found by their values and these names (case, blanks and _ do not matter)"
const char *cli_columns_note(int index, char *text, size_t size);

#endif
