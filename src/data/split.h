/* split.h: which events are learned from, which choose the best model, and which are kept for the final score. */
#ifndef LP_SPLIT_H
#define LP_SPLIT_H

#include "data/dataset.h"

/* The split of every event, as lp_split: a copy of the dataset's own where it has one; otherwise whole sequences by
 * chance, 80 % train, 10 % valid, 10 % test, the same for the same seed and names order on every machine. *split has
 * event_count bytes and is the caller's (lp_free). An error where nothing would be left to train on or to validate
 * with. */
lapse_status lp_split_make(const lapse_dataset *dataset, uint64_t seed, uint8_t **split, lapse_error *error);

#endif
