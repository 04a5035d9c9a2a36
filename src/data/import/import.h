/* import.h: imports delimited text from any source into a dataset. The public function is lapse_dataset_read. */
#ifndef LP_IMPORT_H
#define LP_IMPORT_H

#include "data/import/source.h"

/* Granularity of the work. The result does not depend on it. */
typedef struct lp_import_tuning {
    int64_t chunk_size;   /* bytes of text that a worker takes at once; at most LP_CHUNK_LIMIT */
    int64_t segment_rows; /* rows per allocation */
} lp_import_tuning;

/* Reads from an open source, whose name is used in messages; ignores options->input. tuning NULL: defaults. */
lapse_status lp_import(lp_source *source, const lapse_import_options *options, const lp_import_tuning *tuning,
                       lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

#endif
