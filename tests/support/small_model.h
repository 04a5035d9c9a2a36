/* small_model.h: models of a few dozen parameters with random values, and their answers on any backend. */
#ifndef LP_SMALL_MODEL_H
#define LP_SMALL_MODEL_H

#include "model/model.h"

/* An attention model of 5 event types, 3 periods (harmonics 2), a context of 12 and no dropout; the rest as given. */
lp_model_config small_config(const lp_encoding *encoding, int dims, int blocks, int heads);

/* A model with random parameters around its starting values: gains, shifts and amplitudes are none of them plain. */
lapse_model *small_model(const lp_model_config *config, uint64_t seed);

/* The softmax's logarithm at every place of one window: out is [tokens x event types]. Times are as a batch holds them. */
void small_answers(const lapse_model *model, const char *backend, int tokens, const int32_t *type, const double *time,
                   const double *query_time, double *out);

#endif
