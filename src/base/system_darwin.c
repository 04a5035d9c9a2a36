/* system_darwin.c: see system.h. macOS 13 or later. Compiled, but not run. */
#include "base/system.h"

#include "base/condition.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach/mach.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int lp_system_cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

int64_t lp_system_resident(void)
{
    mach_task_basic_info_data_t info;
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    kern_return_t status = task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &count);
    return status == KERN_SUCCESS ? (int64_t)info.resident_size : 0;
}

uint64_t lp_system_random(void)
{
    uint64_t value;
    arc4random_buf(&value, sizeof value);
    return value;
}

struct timespec lp_system_modified(const struct stat *file)
{
    return file->st_mtimespec;
}

bool lp_system_own_path(char *path, size_t size)
{
    char found[PATH_MAX];
    Dl_info info;
    return dladdr((void *)(uintptr_t)lp_system_own_path, &info) != 0 && realpath(info.dli_fname, found) &&
           (size_t)snprintf(path, size, "%s", found) < size;
}

int lp_system_open_unnamed(const char *folder, mode_t mode)
{
    (void)folder;
    (void)mode;
    errno = EOPNOTSUPP;
    return -1;
}

bool lp_system_link(int handle, const char *path)
{
    (void)handle;
    (void)path;
    errno = EOPNOTSUPP;
    return false;
}

void lp_system_punch(int handle, off_t offset, off_t size)
{
    fpunchhole_t hole = {.fp_offset = offset, .fp_length = size};
    (void)fcntl(handle, F_PUNCHHOLE, &hole);
}

const void *lp_system_find_last(const void *text, int byte, size_t size)
{
    const unsigned char *bytes = text;
    while (size > 0 && bytes[size - 1] != (unsigned char)byte)
        size--;
    return size > 0 ? bytes + size - 1 : NULL;
}

/* ---- condition.h --------------------------------------------------------------------------------------------- */

void lp_condition_init(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

void lp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds)
{
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    pthread_cond_timedwait_relative_np(condition, mutex, &span);
}
