/* columns.h: the roles of a table's columns: sequence, time, event, split and fields. */
#ifndef LP_COLUMNS_H
#define LP_COLUMNS_H

#include "base/error.h"
#include "base/memory.h"
#include "data/import/csv.h"
#include "data/import/sample.h"
#include "data/import/time_field.h"
#include "data/dataset/dataset.h"

typedef struct lp_columns {
    int64_t count; /* fields of every row */
    int64_t sequence, time;
    int64_t clock;    /* the time of day of the dates in `time`; -1: none */
    int clock_digits; /* of times of day without separators (0815, 081500), or 0 */
    int64_t split;    /* -1: none */
    int64_t *event;   /* event_count of them; their values are joined by spaces */
    int64_t event_count;
    int64_t field[LP_FIELD_LIMIT]; /* field_count of them, in the order of a dataset's fields */
    lapse_field_type field_type[LP_FIELD_LIMIT];
    int field_count;
    const char **name;                /* count; "1", "2", ... without a header */
    bool whole_sequence, whole_event; /* its names are whole numbers, from which ".0" is cut */
    lp_time_unit unit; /* of the time column, as far as the sample tells; LP_TIME_AUTO if the options name one */
    lapse_column_choice choice[3]; /* [lapse_column_role] */
    bool question;                 /* the choice failed because it is not certain */
    char paste[512];               /* then the options that make it certain; "": there is no complete guess */
    char paste_other[512];         /* the other answer, where one thing is in doubt; "": none */
    int64_t runner_up[3];          /* [lapse_column_role]; -1: none */
} lp_columns;

/* What columns are chosen from. */
typedef struct lp_columns_input {
    const lapse_import_options *options;
    const lp_csv_record *first; /* names of the columns if options->header, otherwise the first row */
    const lp_sample *sample;
    bool json;        /* first has the keys of the sample; others may come later */
    bool typed;       /* the table has typed columns and a schema: a time is one column */
    const char *file; /* for messages */
    int64_t line;     /* of first; 0: the source has no lines */
} lp_columns_input;

/* Selects the columns. columns points into the arena. */
lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lp_columns_input *input, lapse_error *error);

/* "user, time, event", shortened to fit; returns out. */
const char *lp_columns_list(const lp_columns *columns, char *out, size_t size);

/* Writes the names of the columns that are chosen into columns->choice. */
void lp_columns_name(lp_columns *columns);

/* Names of the event columns, joined by commas; in the arena; NULL when out of memory. */
const char *lp_columns_event_text(const lp_columns *columns, lp_arena *arena);

/* Reports that the choice is not certain: fills columns->question and paste, and the error with a sentence that has both.
 * column_question.c */
typedef struct lp_question {
    const char *file;
    int64_t line;
    bool no_header;  /* the first line is data: the columns are numbers */
    bool date_order; /* day and month cannot be told apart */
    bool numbered;   /* columns are named by number */
    const lapse_import_options *options;
} lp_question;
lapse_status lp_columns_ask(lp_columns *columns, const lp_question *question, lapse_error *error);

/* The names of the columns without a role, into out, separated by commas and shortened to fit; returns their number. */
int64_t lp_columns_ignored(const lp_columns *columns, char *out, size_t size);

#endif
