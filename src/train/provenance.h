/* provenance.h: what a model file records of the run that made it. */
#ifndef LP_PROVENANCE_H
#define LP_PROVENANCE_H

#include "train/train_options.h"

/* Adds to the model's properties its configuration, the columns of its dataset, and every option that changes the result. */
lapse_status lp_provenance_record(lapse_model *model, const lapse_dataset *dataset, const lapse_train_options *options,
                                  lapse_error *error);

#endif
