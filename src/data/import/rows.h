/* rows.h: the rows of a worker, before they are grouped by sequence.
 *
 * Each worker has its own string tables, so that workers never wait for each other; a row has the worker's local ids,
 * which lp_rows_group maps to global ones. The columns of the rows are stored in large segments, which are freed as soon
 * as they are copied: the maximum memory of an import of text is about 21 bytes per row; plus, per field, 8 (categories)
 * or 16 bytes (numbers). A source whose table is in memory has a loader, and needs little besides the dataset.
 */
#ifndef LP_ROWS_H
#define LP_ROWS_H

#include "data/dataset/intern.h"
#include "data/import/prepare.h"

#include <stdatomic.h>

/* The columns of a row; fields are 0, 1, ... */
enum {
    LP_COLUMN_TIME = -3,     /* double */
    LP_COLUMN_SEQUENCE = -2, /* uint32_t: local id */
    LP_COLUMN_TYPE = -1      /* uint32_t: local id << 2 | lp_split */
};

enum { LP_ROW_TYPES = 1 << 29 }; /* limit of event types that fit LP_COLUMN_TYPE and the int32_t of a dataset */

/* Default rows per segment. Above 32 MB malloc maps every allocation and returns it to the system when freed. */
enum { LP_SEGMENT_ROWS = 4500000 };

typedef struct lp_segment {
    double *time;                /* owned; capacity */
    uint32_t *sequence, *type;   /* owned; capacity: LP_COLUMN_SEQUENCE, LP_COLUMN_TYPE */
    void *field[LP_FIELD_LIMIT]; /* owned; capacity elements: uint32_t, the category's local id, or double */
    int64_t used, capacity;
    _Atomic int64_t left; /* rows not yet copied; at 0 the column is freed */
} lp_segment;

/* The rows of one chunk. */
typedef struct lp_rows_chunk {
    int64_t index; /* index of the chunk in the text */
    int32_t worker;
    int32_t segment; /* of the worker */
    int64_t first;   /* first row in the segment */
    int64_t row;     /* number of valid rows in the chunks before it; set by lp_rows_group */
    int64_t count;   /* number of valid rows */
    int64_t lines;   /* line ends in the chunk */
} lp_rows_chunk;

/* A string table of one worker. first[i] is the position of the first occurrence: chunk << 32 | row in the chunk. */
typedef struct lp_rows_names {
    lp_intern intern;
    uint64_t *first; /* owned */
    size_t capacity; /* of first */
} lp_rows_names;

/* The source of rows whose table is in memory: times and numbers are read from it when they are moved. The ids of all
 * workers are in one segment, whose memory becomes that of the dataset, so that no page is touched for them alone: the
 * sequences and types are in the two halves of `time`, which is written last. */
typedef struct lp_rows_loader {
    const void *context;
    /* Fills out with the times, or a field's numbers, of the rows of a chunk. Called by several threads. */
    void (*load)(const void *context, const lp_rows_chunk *chunk, int column, double *out);
    lp_segment *ids; /* time and field: taken by lp_rows_group, which sets them to NULL */
} lp_rows_loader;

typedef struct lp_import_rows {
    const lp_rows_loader *loader; /* the same for all workers; NULL: the rows are in segments */
    lp_rows_names sequences, types;
    int64_t *sampled; /* owned; [local id of a sequence]: its rows in the chunks that are sampled */
    size_t sampled_capacity;
    lp_rows_names *categories; /* owned; field_count; empty for numbers */
    const lapse_field_type *field_type;
    int field_count;
    lp_segment **segments; /* owned */
    int64_t segment_count;
    size_t segment_capacity;
    lp_rows_chunk *chunks; /* owned; in the order of the text */
    int64_t chunk_count;
    size_t chunk_capacity;
    int64_t segment_rows; /* capacity of a new segment */
} lp_import_rows;

/* Sets the fields of rows, before the first row. False when out of memory. */
bool lp_rows_fields(lp_import_rows *rows, const lapse_field_type *types, int count);

/* Begins a chunk of at most `most` rows. False when out of memory. */
bool lp_rows_begin(lp_import_rows *rows, int64_t index, int64_t most);

/* Interns a name that occurs at `position`; LP_INTERN_NONE when out of memory. */
uint32_t lp_rows_name(lp_rows_names *names, const char *name, size_t size, uint64_t key, uint64_t position);

/* Counts the rows of a chunk, given the local ids of their sequences, if it is one of those that are sampled: lp_rows_group
 * must know about how many rows a sequence has. False when out of memory. */
bool lp_rows_sample(lp_import_rows *rows, int64_t chunk, const uint32_t *sequence, int64_t count);

void lp_rows_names_clear(lp_rows_names *names);
void lp_rows_clear(lp_import_rows *rows);

/* Groups the rows of all workers by sequence, sorts and preprocesses them, and fills the columns and names of
 * dataset, which owns them; dataset->fields must have name and type. Frees the rows. event_count is 0 if preprocessing
 * drops everything. */
lapse_status lp_rows_group(lp_import_rows *rows, int worker_count, int threads, bool with_split,
                           const lp_preparation *preparation, lapse_dataset *dataset, lapse_error *error);

#endif
