/* threads.h: the thread pool and background workers; no other code starts threads. */
#ifndef LP_THREADS_H
#define LP_THREADS_H

#include "base/error.h"

/* Runs task number `task`. `worker`, below `threads` and `count`, identifies the thread, for per-thread scratch memory. */
typedef void (*lp_job)(void *context, int task, int worker);

/* Runs tasks 0 .. count-1 on up to `threads` threads and returns when all are done. The order is unspecified, so tasks must
 * write disjoint memory. Allocates nothing from the second call on, as long as `threads` stays the same. */
void lp_threads_run(int threads, int count, lp_job task, void *context);

/* A background thread that runs one function at a time. Only its owner calls these functions. */
typedef struct lp_worker lp_worker;

/* NULL if out of threads or memory. */
lp_worker *lp_worker_new(void);
/* Waits for the current work. NULL is allowed. */
void lp_worker_free(lp_worker *worker);
/* Starts work; the worker must be idle. */
void lp_worker_start(lp_worker *worker, void (*work)(void *context), void *context);
/* Returns when the worker is idle. */
void lp_worker_wait(lp_worker *worker);

/* The number of cores in the CPU affinity mask of this process. */
int lp_threads_available(void);

/* The largest value of every option named threads. */
enum { LP_THREADS_MAX = 4096 };

/* *threads is the requested number, or all cores if that is 0. Less than 0 or more than LP_THREADS_MAX is LAPSE_ERROR_USAGE. */
lapse_status lp_threads_resolve(int requested, int *threads, lapse_error *error);

#endif
