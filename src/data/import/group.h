/* group.h: shared by group.c, which groups rows by sequence, group_move.c, which moves their columns, group_append.c, which
 * writes them to partitions, and group_fields.c, which does so for their fields. */
#ifndef LP_GROUP_H
#define LP_GROUP_H

#include "data/import/rows.h"

enum { LP_APPEND_LINE = 64 }; /* bytes of a cache line */

/* Ranges of sequences, each of which has one sequence, or about as many rows as fit the cache of the CPU. */
typedef struct lp_partitions {
    int64_t count;
    uint32_t *first;  /* owned; [count + 1]: global id of the first sequence */
    size_t capacity;  /* of first */
    int64_t longest;  /* rows of the longest one that has several sequences */
    int64_t widest;   /* sequences of the widest one */
    int size;         /* bytes of the number of a partition: 1, 2 or 4 */
    void *of_row;     /* owned; [row][size]: the partition of each row, in the order of the text */
    void **of_name;   /* owned; [worker][local id][size]: the partition of each sequence */
    uint16_t **index; /* owned; [worker][local id]: the index of the sequence in its partition */
    /* Owned; [part][partition]: index of the first row of this part in the partition, and that of the next one. */
    uint64_t *begin, *next;
    void *lines; /* owned; [thread][partition][LP_APPEND_LINE bytes]: the values that are not yet in the column */
} lp_partitions;

typedef struct lp_grouping {
    lp_import_rows *rows; /* [worker_count] */
    int worker_count, threads;
    bool with_split;
    const lp_preparation *preparation;
    lapse_dataset *dataset;
    const lp_rows_loader *loader; /* NULL: none */

    lp_rows_chunk *chunks; /* owned; of all workers, in the order of the text */
    int64_t chunk_count, row_count;
    int64_t longest; /* rows of the longest chunk */
    int parts;       /* part p begins at chunk p * chunk_count / parts */

    lp_intern sequences, types;                /* global tables, in the order of first appearance */
    uint32_t **sequence_number, **type_number; /* owned; [worker][local id]: global id */
    lp_partitions partitions;
    int type_bits;              /* of global ids; the bits above them are the index of the sequence in its partition */
    int64_t *type_count;        /* owned; [thread][global id]: rows of each event type; then [global id] */
    double *scratch;            /* owned; [thread][longest]: space to load a column of a chunk; NULL without a loader */
    int field;                  /* the field being moved */
    uint32_t **category_number; /* its categories, like type_number */
    lp_intern *categories;      /* owned; global tables of the fields */
    void *moved;                /* the memory that it is moved to */
    uint64_t *start;            /* owned until the dataset takes it, as are the next three */
    double *time;
    int32_t *type; /* global ids; sorted by count after the last step */
    uint8_t *split;
    uint32_t *type_rank;         /* owned; [global id]: what the rows of an event type get when they are grouped */
    lp_sequence_columns columns; /* of all rows, with the next two: set by lp_group_place_rows */
    void *field_column[LP_FIELD_LIMIT];
    size_t field_size[LP_FIELD_LIMIT];
} lp_grouping;

/* ------------------------------------------------------------------------------------------------- group.c ---- */

/* Merges the string table of one column of all workers into `common`. numbers[worker][local id] becomes the global id.
 * False when out of memory. */
bool lp_group_names(lp_grouping *a, lp_intern *common, uint32_t **numbers, int column);

/* Frees the ids that lp_group_names gave. */
void lp_group_numbers_free(const lp_grouping *a, uint32_t **numbers);

/* Assigns ids to the names that occur, by descending count: ids[i] becomes that of name i. The names are copied into two
 * buffers, which the caller owns. False when out of memory. */
bool lp_group_rank(const lp_intern *table, const int64_t *counts, uint32_t *ids, void **buffers, lp_names *names);

/* Maps a column of all events by ids. */
void lp_group_renumber(const lp_grouping *a, int32_t *column, const uint32_t *ids);

/* -------------------------------------------------------------------------------------------- group_move.c ---- */

/* Cuts the sequences into partitions. False when out of memory. */
bool lp_group_partition(lp_grouping *a);
void lp_partitions_clear(lp_partitions *partitions, int worker_count);

/* Moves all columns of the rows to their partitions, and counts the rows of each event type; the names of the workers are
 * not needed. False when out of memory. */
bool lp_group_move_rows(lp_grouping *a);

/* Groups the rows of each partition by sequence, sorts them by time, and maps their event types by type_rank. False when out
 * of memory. */
bool lp_group_place_rows(lp_grouping *a);

/* Moves a column to the partitions by `move`, one task per part. */
void lp_group_move(lp_grouping *a, void (*move)(void *grouping, int part, int worker));

/* The chunks of a part; the next one from *at on, before last, that has rows (the segment of an empty one may be freed):
 * *at becomes the index after it. NULL if there is none. */
void lp_group_part(const lp_grouping *a, int part, int64_t *first, int64_t *last);
const lp_rows_chunk *lp_group_next(const lp_grouping *a, int64_t *at, int64_t last);

/* The values of a column of the rows of a chunk. */
const void *lp_group_values(const lp_grouping *a, int worker, const lp_rows_chunk *chunk, int column);

/* Appends the ids of a chunk's rows, replaced by number[id], to their partitions in `column`. */
void lp_group_append_ids(const lp_grouping *a, int worker, int part, const lp_rows_chunk *chunk, const uint32_t *values,
                         const uint32_t *number, int32_t *column);

/* The values of a chunk are copied: frees the column of its segment if they were the last. */
void lp_group_copied(const lp_grouping *a, const lp_rows_chunk *chunk, int column);

/* ------------------------------------------------------------------------------------------ group_append.c ---- */

/* Appends values of `size` bytes (1, 4 or 8), of the rows from `row` on, to their partitions in `column`, which is aligned to
 * a line. The rows of a part come in order. */
void lp_group_append(const lp_grouping *a, int worker, int part, uint64_t row, const void *values, int64_t count,
                     void *column, size_t size);

/* Ends a part: only now are all of its values in the column. */
void lp_group_append_end(const lp_grouping *a, int worker, int part, void *column, size_t size);

/* ------------------------------------------------------------------------------------------ group_fields.c ---- */

/* Moves one field to the partitions; categories get global ids. False when out of memory. */
bool lp_group_field(lp_grouping *a, int field);

/* Assigns the final category ids of a field, by descending count. False when out of memory. */
bool lp_group_categories(lp_grouping *a, int field);

#endif
