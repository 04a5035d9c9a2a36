/* memory.c: aligned blocks, arenas and growable buffers. */
#include "base/memory.h"

#include "base/assert.h"
#include "base/spill.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Blocks of at least LARGE bytes ask for huge pages, which save TLB misses in large tables. */
enum { LARGE_PAGE = 1 << 21, LARGE = 1 << 22, LARGE_FREED = 1 << 20 };

void *lp_alloc_raw(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - LARGE_PAGE)
        return NULL;
    void *spilled = bytes < LP_SPILL_SIZE ? NULL : lp_spill_alloc(bytes);
    if (spilled)
        return spilled;
    size_t align = bytes < LARGE ? LP_ALIGN : LARGE_PAGE, rounded = bytes ? (bytes + align - 1) / align * align : align;
    void *block = aligned_alloc(align, rounded);
#ifdef MADV_HUGEPAGE
    /* Whole huge pages only: a last one that is used in part would waste memory. */
    if (block && bytes >= LARGE)
        madvise(block, bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return block;
}

void *lp_alloc_small_pages(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - LP_ALIGN)
        return NULL;
    void *spilled = bytes < LP_SPILL_SIZE ? NULL : lp_spill_alloc(bytes);
    if (spilled)
        return spilled;
    return aligned_alloc(LP_ALIGN, bytes ? (bytes + LP_ALIGN - 1) / LP_ALIGN * LP_ALIGN : LP_ALIGN);
}

/* Advises on the whole pages of a part. Pages have the system's size, 4, 16 or 64 KB: the kernel rounds a length up to a page, and would
 * clear what follows the part. */
static void advise_pages(void *part, size_t size, int advice)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)part + page - 1) / page * page, end = ((uintptr_t)part + size) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, advice);
}

void lp_memory_drop(void *part, size_t size)
{
    advise_pages(part, size, MADV_DONTNEED);
}

void lp_memory_huge(void *part, size_t size, bool huge)
{
#ifdef MADV_HUGEPAGE
    advise_pages(part, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#else
    (void)part;
    (void)size;
    (void)huge;
#endif
}

void lp_memory_populate(void *part, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    advise_pages(part, size, MADV_POPULATE_WRITE);
#else
    (void)part;
    (void)size;
#endif
}

void *lp_alloc(size_t count, size_t size)
{
    void *block = lp_alloc_raw(count, size);
    size_t bytes = count * size;
    if (bytes >= LP_SPILL_SIZE && lp_spill_size(block))
        return block; /* zeroed */
    return block ? memset(block, 0, bytes ? (bytes + LP_ALIGN - 1) / LP_ALIGN * LP_ALIGN : LP_ALIGN) : NULL;
}

void *lp_alloc_sparse(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - LARGE_PAGE)
        return NULL;
    if (bytes < LP_SPARSE_SIZE)
        return lp_alloc(count, size);
    void *block = lp_spill_sparse(bytes);
    if (block)
        lp_memory_huge(block, bytes / LARGE_PAGE * LARGE_PAGE, true);
    return block;
}

void *lp_grow(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    size_t spilled = lp_spill_size(block);
#ifdef __GLIBC__
    char *grown = bytes < LP_SPILL_SIZE ? NULL : lp_spill_alloc(bytes);
    size_t old = spilled ? spilled : malloc_usable_size(block);
#else
    char *grown = bytes < LP_SPILL_SIZE || (block && !spilled) ? NULL : lp_spill_alloc(bytes);
    size_t old = spilled;
#endif
    if (!spilled && !grown)
        return realloc(block, bytes ? bytes : 1);
    if (!grown)
        grown = lp_alloc_raw(bytes, 1);
    if (!grown || !block)
        return grown;
    memcpy(grown, block, old < bytes ? old : bytes);
    lp_free(block);
    return grown;
}

bool lp_reserve(void *array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return true;
    void *block;
    memcpy(&block, array, sizeof block); /* memcpy: the pointer has any type */
    size_t larger = need > 2 * *capacity ? need : 2 * *capacity;
    char *grown = lp_grow(block, larger, size);
    if (!grown)
        return false;
    memset(grown + *capacity * size, 0, (larger - *capacity) * size);
    memcpy(array, &grown, sizeof grown);
    *capacity = larger;
    return true;
}

void lp_free(void *block)
{
    if (!lp_spill_free(block))
        free(block);
}

void lp_free_large(void *block)
{
    if (lp_spill_free(block))
        return;
#ifdef __GLIBC__
    size_t size = malloc_usable_size(block);
    if (size >= LARGE_FREED)
        advise_pages(block, size, MADV_DONTNEED);
#endif
    free(block);
}

void lp_memory_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

char *lp_text_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = lp_alloc(size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* ------------------------------------------------------------------------------------------------ arena ------ */

struct lp_arena_chunk {
    struct lp_arena_chunk *next;
    size_t used, size; /* of the bytes that follow this header */
};

enum { CHUNK_HEADER = (sizeof(struct lp_arena_chunk) + 15) / 16 * 16, CHUNK_SIZE = 16384 };

void *lp_arena_alloc(lp_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 15) / 16 * 16;
    struct lp_arena_chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        chunk = lp_alloc(1, CHUNK_HEADER + capacity);
        if (!chunk)
            return NULL;
        chunk->size = capacity;
        chunk->next = arena->chunk;
        arena->chunk = chunk;
    }
    void *block = (char *)chunk + CHUNK_HEADER + chunk->used;
    chunk->used += size;
    LP_ASSERT(chunk->used <= chunk->size);
    return block;
}

char *lp_arena_text(lp_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = lp_arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void lp_arena_clear(lp_arena *arena)
{
    while (arena->chunk) {
        struct lp_arena_chunk *next = arena->chunk->next;
        lp_free(arena->chunk);
        arena->chunk = next;
    }
}

/* ----------------------------------------------------------------------------------------------- buffer ------ */

bool lp_buffer_reserve(lp_buffer *buffer, size_t extra)
{
    LP_ASSERT(buffer->size <= buffer->capacity);
    if (buffer->capacity - buffer->size >= extra)
        return true;
    if (extra > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4)
        return false;
    size_t capacity = buffer->capacity + buffer->capacity / 2;
    if (capacity < buffer->size + extra)
        capacity = buffer->size + extra;
    if (capacity < 256)
        capacity = 256;
    char *data = lp_grow(buffer->data, capacity, 1);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

bool lp_buffer_add(lp_buffer *buffer, const void *data, size_t size)
{
    if (!lp_buffer_reserve(buffer, size))
        return false;
    if (size)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    return true;
}

bool lp_buffer_print(lp_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0 || !lp_buffer_reserve(buffer, (size_t)size + 1))
        return false;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)size;
    return true;
}

void lp_buffer_clear(lp_buffer *buffer)
{
    lp_free(buffer->data);
    *buffer = (lp_buffer){0};
}
