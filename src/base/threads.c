/* threads.c: a pool of threads that wait for work.
 *
 * OpenMP would do, but its threads spin while they wait, which on a busy machine takes the cores from those who work:
 * training beside other programs ran at a third of the speed. Ours spin for some microseconds, then sleep. The pool
 * is started at the first use, grows to the largest number asked for, and lives as long as the program. A second
 * caller while the pool is at work runs its tasks by itself. A child process has none of its parent's threads and starts
 * a pool of its own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/threads.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST_WORKERS = 256, SPINS = 4000 };

static struct {
    pthread_mutex_t owner; /* held by the caller whose job it is */
    pthread_mutex_t lock;  /* guards what follows, and goes with the two conditions */
    pthread_cond_t work, done;
    int started;           /* workers that exist, the caller apart */
    int wanted;            /* workers that take part in the job, the caller apart */
    _Atomic int busy;      /* of these, not yet finished */
    _Atomic uint64_t jobs; /* handed out so far: a worker waits for the number to change */

    lp_job task;
    void *context;
    int count;
    _Atomic int next; /* task */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void work_through(int worker)
{
    for (int i = atomic_fetch_add(&pool.next, 1); i < pool.count; i = atomic_fetch_add(&pool.next, 1))
        pool.task(pool.context, i, worker);
}

static void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Worker `number` (from 1). Jobs are only handed out when all workers of the last one have finished. */
static void *wait_for_work(void *number)
{
    int worker = (int)(intptr_t)number;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (atomic_load(&pool.jobs) == seen || worker > pool.wanted) {
            seen = atomic_load(&pool.jobs);
            pthread_cond_wait(&pool.work, &pool.lock);
        }
        seen = atomic_load(&pool.jobs);
        pthread_mutex_unlock(&pool.lock);
        work_through(worker);
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&pool.busy, 1) == 1)
            pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
        for (int i = 0; i < SPINS && atomic_load(&pool.jobs) == seen; i++)
            rest();
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

/* With the lock held. Fewer threads than asked for only make it slower. */
static void start_workers(int wanted)
{
    while (pool.started < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_work, (void *)(intptr_t)(pool.started + 1)) != 0)
            return;
        pthread_detach(thread);
        pool.started++;
    }
}

/* All threads asked for are started at once, though a job with few tasks needs fewer: a later one starts none. */
static void run_together(int threads, int count, lp_job task, void *context)
{
    pthread_mutex_lock(&pool.lock);
    start_workers(threads - 1);
    threads = threads < count ? threads : count;
    pool.task = task;
    pool.context = context;
    pool.count = count;
    atomic_store(&pool.next, 0);
    pool.wanted = pool.started < threads - 1 ? pool.started : threads - 1;
    atomic_store(&pool.busy, pool.wanted);
    atomic_fetch_add(&pool.jobs, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    work_through(0);
    for (int i = 0; i < SPINS && atomic_load(&pool.busy) > 0; i++)
        rest();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.busy) > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static void forget_parent(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = pool.wanted = 0;
    atomic_store(&pool.busy, 0);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_parent);
}

void lp_threads_run(int threads, int count, lp_job task, void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool together = threads > 1 && count > 1;
    if (threads > MOST_WORKERS)
        threads = MOST_WORKERS;
    if (together)
        pthread_once(&once, watch_forks);
    if (together && pthread_mutex_trylock(&pool.owner) == 0) {
        run_together(threads, count, task, context);
        pthread_mutex_unlock(&pool.owner);
        return;
    }
    for (int i = 0; i < count; i++)
        task(context, i, 0);
}

/* -------------------------------------------------------------------------------------------------- helpers ---- */

struct lp_helper {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    void (*work)(void *context); /* NULL: none */
    void *context;
    bool leave;
};

static void *help(void *context)
{
    lp_helper *helper = context;
    pthread_mutex_lock(&helper->lock);
    while (!helper->leave || helper->work) {
        if (!helper->work) {
            pthread_cond_wait(&helper->changed, &helper->lock);
            continue;
        }
        pthread_mutex_unlock(&helper->lock);
        helper->work(helper->context);
        pthread_mutex_lock(&helper->lock);
        helper->work = NULL;
        pthread_cond_broadcast(&helper->changed);
    }
    pthread_mutex_unlock(&helper->lock);
    return NULL;
}

static void forget(lp_helper *helper)
{
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
    lp_free(helper);
}

lp_helper *lp_helper_new(void)
{
    lp_helper *helper = lp_alloc(1, sizeof *helper);
    if (!helper)
        return NULL;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->changed, NULL);
    if (pthread_create(&helper->thread, NULL, help, helper) == 0)
        return helper;
    forget(helper);
    return NULL;
}

void lp_helper_free(lp_helper *helper)
{
    if (!helper)
        return;
    pthread_mutex_lock(&helper->lock);
    helper->leave = true;
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    forget(helper);
}

void lp_helper_start(lp_helper *helper, void (*work)(void *context), void *context)
{
    pthread_mutex_lock(&helper->lock);
    helper->work = work;
    helper->context = context;
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
}

void lp_helper_wait(lp_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    while (helper->work)
        pthread_cond_wait(&helper->changed, &helper->lock);
    pthread_mutex_unlock(&helper->lock);
}

int lp_threads_available(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return count > 0 ? count : 1;
}
