/* group.h: shared by group.c, which groups rows by sequence, and group_fields.c, which does so for their fields. */
#ifndef LP_GROUP_H
#define LP_GROUP_H

#include "data/import/rows.h"

typedef struct lp_grouping {
    lp_import_rows *rows; /* [worker_count] */
    int worker_count, threads;
    bool with_split;
    const lp_preparation *preparation;
    lapse_dataset *dataset;

    lp_rows_chunk *chunks; /* owned; of all workers, in the order of the text */
    int64_t chunk_count;
    int parts; /* part p begins at chunk p * chunk_count / parts */

    lp_intern sequences, types;                /* global tables, in the order of first appearance */
    uint32_t **sequence_number, **type_number; /* owned; [worker][local id]: global id. sequence_number becomes NULL
                                                * once the rows have global ids. */
    int64_t *type_count;                       /* owned; [part][global id]: rows of each event type; then [global id] */
    uint64_t *cursor; /* owned; [part][global sequence]: number of rows, later the index of the next row */
    double *scratch;  /* owned; [part]: space to load two columns of a chunk; NULL without a loader */
    int64_t longest;  /* rows of the longest chunk */
    int64_t row_count;
    int field;                  /* the field being moved */
    uint32_t **category_number; /* its categories, like type_number */
    lp_intern *categories;      /* owned; global tables of the fields */
    uint64_t *start;            /* owned until the dataset takes it, as are the next three */
    double *time;
    int32_t *type; /* global ids; sorted by count after step 7 */
    uint8_t *split;
} lp_grouping;

/* Merges the string table of one column of all workers into `common`. numbers[worker][local id] becomes the global id. False when out of memory. */
bool lp_group_names(lp_grouping *a, lp_intern *common, uint32_t **numbers, int column);

/* Frees the ids that lp_group_names gave. */
void lp_group_numbers_free(const lp_grouping *a, uint32_t **numbers);

/* Assigns ids to the names that occur, by descending count, and maps those of the column to them. The names are copied
 * into two buffers, which the caller owns. False when out of memory. */
bool lp_group_rank(const lp_grouping *a, const lp_intern *table, const int64_t *counts, int32_t *column, void **buffers,
                   lp_names *names);

/* The chunks of a part. */
void lp_group_part(const lp_grouping *a, int part, int64_t *first, int64_t *last);

/* The sequences (global ids) or the values of a column of the rows of a chunk. */
uint32_t *lp_group_sequences(const lp_grouping *a, int part, const lp_rows_chunk *chunk);
const void *lp_group_values(const lp_grouping *a, int part, const lp_rows_chunk *chunk, int column);

/* The next chunk from *at on, before last, that has rows (the segment of an empty one may be freed); *at becomes the
 * index after it. NULL if there is none. */
const lp_rows_chunk *lp_group_next(const lp_grouping *a, int64_t *at, int64_t last);

/* The values of a chunk are copied: frees the column of its segment if they were the last. */
void lp_group_copied(const lp_grouping *a, const lp_rows_chunk *chunk, int column);

/* Prefetches the cursor, and then the place, of rows after row i: with many sequences neither is in the cache. */
#define LP_GROUP_PREFETCH(column, cursor, sequence, i, count)                 \
    do {                                                                      \
        if ((i) + 32 < (count))                                               \
            __builtin_prefetch(&(cursor)[(sequence)[(i) + 32]], 1);           \
        if ((i) + 16 < (count))                                               \
            __builtin_prefetch(&(column)[(cursor)[(sequence)[(i) + 16]]], 1); \
    } while (0)

/* Moves a column by `move`, one task per part. */
void lp_group_move(lp_grouping *a, int column, void (*move)(void *grouping, int part, int worker));

/* Moves one field into the dataset; categories get global ids. False when out of memory. */
bool lp_group_field(lp_grouping *a, int field);

/* Assigns the final category ids of a field, by descending count. False when out of memory. */
bool lp_group_categories(lp_grouping *a, int field);

#endif
