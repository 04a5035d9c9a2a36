/* import.h: imports delimited text from any source into a dataset. The public function is lapse_dataset_read. */
#ifndef LP_IMPORT_H
#define LP_IMPORT_H

#include "data/import/reader.h"

/* Granularity of the work. The result does not depend on it. */
typedef struct lp_import_tuning {
    int64_t chunk_size;   /* bytes of text that a worker takes at once; at most LP_CHUNK_LIMIT */
    int64_t segment_rows; /* rows per allocation */
} lp_import_tuning;

/* Validates the options that do not depend on the format of the source. */
lapse_status lp_import_check(const lapse_import_options *options, lp_time_unit *unit, lapse_error *error);

/* Puts the columns, and how they were read, into the report. */
void lp_import_report_columns(const lp_reader_shared *shared, lapse_import_report *report);

/* After a failure: the question, if the import failed because of one; otherwise clears the report. */
void lp_import_report_question(const lp_reader_shared *shared, lapse_import_report *report);

/* Adds a worker's numbers of rows by the relation of their time to the zone. */
void lp_import_report_local(const int64_t local[LP_LOCALS], lapse_import_report *report);

/* Groups the rows of all workers into a dataset and describes it. report has the counts of rows; the dropped ones are
 * added. */
lapse_status lp_import_finish(const lp_reader_shared *shared, lp_import_rows *rows, int worker_count, int threads,
                              lapse_import_report *report, lapse_dataset *dataset, lapse_error *error);

/* The number of workers of an import. */
lapse_status lp_import_threads(const lapse_import_options *options, int *threads, lapse_error *error);

/* Reads from an open source, whose name is used in messages; ignores options->input. tuning NULL: defaults. */
lapse_status lp_import(lp_source *source, const lapse_import_options *options, const lp_import_tuning *tuning,
                       lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

#endif
