/* ranks.h: runs on several ranks: one process of a launcher such as mpirun for each. Rank 0 prints and writes; the others are silent. */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "console.h"
#include "options.h"

#include <lapse_lab.h>

#define CLI_SHARD_ITEMS_HELP \
    "recommend, under mpirun: each rank loads a part of the rows of the item tables; does not change the result"

/* First of all: silences the ranks other than 0. */
void cli_ranks_begin(void);

/* Opens the communicator for a verb that can run on ranks, and refuses the others; returns the exit status. Nothing to do for a process
 * alone. */
int cli_ranks_open(const cli_verb *verb);

/* Last of all: closes the communicator, or ends all ranks if this one has failed. Returns the exit status. */
int cli_ranks_end(int status);

/* Of all ranks; NULL: a process alone. */
lapse_comm *cli_ranks(void);

/* Replaces histories by those that this rank predicts for: the ranks divide them in their order. */
int cli_ranks_divide(lapse_dataset **histories);

/* Whether this process prints and writes files. */
bool cli_ranks_first(void);

#endif
