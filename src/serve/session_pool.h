/* session_pool.h: many queries about the sequences of a dataset, on several threads.
 *
 * Each thread has its own session and answers one range of queries after another. Threads share nothing that changes, so the answers
 * do not depend on their number.
 */
#ifndef LP_SESSION_POOL_H
#define LP_SESSION_POOL_H

#include "model/id_map.h"
#include "serve/session.h"

typedef struct lp_session_pool {
    const lapse_dataset *dataset;
    lp_id_map id_map; /* the dataset's columns in the model's ids */
    int threads;
    lapse_session **sessions; /* [threads]; owned */
} lp_session_pool;

/* threads: 0 is all cores. skip_unknown: events that the model does not know are left out; otherwise they are an error. The sessions
 * hold decoders. The model and the dataset must outlive the pool. After an error the pool is closed. */
lapse_status lp_session_pool_open(lp_session_pool *pool, const lapse_model *model, const lapse_dataset *dataset,
                                  int threads, bool skip_unknown, lapse_error *error);
void lp_session_pool_close(lp_session_pool *pool);

/* Answers queries first .. end-1 with the session of this thread. */
typedef lapse_status (*lp_session_task)(void *context, int64_t first, int64_t end, int thread, lapse_error *error);

/* Divides `count` queries into ranges, so many per thread that the load is balanced, and answers them all. The error is that of the
 * first range that has one. */
lapse_status lp_session_pool_run(const lp_session_pool *pool, int64_t count, lp_session_task task, void *context,
                                 lapse_error *error);

/* Appends the events `from` to `to`-1 of a sequence that the model knows to the thread's session, which is cleared before if from is 0. */
lapse_status lp_session_pool_read(const lp_session_pool *pool, int thread, int64_t sequence, int64_t from, int64_t to,
                                  lapse_error *error);

/* The number of events of a sequence. */
static inline int64_t lp_session_pool_events(const lp_session_pool *pool, int64_t sequence)
{
    return (int64_t)(pool->dataset->start[sequence + 1] - pool->dataset->start[sequence]);
}

#endif
