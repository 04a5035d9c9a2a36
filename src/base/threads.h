/* threads.h: the only place that starts threads. */
#ifndef LP_THREADS_H
#define LP_THREADS_H

/* Work on task number `task`; `worker` says which thread runs it, for scratch space of its own: a number below `threads`
 * and below `count`. */
typedef void (*lp_job)(void *context, int task, int worker);

/* Runs tasks 0 .. count-1 on up to `threads` threads and returns when all are done. The order is free, so a task must
 * write only what is its own. Nothing is allocated from the second call on, as long as `threads` stays the same. */
void lp_threads_run(int threads, int count, lp_job task, void *context);

/* Cores this process may use. */
int lp_threads_available(void);

#endif
