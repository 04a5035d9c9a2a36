/* sample.h: the first rows of a text, as a matrix of fields. Columns and the time unit are chosen from it. It depends only on
 * the beginning of the text, not on chunks. */
#ifndef LP_SAMPLE_H
#define LP_SAMPLE_H

#include "base/error.h"

enum { LP_SAMPLE_FIELDS = 1 << 20 }; /* limit of row_count * column_count */

/* Initialize with {0}. A sample without rows is valid. */
typedef struct lp_sample {
    char *text;                /* owned; the fields point into it */
    const char **begin, **end; /* owned; [row_count][column_count]; NULL where a value is missing */
    int64_t row_count, column_count;
} lp_sample;

/* Takes the whole records of a text that begins where a record begins. Rows whose number of fields differs from that of
 * the first record are left out; errors are left to the reader. False when out of memory. */
bool lp_sample_csv(lp_sample *sample, const char *text, size_t size, char delimiter, bool header);

/* Allocates the matrix for up to row_limit rows (fewer if they exceed LP_SAMPLE_FIELDS), which is lowered. False when out
 * of memory. */
bool lp_sample_reserve(lp_sample *sample, int64_t column_count, int64_t *row_limit);

void lp_sample_clear(lp_sample *sample);

#endif
