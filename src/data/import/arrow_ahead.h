/* arrow_ahead.h: prefetches the next batch of a worker while it looks up the names of this one.
 *
 * A lookup waits for the caches at most, and a check of texts for nothing but memory. So the lines of the next batch are
 * requested a few at a time between lookups, and are in the cache when they are checked. */
#ifndef LP_ARROW_AHEAD_H
#define LP_ARROW_AHEAD_H

#include "data/import/arrow_column.h"

typedef struct lp_arrow_range {
    const char *begin, *end;
} lp_arrow_range;

enum { LP_ARROW_RANGES = 2 }; /* of a column, at most */

/* Initialize with {0}. */
typedef struct lp_arrow_ahead {
    lp_arrow_range *ranges; /* owned; [columns * LP_ARROW_RANGES]: memory that is not requested yet */
    int count;
    int current; /* range */
    int lines;   /* that lp_arrow_ahead_step requests */
} lp_arrow_ahead;

/* The memory of elements first .. first + count - 1, without that of long string views and dictionaries, which are used
 * again. Returns the number of ranges. */
int lp_arrow_ranges(const lp_arrow_values *values, int64_t first, int64_t count,
                    lp_arrow_range ranges[LP_ARROW_RANGES]);

/* Sets the number of lines of a step, after the ranges: all are requested in so many steps. */
void lp_arrow_ahead_begin(lp_arrow_ahead *ahead, int64_t steps);

/* Requests some lines. */
static inline void lp_arrow_ahead_step(lp_arrow_ahead *ahead)
{
    enum { LINE = 64 };
    for (int left = ahead->lines; left > 0 && ahead->current < ahead->count;) {
        lp_arrow_range *range = &ahead->ranges[ahead->current];
        const char *at = range->begin;
        for (; left > 0 && at < range->end; left--, at += LINE)
            __builtin_prefetch(at, 0, 2); /* into the L2 cache: lookups need the L1 cache */
        range->begin = at;
        ahead->current += at >= range->end;
    }
}

#endif
