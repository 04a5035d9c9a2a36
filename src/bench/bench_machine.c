#include "bench/bench_machine.h"

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/threads.h"

#include <string.h>

/* A busy machine shows less than it can. So every thread has a clock of its own, and its best round counts. */
enum { ROUNDS = 40, TURNS = 100000, COPIED = 8 << 20, MOST_THREADS = 256 };

typedef struct machine_job {
    double best[MOST_THREADS]; /* of each task: a second's work */
    char *buffer;
    size_t size; /* of each thread's part of the buffer */
    float sinks[MOST_THREADS];
} machine_job;

static double sum_best(const machine_job *job, int count, int threads)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += job->best[i];
    return sum * threads / count;
}

static void keep_best(machine_job *job, int task, double amount, double start)
{
    double rate = amount / (lp_clock_seconds() - start);
    if (rate > job->best[task])
        job->best[task] = rate;
}

static void chains_task(void *context, int task, int worker)
{
    (void)worker;
    machine_job *job = context;
    double start = lp_clock_seconds();
    keep_best(job, task, lp_cpu_fma_loop(TURNS, &job->sinks[task]), start);
}

double lp_bench_peak(int threads)
{
    machine_job job = {.size = 0};
    int count = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (int round = 0; round < ROUNDS; round++)
        lp_threads_run(count, count, chains_task, &job);
    return sum_best(&job, count, threads);
}

static void copy_task(void *context, int task, int worker)
{
    (void)worker;
    machine_job *job = context;
    char *from = job->buffer + (size_t)task * job->size, *to = from + job->size / 2;
    int repeats = (int)(COPIED / job->size) + 1;
    double start = lp_clock_seconds();
    for (int i = 0; i < repeats; i++) {
        memcpy(to, from, job->size / 2);
        from[0] = (char)(to[job->size / 4] + 1); /* so that no copy is like the one before */
    }
    keep_best(job, task, (double)job->size * repeats, start);
}

lapse_status lp_bench_bandwidth(int threads, size_t size, double *bandwidth, lapse_error *error)
{
    int count = threads < MOST_THREADS ? threads : MOST_THREADS;
    machine_job job = {.size = (size + 128) / 128 * 128};
    job.buffer = lp_alloc(job.size * (size_t)count, 1);
    if (!job.buffer)
        return lp_fail_memory(error, "measuring how fast memory is", job.size * (size_t)count);
    for (int round = 0; round < ROUNDS; round++)
        lp_threads_run(count, count, copy_task, &job);
    lp_free(job.buffer);
    *bandwidth = sum_best(&job, count, threads);
    return LAPSE_OK;
}
