/* column_words.h: what a word of a column's name says about its role, in several languages. */
#ifndef LP_COLUMN_WORDS_H
#define LP_COLUMN_WORDS_H

#include "lapse.h"

/* What a name says about a role: above 0 for it, the more the surer; below 0 against it. A usual name as a whole
 * (column_names.c) has at least LP_NAME_USUAL. */
double lp_column_words(const char *name, lapse_column_role role);

#define LP_NAME_USUAL 5.75

#endif
