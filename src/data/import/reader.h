/* reader.h: parses chunks of delimited text into rows: the part of an import that workers do in parallel. */
#ifndef LP_READER_H
#define LP_READER_H

#include "data/import/chunks.h"
#include "data/import/columns.h"
#include "data/import/csv.h"
#include "data/import/rows.h"

typedef enum lp_time_unit { LP_TIME_AUTO = 0, LP_TIME_SECONDS, LP_TIME_MILLISECONDS, LP_TIME_ISO } lp_time_unit;

/* Shared by all workers. Written only by the worker that reads the first chunks; read-only afterwards. */
typedef struct lp_reader_shared {
    const lapse_import_options *options;
    const char *file; /* for messages */
    lp_chunks chunks;
    lp_columns columns;
    bool have_columns;
    lp_time_unit unit;
    bool unit_found;       /* detected from the first row, so that a later row may contradict it */
    lp_arena arena;        /* owns columns */
    const char *time_type; /* of a source with typed columns, in place of the unit; otherwise NULL */
} lp_reader_shared;

/* Parses the text of a time, and detects the unit if it is not known yet. Returns NULL, or the error as the end of a
 * sentence that begins with the text. */
const char *lp_reader_time(lp_reader_shared *shared, const char *begin, const char *end, double *time);

/* The time of a number in the unit of the source. Detects the unit and reports errors as lp_reader_time does. */
const char *lp_reader_time_number(lp_reader_shared *shared, double number, double *time);

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
    char *buffer; /* owned; LP_CHUNK_BUFFER bytes */
    lp_csv_record record;
    double number[LP_FIELD_LIMIT]; /* [field]: numbers of the current row */
    lp_buffer joined;              /* the event's name, if it has several columns */
    lp_rows rows;
    lp_pending_row pending[LP_PENDING_ROWS]; /* valid rows that are not yet in rows */
    int pending_count;

    int64_t chunk; /* index of the current chunk */
    int64_t line;  /* line ends of the chunk before the current record */
    int64_t seen;  /* rows read, including malformed ones */
    int64_t bad;   /* malformed rows, dropped */

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
