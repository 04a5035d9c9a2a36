/* arrow_case.h: imports Arrow streams made of CSV text. */
#ifndef LP_TEST_ARROW_CASE_H
#define LP_TEST_ARROW_CASE_H

#include "support/arrow_stream.h"

#include <lapse.h>

/* Imports a stream (arrow_stream.h) in batches of `batch` rows; nothing of it is left. */
lapse_status arrow_import(const char *text, const char *const *formats, const lapse_import_options *options, int rows, int slack,
                          arrow_spoil spoil, int64_t batch, lapse_dataset **dataset, lapse_import_report *report,
                          lapse_error *error);

/* The stream of `text` gives the dataset of the CSV text, whatever its arrays, batches and threads. */
void arrow_same_as(const char *csv, const char *text, const char *const *formats, lapse_import_options options);

#define FORMATS(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__       \
    }

#endif
