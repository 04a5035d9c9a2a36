/* threads.c: a thread pool, and background workers.
 *
 * OpenMP threads spin while they wait, which takes cores from other threads on a busy machine: training beside other
 * programs ran at a third of the speed. These threads spin for some microseconds, then sleep. The pool starts at the first
 * use, grows to the largest number of threads requested, and lives as long as the process. A second caller while the pool is
 * busy runs its tasks itself, one by one, until the pool is free for the others. After a fork the child starts its own pool.
 */
#include "base/threads.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/system.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_WORKERS = 256, SPINS = 4000 };

static struct {
    pthread_mutex_t owner; /* held by the caller whose job runs */
    pthread_mutex_t lock;  /* guards the members below; mutex of both conditions */
    pthread_cond_t work, done;
    int started;           /* running workers, without the caller */
    int wanted;            /* workers of the current job, without the caller */
    _Atomic int busy;      /* of these, not yet finished */
    _Atomic uint64_t jobs; /* job counter: workers wait for it to change */

    lp_job task;
    void *context;
    int count;
    _Atomic int next; /* task */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void run_tasks(int worker)
{
    for (int i = atomic_fetch_add(&pool.next, 1); i < pool.count; i = atomic_fetch_add(&pool.next, 1))
        pool.task(pool.context, i, worker);
}

static void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Worker `number` (from 1). A job starts only after all workers of the previous one have finished. */
static void *worker_loop(void *number)
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
        run_tasks(worker);
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&pool.busy, 1) == 1)
            pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
        for (int i = 0; i < SPINS && atomic_load(&pool.jobs) == seen; i++)
            spin_pause();
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

/* Called with the lock held. If threads cannot be created, fewer run. */
static void start_workers(int wanted)
{
    while (pool.started < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker_loop, (void *)(intptr_t)(pool.started + 1)) != 0)
            return;
        pthread_detach(thread);
        pool.started++;
    }
}

/* Runs tasks first .. count - 1. Starts all requested threads, even for a job with fewer tasks, so that later jobs start none. */
static void run_on_pool(int threads, int first, int count, lp_job task, void *context)
{
    pthread_mutex_lock(&pool.lock);
    start_workers(threads - 1);
    threads = threads < count - first ? threads : count - first;
    LP_ASSERT(atomic_load(&pool.busy) == 0); /* the previous job has ended */
    pool.task = task;
    pool.context = context;
    pool.count = count;
    atomic_store(&pool.next, first);
    pool.wanted = pool.started < threads - 1 ? pool.started : threads - 1;
    atomic_store(&pool.busy, pool.wanted);
    atomic_fetch_add(&pool.jobs, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    run_tasks(0);
    for (int i = 0; i < SPINS && atomic_load(&pool.busy) > 0; i++)
        spin_pause();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.busy) > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static void reset_after_fork(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = pool.wanted = 0;
    atomic_store(&pool.busy, 0);
}

static void register_fork_handler(void)
{
    pthread_atfork(NULL, NULL, reset_after_fork);
}

void lp_threads_run(int threads, int count, lp_job task, void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool parallel = threads > 1 && count > 1;
    if (threads > MAX_WORKERS)
        threads = MAX_WORKERS;
    if (parallel)
        pthread_once(&once, register_fork_handler);
    for (int i = 0; i < count; i++) {
        if (parallel && pthread_mutex_trylock(&pool.owner) == 0) {
            run_on_pool(threads, i, count, task, context);
            pthread_mutex_unlock(&pool.owner);
            return;
        }
        task(context, i, 0);
    }
}

/* -------------------------------------------------------------------------------------------------- workers ---- */

struct lp_worker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    void (*work)(void *context); /* NULL: idle */
    void *context;
    bool stop;
};

static void *run_worker(void *context)
{
    lp_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    while (!worker->stop || worker->work) {
        if (!worker->work) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        worker->work(worker->context);
        pthread_mutex_lock(&worker->lock);
        worker->work = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static void destroy(lp_worker *worker)
{
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    lp_free(worker);
}

lp_worker *lp_worker_new(void)
{
    lp_worker *worker = lp_alloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    if (pthread_create(&worker->thread, NULL, run_worker, worker) == 0)
        return worker;
    destroy(worker);
    return NULL;
}

void lp_worker_free(lp_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    destroy(worker);
}

void lp_worker_start(lp_worker *worker, void (*work)(void *context), void *context)
{
    pthread_mutex_lock(&worker->lock);
    LP_ASSERT(!worker->work);
    worker->work = work;
    worker->context = context;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void lp_worker_wait(lp_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->work)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

int lp_threads_available(void)
{
    return lp_system_cores();
}

lapse_status lp_threads_resolve(int requested, int *threads, lapse_error *error)
{
    if (requested < 0 || requested > LP_THREADS_MAX)
        return lp_fail(error, LAPSE_ERROR_USAGE, "threads is %d; it must be 1 to %d, or 0 for all cores", requested,
                       LP_THREADS_MAX);
    *threads = requested ? requested : lp_threads_available();
    return LAPSE_OK;
}
