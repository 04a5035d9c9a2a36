/* cuda_backend.cu: the GPU as an lp_backend, and the entry point of the plugin.
 *
 * All state lies in lp_cuda_context. Its mutex is held during every call, so threads may use the backend at the same time: their
 * calls run one after another, and the device executes their work in that order. A profiler's callback must not call the backend.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_plugin.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_speed.h"
#include "backend/cuda/cuda_stage.h"

#include <pthread.h>
#include <stdio.h>

/* Ring of the data that Adam needs from the host, for steps outside a captured run. */
typedef struct adam_ring {
    char *staging[LP_DEVICE_RING], *uploaded[LP_DEVICE_RING]; /* pinned host memory, and device memory */
    size_t capacity;                                          /* bytes of each */
    uint64_t steps;
} adam_ring;

typedef struct lp_cuda_context {
    lp_backend backend;
    pthread_mutex_t lock; /* guards the rest */
    lp_cuda_device *device;
    lp_cuda_programs programs;
    adam_ring adam;
} lp_cuda_context;

/* Holds the context's mutex until the end of a scope. */
struct guard {
    lp_cuda_context *context;
    explicit guard(void *given) : context((lp_cuda_context *)given)
    {
        pthread_mutex_lock(&context->lock);
    }
    ~guard()
    {
        pthread_mutex_unlock(&context->lock);
    }
    lp_cuda_context *operator->() const
    {
        return context;
    }
};

static void *buffer_new(void *context, size_t size)
{
    guard held(context);
    return lp_device_alloc(held->device, size);
}

static void buffer_free(void *context, void *buffer)
{
    guard held(context);
    lp_cuda_program_drop(&held->programs, buffer);
    lp_device_free(held->device, buffer);
}

static void copy_in(void *context, void *buffer, const void *host, size_t size)
{
    guard held(context);
    lp_device_upload(held->device, buffer, host, size);
}

static void copy_out(void *context, void *host, const void *buffer, size_t size)
{
    guard held(context);
    lp_device_download(held->device, host, buffer, size);
}

static void fetch(void *context, void *host, const void *buffer, size_t size)
{
    guard held(context);
    lp_device_fetch(held->device, host, buffer, size);
}

static void *host_new(void *context, size_t size)
{
    guard held(context);
    return lp_device_pinned(held->device, size);
}

static void host_free(void *context, void *host)
{
    guard held(context);
    lp_device_pinned_free(held->device, host);
}

static int one_thread(void *, int)
{
    return 1;
}

static void run(void *context, const lp_run *run)
{
    guard held(context);
    lp_cuda_program_run(&held->programs, run);
}

static void run_profiled(void *context, const lp_run *run, const lp_profiler *profiler)
{
    guard held(context);
    lp_cuda_program_profile(&held->programs, run, profiler);
}

static void speed(void *context, lp_precision precision, size_t size, double *operations, double *bytes)
{
    guard held(context);
    lp_cuda_speed(held->device, precision, size, operations, bytes);
}

static void train_step(void *context, const lp_run *run, const lp_train_step *step)
{
    guard held(context);
    lp_cuda_program_train_step(&held->programs, run, step);
}

static void sync(void *context)
{
    guard held(context);
    lp_device_sync(held->device);
}

static const char *problem(void *context)
{
    guard held(context);
    return lp_device_problem(held->device);
}

static bool schedule(void *, const lp_graph *graph, lp_schedule_level *levels)
{
    return lp_cuda_stage_levels(graph, levels);
}

/* ---- Adam outside a captured run ----------------------------------------------------------------------------- */

static bool grow_ring(lp_cuda_device *device, adam_ring *ring, size_t size)
{
    if (size <= ring->capacity)
        return true;
    lp_device_sync(device);
    bool good = true;
    for (int i = 0; i < LP_DEVICE_RING; i++) {
        lp_device_free(device, ring->uploaded[i]);
        lp_device_pinned_free(device, ring->staging[i]);
        ring->uploaded[i] = (char *)lp_device_alloc(device, size);
        ring->staging[i] = (char *)lp_device_pinned(device, size);
        good = good && ring->uploaded[i] && ring->staging[i];
    }
    lp_device_sync(device); /* the copy stream does not wait for the zeroing of new memory */
    ring->capacity = good ? size : 0;
    return good;
}

static void adam_step(void *context, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    guard held(context);
    lp_cuda_device *device = held->device;
    adam_ring *ring = &held->adam;
    size_t size = lp_cuda_adam_size(adam->item_capacity);
    if (adam->shards != 1)
        lp_device_problem_set(device, "the optimizer", "a batch must be one shard on a GPU");
    if (!lp_device_problem(device) && !grow_ring(device, ring, size))
        lp_device_problem_set(device, "the optimizer's rows", "there is not enough memory on the GPU");
    if (lp_device_problem(device))
        return;
    lp_train_step train_step = {adam, step, rows, parameters, NULL, NULL};
    lp_cuda_run run = {};
    run.device = device;
    int index = (int)(ring->steps++ % LP_DEVICE_RING);
    lp_device_ring_acquire(device, LP_DEVICE_ADAM, index);
    lp_cuda_adam_fill(&train_step, NULL, (lp_cuda_adam_args *)ring->staging[index]);
    lp_device_upload_ahead(device, LP_DEVICE_ADAM, index, ring->uploaded[index], ring->staging[index], size);
    lp_cuda_adam_launch(&run, &train_step, (const lp_cuda_adam_args *)ring->uploaded[index]);
    lp_device_ring_release(device, LP_DEVICE_ADAM, index);
}

/* ---- the entry point ----------------------------------------------------------------------------------------- */

/* Schedule levels before a freed range of the work buffer is reused: reductions may then run beside the levels that follow them. */
enum { REUSE_DELAY = 2 };

static void fill_backend(lp_backend *table)
{
    lp_backend backend = {};
    backend.name = "cuda";
    backend.real_size = sizeof(float);
    backend.buffer_new = buffer_new;
    backend.buffer_free = buffer_free;
    backend.copy_to_device = copy_in;
    backend.copy_to_host = copy_out;
    backend.copy_to_host_async = fetch;
    backend.pinned_new = host_new;
    backend.pinned_free = host_free;
    backend.max_threads = one_thread;
    backend.run = run;
    backend.run_profiled = run_profiled;
    backend.measure_peak = speed;
    backend.adam_step = adam_step;
    backend.train_step = train_step;
    backend.sync = sync;
    backend.device_error = problem;
    backend.schedule = schedule;
    backend.reuse_delay = REUSE_DELAY;
    *table = backend;
}

extern "C" const lp_backend *lp_cuda_open(uint32_t version, char *reason, size_t size)
{
    if (version != LP_CUDA_VERSION) {
        snprintf(reason, size, "the plugin and the library are of different versions");
        return NULL;
    }
    lp_cuda_context *context = (lp_cuda_context *)lp_alloc(1, sizeof *context);
    if (!context) {
        snprintf(reason, size, "there is not enough memory");
        return NULL;
    }
    context->device = lp_device_open(reason, size);
    if (!context->device) {
        lp_free(context);
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    context->programs.device = context->device;
    fill_backend(&context->backend);
    context->backend.context = context;
    return &context->backend;
}
