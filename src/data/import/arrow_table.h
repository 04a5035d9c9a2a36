/* arrow_table.h: an Arrow stream in memory: its schema, its arrays, and the values of the columns that an import uses.
 *
 * The arrays are held until the import is done, so that columns can be read more than once. */
#ifndef LP_ARROW_TABLE_H
#define LP_ARROW_TABLE_H

#include "data/import/arrow_column.h"
#include "data/import/columns.h"

/* A column that the import uses. */
typedef struct lp_arrow_used {
    int64_t column; /* of the table */
    lp_arrow_type type;
    bool encoded; /* by a dictionary, with indices of type `index` */
    lp_arrow_type index;
} lp_arrow_used;

typedef struct lp_arrow_array {
    struct ArrowArray array; /* owned; a struct whose children are the columns */
    int64_t first;           /* number of its first row in the table */
    const uint8_t *valid;    /* bitmap of the rows from bit array.offset on; NULL: no row is missing */
    lp_arrow_values *values; /* owned; [used], each followed by the values of its dictionary */
} lp_arrow_array;

/* Initialize with {0}. */
typedef struct lp_arrow_table {
    struct ArrowSchema schema; /* owned */
    lp_arrow_array *arrays;    /* owned */
    int64_t array_count;
    size_t array_capacity;
    int64_t row_count;
    bool ended;          /* the stream has no further array */
    lp_arrow_used *used; /* owned */
    int used_count;
} lp_arrow_table;

/* Reads the schema. */
lapse_status lp_arrow_table_open(lp_arrow_table *table, struct ArrowArrayStream *stream, lapse_error *error);

/* The number of columns, and the name of one. */
int64_t lp_arrow_table_width(const lp_arrow_table *table);
const char *lp_arrow_table_name(const lp_arrow_table *table, int64_t column);

/* Adds a column to those that are used. `kinds` has a bit 1 << kind for every type that is allowed; role is for the
 * message. */
lapse_status lp_arrow_table_use(lp_arrow_table *table, int64_t column, unsigned kinds, const char *role,
                                lapse_error *error);

/* Reads arrays until there are this many rows, or to the end. */
lapse_status lp_arrow_table_begin(lp_arrow_table *table, struct ArrowArrayStream *stream, int64_t rows,
                                  lapse_error *error);

/* Opens any column of an array that was read; values[1] is its dictionary. False: its type is not supported, or the array is
 * invalid. */
bool lp_arrow_table_peek(const lp_arrow_table *table, int64_t array, int64_t column, lp_arrow_values values[2]);

/* Reads the arrays that are left, and opens the used columns of all. */
lapse_status lp_arrow_table_read(lp_arrow_table *table, struct ArrowArrayStream *stream, lapse_error *error);

static inline const lp_arrow_values *lp_arrow_table_values(const lp_arrow_table *table, int64_t array, int used)
{
    return &table->arrays[array].values[2 * used];
}

void lp_arrow_table_clear(lp_arrow_table *table);

#endif
