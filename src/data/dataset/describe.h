/* describe.h: what is recorded about a dataset when it is made, in words a person reads. */
#ifndef LP_DESCRIBE_H
#define LP_DESCRIBE_H

#include "data/import/reader.h"

/* Room for the properties lp_describe may set. */
enum { LP_PROPERTY_LIMIT = 48 + LP_FIELD_LIMIT };

/* Sets the dataset's properties: where it came from, how it was read, what was left out, and how the events lie in
 * time. */
lapse_status lp_describe(lapse_dataset *dataset, const lp_reading *reading, const lapse_import_report *report,
                         lapse_error *error);

#endif
