/* threads.h: the only place that starts threads. */
#ifndef LP_THREADS_H
#define LP_THREADS_H

/* Work on task number `task`; `worker` says which thread runs it, for scratch space of its own: a number below `threads`
 * and below `count`. */
typedef void (*lp_job)(void *context, int task, int worker);

/* Runs tasks 0 .. count-1 on up to `threads` threads and returns when all are done. The order is free, so a task must
 * write only what is its own. Nothing is allocated from the second call on, as long as `threads` stays the same. */
void lp_threads_run(int threads, int count, lp_job task, void *context);

/* A thread that does one piece of work at a time beside its owner. Only the owner calls these. */
typedef struct lp_helper lp_helper;

/* NULL where no thread or memory is to be had. */
lp_helper *lp_helper_new(void);
/* Waits for what it is doing. NULL is allowed. */
void lp_helper_free(lp_helper *helper);
/* Hands it a piece of work; it must have none. */
void lp_helper_start(lp_helper *helper, void (*work)(void *context), void *context);
/* Returns when it has no work left. */
void lp_helper_wait(lp_helper *helper);

/* Cores this process may use. */
int lp_threads_available(void);

#endif
