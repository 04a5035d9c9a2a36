/* columns.h: which column of a table says whose event it is, when, what, in which split, and what else. */
#ifndef LP_COLUMNS_H
#define LP_COLUMNS_H

#include "base/error.h"
#include "base/memory.h"
#include "data/import/csv.h"
#include "data/dataset/dataset.h"

typedef struct lp_columns {
    int64_t count; /* fields of every row */
    int64_t sequence, time;
    int64_t split;  /* -1: none */
    int64_t *event; /* event_count of them, joined by spaces */
    int64_t event_count;
    int64_t field[LP_FIELD_LIMIT]; /* field_count of them, in the order of a dataset's fields */
    lapse_field_type field_type[LP_FIELD_LIMIT];
    int field_count;
    const char **name; /* count; "1", "2", ... where there is no header */
} lp_columns;

/* Decides by the options and the first record (at `line` of `file`): its fields are the names if options->header. What
 * columns points to lives in the arena. */
lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lapse_import_options *options,
                               const lp_csv_record *first, const char *file, int64_t line, lapse_error *error);

/* The names of the event columns, joined by commas; in the arena, or NULL. */
const char *lp_columns_event_text(const lp_columns *columns, lp_arena *arena);

#endif
