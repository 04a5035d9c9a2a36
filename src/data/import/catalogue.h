/* catalogue.h: what a table with one row for each item tells of the items: words of their names, brands, categories.
 *
 * Items are numbered on from those that are known already (a dataset's event types), in the order of the rows. A feature is
 * "column=value"; a column of words has one for each different word. Features that only one item has say nothing about
 * another and are left out.
 */
#ifndef LP_CATALOGUE_H
#define LP_CATALOGUE_H

#include "data/dataset/intern.h"

typedef struct lp_catalogue {
    lp_intern items;       /* the known ones first */
    lp_intern features;    /* "brand=Lotitu", "name=kettle" */
    int64_t known;         /* items there were before */
    int64_t described;     /* rows */
    int64_t described_new; /* of items that were not known */
    uint64_t *start;       /* owned; items.count + 1: first feature of each item */
    int32_t *feature;      /* owned; start[items.count] numbers of features */
} lp_catalogue;

typedef struct lp_catalogue_columns {
    const char *item;  /* column with the item's name: a name, or a 1-based number; NULL: item, event, id or product */
    const char *words; /* columns that are read as words, joined by commas; NULL: name, title and description */
} lp_catalogue_columns;

/* A catalogue of the known items, of which nothing is told. */
lapse_status lp_catalogue_start(lp_catalogue *catalogue, const lp_names *known, lapse_error *error);

/* Adds what a CSV or TSV file says (path "-": standard input; gzip is read too). Fails at the first row that is bad, and at
 * an item that is described twice. */
lapse_status lp_catalogue_read(lp_catalogue *catalogue, const char *path, const lp_catalogue_columns *columns,
                               lapse_error *error);

/* The same from memory; `name` is for messages. */
lapse_status lp_catalogue_read_memory(lp_catalogue *catalogue, const char *name, const void *data, size_t size,
                                      const lp_catalogue_columns *columns, lapse_error *error);

void lp_catalogue_clear(lp_catalogue *catalogue);

#endif
