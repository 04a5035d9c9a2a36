/* arrow_texts.h: shared by arrow_names.c, which maps names in Arrow columns to ids, and arrow_texts.c, which does so for
 * strings. */
#ifndef LP_ARROW_TEXTS_H
#define LP_ARROW_TEXTS_H

#include "data/import/arrow_names.h"

/* Interns a text; LP_INTERN_NONE when out of memory. */
uint32_t lp_arrow_intern(lp_rows_names *table, const char *begin, const char *end, uint64_t position);

/* Where the id of a number is; NULL: the number is too large for so few names. False when out of memory. */
bool lp_arrow_number_slot(lp_arrow_names *names, const lp_rows_names *table, uint64_t number, uint32_t **slot);

/* lp_arrow_names_ids for a column of strings without a dictionary. */
bool lp_arrow_text_ids(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
                       int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead, uint32_t *ids);

#endif
