/* fuzz_import.h: what the fuzz targets of imports share. */
#ifndef FUZZ_IMPORT_H
#define FUZZ_IMPORT_H

#include "fuzz/support/fuzz.h"

enum { FUZZ_LINE_LIMIT = 1024 }; /* bytes of a record: small texts reach it, and buffers are fast to allocate */

/* Imports a text in memory. */
lapse_status fuzz_import(const void *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                         lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

/* Imports a text in one chunk size and one thread, then in another chunk size on these threads. Both must have the same result,
 * which must be a valid dataset with a report that adds up, or the same error. also, which may be NULL, checks more. */
void fuzz_import_twice(const uint8_t *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                       int threads, void (*also)(const lapse_dataset *dataset));

#endif
