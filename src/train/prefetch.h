/* prefetch.h: batches made ready while a device is busy with those before.
 *
 * Filling a batch, drawing its negatives and listing its items take the host about as long as a GPU takes for the step. Here
 * some threads work ahead, each on a batch of its own. A batch is a function of the data, the seed and its place in the run, so
 * it does not matter who made it, or when.
 */
#ifndef LP_PREFETCH_H
#define LP_PREFETCH_H

#include "base/threads.h"
#include "data/shortlist.h"

/* What batches are made of; all of it must stay as it is while batches are made. */
typedef struct lp_prefetch_source {
    const lp_windows *windows;
    const lp_targets *targets;
    const lp_event_columns *columns;
    const lp_shortlists *lists; /* as settings for those of the threads; NULL: batches list no items */
    int windows_each;           /* windows of a batch */
    int context, fields, negatives;
    bool target_known;
} lp_prefetch_source;

typedef struct lp_prefetched {
    struct lp_prefetch *owner;
    lp_background *thread;
    lp_batch batch;
    lp_shortlists lists;
    lp_union rows;
    int64_t window; /* the first; -1: nothing was asked for */
    uint32_t step;
} lp_prefetched;

typedef struct lp_prefetch {
    lp_prefetch_source source;
    int depth;            /* batches made ahead */
    lp_prefetched *slots; /* [depth]; owned */
    int next;             /* slot that is taken next */
} lp_prefetch;

/* Works `depth` batches ahead, of one shard each. */
lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_prefetch_source *source, int depth, lapse_error *error);
void lp_prefetch_clear(lp_prefetch *prefetch);

/* Puts the batch that begins at `window` in the place of *batch and its rows in that of *rows, and goes on with those after it. */
void lp_prefetch_take(lp_prefetch *prefetch, int64_t window, uint32_t step, lp_batch *batch, lp_union *rows);

/* Forgets what was made ahead and returns when nobody is at it: before the windows change. */
void lp_prefetch_stop(lp_prefetch *prefetch);

#endif
