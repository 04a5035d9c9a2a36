/* prefetch.h: makes the next batch on a worker thread while a device computes the current one; at the end of an epoch,
 * also the windows of the next epoch.
 *
 * A batch is a function of the epoch's windows, its position among them and the step number, so prefetching does not
 * change results. A prefetched batch that the run does not use (after a checkpoint is loaded) is discarded.
 */
#ifndef LP_PREFETCH_H
#define LP_PREFETCH_H

#include "base/threads.h"
#include "data/batch/batch_vocabulary.h"

/* Identifies a batch. */
typedef struct lp_batch_position {
    uint32_t step;  /* of the run; part of the key of the negatives' random numbers */
    int64_t window; /* index of its first window */
    int count;      /* number of windows; 0 or less: no batch */
} lp_batch_position;

/* Inputs of a batch; not owned. */
typedef struct lp_batch_source {
    const lp_windows *windows;
    const lp_targets *targets;
    const lp_event_columns *columns;
    lp_batch_vocabulary *vocabulary; /* NULL: batches have no batch vocabulary */
    int worker;                      /* index into the vocabulary's per-thread buffers; not used by other threads */
    bool target_known;
    uint64_t seed; /* of the order of windows */
} lp_batch_source;

typedef struct lp_prefetch {
    lp_batch_source source;
    lp_batch_position started;  /* the batch started last and not taken */
    lp_batch_position position; /* of the batch in `batch`, or in progress */
    lp_batch batch;
    lp_row_union rows;
    lp_windows windows; /* of the next epoch; owned */
    uint32_t epoch;     /* of `windows` */
    bool epoch_ready;   /* windows and their first batch are made */
    lp_worker *worker;  /* NULL: batches are made when they are taken */
} lp_prefetch;

/* like: a batch of the same capacities. */
lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_batch_source *source, const lp_batch *like,
                              lapse_error *error);
void lp_prefetch_clear(lp_prefetch *prefetch);

/* Starts to make a batch, unless it is started already. */
void lp_prefetch_start(lp_prefetch *prefetch, lp_batch_position position);
/* Swaps a batch into *batch and *rows; makes it first if it was not started. */
void lp_prefetch_take(lp_prefetch *prefetch, lp_batch_position position, lp_batch *batch, lp_row_union *rows);
/* Starts to make the windows of an epoch and their first batch, of this step. */
void lp_prefetch_start_epoch(lp_prefetch *prefetch, uint32_t epoch, uint32_t step);
/* Swaps the windows of an epoch into *windows. False: they were not made. */
bool lp_prefetch_take_epoch(lp_prefetch *prefetch, uint32_t epoch, lp_windows *windows);
/* Waits for the worker and discards its batch. Required before the source's windows change. */
void lp_prefetch_cancel(lp_prefetch *prefetch);

#endif
