/* paths.h: refuses a command line on which an output is the same file as an input or another output. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "options.h"

/* Compares every output of a call with every other file, by device and inode. The tables mark the files (cli_file). Returns
 * CLI_DONE, or CLI_USAGE after printing the error. */
int cli_paths_check(const cli_call *call, const void *settings);

#endif
