/* arrow.h: imports an Arrow stream into a dataset. The public function is lapse_dataset_from_arrow. */
#ifndef LP_ARROW_H
#define LP_ARROW_H

#include "data/import/arrow_abi.h"
#include "data/import/import.h"

/* Granularity of the work. The result does not depend on it. */
typedef struct lp_arrow_tuning {
    int64_t batch_rows; /* that a worker takes at once; at most LP_ARROW_BATCH */
} lp_arrow_tuning;

/* The same as lapse_dataset_from_arrow. tuning NULL: defaults. */
lapse_status lp_arrow_import(struct ArrowArrayStream *stream, const lapse_import_options *options,
                             const lp_arrow_tuning *tuning, lapse_dataset **dataset, lapse_import_report *report,
                             lapse_error *error);

#endif
