#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

lapse_status lp_map_open(lp_map *map, const char *path, lapse_error *error)
{
    *map = (lp_map){0};
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle < 0)
        return lp_fail_errno(error, "open", path);
    struct stat stat;
    lapse_status status = LAPSE_OK;
    if (fstat(handle, &stat) != 0) {
        status = lp_fail_errno(error, "read", path);
    } else if (!S_ISREG(stat.st_mode)) {
        status = lp_fail_at(error, LAPSE_ERROR_FILE, path, 0, 0, "this is not a regular file");
    } else if (stat.st_size > 0) {
        void *data = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, handle, 0);
        if (data == MAP_FAILED)
            status = lp_fail_errno(error, "map into memory", path);
        else
            *map = (lp_map){data, (size_t)stat.st_size};
    }
    close(handle);
    return status;
}

void lp_map_close(lp_map *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (lp_map){0};
}

enum { WRITER_SIZE = 1 << 20 };

/* The file that a link at path leads to, so that a rename replaces that one and not the link; else path itself. */
static const char *follow(const char *path, char *place /* PATH_MAX */)
{
    struct stat link;
    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && realpath(path, place) ? place : path;
}

/* Standard output, and what a rename would destroy: a device, a pipe. */
static bool written_as_it_comes(const char *path)
{
    struct stat there;
    return strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISREG(there.st_mode));
}

/* The file beside path, empty and locked: what a killed process left of one is used again, and two processes never write
 * the same. Returns -1 with errno set. */
static int open_aside(const char *aside)
{
    for (;;) {
        struct stat mine, there;
        int handle = open(aside, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (handle < 0)
            return -1;
        bool locked = flock(handle, LOCK_EX | LOCK_NB) == 0 && fstat(handle, &mine) == 0;
        /* Whoever had it may have renamed it since it was opened here. */
        bool same = locked && stat(aside, &there) == 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
        if (same && ftruncate(handle, 0) == 0)
            return handle;
        int code = errno;
        close(handle);
        errno = code == EWOULDBLOCK ? EBUSY : code;
        if (!locked || same)
            return -1;
    }
}

lapse_status lp_writer_open(lp_writer *writer, const char *path, lapse_error *error)
{
    *writer = (lp_writer){.handle = -1};
    char place[PATH_MAX];
    path = follow(path, place);
    bool as_it_comes = written_as_it_comes(path);
    size_t size = strlen(path) + 32;
    writer->data = lp_alloc(WRITER_SIZE, 1);
    writer->path = lp_text_copy(path);
    writer->aside = as_it_comes ? NULL : lp_alloc(size, 1);
    if (!writer->data || !writer->path || (!as_it_comes && !writer->aside)) {
        lp_writer_abandon(writer);
        return lp_fail_memory(error, "writing a file", WRITER_SIZE);
    }
    if (strcmp(path, "-") == 0) {
        writer->handle = STDOUT_FILENO;
    } else if (as_it_comes) {
        writer->handle = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        snprintf(writer->aside, size, "%s.tmp", path);
        writer->handle = open_aside(writer->aside);
    }
    if (writer->handle < 0) {
        lapse_status status = lp_fail_errno(error, "write", path);
        lp_free(writer->aside);
        writer->aside = NULL;
        lp_writer_abandon(writer);
        return status;
    }
    return LAPSE_OK;
}

static lapse_status flush(lp_writer *writer, const char *data, size_t size, lapse_error *error)
{
    while (size > 0) {
        ssize_t count = write(writer->handle, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return lp_fail_errno(error, "write", writer->path);
        data += count;
        size -= (size_t)count;
    }
    return LAPSE_OK;
}

lapse_status lp_writer_add(lp_writer *writer, const void *data, size_t size, lapse_error *error)
{
    writer->written += size;
    if (size > WRITER_SIZE - writer->used) {
        LP_TRY(flush(writer, writer->data, writer->used, error));
        writer->used = 0;
        if (size >= WRITER_SIZE)
            return flush(writer, data, size, error);
    }
    if (size)
        memcpy(writer->data + writer->used, data, size);
    writer->used += size;
    return LAPSE_OK;
}

lapse_status lp_writer_print(lp_writer *writer, lapse_error *error, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof line)
        return lp_fail(error, LAPSE_ERROR_INTERNAL, "a line of over %zu bytes was to be written", sizeof line);
    return lp_writer_add(writer, line, (size_t)size, error);
}

lapse_status lp_writer_pad(lp_writer *writer, size_t alignment, lapse_error *error)
{
    static const char zeros[64];
    size_t left = (alignment - writer->written % alignment) % alignment;
    while (left > 0) {
        size_t part = left < sizeof zeros ? left : sizeof zeros;
        LP_TRY(lp_writer_add(writer, zeros, part, error));
        left -= part;
    }
    return LAPSE_OK;
}

/* Makes a rename survive a power cut: the folder that holds path is synced too. */
static void sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;
    if (size >= sizeof folder)
        return;
    memcpy(folder, path, size);
    folder[size] = 0;
    int handle = open(slash ? (size ? folder : "/") : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle >= 0) {
        fsync(handle);
        close(handle);
    }
}

lapse_status lp_writer_commit(lp_writer *writer, lapse_error *error)
{
    lapse_status status = flush(writer, writer->data, writer->used, error);
    if (status == LAPSE_OK && writer->aside) {
        if (fsync(writer->handle) != 0 || rename(writer->aside, writer->path) != 0) {
            status = lp_fail_errno(error, "write", writer->path);
        } else {
            sync_folder(writer->path);
            lp_free(writer->aside);
            writer->aside = NULL;
        }
    }
    lp_writer_abandon(writer);
    return status;
}

void lp_writer_abandon(lp_writer *writer)
{
    if (writer->aside)
        unlink(writer->aside);
    if (writer->path && writer->handle >= 0 && writer->handle != STDOUT_FILENO)
        close(writer->handle);
    lp_free(writer->aside);
    lp_free(writer->path);
    lp_free(writer->data);
    *writer = (lp_writer){.handle = -1};
}
