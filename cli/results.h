/* results.h: where a verb's results go: standard output, or the file of --output, which is replaced as a whole or not at all. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include <stdbool.h>
#include <stdio.h>

/* Prints results; false: out of memory. */
typedef bool (*cli_results_print)(const void *results, FILE *file);

/* output: NULL is standard output. Returns the exit status. */
int cli_results_write(const char *output, cli_results_print print, const void *results);

#endif
