/* translate.h: the events of a dataset in the numbers of a model. */
#ifndef LP_TRANSLATE_H
#define LP_TRANSLATE_H

#include "data/batch/batch.h"
#include "model/model.h"

typedef struct lp_translation {
    lp_event_columns columns;        /* of the dataset itself, or owned */
    void *owned[LP_FIELD_LIMIT + 1]; /* columns that had to be made */
    int owned_count;
} lp_translation;

/* Event types and categories keep the dataset's numbers where the model has the same ones, numbers are standardized. A field
 * that the dataset does not have, or a name that the model does not know, is an error that names it. The model and
 * dataset must outlive the translation. */
lapse_status lp_translation_init(lp_translation *translation, const lapse_model *model, const lapse_dataset *dataset,
                                 lapse_error *error);
/* The same, but names that the model does not know become -1 and are no error. */
lapse_status lp_translation_init_known(lp_translation *translation, const lapse_model *model,
                                       const lapse_dataset *dataset, lapse_error *error);
void lp_translation_clear(lp_translation *translation);

#endif
