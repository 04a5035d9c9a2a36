/* cuda_backend.cu: the device as a backend, and the plugin's one entry. */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_plugin.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_speed.h"
#include "backend/cuda/cuda_stage.h"

/* The functions of lp_backend. The device's state is not yet part of the context. */
static void *buffer_new(void *, size_t size)
{
    return lp_device_alloc(size);
}

static void buffer_free(void *, void *buffer)
{
    lp_cuda_program_drop(buffer);
    lp_device_free(buffer);
}

static void copy_in(void *, void *buffer, const void *host, size_t size)
{
    lp_device_upload(buffer, host, size);
}

static void copy_out(void *, void *host, const void *buffer, size_t size)
{
    lp_device_download(host, buffer, size);
}

static void fetch(void *, void *host, const void *buffer, size_t size)
{
    lp_device_fetch(host, buffer, size);
}

static void *host_new(void *, size_t size)
{
    return lp_device_pinned(size);
}

static void host_free(void *, void *host)
{
    lp_device_pinned_free(host);
}

/* One stream: shards run one after another. */
static int one_thread(void *, int)
{
    return 1;
}

static void run(void *, const lp_run *run)
{
    lp_cuda_program_run(run);
}

static void run_profiled(void *, const lp_run *run, const lp_profiler *profiler)
{
    lp_cuda_program_time(run, profiler);
}

static void speed(void *, lp_precision precision, size_t size, double *operations, double *bytes)
{
    lp_cuda_speed(precision, size, operations, bytes);
}

static void adam_step(void *, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    lp_cuda_adam_step(adam, step, rows, parameters);
}

static void learn(void *, const lp_run *run, const lp_train_step *step)
{
    lp_cuda_program_learn(run, step);
}

static void sync(void *)
{
    lp_device_sync();
}

static const char *problem(void *)
{
    return lp_device_problem();
}

static bool arrange(void *, const lp_graph *graph, lp_schedule_level *levels)
{
    return lp_cuda_arrange(graph, levels);
}

/* Moments for which places rest, so that sums may run beside what comes after them. */
enum { REST = 2 };

extern "C" const lp_backend *lp_cuda_open(uint32_t version, const char **reason)
{
    static lp_backend backend;
    if (version != LP_CUDA_VERSION) {
        *reason = "the plugin and the library are of different versions";
        return NULL;
    }
    *reason = lp_device_open();
    if (*reason)
        return NULL;
    backend.name = "cuda";
    backend.real_size = sizeof(float);
    backend.buffer_new = buffer_new;
    backend.buffer_free = buffer_free;
    backend.copy_in = copy_in;
    backend.copy_out = copy_out;
    backend.fetch = fetch;
    backend.host_new = host_new;
    backend.host_free = host_free;
    backend.threads = one_thread;
    backend.run = run;
    backend.run_profiled = run_profiled;
    backend.speed = speed;
    backend.adam_step = adam_step;
    backend.learn = learn;
    backend.sync = sync;
    backend.problem = problem;
    backend.arrange = arrange;
    backend.rest = REST;
    return &backend;
}
