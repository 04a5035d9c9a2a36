/* rank_check.h: whether the ranks of a training run train the same model on the same data. */
#ifndef LP_RANK_CHECK_H
#define LP_RANK_CHECK_H

#include "train/trainer.h"

/* Fails unless build, CPU level, data, options, initial parameters and the state that was resumed are the same on all ranks: the sentence
 * says on which they are not, and how. Called before the first step. */
lapse_status lp_rank_check(const lp_trainer *trainer, lapse_error *error);

#endif
