/* file.c: memory-mapped reading; writing to a temporary file, fsync and rename. */
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

/* Resolves a symbolic link at path, so that rename replaces its target and not the link. */
static const char *resolve_link(const char *path, char *resolved /* PATH_MAX */)
{
    struct stat link;
    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && realpath(path, resolved) ? resolved : path;
}

/* Standard output, and devices and pipes, which a rename would replace. */
static bool is_written_directly(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

/* Opens the temporary file, empty and locked: the file of a killed process is reused, and two processes never write the
 * same one. Returns -1 with errno set. */
static int open_temporary(const char *temporary)
{
    for (;;) {
        struct stat mine, there;
        int handle = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (handle < 0)
            return -1;
        bool locked = flock(handle, LOCK_EX | LOCK_NB) == 0 && fstat(handle, &mine) == 0;
        /* Another process may have renamed it between open and lock. */
        bool same =
            locked && stat(temporary, &there) == 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
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
    char resolved[PATH_MAX];
    path = resolve_link(path, resolved);
    bool direct = is_written_directly(path);
    size_t size = strlen(path) + 32;
    writer->data = lp_alloc(WRITER_SIZE, 1);
    writer->path = lp_text_copy(path);
    writer->temporary = direct ? NULL : lp_alloc(size, 1);
    if (!writer->data || !writer->path || (!direct && !writer->temporary)) {
        lp_writer_abandon(writer);
        return lp_fail_memory(error, "writing a file", WRITER_SIZE);
    }
    if (strcmp(path, "-") == 0) {
        writer->handle = STDOUT_FILENO;
    } else if (direct) {
        writer->handle = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        snprintf(writer->temporary, size, "%s.tmp", path);
        writer->handle = open_temporary(writer->temporary);
    }
    if (writer->handle < 0) {
        lapse_status status = lp_fail_errno(error, "write", path);
        lp_free(writer->temporary);
        writer->temporary = NULL;
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
        return lp_fail(error, LAPSE_ERROR_INTERNAL, "a line exceeds %zu bytes", sizeof line);
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

/* Syncs the folder of path, so that a rename survives a power failure. */
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
    if (status == LAPSE_OK && writer->temporary) {
        if (fsync(writer->handle) != 0 || rename(writer->temporary, writer->path) != 0) {
            status = lp_fail_errno(error, "write", writer->path);
        } else {
            sync_folder(writer->path);
            lp_free(writer->temporary);
            writer->temporary = NULL;
        }
    }
    lp_writer_abandon(writer);
    return status;
}

void lp_writer_abandon(lp_writer *writer)
{
    if (writer->temporary)
        unlink(writer->temporary);
    if (writer->path && writer->handle >= 0 && writer->handle != STDOUT_FILENO)
        close(writer->handle);
    lp_free(writer->temporary);
    lp_free(writer->path);
    lp_free(writer->data);
    *writer = (lp_writer){.handle = -1};
}
