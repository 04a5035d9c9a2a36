/* cpu_backend.c: the backends that run on this machine's CPU. */
#include "backend/cpu/cpu.h"
#include "base/clock.h"

#include <string.h>

static void *buffer_new(void *context, size_t size)
{
    (void)context;
    return lp_alloc(size, 1);
}

static void copy_in(void *context, void *buffer, const void *host, size_t size)
{
    (void)context;
    memcpy(buffer, host, size);
}

static void copy_out(void *context, void *host, const void *buffer, size_t size)
{
    (void)context;
    memcpy(host, buffer, size);
}

/* The plain kernels call nothing that could mind. */
static int any_threads(void *context, int wanted)
{
    (void)context;
    return wanted;
}

/* A sequential OpenBLAS gives wrong results when several threads call it at once. */
static int safe_threads(void *context, int wanted)
{
    (void)context;
    return lp_cpu_threads_safe() ? wanted : 1;
}

static void sync(void *context)
{
    (void)context;
}

static void buffer_free(void *context, void *buffer)
{
    (void)context;
    lp_free(buffer);
}

static void run_all(const lp_run *run, const lp_kernel *kernels)
{
    const lp_graph *graph = run->plan->graph;
    int stop = run->stop ? run->stop : graph->node_count;
    int64_t start = run->times ? lp_clock_nanoseconds() : 0;
    for (int i = run->skip; i < stop; i++) {
        kernels[graph->nodes[i]->op->id](graph->nodes[i], run);
        if (!run->times)
            continue;
        int64_t end = lp_clock_nanoseconds();
        run->times[i] += end - start;
        start = end;
    }
}

static void run_reference_float(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_reference_kernels_float);
}

static void run_reference_double(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_reference_kernels_double);
}

static void run_fast(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_cpu_kernels());
}

static void adam_step(void *context, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    (void)context;
    lp_cpu_adam_step(adam, step, rows, parameters);
}

/* What the three have in common: the host's memory, and a step on its threads. */
#define ON_HOST                                                                                                        \
    .buffer_new = buffer_new, .buffer_free = buffer_free, .copy_in = copy_in, .copy_out = copy_out, .fetch = copy_out, \
    .host_new = buffer_new, .host_free = buffer_free, .adam_step = adam_step, .sync = sync, .host = true

static const lp_backend backends[] = {
    {.name = "cpu", .real_size = sizeof(float), .threads = safe_threads, .run = run_fast, ON_HOST},
    {.name = "reference", .real_size = sizeof(float), .threads = any_threads, .run = run_reference_float, ON_HOST},
    {.name = "reference-double",
     .real_size = sizeof(double),
     .threads = any_threads,
     .run = run_reference_double,
     ON_HOST},
};

const lp_backend *lp_backend_find(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i].name, name) == 0)
            return &backends[i];
    return NULL;
}
