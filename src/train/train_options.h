/* train_options.h: training options, within the library. */
#ifndef LP_TRAIN_OPTIONS_H
#define LP_TRAIN_OPTIONS_H

#include "data/dataset/dataset.h"

/* lapse_train_options_resolve, which needs the split and hands it over: each event's, owned by the caller. */
lapse_status lp_train_options_split(const lapse_dataset *dataset, lapse_train_options *options, uint8_t **split,
                                    lapse_error *error);

#endif
