/* column_options.h: the options that say which column of a text file is what, shared by the verbs that read one. */
#ifndef CLI_COLUMN_OPTIONS_H
#define CLI_COLUMN_OPTIONS_H

#include <lapse.h>

#include "options.h"

/* "auto", "s", "ms", "iso"; "stop", "skip". */
const char *const *cli_time_unit_names(void);
const char *const *cli_bad_rows_names(void);

/* The part of a verb's settings that the rows below fill. */
typedef struct cli_columns {
    lapse_import_options import;
    const char *bad_rows;
} cli_columns;

void cli_columns_default(cli_columns *columns);
/* Turns what was typed (tab, skip) into what the library takes. */
void cli_columns_finish(cli_columns *columns);

/* clang-format off */
/* Rows of the table of a verb with `settings` as its type, which has the cli_columns `member`. */
#define CLI_COLUMN_ROWS(settings, member, otherwise)                                                                       \
    {.name = "sequence", .type = CLI_TEXT, .offset = offsetof(settings, member.import.sequence), .placeholder = "COLUMN",  \
     .help = "column that says whose event it is: a name, or a number from 1", .unset = otherwise},                    \
    {.name = "time", .type = CLI_TEXT, .offset = offsetof(settings, member.import.time), .placeholder = "COLUMN",          \
     .help = "column with the time", .unset = otherwise},                                                              \
    {.name = "event", .type = CLI_TEXT, .offset = offsetof(settings, member.import.event), .placeholder = "COLUMN[,...]",  \
     .help = "column with the event's name, or several to be joined", .unset = otherwise},                             \
    {.name = "time-unit", .type = CLI_CHOICE, .offset = offsetof(settings, member.import.time_unit),                       \
     .placeholder = "UNIT", .help = "how times are written", .choices = cli_time_unit_names},                          \
    {.name = "delimiter", .type = CLI_TEXT, .offset = offsetof(settings, member.import.delimiter),                         \
     .placeholder = "CHARACTER", .help = "what stands between fields; tab for a tab",                                  \
     .unset = "told from the first line"},                                                                             \
    {.name = "no-header", .type = CLI_UNFLAG, .offset = offsetof(settings, member.import.header),                          \
     .help = "the first line is data already, and columns are numbers"},                                               \
    {.name = "bad-rows", .type = CLI_CHOICE, .offset = offsetof(settings, member.bad_rows), .placeholder = "WHAT",         \
     .help = "what to do at a row that cannot be read", .choices = cli_bad_rows_names}
/* clang-format on */

#endif
