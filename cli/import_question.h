/* import_question.h: what the tool prints when an import asks instead of guessing: the roles, and a complete command to paste. */
#ifndef CLI_IMPORT_QUESTION_H
#define CLI_IMPORT_QUESTION_H

#include "options.h"

/* The command line that cli_question_print repeats; main calls it once. */
void cli_question_command(const cli_call *call);

/* Prints, on standard error, a table of the roles with their reasons, samples and runners-up, and the command line with the
 * options that make the choice certain. Prints nothing if the import did not ask. */
void cli_question_print(const lapse_import_report *report);

/* Prints the table alone. */
void cli_roles_print(FILE *file, const lapse_import_report *report);

#endif
