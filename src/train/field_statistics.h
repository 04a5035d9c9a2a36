/* field_statistics.h: what a model knows of the fields of its dataset: mean and deviation of numbers, embedding widths. */
#ifndef LP_FIELD_STATISTICS_H
#define LP_FIELD_STATISTICS_H

#include "model/model.h"

/* Fills fields[0 .. dataset->field_count - 1]. dims: width of the embedding of every categorical field; 0: chosen for each. */
void lp_field_statistics(const lapse_dataset *dataset, const uint8_t *split, int dims, lp_model_field *fields);

#endif
