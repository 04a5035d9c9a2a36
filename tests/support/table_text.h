/* table_text.h: tables written in a test, imported from memory, and compared whole. */
#ifndef LP_TEST_TABLE_TEXT_H
#define LP_TEST_TABLE_TEXT_H

#include <lapse.h>

/* The usual options on one thread. */
lapse_import_options defaults(void);

/* Imports bytes as the file "t.csv", in blocks of block_size. */
lapse_status import_bytes(const void *data, size_t size, const lapse_import_options *options, int64_t block_size,
                          lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

/* Everything in a dataset as text: "sequence: time event type (split) [category] <number>, time event type;..."; freed by lp_free. */
char *show(const lapse_dataset *dataset);

/* The import succeeds, whatever the size of blocks, and shows so. */
void expect_with(const char *text, size_t size, const lapse_import_options *options, const char *expected);

/* The import fails, whatever the size of blocks, at this place and with this message. */
void refuse_with(const char *text, size_t size, const lapse_import_options *options, lapse_status status, int64_t line,
                 int64_t column, const char *message);

#endif
