/* import.h: text into a dataset, from any source. The public call is lapse_dataset_read. */
#ifndef LP_IMPORT_H
#define LP_IMPORT_H

#include "data/import/source.h"

/* How the work is cut. The result never depends on it. */
typedef struct lp_import_tuning {
    int64_t block_size;   /* bytes of text a worker takes at once; at most LP_BLOCK_LIMIT */
    int64_t segment_rows; /* rows kept in one piece */
} lp_import_tuning;

/* Reads from an open source; options->input is not looked at, source->name is used in messages. tuning NULL: as usual.
 */
lapse_status lp_import(lp_source *source, const lapse_import_options *options, const lp_import_tuning *tuning,
                       lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

#endif
