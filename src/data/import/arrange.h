/* arrange.h: what the files that put rows in order share: arrange.c, and arrange_fields.c for the fields. */
#ifndef LP_ARRANGE_H
#define LP_ARRANGE_H

#include "data/import/rows.h"

typedef struct lp_arrangement {
    lp_rows *rows; /* of each worker */
    int worker_count, threads;
    bool with_split;
    lp_preparation *preparation;
    lapse_dataset *dataset;

    lp_rows_block *blocks; /* owned; of all workers, in the order of the text */
    int64_t block_count;
    int parts; /* part p has the blocks from p * block_count / parts on */

    lp_intern sequences, types;                /* common tables, in order of first appearance */
    uint32_t **sequence_number, **type_number; /* owned; for each worker: its numbers to common ones */
    int64_t *type_count;                       /* owned; rows of each common event type */
    uint64_t *cursor; /* owned; [part][common sequence]: rows there, then where its next row goes */
    int64_t row_count;
    int field;                  /* being moved */
    uint32_t **category_number; /* of its categories: like type_number */
    lp_intern *categories;      /* owned; common tables of the fields */
    uint64_t *start;            /* owned until it is the dataset's, as the next three */
    double *time;
    int32_t *type; /* common numbers, until event types are ranked */
    uint8_t *split;
} lp_arrangement;

/* Names of sequences, of event types, or of the categories of field 0, 1, ... */
enum { LP_NAMES_SEQUENCES = -2, LP_NAMES_TYPES = -1 };

/* Merges one sort of names of all workers into `common`. numbers[worker], owned by the caller, says which common number
 * each of the worker's names has. False when out of memory. */
bool lp_arrange_names(lp_arrangement *a, lp_intern *common, uint32_t **numbers, int which);

/* Numbers the names of a table by how often they occur, leaving out those that do not: names gets them in that order,
 * in two blocks of its own. False when out of memory. */
bool lp_arrange_rank(const lp_intern *table, const int64_t *counts, uint32_t *numbers, void **blocks, lp_names *names);

/* The blocks of a part, and the segment of a block. */
void lp_arrange_part(const lp_arrangement *a, int part, int64_t *first, int64_t *last);
lp_segment *lp_arrange_segment(const lp_arrangement *a, const lp_rows_block *block);

/* The next block from *at on, before last, that has rows (the segment of one without may be gone), and *at behind it;
 * NULL when there is none. */
const lp_rows_block *lp_arrange_next(const lp_arrangement *a, int64_t *at, int64_t last);

/* Whether these were the last rows of their segment that had to be copied. */
bool lp_arrange_emptied(lp_segment *segment, int64_t rows);

/* Puts cursors and segments back to where they were before the last column was moved. */
void lp_arrange_rewind(lp_arrangement *a);

/* Moves one field to its place in the dataset, its categories with their common numbers. False when out of memory. */
bool lp_arrange_field(lp_arrangement *a, int field);

/* Ranks the categories of a field and gives its events their numbers. False when out of memory. */
bool lp_arrange_categories(lp_arrangement *a, int field);

/* Gives every event of a column its name's number: column[i] becomes numbers[column[i]]. */
void lp_arrange_renumber(const lp_arrangement *a, int32_t *column, const uint32_t *numbers);

#endif
