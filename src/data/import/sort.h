/* sort.h: sorts the events of each sequence by time. */
#ifndef LP_SORT_H
#define LP_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events grouped by sequence: those of sequence s are start[s] .. start[s + 1] - 1. The caller owns the columns, from
 * lp_grow. */
typedef struct lp_sequence_columns {
    uint64_t *start;
    int64_t sequence_count;
    double *time;
    int32_t *type;
    uint8_t *split; /* NULL: none */
    int field_count;
    void *const *field;       /* field columns */
    const size_t *field_size; /* bytes of an element of each: 4 or 8 */
} lp_sequence_columns;

/* Sorts every sequence stably by time. *late is the number of events that came after a later one of their sequence.
 * False when out of memory: then some sequences are sorted and others not. */
bool lp_sort_sequences(const lp_sequence_columns *columns, int threads, int64_t *late);

#endif
