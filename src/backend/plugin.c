/* plugin.c: opens the backend of a device by name. The CUDA backend is a plugin that is loaded at its first use, so that the library
 * itself does not depend on CUDA. */
#include "backend/cuda_plugin.h"

#include "base/plugin_file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

const char *const lp_precision_names[] = {"fp32", "tf32", "bf16", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const lp_backend *cuda; /* guarded by lock; NULL until it is open */
static char cuda_found[400];   /* guarded by lock: what the first try to open it found */

const char *lapse_device_found(void)
{
    return cuda_found;
}

/* Writes the GPU to `why`; NULL where none can be used, with the reason in `why`. */
static const lp_backend *open_cuda(char *why, size_t size)
{
    void *handle =
        lp_plugin_open("liblapse_cuda.so", "LAPSE_CUDA_PLUGIN",
                       "Lapse builds it where nvcc (of the CUDA toolkit) and g++ are on the PATH", why, size);
    if (!handle)
        return NULL;
    lp_cuda_open_function open = (lp_cuda_open_function)dlsym(handle, "lp_cuda_open");
    if (!open)
        snprintf(why, size, "the plugin has no entry 'lp_cuda_open'");
    const lp_backend *backend = open ? open(LP_CUDA_VERSION, why, size) : NULL;
    if (!backend)
        dlclose(handle);
    return backend;
}

/* X(name, default precision of products, whether there is a choice, lp_backend.host). bf16 is the fastest precision of a GPU whose scores
 * are within the noise of fp32 (docs/cuda.md). */
#define DEVICES(X)                           \
    X("cpu", LP_PRECISION_FP32, false, true) \
    X("cuda", LP_PRECISION_BF16, true, false)

#define DEVICE_ROW(name, ...) {name, __VA_ARGS__},
#define DEVICE_NAME(name, ...) name,
#define DEVICE_LISTED(name, ...) name ", "
const lp_device lp_devices[LP_DEVICES] = {DEVICES(DEVICE_ROW)};

const char *const *lp_device_names(void)
{
    static const char *const names[] = {DEVICES(DEVICE_NAME) "auto", NULL};
    return names;
}

int lp_device_of(const lp_backend *backend)
{
    int device = 0;
    while (device + 1 < LP_DEVICES && strcmp(lp_devices[device].name, backend->name) != 0)
        device++;
    return device;
}

lapse_status lp_device_check(const char *name, lapse_error *error)
{
    for (const char *const *names = lp_device_names(); *names; names++)
        if (strcmp(name, *names) == 0)
            return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "there is no device '%s'; choose from " DEVICES(DEVICE_LISTED) "auto",
                   name);
}

lapse_status lp_backend_open(const char *device, const lp_backend **backend, lapse_error *error)
{
    bool automatic = strcmp(device, "auto") == 0;
    *backend = lp_backend_find("cpu");
    LP_TRY(lp_device_check(device, error));
    if (strcmp(device, lp_devices[0].name) == 0)
        return LAPSE_OK;
    char why[400] = "";
    pthread_mutex_lock(&lock);
    if (!cuda)
        cuda = open_cuda(why, sizeof why);
    if (!*cuda_found)
        memcpy(cuda_found, why, sizeof why);
    const lp_backend *found = cuda;
    pthread_mutex_unlock(&lock);
    if (found)
        *backend = found;
    else if (!automatic)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no GPU can be used: %s; use " LP_OPTION("--device cpu") " or auto",
                       why);
    return LAPSE_OK;
}
