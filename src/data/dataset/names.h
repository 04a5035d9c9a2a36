/* names.h: finds the index of a name in a string table. Tables with frequent lookups, such as a model's vocabulary,
 * have a hash table. */
#ifndef LP_NAMES_H
#define LP_NAMES_H

#include "data/dataset/dataset.h"

/* Index of a name, or -1. Constant time if the table has a hash table, otherwise a linear search. */
int64_t lp_names_find(const lp_names *names, const char *name);

/* Copies a string table into an arena and adds a hash table. False when out of memory. */
bool lp_names_copy(lp_arena *arena, const lp_names *from, lp_names *to);

#endif
