/* rows.h: rows as the workers of an import leave them, before they are put in order.
 *
 * Each worker has tables of its own for names, so that workers never wait for one another; a row holds the worker's
 * numbers, and lp_rows_arrange maps them to common ones. Rows are kept in large segments, which are given back as soon
 * as they have been copied to their place: the whole import needs 24 bytes a row at its peak, or 16 where the text is
 * grouped; and for each field twice its 4 (categories) or 8 bytes (numbers).
 */
#ifndef LP_ROWS_H
#define LP_ROWS_H

#include "data/dataset/intern.h"
#include "data/import/prepare.h"

#include <stdatomic.h>

typedef struct lp_row {
    uint32_t sequence;
    uint32_t type; /* number << 2 | lp_split */
} lp_row;

enum { LP_ROW_TYPES = 1 << 29 }; /* more event types than this do not fit lp_row and the int32_t of a dataset */

/* Usual rows of a segment. Above 32 MB malloc gets every block from the system and returns it at once when freed. */
enum { LP_SEGMENT_ROWS = 4500000 };

typedef struct lp_segment {
    double *time;                /* owned; capacity */
    lp_row *row;                 /* owned; capacity */
    void *field[LP_FIELD_LIMIT]; /* owned; capacity of uint32_t, the worker's number of the category, or of double */
    int64_t used, capacity;
    _Atomic int64_t left; /* rows not yet copied; at 0 the column is given back */
} lp_segment;

/* What one block of text gave. */
typedef struct lp_rows_block {
    int64_t index; /* of the block in the text */
    int32_t worker;
    int32_t segment; /* of the worker */
    int64_t first;   /* row in the segment */
    int64_t count;   /* rows kept */
    int64_t lines;   /* line ends in the block */
} lp_rows_block;

/* One worker's tables. first[i] says where name i was first met: block << 32 | row in the block. */
typedef struct lp_rows_names {
    lp_intern intern;
    uint64_t *first; /* owned */
    int64_t *count;  /* owned; rows with this name; kept for event types only, the dataset's columns tell the others */
    size_t capacity; /* of first and count */
} lp_rows_names;

typedef struct lp_rows {
    lp_rows_names sequences, types;
    lp_rows_names *categories; /* owned; field_count, of which those of numbers stay empty */
    const lapse_field_type *field_type;
    int field_count;
    lp_segment **segments; /* owned */
    int64_t segment_count, segment_capacity;
    lp_rows_block *blocks; /* owned; in the order of the text */
    int64_t block_count, block_capacity;
    int64_t segment_rows; /* capacity of a new segment */
} lp_rows;

/* Says what fields rows have, before there is a row. False when out of memory. */
bool lp_rows_fields(lp_rows *rows, const lapse_field_type *types, int count);

/* Makes room for one more block of at most `most` rows. False when out of memory. */
bool lp_rows_begin(lp_rows *rows, int64_t index, int64_t most);

/* The number of a name first met at `place`; LP_INTERN_NONE when out of memory. */
uint32_t lp_rows_name(lp_rows_names *names, const char *name, size_t size, uint64_t key, uint64_t place);

void lp_rows_clear(lp_rows *rows);

/* Puts the rows of all workers together in the order and numbering of a dataset: fills dataset's columns and names,
 * which belong to it; dataset->fields must have name and type. The rows are used up. *moved is the number of rows that
 * were not in the order of time. Sets event_count 0 where the preparation leaves nothing. */
lapse_status lp_rows_arrange(lp_rows *rows, int worker_count, int threads, bool with_split, lp_preparation *preparation,
                             int64_t *moved, lapse_dataset *dataset, lapse_error *error);

#endif
