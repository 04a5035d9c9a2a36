/* reader.h: parses chunks of delimited text or JSON Lines into rows: the part of an import that workers do in parallel. */
#ifndef LP_READER_H
#define LP_READER_H

#include "data/import/chunks.h"
#include "data/import/columns.h"
#include "data/import/csv.h"
#include "data/import/jsonl.h"
#include "data/import/rows.h"
#include "data/import/time_field.h"

/* Shared by all workers. Written only by the worker that reads the first chunks; read-only afterwards. */
typedef struct lp_reader_shared {
    const lapse_import_options *options;
    const char *file; /* for messages */
    lp_chunks chunks;
    lp_sample sample; /* the first rows */
    lp_columns columns;
    bool have_columns;
    bool json;             /* JSON Lines; otherwise delimited text */
    const char *format;    /* "CSV", "JSON Lines" or "Arrow" */
    lp_json_keys keys;     /* if json */
    int64_t skipped_lines; /* before the header, which are not part of the chunks */
    lp_time_format time;
    const char
        *time_type; /* "timestamp" or "date" if the source has typed times, in place of the unit; otherwise NULL */
    const char
        *name_types[2]; /* "integer", "float", ... of the sequences and the events, if the source has types and they are
                                * not text; otherwise NULL */
    lp_arena arena;     /* owns columns */
} lp_reader_shared;

/* Sets the format of times, once the columns are chosen. */
void lp_reader_set_time(lp_reader_shared *shared);

/* Parses the text of a number; NaN where it is empty or a usual word for a missing value. False: it is neither. */
bool lp_reader_number(const char *begin, const char *end, double *number);
#define LP_NOT_A_NUMBER \
    "'%s' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null"

/* Parses "train", "valid", "test" or a usual synonym into a lp_split. */
bool lp_reader_split(const char *begin, const char *end, uint32_t *split);

/* A valid row whose names are not interned yet; they point into the buffer. */
typedef struct lp_pending_row {
    const char *sequence, *event;
    uint32_t sequence_size, event_size;
    uint64_t sequence_key, event_key;
    double time;
    uint32_t split;
} lp_pending_row;

enum { LP_PENDING_ROWS = 32 };

typedef struct lp_reader {
    lp_reader_shared *shared;
    char *buffer; /* owned; lp_chunks_buffer_size bytes */
    lp_csv_record record;
    lp_jsonl jsonl;                /* if the text is JSON Lines */
    bool *present;                 /* owned; [column]: some object has it; if the text is JSON Lines */
    double number[LP_FIELD_LIMIT]; /* [field]: numbers of the current row */
    lp_buffer joined;              /* the event's name, if it has several columns */
    lp_buffer when;                /* the time, if it has two columns */
    lp_import_rows rows;
    lp_pending_row pending[LP_PENDING_ROWS]; /* valid rows that are not yet in rows */
    int pending_count;

    int64_t chunk;                 /* index of the current chunk */
    int64_t line;                  /* line ends of the chunk before the current record */
    int64_t seen;                  /* rows read, including malformed ones */
    int64_t bad;                   /* malformed rows, dropped */
    int64_t good_chunk, good_line; /* of the last row that is not a summary; chunk -1: none */
    int64_t summaries;             /* rows without a time and a name, as totals are */
    int64_t summary_chunk;         /* of the first of these */
    lapse_error summary;           /* what is wrong with it */
    int64_t local[LP_LOCALS];      /* [lp_local]: rows by the relation of their time to the zone */

    /* Line numbers in these two are relative to their chunk; lp_import adds the lines before it. */
    lapse_error first_bad;
    int64_t first_bad_chunk; /* -1: none */
    lapse_status status;
    lapse_error error;
    int64_t error_chunk; /* chunk of the error */
} lp_reader;

lapse_status lp_reader_init(lp_reader *reader, lp_reader_shared *shared, int64_t segment_rows, lapse_error *error);
void lp_reader_clear(lp_reader *reader);

/* Takes one chunk and parses it. False when done: at the end of the text, or if reader->status is set. */
bool lp_reader_step(lp_reader *reader);

#endif
