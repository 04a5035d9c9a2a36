/* columns.h: the roles of a table's columns: sequence, time, event, split and fields. */
#ifndef LP_COLUMNS_H
#define LP_COLUMNS_H

#include "base/error.h"
#include "base/memory.h"
#include "data/import/csv.h"
#include "data/import/sample.h"
#include "data/dataset/dataset.h"

typedef struct lp_columns {
    int64_t count; /* fields of every row */
    int64_t sequence, time;
    int64_t split;  /* -1: none */
    int64_t *event; /* event_count of them; their values are joined by spaces */
    int64_t event_count;
    int64_t field[LP_FIELD_LIMIT]; /* field_count of them, in the order of a dataset's fields */
    lapse_field_type field_type[LP_FIELD_LIMIT];
    int field_count;
    const char **name;             /* count; "1", "2", ... without a header */
    lapse_column_choice choice[3]; /* [lapse_column_role] */
} lp_columns;

/* What columns are chosen from. */
typedef struct lp_columns_input {
    const lapse_import_options *options;
    const lp_csv_record *first; /* names of the columns if options->header, otherwise the first row */
    const lp_sample *sample;
    bool json;        /* first has the keys of the sample; others may come later */
    const char *file; /* for messages */
    int64_t line;     /* of first; 0: the source has no lines */
} lp_columns_input;

/* Selects the columns. columns points into the arena. */
lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lp_columns_input *input, lapse_error *error);

/* Finds the column of a role by its name and its values: *column, and the next best one in *runner_up (-1: none). Columns
 * with taken[i] are left out, and those with used[i] (as a field or split) come last. *column is -1 if no name is usual;
 * then *rejected is a column whose name is usual but whose values are not, or -1. *tied is a column that is as good as
 * *column, or -1. False when out of memory. column_guess.c */
bool lp_column_guess(const lp_columns *columns, const lp_sample *sample, lapse_column_role role, const bool *taken,
                     const bool *used, int64_t *column, int64_t *runner_up, int64_t *tied, int64_t *rejected);

/* Names of the event columns, joined by commas; in the arena; NULL when out of memory. */
const char *lp_columns_event_text(const lp_columns *columns, lp_arena *arena);

/* The names of the columns without a role, into out, separated by commas and shortened to fit; returns their number. */
int64_t lp_columns_ignored(const lp_columns *columns, char *out, size_t size);

#endif
