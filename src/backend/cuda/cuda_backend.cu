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

/* device_call<function>::locked: a function of the device as one of lp_backend. */
template <auto function> struct device_call;

template <typename result, typename... types, result (*function)(lp_cuda_device *, types...)>
struct device_call<function> {
    static result locked(void *context, types... values)
    {
        guard held(context);
        return function(held->device, values...);
    }
};

static void buffer_free(void *context, void *buffer)
{
    guard held(context);
    lp_cuda_program_drop(&held->programs, buffer);
    lp_device_free(held->device, buffer);
}

static int one_thread(void *, int)
{
    return 1;
}

static void run(void *context, const lp_run *run)
{
    guard held(context);
    lp_cuda_program_run(&held->programs, run, NULL, NULL);
}

static void run_profiled(void *context, const lp_run *run, const lp_profiler *profiler)
{
    guard held(context);
    lp_cuda_program_run(&held->programs, run, NULL, profiler);
}

static void train_step(void *context, const lp_run *run, const lp_train_step *step)
{
    guard held(context);
    lp_cuda_program_run(&held->programs, run, step, NULL);
}

static const char *device_error(void *context)
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

static lp_backend backend_of(lp_cuda_context *context)
{
    lp_backend backend = {};
    backend.context = context;
    backend.name = "cuda";
    backend.real_size = sizeof(float);
    backend.buffer_new = device_call<lp_device_alloc>::locked;
    backend.buffer_free = buffer_free;
    backend.copy_to_device = device_call<lp_device_upload>::locked;
    backend.copy_to_host = device_call<lp_device_download>::locked;
    backend.copy_to_host_async = device_call<lp_device_fetch>::locked;
    backend.pinned_new = device_call<lp_device_pinned>::locked;
    backend.pinned_free = device_call<lp_device_pinned_free>::locked;
    backend.max_threads = one_thread;
    backend.run = run;
    backend.run_profiled = run_profiled;
    backend.measure_peak = device_call<lp_cuda_speed>::locked;
    backend.adam_step = adam_step;
    backend.train_step = train_step;
    backend.sync = device_call<lp_device_sync>::locked;
    backend.device_error = device_error;
    backend.schedule = schedule;
    backend.reuse_delay = REUSE_DELAY;
    return backend;
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
    context->backend = backend_of(context);
    return &context->backend;
}
