/* fingerprint.h: a hash of a dataset's events. A model stores it to recognize the dataset that its split belongs to. */
#ifndef LP_FINGERPRINT_H
#define LP_FINGERPRINT_H

#include "data/dataset/dataset.h"

uint64_t lp_dataset_fingerprint(const lapse_dataset *dataset);

#endif
