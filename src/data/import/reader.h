/* reader.h: blocks of delimited text into rows: the part of an import that several workers do side by side. */
#ifndef LP_READER_H
#define LP_READER_H

#include "data/import/blocks.h"
#include "data/import/columns.h"
#include "data/import/csv.h"
#include "data/import/rows.h"

typedef enum lp_time_unit { LP_TIME_AUTO = 0, LP_TIME_SECONDS, LP_TIME_MILLISECONDS, LP_TIME_ISO } lp_time_unit;

/* What all workers share. It changes only while the first blocks are read, by one worker. */
typedef struct lp_reading {
    const lapse_import_options *options;
    const char *file; /* for messages */
    lp_blocks blocks;
    lp_columns columns;
    bool have_columns;
    lp_time_unit unit;
    bool unit_found; /* decided by the first row, so that a later row may contradict it */
    lp_arena arena;  /* of columns */
} lp_reading;

/* A row that was found good; its names are in the buffer. */
typedef struct lp_waiting_row {
    const char *sequence, *event;
    uint32_t sequence_size, event_size;
    uint64_t sequence_key, event_key;
    double time;
    uint32_t split;
} lp_waiting_row;

enum { LP_WAITING_ROWS = 32 };

typedef struct lp_reader {
    lp_reading *reading;
    char *buffer; /* owned; LP_BLOCK_ROOM */
    lp_csv_record record;
    double number[LP_FIELD_LIMIT]; /* of the row being read, by field */
    lp_buffer joined;              /* the event's name, where it is made of several columns */
    lp_rows rows;
    lp_waiting_row waiting[LP_WAITING_ROWS]; /* rows checked but not yet in rows */
    int waiting_count;

    int64_t block; /* number of the block being read */
    int64_t line;  /* line ends in it before the record being read */
    int64_t seen;  /* rows read, the bad ones included */
    int64_t bad;   /* rows left out */

    /* Lines in these two are counted from the start of their block; lp_import puts them right. */
    lapse_error first_bad;
    int64_t first_bad_block; /* -1: none */
    lapse_status status;
    lapse_error error;
    int64_t error_block; /* where status was set */
} lp_reader;

lapse_status lp_reader_init(lp_reader *reader, lp_reading *reading, int64_t segment_rows, lapse_error *error);
void lp_reader_clear(lp_reader *reader);

/* Takes one block and reads it. False when there is no more to do: the text has ended, or reader->status is set. */
bool lp_reader_step(lp_reader *reader);

#endif
