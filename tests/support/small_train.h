/* small_train.h: training runs of a moment. Each call fails the test when it cannot do its work. */
#ifndef LP_SMALL_TRAIN_H
#define LP_SMALL_TRAIN_H

#include "model/model.h"

/* Thirty random sequences of up to 14 events of 5 event types, some 100 s apart. */
lapse_dataset *small_train_data(uint64_t seed);

/* Three epochs of a model of 4 dims, with a checkpoint at every step where one is asked for. */
lapse_train_options small_train_options(void);

lapse_model *small_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context);

#endif
