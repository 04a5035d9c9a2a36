/* column_chooser.h: what columns.c and column_roles.c share while they choose the columns of a table. */
#ifndef LP_COLUMN_CHOOSER_H
#define LP_COLUMN_CHOOSER_H

#include "data/import/columns.h"

/* The role of a column in messages. */
struct role {
    const char *noun;
    const char *option;
};

struct chooser {
    lp_columns *columns;
    lp_arena *arena;
    const lapse_import_options *options;
    const lp_sample *sample;
    bool header, json, typed;
    bool *taken, *used; /* [column]: by another role; as a field or split. Owned */
    const char *file;
    int64_t line;
    lapse_error *error;
};

/* Index of the column with this name or 1-based number, or -1. Names take precedence over numbers. */
int64_t lp_column_find(const struct chooser *chooser, const char *begin, const char *end);
bool lp_column_exists(const struct chooser *chooser, const char *wanted);

/* The error that there is no such column. */
lapse_status lp_column_missing(const struct chooser *chooser, const struct role *role, const char *begin, const char *end);

/* Chooses the columns of the sequence, the time and the event: given, preferred, or found. column_roles.c */
lapse_status lp_column_roles(struct chooser *chooser);

#endif
