/* epoch_table.h: the epochs of a training run: as a chart, as JSON, and as a log file that grows with each epoch. */
#ifndef CLI_EPOCH_TABLE_H
#define CLI_EPOCH_TABLE_H

#include <stdio.h>

#include <lapse.h>

#include "json.h"

/* Prints the chart of a model's history, with the whole table if `all`; nothing for a baseline. False: out of memory. */
bool cli_history_print(FILE *file, const lapse_model *model, bool all);

/* Seconds from the start of the run to the end of each epoch; NaN where not known. Initialize with {0}. */
typedef struct cli_epoch_times {
    double *seconds; /* by epoch - 1; owned */
    int count;
    bool lost; /* out of memory: some are missing */
} cli_epoch_times;

void cli_epoch_times_add(cli_epoch_times *times, int epoch, double seconds);
void cli_epoch_times_clear(cli_epoch_times *times);

/* Writes the array "history", and "times_history" of a network of times, as members of the open JSON object. times: [2], of the two
 * networks, or NULL. */
void cli_history_json(cli_json *json, const lapse_model *model, const cli_epoch_times *times);

/* A log in JSON Lines: one object per epoch, flushed. Initialize with {0}. */
typedef struct cli_log {
    FILE *file; /* NULL: none */
    int epochs[2]; /* that the file has already, of the run that is resumed; of the network of times */
    int error;  /* errno of the first write that failed; 0: none */
} cli_log;

/* Opens a log; path NULL: none. A resumed run appends to it. A file that is not such a log is never overwritten.
 * Returns an exit status. */
int cli_log_open(cli_log *log, const char *path, bool resume);
void cli_log_write(cli_log *log, const lapse_progress *progress);
/* False: the file could not be written. */
bool cli_log_close(cli_log *log);

#endif
