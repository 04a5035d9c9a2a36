/* checkpoint.h: checkpoint files of training: the best model so far, and the state of the run and of the optimizer. */
#ifndef LP_CHECKPOINT_H
#define LP_CHECKPOINT_H

#include "train/trainer.h"

/* Refuses a file at path that is not a checkpoint, because saving would overwrite it. A missing file is accepted. */
lapse_status lp_checkpoint_check(const char *path, lapse_error *error);

/* Checks the file at path as lp_checkpoint_check does, unless this trainer has saved or loaded it, and replaces it. */
lapse_status lp_checkpoint_save(lp_trainer *trainer, const char *path, lapse_error *error);

/* Restores a new trainer from a checkpoint. If there is no file, *found is false and nothing changes. A checkpoint of
 * another run (other data or options) is an error that names the difference. */
lapse_status lp_checkpoint_load(lp_trainer *trainer, const char *path, bool *found, lapse_error *error);

/* Deletes the file at path, and the symbolic link if path is one, if this trainer has saved or loaded that file last and
 * nobody has changed it since. Otherwise does nothing. */
lapse_status lp_checkpoint_delete(lp_trainer *trainer, const char *path, lapse_error *error);

#endif
