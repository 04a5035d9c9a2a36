/* threads.h: the only place that starts threads: a pool that shares a job, and single ones that work beside the caller. */
#ifndef LP_THREADS_H
#define LP_THREADS_H

/* Work on task number `task`; `worker` says which thread runs it, for scratch space of its own: a number below `threads`
 * and below `count`. */
typedef void (*lp_job)(void *context, int task, int worker);

/* Runs tasks 0 .. count-1 on up to `threads` threads and returns when all are done. The order is free, so a task must
 * write only what is its own. Nothing is allocated from the second call on, as long as `threads` stays the same. */
void lp_threads_run(int threads, int count, lp_job task, void *context);

/* A thread that does one thing whenever it is asked to, while the caller goes on (background.c). */
typedef struct lp_background lp_background;
/* NULL when there is no memory or thread for it. */
lp_background *lp_background_new(void (*work)(void *context), void *context);
void lp_background_ask(lp_background *background);  /* to do it once; not while it is at it */
void lp_background_wait(lp_background *background); /* until it has done what it was asked; at once where it was not */
void lp_background_free(lp_background *background); /* waits too; NULL is nothing */

/* Cores this process may use. */
int lp_threads_available(void);

#endif
