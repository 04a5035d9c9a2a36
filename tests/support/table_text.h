/* table_text.h: imports tables from strings, and compares whole datasets as text. */
#ifndef LP_TEST_TABLE_TEXT_H
#define LP_TEST_TABLE_TEXT_H

#include <lapse.h>

/* Default options with one thread, and text in UTF-8. */
lapse_import_options defaults(void);

/* Imports bytes as the file "t.csv", in chunks of chunk_size. */
lapse_status import_bytes(const void *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                          lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

/* A whole dataset as text: "sequence: time event (split) [category] <number>, time event;..."; free with lp_free. */
char *show(const lapse_dataset *dataset);

/* The import succeeds with every chunk size and gives this dataset. */
void expect_with(const char *text, size_t size, const lapse_import_options *options, const char *expected);

/* The import fails with every chunk size at this position and with this message. */
void refuse_with(const char *text, size_t size, const lapse_import_options *options, lapse_status status, int64_t line,
                 int64_t column, const char *message);

#endif
