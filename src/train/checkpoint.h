/* checkpoint.h: a run in a file: the best model so far, and beside it where the run stands. */
#ifndef LP_CHECKPOINT_H
#define LP_CHECKPOINT_H

#include "train/trainer.h"

lapse_status lp_checkpoint_save(const lp_trainer *trainer, const char *path, lapse_error *error);

/* Puts a fresh trainer where the checkpoint's run stood. *found is false, and nothing changed, if there is no file. A
 * checkpoint of another run (other data or settings) is an error that names the difference. */
lapse_status lp_checkpoint_load(lp_trainer *trainer, const char *path, bool *found, lapse_error *error);

#endif
