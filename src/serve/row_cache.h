/* row_cache.h: what a network computed of the earlier events of one history (KV cache).
 *
 * Keys, values and bases of an event do not depend on the query time. The input of a deeper layer does: its row for event q is
 * computed for the time of event q + 1. So the rows of an event are final once the next event is known, and the rows of the newest
 * event are computed anew for each query.
 *
 * When the window slides, deeper layers have attended to an event that left it, positions count from another event, and times from
 * another origin. All rows are then computed again at the next query, so that they are those of a history that begins with the window.
 *
 * Sessions store keys and values. Bases of times are computed by the thread that queries (decoder.h). The memory grows with the events,
 * up to the context.
 */
#ifndef LP_ROW_CACHE_H
#define LP_ROW_CACHE_H

#include "serve/program.h"

typedef struct lp_row_cache {
    float *data;          /* [samples][stored matrices][capacity x columns]; owned */
    int64_t capacity;     /* events that it has space for */
    int64_t first, final; /* events first .. final - 1 have rows; first: that of the window */
    double origin;        /* of times: the first event of the window */
    uint64_t stamp;       /* of the events of the window: they have only grown since it was given (decoder.h); 0: none */
} lp_row_cache;

void lp_row_cache_clear(lp_row_cache *cache);

/* The history is another one. */
void lp_row_cache_reset(lp_row_cache *cache);

/* The window begins with this event: rows of another window are lost. */
void lp_row_cache_begin(lp_row_cache *cache, int64_t first);

/* The history has lost its first `count` events. */
void lp_row_cache_drop(lp_row_cache *cache, int64_t count);

/* Makes space for the rows of all events of the window before `end`. */
lapse_status lp_row_cache_reserve(lp_row_cache *cache, const lp_program *program, int64_t end, lapse_error *error);

/* Bytes of a cache with space for this many events. */
size_t lp_row_cache_bytes(const lp_program *program, int64_t events);

/* The rows of a stored matrix, of a parameter sample. */
float *lp_row_cache_matrix(const lp_row_cache *cache, const lp_program *program, int sample, int matrix);

/* Sets the slots of the stored matrices of a parameter sample to the rows of event first + past. */
void lp_row_cache_feed(const lp_row_cache *cache, const lp_program *program, int sample, int64_t past, void **slots);

/* A state of the cache, to which it can return after events have been appended and queried, but not after lp_row_cache_drop or
 * lp_row_cache_reset. Rows of the events before are not computed again, unless the window has moved. */
typedef struct lp_row_mark {
    int64_t first, final;
} lp_row_mark;

lp_row_mark lp_row_cache_mark(const lp_row_cache *cache);
void lp_row_cache_return(lp_row_cache *cache, lp_row_mark mark);

#endif
