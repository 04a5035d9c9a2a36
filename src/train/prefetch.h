/* prefetch.h: the batch after the current one, made while a device works on the current one; at an epoch's end, the windows of the
 * next epoch and their first batch.
 *
 * A batch is a function of the epoch's windows, its place among them and the step's number, so when it is made does not matter.
 * One that was made for a place where the run then does not go on (another epoch, a checkpoint) is made again.
 */
#ifndef LP_PREFETCH_H
#define LP_PREFETCH_H

#include "base/threads.h"
#include "data/batch/batch_vocabulary.h"

/* Which batch. */
typedef struct lp_batch_place {
    uint32_t step;  /* of the run: what negatives are drawn by */
    int64_t window; /* its first one */
    int count;      /* of windows; 0 or less: no batch */
} lp_batch_place;

/* What batches are made of. Views. */
typedef struct lp_batch_source {
    const lp_windows *windows;
    const lp_targets *targets;
    const lp_event_columns *columns;
    lp_batch_vocabulary *vocabulary; /* NULL: batches have no lists */
    int worker;                      /* of the batch vocabularies: a number that no other thread has */
    bool target_known;
    uint64_t seed; /* of the order of windows */
} lp_batch_source;

/* A batch, with the rows that its shards list. */
typedef struct lp_prefetch {
    lp_batch_source source;
    lp_batch_place begun; /* what was last asked for and not taken */
    lp_batch_place place; /* of what is there, or being made */
    lp_batch batch;
    lp_row_union rows;
    lp_windows windows; /* of the next epoch, where they were laid out; owned */
    uint32_t epoch;     /* which that is */
    bool laid_out;
    lp_worker *worker; /* NULL: batches are made when they are needed */
} lp_prefetch;

/* Batches like this one. */
lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_batch_source *source, const lp_batch *like,
                              lapse_error *error);
void lp_prefetch_clear(lp_prefetch *prefetch);

/* Begins to make a batch, where that was not begun already. */
void lp_prefetch_start(lp_prefetch *prefetch, lp_batch_place place);
/* Puts a batch into *batch and *rows, in exchange for the one that was there; made now, if it was not begun. */
void lp_prefetch_take(lp_prefetch *prefetch, lp_batch_place place, lp_batch *batch, lp_row_union *rows);
/* Begins to lay out the windows of an epoch, and to make their first batch, of this step. */
void lp_prefetch_start_epoch(lp_prefetch *prefetch, uint32_t epoch, uint32_t step);
/* Puts the windows of an epoch into *windows, in exchange for those that were there. False: they were not laid out. */
bool lp_prefetch_take_epoch(lp_prefetch *prefetch, uint32_t epoch, lp_windows *windows);
/* Before the windows change otherwise: no batch is being made any longer, and what was made is forgotten. */
void lp_prefetch_cancel(lp_prefetch *prefetch);

#endif
