/* table_layout.h: where the table of a delimited text begins, and its delimiter. */
#ifndef LP_TABLE_LAYOUT_H
#define LP_TABLE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lp_table_layout {
    char delimiter;
    size_t skip;   /* bytes before the header: a title, notes, empty lines */
    int64_t lines; /* line ends in these */
} lp_table_layout;

/* Finds the layout from the beginning of a text. delimiter: 0 to find it. False when out of memory. */
bool lp_table_layout_find(const char *text, size_t size, char delimiter, lp_table_layout *layout);

#endif
