/* describe.h: metadata of an imported dataset, as text properties. */
#ifndef LP_DESCRIBE_H
#define LP_DESCRIBE_H

#include "data/import/reader.h"

/* Maximum number of properties that lp_describe sets. */
enum { LP_PROPERTY_LIMIT = 48 + LP_FIELD_LIMIT };

/* Sets the dataset's properties: the source, how it was parsed, the dropped rows, and statistics of the events. */
lapse_status lp_describe(lapse_dataset *dataset, const lp_reader_shared *shared, const lapse_import_report *report,
                         lapse_error *error);

#endif
