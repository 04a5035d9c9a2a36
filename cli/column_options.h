/* column_options.h: options for the columns of a text file, shared by the verbs that read one. */
#ifndef CLI_COLUMN_OPTIONS_H
#define CLI_COLUMN_OPTIONS_H

#include <stdio.h>

#include <lapse.h>

#include "options.h"

/* "auto", "s", "ms", ...; "stop", "skip". */
const char *const *cli_time_unit_names(void);
const char *const *cli_bad_rows_names(void);

/* The part of a verb's settings that the rows below set. */
typedef struct cli_columns {
    lapse_import_options import;
    const char *bad_rows;
} cli_columns;

void cli_columns_default(cli_columns *columns);
/* Converts the typed names (tab, skip) into values for the library. */
void cli_columns_finish(cli_columns *columns);

/* Prints the columns that an import chose, those it ignored, and how it read times: one line each. */
void cli_columns_print(FILE *file, const lapse_import_report *report);
/* The same as members of an open JSON object. */
void cli_columns_json(cli_json *json, const lapse_import_report *report);

/* The usual names of columns, for the help: a cli_verb's note. */
#define CLI_COLUMN_NOTES "Columns are found by their values and these names (case, blanks and _ do not matter)"
const char *cli_columns_note(int index, char *text, size_t size);

/* clang-format off */
/* Option rows for a verb whose settings have the type `settings` and the cli_columns `member`; `otherwise` describes the
 * default columns. */
#define CLI_COLUMN_ROWS(settings, member, otherwise)                                                                       \
    {.name = "sequence", .type = CLI_TEXT, .offset = offsetof(settings, member.import.sequence), .placeholder = "COLUMN",  \
     .help = "sequence (user, session) column: name, or number from 1", .unset = otherwise},                    \
    {.name = "time", .type = CLI_TEXT, .offset = offsetof(settings, member.import.time), .placeholder = "COLUMN",          \
     .help = "timestamp column", .unset = otherwise},                                                              \
    {.name = "event", .type = CLI_TEXT, .offset = offsetof(settings, member.import.event), .placeholder = "COLUMN[,...]",  \
     .help = "event type (item) column; several are joined into one name", .unset = otherwise},                             \
    {.name = "time-unit", .type = CLI_CHOICE, .offset = offsetof(settings, member.import.time_unit),                       \
     .placeholder = "UNIT", .help = "timestamp format: s, ms, us and ns are Unix time, iso is ISO 8601, mdy and dmy are dates such as " \
     "11/15/2026 and 15/11/2026, auto detects it", .choices = cli_time_unit_names},                                        \
    {.name = "timezone", .type = CLI_TEXT, .offset = offsetof(settings, member.import.timezone), .placeholder = "ZONE",    \
     .help = "time zone of timestamps without one: a name such as Europe/Berlin, or an offset such as +02:00",             \
     .unset = "UTC"},                                                                                                      \
    {.name = "delimiter", .type = CLI_TEXT, .offset = offsetof(settings, member.import.delimiter),                         \
     .placeholder = "CHARACTER", .help = "field delimiter of CSV; \"tab\" is a tab",                                  \
     .unset = "detected in the first line"},                                                                             \
    {.name = "no-header", .type = CLI_UNFLAG, .offset = offsetof(settings, member.import.header),                          \
     .help = "no header: the first line is data, and columns are given by number"},                                               \
    {.name = "bad-rows", .type = CLI_CHOICE, .offset = offsetof(settings, member.bad_rows), .placeholder = "ACTION",         \
     .help = "malformed rows: stop with an error, or skip them", .choices = cli_bad_rows_names}
/* clang-format on */

#endif
