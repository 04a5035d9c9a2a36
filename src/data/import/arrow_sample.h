/* arrow_sample.h: the first rows of an Arrow table as texts, so that its columns are chosen as those of a text are. */
#ifndef LP_ARROW_SAMPLE_H
#define LP_ARROW_SAMPLE_H

#include "data/import/arrow_table.h"

/* The number of rows that a sample may have, from the number of columns. */
int64_t lp_arrow_sample_rows(int64_t width);

/* Takes as many of the rows that the table has read as the sample of a CSV file with the same rows would have. The texts of
 * numbers are in the arena. False when out of memory. */
bool lp_arrow_sample(lp_sample *sample, const lp_arrow_table *table, lp_arena *arena);

#endif
