/* checkpoint.h: checkpoint files of training: the best model so far, and the state of the run and of the optimizer. */
#ifndef LP_CHECKPOINT_H
#define LP_CHECKPOINT_H

#include "train/trainer.h"

lapse_status lp_checkpoint_save(const lp_trainer *trainer, const char *path, lapse_error *error);

/* Restores a new trainer from a checkpoint. If there is no file, *found is false and nothing changes. A checkpoint of
 * another run (other data or options) is an error that names the difference. */
lapse_status lp_checkpoint_load(lp_trainer *trainer, const char *path, bool *found, lapse_error *error);

#endif
