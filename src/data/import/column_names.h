/* column_names.h: the usual names of columns, by role. */
#ifndef LP_COLUMN_NAMES_H
#define LP_COLUMN_NAMES_H

#include "lapse.h"

/* How a column's name fits a role. */
typedef struct lp_name_match {
    int rank;  /* less is better; -1: the name is not usual for the role */
    int group; /* names of two groups are equally good: a table may have an action and an item */
    bool weak; /* the name alone says little: its values must fit too, and names that are not weak come first */
} lp_name_match;

/* Compares without case, blanks and separators ("userId", "User ID" and "user_id" are one name). */
lp_name_match lp_column_name_match(const char *name, lapse_column_role role);

#endif
