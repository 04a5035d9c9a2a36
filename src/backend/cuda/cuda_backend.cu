/* cuda_backend.cu: the device as a backend, and the plugin's one entry. */
#include "backend/cuda/cuda_plugin.h"
#include "backend/cuda/cuda_program.h"

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

extern "C" const lp_backend *lp_cuda_open(uint32_t version, const char **reason)
{
    static const lp_backend backend = {
        "cuda",     sizeof(float),       lp_device_alloc, buffer_free,       lp_device_upload, lp_device_download,
        one_thread, lp_cuda_program_run, lp_device_sync,  lp_device_problem,
    };
    if (version != LP_CUDA_VERSION) {
        *reason = "the plugin and the library are of different versions";
        return NULL;
    }
    *reason = lp_device_open();
    return *reason ? NULL : &backend;
}
