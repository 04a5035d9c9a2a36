/* field_statistics.h: what a model knows of the fields of its dataset: mean and deviation of numbers and gaps, embedding widths. */
#ifndef LP_FIELD_STATISTICS_H
#define LP_FIELD_STATISTICS_H

#include "model/model.h"

/* Fills fields[0 .. dataset->field_count - 1]. dims: width of the embedding of every categorical field; 0: chosen for each. */
void lp_field_statistics(const lapse_dataset *dataset, const uint8_t *split, int dims, lp_model_field *fields);

/* The scale of gaps: the offset is the 0.1 % quantile of the positive gaps between training events (1 where there is none). */
lapse_status lp_gap_statistics(const lapse_dataset *dataset, const uint8_t *split, lp_gap_scale *scale,
                               lapse_error *error);

/* The default floor of gaps of a network that learns when: the same quantile. */
lapse_status lp_when_floor(const lapse_dataset *dataset, const uint8_t *split, double *floor, lapse_error *error);

/* Sets the season of the background, and when_mean and when_deviation: of log(max(gap, when_floor)) over the gaps to training events.
 * An error where all gaps are 0. */
lapse_status lp_when_statistics(const lapse_dataset *dataset, const uint8_t *split, lp_model_config *config,
                                lapse_error *error);

#endif
