/* provenance.h: what a model file records of the run that made it. */
#ifndef LP_PROVENANCE_H
#define LP_PROVENANCE_H

#include "train/train_options.h"

/* Adds to the model's properties its configuration, the columns and counts of its dataset, and every option that changes
 * the result. split: of each event. */
lapse_status lp_provenance_record(lapse_model *model, const lapse_dataset *dataset, const uint8_t *split,
                                  const lapse_train_options *options, lapse_error *error);

/* Adds version and commit of this build. They are not part of the run: a checkpoint of another build can be resumed. */
lapse_status lp_provenance_build(lapse_model *model, lapse_error *error);

/* The commit of the build, or "unknown". */
const char *lp_build_commit(void);

#endif
