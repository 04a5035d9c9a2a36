/* bench_machine.c: measures the peak flop/s and the memory bandwidth of the CPU. */
#include "bench/bench_machine.h"

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/threads.h"

#include <string.h>

/* Other processes slow down some rounds, so every thread is timed separately and its best round counts. */
enum { ROUNDS = 40, ITERATIONS = 100000, COPY_BYTES = 8 << 20, MAX_THREADS = 256 };

typedef struct machine_job {
    double best[MAX_THREADS]; /* of each task: operations or bytes per second */
    char *buffer;
    size_t size; /* of each thread's part of the buffer */
    float sinks[MAX_THREADS];
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

static void fma_task(void *context, int task, int worker)
{
    (void)worker;
    machine_job *job = context;
    double start = lp_clock_seconds();
    keep_best(job, task, lp_cpu_fma_loop(ITERATIONS, &job->sinks[task]), start);
}

double lp_bench_peak(int threads)
{
    machine_job job = {.size = 0};
    int count = threads < MAX_THREADS ? threads : MAX_THREADS;
    for (int round = 0; round < ROUNDS; round++)
        lp_threads_run(count, count, fma_task, &job);
    return sum_best(&job, count, threads);
}

static void copy_task(void *context, int task, int worker)
{
    (void)worker;
    machine_job *job = context;
    char *from = job->buffer + (size_t)task * job->size, *to = from + job->size / 2;
    int repeats = (int)(COPY_BYTES / job->size) + 1;
    double start = lp_clock_seconds();
    for (int i = 0; i < repeats; i++) {
        memcpy(to, from, job->size / 2);
        from[0] = (char)(to[job->size / 4] + 1); /* each copy differs, so that none is optimized away */
    }
    keep_best(job, task, (double)job->size * repeats, start);
}

lapse_status lp_bench_bandwidth(int threads, size_t size, double *bandwidth, lapse_error *error)
{
    int count = threads < MAX_THREADS ? threads : MAX_THREADS;
    machine_job job = {.size = (size + 128) / 128 * 128};
    job.buffer = lp_alloc(job.size * (size_t)count, 1);
    if (!job.buffer)
        return lp_fail_memory(error, "measuring the memory bandwidth", job.size * (size_t)count);
    for (int round = 0; round < ROUNDS; round++)
        lp_threads_run(count, count, copy_task, &job);
    lp_free(job.buffer);
    *bandwidth = sum_best(&job, count, threads);
    return LAPSE_OK;
}
