/* row_cache.h: what a network computed of the earlier events of one history (KV cache).
 *
 * Keys, values and bases of an event do not depend on the query time. The input of a deeper layer does: its row for event q is
 * computed for the time of event q + 1. So the rows of an event are final once the next event is known, and the rows of the newest
 * event are computed anew for each query.
 *
 * When the window slides, deeper layers have attended to an event that left it, and positions count from another event. All
 * cached rows are then computed again at the next query, except (without positions) those that depend on one event alone: the
 * first layer's queries, keys and values. With one layer and no positions all rows stay valid.
 *
 * The memory grows with the events, up to twice the context; then the rows of the window are moved to its start.
 */
#ifndef LP_ROW_CACHE_H
#define LP_ROW_CACHE_H

#include "serve/program.h"

typedef struct lp_row_cache {
    float *data;          /* [samples][cached matrices]; owned */
    int64_t capacity;     /* events that it has space for */
    int64_t base;         /* the event of the first row; negative: one that the history has lost */
    int64_t first, final; /* events first .. final - 1 have all their cached rows; first: that of the window */
    int64_t event_final;  /* events before it have the rows that depend on one event alone */
    double origin;        /* of times: the first event of the window when the oldest cached row was computed */
} lp_row_cache;

void lp_row_cache_clear(lp_row_cache *cache);

/* The history is another one. */
void lp_row_cache_reset(lp_row_cache *cache);

/* The history has lost its first `count` events. */
void lp_row_cache_drop(lp_row_cache *cache, const lp_program *program, int64_t count);

/* Makes space for the rows of all events before `end`. Rows before the window may be lost. */
lapse_status lp_row_cache_reserve(lp_row_cache *cache, const lp_program *program, int64_t end, lapse_error *error);

/* The space that a cache is made with for this many events. */
int64_t lp_row_cache_capacity(const lp_program *program, int64_t events);

/* Bytes of a cache with space for this many events. */
size_t lp_row_cache_bytes(const lp_program *program, int64_t events);

/* Columns of its transposed matrices. */
int lp_row_cache_stride(int64_t capacity);

/* The rows of a cached matrix from the event `first` on, or the columns of a transposed one, of a parameter sample. */
float *lp_row_cache_matrix(const lp_row_cache *cache, const lp_program *program, int sample, int matrix);

/* Sets the slots of the cached matrices of a parameter sample to the rows of event first + past; of transposed ones, to the column of
 * the event `first`. */
void lp_row_cache_feed(const lp_row_cache *cache, const lp_program *program, int sample, int64_t past, void **slots);

/* A state of the cache, to which it can return after events have been appended and queried, but not after lp_row_cache_drop or
 * lp_row_cache_reset. Rows of the events before are not computed again, unless the window has moved and they depend on it. */
typedef struct lp_row_mark {
    int64_t first, final, event_final;
} lp_row_mark;

lp_row_mark lp_row_cache_mark(const lp_row_cache *cache);
void lp_row_cache_return(lp_row_cache *cache, const lp_program *program, lp_row_mark mark);

#endif
