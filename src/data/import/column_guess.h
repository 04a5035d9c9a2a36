/* column_guess.h: finds the columns of the three roles by their values, with their names as evidence. */
#ifndef LP_COLUMN_GUESS_H
#define LP_COLUMN_GUESS_H

#include "data/import/columns.h"

typedef struct lp_role_guess {
    int64_t column;    /* -1: none */
    int64_t runner_up; /* -1: none */
    bool close;        /* the choice is not certain: ask */
    bool tied;         /* the runner-up is as good */
    char reason[120];  /* "named like a user; 24 values in 420 rows" */
    char sample[64];   /* a value */
} lp_role_guess;

typedef struct lp_column_guess {
    lp_role_guess role[3]; /* [lapse_column_role]; of a given role, only reason and sample */
    int64_t clock;         /* a column with the time of day of the dates in the time column; -1: none */
} lp_column_guess;

typedef struct lp_guess_input {
    const lp_columns *columns;
    const lp_sample *sample;
    int64_t given[3];  /* [lapse_column_role]; -1: find it */
    const bool *taken; /* [column]: has a role already */
    const bool *used;  /* [column]: is a field or the split, and comes last */
    bool named;        /* the columns have names */
    bool clocks;       /* times may be in two columns */
} lp_guess_input;

/* False when out of memory. */
bool lp_column_guess_roles(const lp_guess_input *input, lp_column_guess *guess);

#endif
