/* naive_attention.h: the attention model written a second time, straight from its formulas: a key and a value for every
 * pair, in double. Slow, and right by inspection. */
#ifndef LP_NAIVE_ATTENTION_H
#define LP_NAIVE_ATTENTION_H

#include "model/model.h"

/* Logarithms of the probabilities, [tokens x kinds]. */
void naive_answers(const lapse_model *model, int tokens, const int32_t *kind, const double *time, const double *until,
                   double *out);

#endif
