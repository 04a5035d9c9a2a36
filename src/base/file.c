/* file.c: memory-mapped reading; writing to a temporary file, fsync and rename. */
#include "base/file.h"

#include "base/memory.h"
#include "base/system.h"
#include "lapse_lab.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1 /* as gcc defines it */
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

/* The bytes from the end of a mapped file to the end of its last page can be read, but are not the file's: marked, so that the
 * address sanitizer reports a read. */
static void mark_rest(const lp_map *map, bool marked)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), rest = (page - map->size % page) % page;
    if (marked)
        ASAN_POISON_MEMORY_REGION(map->data + map->size, rest);
    else
        ASAN_UNPOISON_MEMORY_REGION(map->data + map->size, rest);
}
#else
static void mark_rest(const lp_map *map, bool marked)
{
    (void)map;
    (void)marked;
}
#endif

lapse_status lp_map_open(lp_map *map, const char *path, lapse_error *error)
{
    *map = (lp_map){0};
    /* Without O_NONBLOCK, open waits for the writer of a FIFO. */
    int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
        if (map->data)
            mark_rest(map, true);
    }
    close(handle);
    return status;
}

void lp_map_close(lp_map *map)
{
    if (map->data) {
        mark_rest(map, false);
        munmap((void *)(uintptr_t)map->data, map->size);
    }
    *map = (lp_map){0};
}

lp_file_version lp_file_version_of(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return (lp_file_version){0};
    struct timespec modified = lp_system_modified(&found);
    return (lp_file_version){(uint64_t)found.st_dev, found.st_ino, modified.tv_sec, modified.tv_nsec};
}

bool lp_file_version_equal(lp_file_version a, lp_file_version b)
{
    return a.device == b.device && a.inode == b.inode && a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

enum { WRITER_SIZE = 1 << 20 };

/* *target is path or, if path is a symbolic link, the file that it refers to, written to `resolved`: rename would replace the
 * link itself. A link to a missing file is an error. */
static lapse_status resolve_link(const char *path, char *resolved /* PATH_MAX */, const char **target,
                                 lapse_error *error)
{
    struct stat link;
    *target = path;
    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode))
        return LAPSE_OK;
    *target = resolved;
    if (realpath(path, resolved))
        return LAPSE_OK;
    if (errno == ENOENT)
        return lp_fail_at(error, LAPSE_ERROR_FILE, path, 0, 0,
                          "cannot write: this is a symbolic link to a file that does not exist");
    return lp_fail_errno(error, "write", path);
}

/* Standard output, and devices and pipes, which a rename would replace. */
static bool is_written_directly(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

enum { TEMPORARY_ATTEMPTS = 100, TEMPORARY_STEM = 200, TEMPORARY_SUFFIX = sizeof ".0123456789abcdef.tmp" };

/* Writes a new random name beside path to `temporary`. */
static void name_temporary(const char *path, char *temporary, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0, name = strlen(path) - folder;
    /* A shortened name leaves space for the suffix within NAME_MAX. */
    int stem = (int)(folder + (name < TEMPORARY_STEM ? name : TEMPORARY_STEM));
    snprintf(temporary, size, "%.*s.%016llx.tmp", stem, path, (unsigned long long)lp_system_random());
}

/* The folder of a path; NULL with errno set. */
static const char *folder_of(const char *path, char *folder /* PATH_MAX */)
{
    const char *slash = strrchr(path, '/');
    int size = slash ? (int)(slash + 1 - path) : 0;
    if (size >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    snprintf(folder, PATH_MAX, "%.*s", size, path);
    return slash ? folder : ".";
}

/* Opens the temporary file: without a name (*temporary is ""), or with a new one. O_EXCL: no existing file or link is opened,
 * and no two writers share a file, so no lock is needed. Returns -1 with errno set. */
static int open_temporary(const char *path, char *temporary, size_t size)
{
    char text[PATH_MAX];
    const char *folder = folder_of(path, text);
    int handle = folder ? lp_system_open_unnamed(folder, 0666) : -1;
    for (int attempt = 0; handle < 0 && attempt < TEMPORARY_ATTEMPTS; attempt++) {
        name_temporary(path, temporary, size);
        handle = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (handle < 0 && errno != EEXIST)
            break;
    }
    return handle;
}

/* Gives an unnamed temporary file its name. False with errno set. */
static bool link_temporary(lp_writer *writer)
{
    size_t size = strlen(writer->path) + TEMPORARY_SUFFIX;
    for (int attempt = 0; !*writer->temporary && attempt < TEMPORARY_ATTEMPTS; attempt++) {
        name_temporary(writer->path, writer->temporary, size);
        if (lp_system_link(writer->handle, writer->temporary))
            break;
        *writer->temporary = 0;
        if (errno != EEXIST)
            break;
    }
    return *writer->temporary;
}

lapse_status lp_writer_open(lp_writer *writer, const char *path, lapse_error *error)
{
    *writer = (lp_writer){.handle = -1};
    char resolved[PATH_MAX];
    bool direct = is_written_directly(path);
    if (!direct)
        LP_TRY(resolve_link(path, resolved, &path, error));
    size_t size = strlen(path) + TEMPORARY_SUFFIX;
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
        writer->handle = open_temporary(path, writer->temporary, size);
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
    char text[PATH_MAX];
    const char *folder = folder_of(path, text);
    int handle = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (handle >= 0) {
        fsync(handle);
        close(handle);
    }
}

lapse_status lp_writer_commit(lp_writer *writer, lapse_error *error)
{
    lapse_status status = flush(writer, writer->data, writer->used, error);
    if (status == LAPSE_OK && writer->temporary) {
        if (fsync(writer->handle) != 0 || !link_temporary(writer) || rename(writer->temporary, writer->path) != 0) {
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
    if (writer->temporary && *writer->temporary)
        unlink(writer->temporary);
    if (writer->path && writer->handle >= 0 && writer->handle != STDOUT_FILENO)
        close(writer->handle);
    lp_free(writer->temporary);
    lp_free(writer->path);
    lp_free(writer->data);
    *writer = (lp_writer){.handle = -1};
}

lapse_status lapse_file_write(const char *path, const void *data, size_t size, lapse_error *error)
{
    LP_REQUIRE(error, path, data);
    lp_writer writer;
    LP_TRY(lp_writer_open(&writer, path, error));
    lapse_status status = lp_writer_add(&writer, data, size, error);
    if (status == LAPSE_OK)
        return lp_writer_commit(&writer, error);
    lp_writer_abandon(&writer);
    return status;
}
