/* learning_rate.h: learning-rate schedules. */
#ifndef LP_LEARNING_RATE_H
#define LP_LEARNING_RATE_H

#include "train/train_options.h"

/* The learning rate after `epochs` epochs, a fraction included: a function of the progress alone, so that a resumed run continues
 * with it. */
double lp_learning_rate(const lp_run_settings *run, double epochs);

#endif
