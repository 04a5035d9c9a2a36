/* results.h: where a verb's results go: standard output, or the file of --output, which is replaced as a whole or not at all. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Prints results; false: out of memory. */
typedef bool (*cli_results_print)(const void *results, FILE *file);

/* output: NULL is standard output. Returns the exit status. */
int cli_results_write(const char *output, cli_results_print print, const void *results);
/* CSV of several ranks: each writes its part, FILE.part-00000 and so on, which end to end are the file of one process. */
int cli_results_write_part(const char *output, cli_results_print print, const void *results);

/* Histories that a table shows: at a terminal 20, so that the end of the output can be seen; otherwise all. */
int64_t cli_results_shown(const char *output, bool table, int64_t histories);
/* Says how to get the others, if there are any. */
void cli_results_rest(int64_t shown, int64_t histories);

#endif
