/* naive_attention.h: a second implementation of the attention model, directly from its formulas: a key and a value per pair,
 * in double. */
#ifndef LP_NAIVE_ATTENTION_H
#define LP_NAIVE_ATTENTION_H

#include "model/model.h"

/* Logarithms of the probabilities, [tokens x event types]. */
void naive_answers(const lapse_model *model, int tokens, const int32_t *type, const double *time,
                   const double *query_time, double *out);

/* The same for one target of a model with fields: fields is [tokens x field_count], each a category's number or a
 * standardized number. out is [tokens x names of the target]. */
void naive_target_answers(const lapse_model *model, lp_target target, int tokens, const int32_t *type,
                          const double *fields, const double *time, const double *query_time, double *out);

#endif
