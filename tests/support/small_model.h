/* small_model.h: models of a few dozen parameters with random values, and their predictions on any backend. */
#ifndef LP_SMALL_MODEL_H
#define LP_SMALL_MODEL_H

#include "model/model.h"
#include "nn/attention_block.h"

/* A model of 5 event types with a context of 12, no dropout, and the defaults of its own options. */
lp_model_config small_config_of(const lp_model_row *row, int dims);

/* An attention model of 5 event types, 3 periods (harmonics 2), a context of 12 and no dropout; the rest as given. */
lp_model_config small_config(const lp_encoding *encoding, int dims, int blocks, int heads);

/* Events of the config's model have their gap as an input, in units of a few seconds. */
void small_config_gap(lp_model_config *config);

/* The options of a config by name. A choice may be set by its index, and get returns its index. */
void small_config_set(lp_model_config *config, const char *name, const char *text);
void small_config_number(lp_model_config *config, const char *name, double value);
double small_config_get(const lp_model_config *config, const char *name);
const lp_encoding *small_encoding(const lp_model_config *config);
bool small_anchored(const lp_model_config *config);

/* A model with random parameters around their initial values: no weight or amplitude is exactly 1, no bias exactly 0. */
lapse_model *small_model(const lp_model_config *config, uint64_t seed);

/* Saves a model as lapse_model_save does, also with numbers that are not finite. */
void small_model_save(const lapse_model *model, const char *path);

/* The log-softmax at every position of one window: out is [tokens x event types]. Times are as a batch holds them; gap, in
 * seconds and NaN for none, may be NULL for models that do not read it. */
void small_answers(const lapse_model *model, const char *backend, int tokens, const int32_t *type, const double *time,
                   const double *query_time, const double *gap, double *out);

#endif
