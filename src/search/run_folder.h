/* run_folder.h: a folder of finished training runs that several processes share.
 *
 * A process claims a run by a lock on one byte of the folder's lock file, at an offset that identifies the run. The system releases
 * the locks of a process that ends in any way, so nothing has to be cleaned up. */
#ifndef LP_RUN_FOLDER_H
#define LP_RUN_FOLDER_H

#include "base/error.h"
#include "base/option.h"

typedef struct lp_run_folder {
    char path[LP_PATH_SIZE]; /* "": there is none; nothing is shared, and every claim succeeds */
    int lock;                /* descriptor; -1: none */
} lp_run_folder;

/* Creates the folder if it is missing. path may be "" or "none". */
lapse_status lp_run_folder_open(lp_run_folder *folder, const char *path, lapse_error *error);
void lp_run_folder_close(lp_run_folder *folder);

/* False: another process has the run. The claims of one lp_run_folder do not exclude each other. */
bool lp_run_folder_claim(const lp_run_folder *folder, uint64_t run);
void lp_run_folder_release(const lp_run_folder *folder, uint64_t run);
/* Whether another process has the run, without a claim of it. */
bool lp_run_folder_is_elsewhere(const lp_run_folder *folder, uint64_t run);

#endif
