/* source.c: reads a file, a pipe or memory, and decompresses gzip. Uses read() and not mmap, because mapped pages
 * would count as used memory and a pipe cannot be mapped. Concatenated gzip members are one text. */
#include "data/import/source.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RAW_SIZE = 1 << 18, GZIP_WINDOW = 15 + 16 };

static voidpf zlib_alloc(voidpf context, uInt count, uInt size)
{
    (void)context;
    return lp_alloc(count, size);
}

static void zlib_free(voidpf context, voidpf chunk)
{
    (void)context;
    lp_free(chunk);
}

/* One read system call; 0 bytes at the end. */
static lapse_status read_some(lp_source *source, char *into, size_t size, size_t *count, lapse_error *error)
{
    *count = 0;
    while (source->handle >= 0 && !source->ended) {
        ssize_t got = read(source->handle, into, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lp_fail_errno(error, "read", source->name);
        *count = (size_t)got;
        break;
    }
    if (*count == 0)
        source->ended = true;
    return LAPSE_OK;
}

/* Refills the raw bytes; moves the unused ones to the front. */
static lapse_status refill(lp_source *source, lapse_error *error)
{
    if (source->ended || !source->raw)
        return LAPSE_OK;
    if (source->left)
        memmove(source->raw, source->next, source->left);
    source->next = source->raw;
    size_t count;
    LP_TRY(read_some(source, source->raw + source->left, RAW_SIZE - source->left, &count, error));
    source->left += count;
    return LAPSE_OK;
}

/* Sets *gzip if the next two bytes are the gzip magic number. */
static lapse_status at_gzip(lp_source *source, bool *gzip, lapse_error *error)
{
    while (source->left < 2 && !source->ended)
        LP_TRY(refill(source, error));
    *gzip = source->left >= 2 && (unsigned char)source->next[0] == 0x1F && (unsigned char)source->next[1] == 0x8B;
    return LAPSE_OK;
}

static lapse_status start(lp_source *source, lapse_error *error)
{
    LP_TRY(at_gzip(source, &source->gzip, error));
    if (!source->gzip)
        return LAPSE_OK;
    source->stream.zalloc = zlib_alloc;
    source->stream.zfree = zlib_free;
    if (inflateInit2(&source->stream, GZIP_WINDOW) != Z_OK)
        return lp_fail_memory(error, "gzip decompression", 1 << 16);
    source->stream_open = true;
    source->member_open = true;
    return LAPSE_OK;
}

lapse_status lp_source_open(lp_source *source, const char *path, lapse_error *error)
{
    bool standard_input = strcmp(path, "-") == 0;
    *source = (lp_source){.name = standard_input ? "standard input" : path, .handle = -1};
    source->raw = lp_alloc(RAW_SIZE, 1);
    if (!source->raw)
        return lp_fail_memory(error, "reading a file", RAW_SIZE);
    source->next = source->raw;
    source->handle = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    lapse_status status = source->handle < 0 ? lp_fail_errno(error, "open", path) : start(source, error);
    if (status != LAPSE_OK)
        lp_source_close(source);
    return status;
}

lapse_status lp_source_open_memory(lp_source *source, const char *name, const void *data, size_t size,
                                   lapse_error *error)
{
    *source = (lp_source){.name = name, .handle = -1, .next = data, .left = size, .ended = true};
    lapse_status status = start(source, error);
    if (status != LAPSE_OK)
        lp_source_close(source);
    return status;
}

void lp_source_close(lp_source *source)
{
    if (source->stream_open)
        inflateEnd(&source->stream);
    if (source->handle > STDIN_FILENO)
        close(source->handle);
    lp_free(source->raw);
    *source = (lp_source){.handle = -1};
}

/* After a member: another one, zero padding, or the end of the file. */
static lapse_status next_member(lp_source *source, lapse_error *error)
{
    bool gzip;
    LP_TRY(at_gzip(source, &gzip, error));
    if (gzip) {
        inflateReset(&source->stream);
        source->member_open = true;
        return LAPSE_OK;
    }
    for (;;) {
        for (; source->left > 0; source->left--, source->next++)
            if (*source->next)
                return lp_fail_at(error, LAPSE_ERROR_INPUT, source->name, 0, 0,
                                  "the gzip data is followed by other data");
        if (source->ended)
            return LAPSE_OK;
        LP_TRY(refill(source, error));
    }
}

static lapse_status read_gzip(lp_source *source, char *into, size_t size, size_t *count, lapse_error *error)
{
    while (*count < size) {
        if (!source->member_open) {
            LP_TRY(next_member(source, error));
            if (!source->member_open)
                return LAPSE_OK;
        }
        if (source->left == 0)
            LP_TRY(refill(source, error));
        if (source->left == 0)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, source->name, 0, 0, "the gzip data is truncated");
        size_t space = size - *count < (size_t)1 << 30 ? size - *count : (size_t)1 << 30;
        size_t given = source->left < (size_t)1 << 30 ? source->left : (size_t)1 << 30;
        source->stream.next_in = (z_const Bytef *)(uintptr_t)source->next;
        source->stream.avail_in = (uInt)given;
        source->stream.next_out = (Bytef *)into + *count;
        source->stream.avail_out = (uInt)space;
        int result = inflate(&source->stream, Z_NO_FLUSH);
        *count += space - source->stream.avail_out;
        source->next += given - source->stream.avail_in;
        source->left -= given - source->stream.avail_in;
        if (result == Z_MEM_ERROR)
            return lp_fail_memory(error, "gzip decompression", 1 << 16);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, source->name, 0, 0, "the gzip data is corrupt: %s",
                              source->stream.msg ? source->stream.msg : "it cannot be decompressed");
        source->member_open = result != Z_STREAM_END;
    }
    return LAPSE_OK;
}

lapse_status lp_source_read(lp_source *source, char *into, size_t size, size_t *count, lapse_error *error)
{
    *count = 0;
    if (source->gzip)
        return read_gzip(source, into, size, count, error);
    size_t part = source->left < size ? source->left : size;
    if (part)
        memcpy(into, source->next, part);
    source->next += part;
    source->left -= part;
    *count = part;
    while (*count < size && !source->ended) {
        LP_TRY(read_some(source, into + *count, size - *count, &part, error));
        *count += part;
    }
    return LAPSE_OK;
}
