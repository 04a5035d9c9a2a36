/* plugin_file.c: finds a plugin beside the library and opens it. */
#include "base/plugin_file.h"

#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LAPSE_LIBRARY_FOLDER
#define LAPSE_LIBRARY_FOLDER "lib"
#endif

enum { PATH_SIZE = PATH_MAX };

/* Opens the plugin in a folder. Where there is one that cannot be opened, `why` says so. */
static void *open_in(const char *folder, const char *subfolder, const char *file, char *why, size_t size)
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
static void *open_beside(const char *file, char *why, size_t size)
{
    char folder[PATH_SIZE];
    if (!lp_system_own_path(folder, sizeof folder))
        return NULL;
    *strrchr(folder, '/') = '\0';
    void *handle = open_in(folder, "", file, why, size);
    const char *name = strrchr(folder, '/');
    if (handle || !name || strcmp(name, "/bin") != 0)
        return handle;
    handle = open_in(folder, "/../" LAPSE_LIBRARY_FOLDER, file, why, size);
    return handle ? handle : open_in(folder, "/../lib", file, why, size);
}

void *lp_plugin_open(const char *file, const char *variable, const char *built, char *why, size_t size)
{
    const char *wanted = getenv(variable);
    if (!wanted || !*wanted) {
        void *handle = open_beside(file, why, size);
        if (!handle && !*why)
            snprintf(why, size,
                     "the plugin %s was not found beside the library. %s: install them, then build Lapse again", file,
                     built);
        return handle;
    }
    char path[PATH_MAX];
    if (!realpath(wanted, path)) {
        snprintf(why, size, "%s: the plugin could not be opened (%s: %s)", variable, wanted, strerror(errno));
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(why, size, "%s: the plugin could not be opened (%s)", variable, dlerror());
    return handle;
}
