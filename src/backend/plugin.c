/* plugin.c: opens the backend of a device by name. The CUDA backend is a plugin that is loaded at its first use, so that the library
 * itself does not depend on CUDA. */
#define _GNU_SOURCE /* dladdr */
#include "backend/cuda_plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LAPSE_LIBRARY_FOLDER
#define LAPSE_LIBRARY_FOLDER "lib"
#endif

enum { PATH_SIZE = 4096 };

const char *const lp_precision_names[] = {"fp32", "tf32", "bf16", NULL};

static const char file[] = "liblapse_cuda.so";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const lp_backend *cuda; /* guarded by lock; NULL until it is open */

/* Truncates a path to its folder; false where it has none. */
static bool folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Opens the plugin in a folder, or in the library folder of the installed tree that the folder belongs to. The reason is written
 * to `why` if there is one that cannot be opened. */
static void *open_in(const char *folder, char *why, size_t size)
{
    static const char *const subfolders[] = {"", ("/../" LAPSE_LIBRARY_FOLDER), "/../lib"};
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof subfolders / sizeof *subfolders; i++) {
        char path[PATH_SIZE + 64];
        snprintf(path, sizeof path, "%s%s/%s", folder, subfolders[i], file);
        if (access(path, R_OK) != 0)
            continue;
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            snprintf(why, size, "the plugin could not be opened (%s)", dlerror());
    }
    return handle;
}

static void *open_beside(const char *path, char *why, size_t size)
{
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    return folder_of(folder) ? open_in(folder, why, size) : NULL;
}

/* From the path in LAPSE_CUDA_PLUGIN, or else beside the library, beside the program, or in the dynamic linker's path. */
static void *open_plugin(char *why, size_t size)
{
    const char *wanted = getenv("LAPSE_CUDA_PLUGIN");
    void *handle = NULL;
    if (wanted && *wanted) {
        handle = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    } else {
        Dl_info here;
        char program[PATH_SIZE];
        if (dladdr(file, &here) && here.dli_fname)
            handle = open_beside(here.dli_fname, why, size);
        ssize_t length = handle ? -1 : readlink("/proc/self/exe", program, sizeof program - 1);
        if (length > 0) {
            program[length] = '\0';
            handle = open_beside(program, why, size);
        }
        if (!handle)
            handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle && wanted && *wanted)
        snprintf(why, size, "LAPSE_CUDA_PLUGIN: the plugin could not be opened (%s)", dlerror());
    else if (!handle && !*why)
        snprintf(
            why, size,
            "the plugin %s was not found (%s). Lapse builds it where nvcc (of the CUDA toolkit) and g++ are on the "
            "PATH: install them, then build Lapse again",
            file, dlerror());
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

lapse_status lp_backend_open(const char *device, const lp_backend **backend, lapse_error *error)
{
    bool automatic = strcmp(device, "auto") == 0;
    *backend = lp_backend_find("cpu");
    if (strcmp(device, "cpu") == 0)
        return LAPSE_OK;
    if (!automatic && strcmp(device, "cuda") != 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no device '%s'; there are cpu, cuda and auto", device);
    char why[400] = "";
    pthread_mutex_lock(&lock);
    if (!cuda)
        cuda = open_cuda(why, sizeof why);
    const lp_backend *found = cuda;
    pthread_mutex_unlock(&lock);
    if (found)
        *backend = found;
    else if (!automatic)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no GPU can be used: %s; use --device cpu or auto", why);
    return LAPSE_OK;
}
