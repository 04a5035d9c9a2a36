/* columns.h: the roles of a table's columns: sequence, time, event, split and fields. */
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
    int64_t *event; /* event_count of them; their values are joined by spaces */
    int64_t event_count;
    int64_t field[LP_FIELD_LIMIT]; /* field_count of them, in the order of a dataset's fields */
    lapse_field_type field_type[LP_FIELD_LIMIT];
    int field_count;
    const char **name; /* count; "1", "2", ... without a header */
} lp_columns;

/* Selects the columns by the options and the first record (at `line` of `file`), which is the header if
 * options->header. columns points into the arena. */
lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lapse_import_options *options,
                               const lp_csv_record *first, const char *file, int64_t line, lapse_error *error);

/* Names of the event columns, joined by commas; in the arena; NULL when out of memory. */
const char *lp_columns_event_text(const lp_columns *columns, lp_arena *arena);

#endif
