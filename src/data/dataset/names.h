/* names.h: finds the index of a name in a string table. Tables with frequent lookups, such as a model's vocabulary,
 * have a hash table. */
#ifndef LP_NAMES_H
#define LP_NAMES_H

#include "data/dataset/dataset.h"

/* Index of a name, or -1. Constant time if the table has a hash table, otherwise a linear search. */
int64_t lp_names_find(const lp_names *names, const char *name);

/* Checks that no two names are equal: LAPSE_OK; LAPSE_ERROR_FORMAT with the indices first < second of two equal names;
 * LAPSE_ERROR_MEMORY. Linear time, 11 bytes of temporary memory per name. Fills no lapse_error: the caller knows what the
 * names are of. */
lapse_status lp_names_unique(const lp_names *names, int64_t *first, int64_t *second);

/* Copies a string table into an arena and adds a hash table. False when out of memory. */
bool lp_names_copy(lp_arena *arena, const lp_names *from, lp_names *to);

#endif
