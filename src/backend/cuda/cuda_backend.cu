/* cuda_backend.cu: the device as a backend, and the plugin's one entry. */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_plugin.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_speed.h"
#include "backend/cuda/cuda_stage.h"

static void buffer_free(void *buffer)
{
    lp_cuda_program_drop(buffer);
    lp_device_free(buffer);
}

/* One stream: shards run one after another. */
static int one_thread(int wanted)
{
    (void)wanted;
    return 1;
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
    backend.buffer_new = lp_device_alloc;
    backend.buffer_free = buffer_free;
    backend.copy_in = lp_device_upload;
    backend.copy_out = lp_device_download;
    backend.fetch = lp_device_fetch;
    backend.host_new = lp_device_pinned;
    backend.host_free = lp_device_pinned_free;
    backend.threads = one_thread;
    backend.run = lp_cuda_program_run;
    backend.run_timed = lp_cuda_program_time;
    backend.speed = lp_cuda_speed;
    backend.adam_step = lp_cuda_adam_step;
    backend.learn = lp_cuda_program_learn;
    backend.sync = lp_device_sync;
    backend.problem = lp_device_problem;
    backend.arrange = lp_cuda_arrange;
    backend.rest = REST;
    return &backend;
}
