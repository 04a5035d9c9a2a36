/* helpers.h: further processes of this program that share the work of `lapse compare` or `lapse tune` on a GPU, where calls to the
 * device from threads of one process are serialized. They find their work in a folder that all of them share. */
#ifndef CLI_HELPERS_H
#define CLI_HELPERS_H

#include "options.h"

typedef struct cli_helpers {
    int *processes; /* owned */
    int count;
} cli_helpers;

/* Processes that use one GPU well, where this many runs are left. */
int cli_helpers_default(int runs);

/* Starts `count` processes with this command line and --helper, the folder and the threads of each; fewer if the system refuses. */
cli_helpers cli_helpers_start(const cli_call *call, int count, const char *folder, int threads);
/* Ends them and waits. */
void cli_helpers_stop(cli_helpers *helpers);

#endif
