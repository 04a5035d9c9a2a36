/* arrow_reader.h: reads batches of rows of an Arrow table: the part of an import that workers do in parallel.
 *
 * A batch is read column by column: first every column is checked, then the names of the good rows get ids. Ids are
 * stored in the memory of the dataset's columns; times and numbers are read from the table again when they are grouped,
 * so that an import needs little memory besides the table and the dataset. */
#ifndef LP_ARROW_READER_H
#define LP_ARROW_READER_H

#include "data/import/arrow_names.h"
#include "data/import/arrow_table.h"
#include "data/import/reader.h"

#include <stdatomic.h>

/* Rows first .. first + count - 1 of an array. */
typedef struct lp_arrow_batch {
    int64_t array, first, base; /* base: number of the first row in the table */
    int32_t count;
    uint8_t *bad; /* owned; [count]: the rows that are dropped; NULL: none */
} lp_arrow_batch;

/* Shared by all workers. */
typedef struct lp_arrow_shared {
    lp_reader_shared *reader; /* options, columns and the unit of times */
    lp_arrow_table table;
    int first_event, split, time, first_field; /* indices of used columns; the sequence is 0. split is -1: none */
    lp_arrow_batch *batches;                   /* owned */
    int64_t batch_count;
    /* The ids of all batches, as lp_rows_loader has them; owned. Those of a batch begin at its first row; dropped rows
     * have none. */
    lp_segment ids;
    _Atomic int64_t next; /* batch */
    _Atomic int64_t stop; /* batches from here on need not be read */
} lp_arrow_shared;

typedef struct lp_arrow_reader {
    lp_arrow_shared *shared;
    lp_import_rows rows;   /* names and chunks; no segments */
    lp_arrow_names *names; /* owned; [used] */
    int64_t next_batch;    /* that the worker has taken already; -1: none */
    lp_arrow_ahead ahead;  /* its memory */
    uint32_t *further;     /* owned; scratch of LP_ARROW_BATCH elements, as are the next seven */
    double *numbers;
    int32_t *row;
    uint8_t *check, *bad, *empty;
    uint8_t *splits;
    uint8_t *local;  /* lp_local of the times, unless */
    bool same_local; /* all of them are usual_local */
    uint8_t usual_local;
    int64_t bad_count;
    int64_t local_count[LP_LOCALS]; /* [lp_local]: good rows */

    lapse_error first_bad; /* with skip_bad_rows */
    int64_t first_bad_batch;
    lapse_status status;
    lapse_error error;
    int64_t error_batch;

    int fault_row; /* of the current batch: the first bad row; INT_MAX: none */
    lapse_error fault;
    int broken_row; /* the first row at which the array is corrupt, which cannot be skipped */
    lapse_error broken;
} lp_arrow_reader;

lapse_status lp_arrow_reader_init(lp_arrow_reader *reader, lp_arrow_shared *shared, lapse_error *error);
void lp_arrow_reader_clear(lp_arrow_reader *reader);

/* Reads the next batch. False at the end, and after an error. */
bool lp_arrow_reader_step(lp_arrow_reader *reader);

/* Detects the unit of numeric or textual times from the first row that has a time, where the sample had none. */
void lp_arrow_find_unit(lp_arrow_shared *shared);

/* For lp_rows_loader; context is the lp_arrow_shared. */
void lp_arrow_load(const void *context, const lp_rows_chunk *chunk, int column, double *out);

#endif
