/* small_train.h: training runs that take milliseconds. Each call fails the test when it cannot do its work. */
#ifndef LP_SMALL_TRAIN_H
#define LP_SMALL_TRAIN_H

#include "evaluate/evaluator.h"
#include "train/train_options.h"

/* Thirty random sequences of up to 14 events of 5 event types, some 100 s apart. */
lapse_dataset *small_train_data(uint64_t seed);

/* Three epochs of a model of 4 dims; a checkpoint, where the test names a file, is written at every step. */
lapse_train_options small_train_options(void);

/* Sets an option by name, for whichever models have it: a model that does not have it is not refused. */
void small_set(lapse_train_options *options, const char *name, const char *value);
void small_set_number(lapse_train_options *options, const char *name, double value);
double small_get_number(const lapse_train_options *options, const char *name);

/* Resolves options for a dataset, and frees what resolving makes besides. */
lapse_status small_resolve(lapse_train_options *options, const lapse_dataset *dataset, lapse_error *error);

/* Options of a network that learns the law of gaps which do not depend on the history. */
lapse_train_options small_gap_options(int context, int batch, int epochs);

/* Evaluates all events of a dataset; the caller clears the evaluator. */
void small_evaluate(lp_evaluator *evaluator, const lapse_model *model, const lapse_dataset *dataset);

lapse_model *small_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context);

#endif
