/* fingerprint.h: a number that tells one dataset's events from another's, so that a model knows the data its split
 * belongs to. */
#ifndef LP_FINGERPRINT_H
#define LP_FINGERPRINT_H

#include "data/dataset/dataset.h"

uint64_t lp_dataset_fingerprint(const lapse_dataset *dataset);

#endif
