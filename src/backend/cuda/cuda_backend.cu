/* cuda_backend.cu: the GPU as an lp_backend, and the entry point of the plugin.
 *
 * All state lies in lp_cuda_context. Its mutex is held during every call, so threads may use the backend at the same time: their
 * calls run one after another, and the device executes their work in that order. A profiler's callback must not call the backend.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda_plugin.h"
#include "backend/cuda/cuda_stage.h"

#include <pthread.h>
#include <stdio.h>

typedef struct lp_cuda_context {
    lp_backend backend;
    pthread_mutex_t lock; /* guards the device */
    lp_cuda_device device;
} lp_cuda_context;

/* device_call<function>::locked: a function of the device as one of lp_backend. */
template <auto function> struct device_call;

template <typename result, typename... types, result (*function)(lp_cuda_device *, types...)>
struct device_call<function> {
    static result locked(void *given, types... values)
    {
        struct guard {
            lp_cuda_context *context;
            ~guard()
            {
                pthread_mutex_unlock(&context->lock);
            }
        } held = {(lp_cuda_context *)given};
        pthread_mutex_lock(&held.context->lock);
        return function(&held.context->device, values...);
    }
};

static void buffer_free(lp_cuda_device *device, void *buffer)
{
    lp_cuda_program_drop(device, buffer);
    lp_device_free(device, buffer);
}

static void run(lp_cuda_device *device, const lp_run *run)
{
    lp_cuda_program_run(device, run, NULL, NULL);
}

static void run_profiled(lp_cuda_device *device, const lp_run *run, const lp_profiler *profiler)
{
    lp_cuda_program_run(device, run, NULL, profiler);
}

static void train_step(lp_cuda_device *device, const lp_run *run, const lp_train_step *step)
{
    lp_cuda_program_run(device, run, step, NULL);
}

/* Schedule levels before a freed range of the work buffer is reused: reductions may then run beside the levels that follow them. */
enum { REUSE_DELAY = 2 };

static lp_backend backend_of(lp_cuda_context *context)
{
    lp_backend backend = {};
    backend.context = context;
    backend.name = "cuda";
    backend.real_size = sizeof(float);
    backend.buffer_new = device_call<lp_device_alloc>::locked;
    backend.buffer_free = device_call<buffer_free>::locked;
    backend.copy_to_device = device_call<lp_device_copy>::locked;
    backend.copy_to_host = device_call<lp_device_download>::locked;
    backend.copy_to_host_async = device_call<lp_device_copy>::locked;
    backend.pinned_new = device_call<lp_device_pinned>::locked;
    backend.pinned_free = device_call<lp_device_pinned_free>::locked;
    backend.max_threads = [](void *, int) { return 1; };
    backend.run = device_call<run>::locked;
    backend.run_profiled = device_call<run_profiled>::locked;
    backend.measure_peak = device_call<lp_cuda_speed>::locked;
    backend.count_ranks = device_call<lp_cuda_count_ranks>::locked;
    backend.adam_step = device_call<lp_cuda_adam_step>::locked;
    backend.train_step = device_call<train_step>::locked;
    backend.sync = device_call<lp_device_sync>::locked;
    backend.device_error = device_call<lp_device_problem>::locked;
    backend.schedule = [](void *, const lp_graph *graph, lp_schedule_level *levels) {
        return lp_cuda_stage_levels(graph, levels);
    };
    backend.reuse_delay = REUSE_DELAY;
    return backend;
}

/* The GPU, and what of it the kernels use. */
static void describe(const lp_cuda_device *device, char *text, size_t size)
{
    snprintf(text, size,
             "%s, compute capability %d.%d, %d multiprocessors, %d KB of shared memory for a block; copies %s, "
             "dependent launches %s, "
             "bf16 %s",
             device->name, device->capability / 10, device->capability % 10, device->multiprocessors,
             device->shared >> 10, device->capability >= 90 ? "in bulk" : "of 16 bytes",
             device->dependent ? "on" : "off", lp_cuda_bf16_supported(device) ? "by warpgroups" : "in tf32");
}

extern "C" const lp_backend *lp_cuda_open(uint32_t version, char *found, size_t size)
{
    lp_cuda_context *context = NULL;
    const char *why = "the plugin and the library are of different versions";
    if (version == LP_CUDA_VERSION) {
        context = (lp_cuda_context *)lp_alloc(1, sizeof *context);
        why = context ? lp_device_open(&context->device) : "there is not enough memory";
    }
    if (why) {
        snprintf(found, size, "%s", why);
        lp_free(context);
        return NULL;
    }
    describe(&context->device, found, size);
    pthread_mutex_init(&context->lock, NULL);
    context->backend = backend_of(context);
    return &context->backend;
}
