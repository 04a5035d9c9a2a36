/* gap_quantile.h: quantiles of the time between events of the training split, from which defaults are chosen. */
#ifndef LP_GAP_QUANTILE_H
#define LP_GAP_QUANTILE_H

#include "data/dataset/dataset.h"

/* The quantile of the positive times between training events that are `apart` positions apart (fewer where the sequence is
 * shorter), in a sample of at most 2^18 of them; 0 where there is none. */
lapse_status lp_gap_quantile(const lapse_dataset *dataset, const uint8_t *split, int apart, double fraction,
                             double *gap, lapse_error *error);

/* The quantile of the number of events that sequences have after their first one, in a sample of at most 2^18 sequences. */
lapse_status lp_length_quantile(const lapse_dataset *dataset, double fraction, double *length, lapse_error *error);

/* Compares two doubles, for qsort and bsearch. */
int lp_compare_numbers(const void *a, const void *b);

#endif
