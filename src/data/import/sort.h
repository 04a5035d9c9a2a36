/* sort.h: sorts the events of a sequence by time. */
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

/* Memory to sort a sequence in, which grows with the longest one. Initialize with {0}; freed by lp_free(events). */
typedef struct lp_sort_space {
    struct lp_sort_event *events; /* owned */
    size_t capacity;
} lp_sort_space;

/* Sorts the events first .. first + count - 1, which are a sequence, stably by time, and adds to *late the number of those
 * that came after a later one. Uses the columns without `start`. False when out of memory: then nothing is changed. */
bool lp_sort_sequence(const lp_sequence_columns *columns, size_t first, size_t count, lp_sort_space *space,
                      int64_t *late);

/* Shuffles the events first .. first + count - 1, which are sorted, within each group of equal times: their order is a function of
 * `first` alone. */
void lp_shuffle_ties(const lp_sequence_columns *columns, size_t first, size_t count);

#endif
