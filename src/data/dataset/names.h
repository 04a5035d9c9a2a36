/* names.h: finding a name's number. A table of names that is asked often, as a model's is, carries slots to find them by. */
#ifndef LP_NAMES_H
#define LP_NAMES_H

#include "data/dataset/dataset.h"

/* The number of a name, or -1. At once where the table has slots, otherwise by looking at all names. */
int64_t lp_names_find(const lp_names *names, const char *name);

/* Copies a table of names into an arena and gives it slots. False when out of memory. */
bool lp_names_copy(lp_arena *arena, const lp_names *from, lp_names *to);

#endif
