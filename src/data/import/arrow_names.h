/* arrow_names.h: the names in columns of an Arrow table, as ids of a worker's string tables.
 *
 * A name is looked up once per row if it is a string, once per distinct value if it is a number, and once per dictionary
 * entry if it is dictionary-encoded; text is made of a number only when its value is new.
 */
#ifndef LP_ARROW_NAMES_H
#define LP_ARROW_NAMES_H

#include "data/import/arrow_ahead.h"
#include "data/import/arrow_column.h"
#include "data/import/rows.h"

enum {
    LP_ARROW_BATCH = 16384, /* rows that a worker takes at once, at most */
    LP_ARROW_STEP = 32      /* rows that are looked up together */
};

typedef struct lp_arrow_slot {
    uint64_t key;
    uint32_t id; /* LP_INTERN_NONE: the slot is free */
} lp_arrow_slot;

/* Ids by 64-bit keys: a hash table with open addressing. Initialize with {0}. */
typedef struct lp_arrow_map {
    lp_arrow_slot *slots;    /* owned */
    size_t slot_count, used; /* slot_count is a power of two */
} lp_arrow_map;

/* A text of up to 16 bytes, padded by zeros, and its id; in a free entry all bits are set. Texts contain no NUL byte. */
typedef struct lp_arrow_recent {
    _Alignas(32) uint64_t word[2]; /* aligned, so that a pair is in one cache line */
    uint32_t id;
} lp_arrow_recent;

/* A worker's cache of a column of names. Initialize with {0}. */
typedef struct lp_arrow_names {
    lp_arrow_recent *recent; /* owned; a cache of texts with sets of two: for few names, or rows with the same one */
    int pause;               /* batches until the cache is tried again, after one with many misses */
    uint32_t *by_number;     /* owned; [number]: id of a small number, or text of one; LP_INTERN_NONE: not known */
    size_t number_count;     /* a power of two */
    int number_pause;        /* like pause, for texts that are not such numbers */
    lp_arrow_map by_value;   /* id by lp_arrow_integer; some before the number was in by_number */
    lp_arrow_values terms;   /* the dictionary that by_term belongs to */
    uint32_t *by_term;       /* owned; [term]: id, or one of the states of arrow_names.c */
    size_t term_capacity;
    lp_rows_names part; /* names of this column, if an event's name has several columns */
    lp_arrow_map pairs; /* id of a joined name by the ids of the names before and of this one */
    lp_rows_names joined;
} lp_arrow_names;

void lp_arrow_names_clear(lp_arrow_names *names);

typedef enum lp_arrow_check {
    LP_ARROW_GOOD = 0,
    LP_ARROW_EMPTY = 1, /* missing, or no text */
    LP_ARROW_BAD = 2,   /* not UTF-8, or with a NUL byte, or a decimal that is too large */
    LP_ARROW_BROKEN = 3 /* the array is corrupt */
} lp_arrow_check;

/* Checks the names first .. first + count - 1: check[i] becomes an lp_arrow_check. False when out of memory. */
bool lp_arrow_names_check(lp_arrow_names *names, const lp_arrow_values *values, int64_t first, int64_t count,
                          uint8_t *check);

/* Fills ids[0 .. count-1] with the ids of the names of rows row[0 .. count-1] in `table`; a missing name is "". The
 * rows are checked. ahead: what is requested meanwhile, a step for each LP_ARROW_STEP rows. position is that of row 0 (see
 * lp_rows_names); names are numbered from it by their index in `row`. False when out of memory. */
bool lp_arrow_names_ids(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
                        int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead, uint32_t *ids);

/* Joins names by a space, unless one is empty: ids[i], of the table `left`, and further[i], of names->part, become the
 * id of the joined name in `table`. False when out of memory. */
bool lp_arrow_names_join(lp_arrow_names *names, const lp_rows_names *left, lp_rows_names *table,
                         const uint32_t *further, int64_t count, uint64_t position, uint32_t *ids);

#endif
