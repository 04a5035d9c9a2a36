/* plugin.c: opens the backend of a device by name. The CUDA backend is a plugin that is loaded at its first use, so that the library
 * itself does not depend on CUDA. */
#include "backend/cuda_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LAPSE_LIBRARY_FOLDER
#define LAPSE_LIBRARY_FOLDER "lib"
#endif

enum { PATH_SIZE = PATH_MAX };

const char *const lp_precision_names[] = {"fp32", "tf32", "bf16", NULL};

static const char file[] = "liblapse_cuda.so";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const lp_backend *cuda; /* guarded by lock; NULL until it is open */

/* The absolute path of the file that this code was loaded from, the shared library or a program that is linked with the static one: what
 * dladdr knows of it may be relative, and to a folder that is no longer the current one. */
static bool own_path(char *path)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_SIZE + 128];
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t begin, end;
        int at = 0;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &at) < 2 ||
            (uintptr_t)file < begin || (uintptr_t)file >= end)
            continue;
        line[strcspn(line, "\n")] = '\0';
        found = at > 0 && line[at] == '/' && snprintf(path, PATH_SIZE, "%s", line + at) < PATH_SIZE;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Opens the plugin in a folder. Where there is one that cannot be opened, `why` says so. */
static void *open_in(const char *folder, const char *subfolder, char *why, size_t size)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s%s/%s", folder, subfolder, file);
    if (access(path, R_OK) != 0)
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(why, size, "the plugin could not be opened (%s)", dlerror());
    return handle;
}

/* Opens the plugin in the folder of the library, or of the program that contains it; for a program in the folder bin of an installed
 * tree also in the library folder of that tree. */
static void *open_beside(char *why, size_t size)
{
    char folder[PATH_SIZE];
    if (!own_path(folder))
        return NULL;
    *strrchr(folder, '/') = '\0';
    void *handle = open_in(folder, "", why, size);
    const char *name = strrchr(folder, '/');
    if (handle || !name || strcmp(name, "/bin") != 0)
        return handle;
    handle = open_in(folder, "/../" LAPSE_LIBRARY_FOLDER, why, size);
    return handle ? handle : open_in(folder, "/../lib", why, size);
}

/* Opens the plugin at the path in LAPSE_CUDA_PLUGIN, or else beside the library. The path is absolute, so that the dynamic linker
 * searches nothing, least of all the current folder. */
static void *open_plugin(char *why, size_t size)
{
    const char *wanted = getenv("LAPSE_CUDA_PLUGIN");
    if (!wanted || !*wanted) {
        void *handle = open_beside(why, size);
        if (!handle && !*why)
            snprintf(why, size,
                     "the plugin %s was not found beside the library. Lapse builds it where nvcc (of the CUDA toolkit) "
                     "and g++ are on "
                     "the PATH: install them, then build Lapse again",
                     file);
        return handle;
    }
    char path[PATH_MAX];
    if (!realpath(wanted, path)) {
        snprintf(why, size, "LAPSE_CUDA_PLUGIN: the plugin could not be opened (%s: %s)", wanted, strerror(errno));
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(why, size, "LAPSE_CUDA_PLUGIN: the plugin could not be opened (%s)", dlerror());
    return handle;
}

/* NULL where it cannot be opened; the reason is then in `why`. */
static const lp_backend *open_cuda(char *why, size_t size)
{
    void *handle = open_plugin(why, size);
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
    const lp_backend *found = cuda;
    pthread_mutex_unlock(&lock);
    if (found)
        *backend = found;
    else if (!automatic)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no GPU can be used: %s; use " LP_OPTION("--device cpu") " or auto",
                       why);
    return LAPSE_OK;
}
