/* catalogue.h: item features from a table with one row per item: words of names, brands, categories.
 *
 * Item ids continue those that exist (a dataset's event types), in the order of the rows. A feature is
 * "column=value"; a column of words has one feature per distinct word. Features of a single item carry no information
 * about other items and are dropped.
 */
#ifndef LP_CATALOGUE_H
#define LP_CATALOGUE_H

#include "data/dataset/intern.h"

typedef struct lp_catalogue {
    lp_intern items;       /* known items first */
    lp_intern features;    /* "brand=Lotitu", "name=kettle" */
    int64_t known;         /* number of known items */
    int64_t described;     /* number of rows */
    int64_t described_new; /* number of rows with new items */
    uint64_t *start;       /* owned; items.count + 1: first feature of each item */
    int32_t *feature;      /* owned; start[items.count] feature ids */
} lp_catalogue;

typedef struct lp_catalogue_columns {
    const char *item;  /* column of the item: a name, or a 1-based number; NULL: item, event, id or product */
    const char *words; /* columns that are split into words, separated by commas; NULL: name, title and description */
} lp_catalogue_columns;

/* Initializes a catalogue of the known items, without features. */
lapse_status lp_catalogue_start(lp_catalogue *catalogue, const lp_names *known, lapse_error *error);

/* Adds the features of a CSV or TSV file (path "-": standard input; gzip is supported). Fails at the first malformed
 * row and at an item with two rows. */
lapse_status lp_catalogue_read(lp_catalogue *catalogue, const char *path, const lp_catalogue_columns *columns,
                               lapse_error *error);

/* The same from memory; `name` is for messages. */
lapse_status lp_catalogue_read_memory(lp_catalogue *catalogue, const char *name, const void *data, size_t size,
                                      const lp_catalogue_columns *columns, lapse_error *error);

void lp_catalogue_clear(lp_catalogue *catalogue);

#endif
