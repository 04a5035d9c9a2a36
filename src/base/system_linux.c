/* system_linux.c: see system.h. */
#define _GNU_SOURCE /* O_TMPFILE, fallocate, sched_getaffinity, memrchr */
#include "base/system.h"

#include "base/condition.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int lp_system_cores(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return count > 0 ? count : 1;
}

int64_t lp_system_resident(void)
{
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second ? strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

uint64_t lp_system_random(void)
{
    uint64_t value;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) == (ssize_t)sizeof value)
        return value;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
}

struct timespec lp_system_modified(const struct stat *file)
{
    return file->st_mtim;
}

bool lp_system_own_path(char *path, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t begin, end, here = (uintptr_t)lp_system_own_path;
        int at = 0;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &at) < 2 || here < begin ||
            here >= end)
            continue;
        line[strcspn(line, "\n")] = '\0';
        found = at > 0 && line[at] == '/' && (size_t)snprintf(path, size, "%s", line + at) < size;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* The path by which linkat names a file without a name. */
typedef struct handle_path {
    char text[64];
} handle_path;

static handle_path path_of_handle(int handle)
{
    handle_path path;
    snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", handle);
    return path;
}

int lp_system_open_unnamed(const char *folder, mode_t mode)
{
    int handle = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (handle < 0 && errno == EISDIR) /* a kernel without them */
        errno = EOPNOTSUPP;
    if (handle >= 0 && access(path_of_handle(handle).text, F_OK) != 0) {
        close(handle);
        handle = -1;
        errno = EOPNOTSUPP;
    }
    return handle;
}

bool lp_system_link(int handle, const char *path)
{
    return linkat(AT_FDCWD, path_of_handle(handle).text, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

void lp_system_punch(int handle, off_t offset, off_t size)
{
    int given = fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
    (void)given;
}

const void *lp_system_find_last(const void *text, int byte, size_t size)
{
    return memrchr(text, byte, size);
}

/* ---- condition.h --------------------------------------------------------------------------------------------- */

void lp_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void lp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_cond_timedwait(condition, mutex, &until);
}
