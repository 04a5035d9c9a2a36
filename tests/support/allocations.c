/* allocations.c: counts the allocations of a unit program, makes the n-th one fail (base/memory.h), and finds what reads or writes
 * beyond a block. The linker puts these functions in the place of aligned_alloc, realloc and free, from which all blocks of the library
 * come, and of the functions that know how many bytes were asked for (cmake/tests.cmake).
 *
 * After a block lie at least 64 bytes of POISON: as a float or double it is not a number, as an index it is far outside of any array, and
 * as an address it is none. So one element too many spoils a sum, or crashes. What is written there ends the program when the block is
 * freed. Blocks that are not zeroed are full of it, as are freed ones. A program fails if blocks are left at its end. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "base/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether blocks are guarded: the address sanitizer and valgrind do so themselves. */
static bool guarded;

__attribute__((constructor)) static void decide(void)
{
#if !defined __SANITIZE_ADDRESS__ && defined __GLIBC__
    const char *under = getenv("LAPSE_TEST_UNDER");
    guarded = !under || strcmp(under, "valgrind") != 0;
#endif
}

enum { REST = 64, MOST_FILLED = 1 << 16 };

typedef struct ending { /* the last bytes of a block */
    uint64_t mark;
    size_t size; /* that was asked for */
} ending;

#define POISON 0x7FFF7FFF7FFF7FFFu
#define MARK 0x6B7A1F05C3D9E842u

static _Atomic int64_t allocations, fail_at, live; /* live: blocks that have not been freed */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void __real_lp_free_large(void *block);
void *__real_lp_alloc(size_t count, size_t size);
void *__real_lp_alloc_raw(size_t count, size_t size);
void *__real_lp_alloc_small_pages(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
void __wrap_lp_free_large(void *block);
void *__wrap_lp_alloc(size_t count, size_t size);
void *__wrap_lp_alloc_raw(size_t count, size_t size);
void *__wrap_lp_alloc_small_pages(size_t count, size_t size);

void lp_memory_fail_at(int64_t n)
{
    atomic_store(&fail_at, n > 0 ? atomic_load(&allocations) + n : 0);
}

int64_t lp_memory_count(void)
{
    return atomic_load(&allocations);
}

/* Counts an allocation. */
static bool must_fail(void)
{
    int64_t now = atomic_fetch_add(&allocations, 1) + 1;
    return now == atomic_load(&fail_at);
}

/* Fills bytes with the poison; of many only the first and the last: pages that nobody uses are not touched. */
static void fill(char *block, size_t begin, size_t end)
{
    const uint64_t poison = POISON;
    if (end - begin > 2 * MOST_FILLED) {
        fill(block, begin, begin + MOST_FILLED);
        begin = end - MOST_FILLED;
    }
    for (size_t i = begin; i < end && i % sizeof poison != 0; i++)
        block[i] = (char)(i % 2 ? 0x7F : 0xFF);
    for (begin = (begin + 7) / 8 * 8; begin + sizeof poison <= end; begin += sizeof poison)
        memcpy(block + begin, &poison, sizeof poison);
    for (; begin < end; begin++)
        block[begin] = (char)(begin % 2 ? 0x7F : 0xFF);
}

static char *ending_of(char *block)
{
    return block + (malloc_usable_size(block) - sizeof(ending)) / 16 * 16;
}

/* Poisons what follows the bytes that were asked for. */
static void *end_block(char *block, size_t size)
{
    if (block) {
        ending end = {MARK, size};
        char *at = ending_of(block);
        fill(block, size, (size_t)(at - block));
        memcpy(at, &end, sizeof end);
    }
    return block;
}

/* The bytes of a block that were asked for, or SIZE_MAX if it does not come from here. */
static size_t size_of(char *block)
{
    ending end;
    if (malloc_usable_size(block) < REST + sizeof end)
        return SIZE_MAX;
    memcpy(&end, ending_of(block), sizeof end);
    return end.mark == MARK && end.size <= (size_t)(ending_of(block) - block) ? end.size : SIZE_MAX;
}

static void check(const char *block, size_t size, const char *end)
{
    for (size_t i = size; block + i < end && i - size < MOST_FILLED; i++)
        if (block[i] != (char)(i % 2 ? 0x7F : 0xFF)) {
            fprintf(stderr, "a block of %zu bytes was written to at byte %zu\n", size, i);
            abort();
        }
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (must_fail())
        return NULL;
    if (!guarded || size > SIZE_MAX / 2)
        return __real_aligned_alloc(alignment, size);
    char *block = __real_aligned_alloc(alignment, (size + REST + sizeof(ending) + alignment - 1) / alignment * alignment);
    if (block)
        fill(block, 0, size);
    live += block != NULL;
    return end_block(block, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    if (must_fail())
        return NULL;
    if (!guarded || size > SIZE_MAX / 2)
        return __real_realloc(block, size);
    size_t before = block ? size_of(block) : 0;
    if (block && before != SIZE_MAX)
        check(block, before, ending_of(block));
    if (block && before != SIZE_MAX) /* so that none is left where the block was */
        memset(ending_of(block), 0, sizeof(ending));
    char *grown = __real_realloc(block, size + REST + sizeof(ending));
    if (!grown && block && before != SIZE_MAX)
        end_block(block, before);
    live += grown && (!block || before == SIZE_MAX);
    if (grown && before < size)
        fill(grown, before, size);
    return end_block(grown, size);
}

static void end_use(void *block)
{
    size_t size = guarded && block ? size_of(block) : SIZE_MAX;
    if (size == SIZE_MAX)
        return;
    check(block, size, ending_of(block));
    memset(ending_of(block), 0, sizeof(ending));
    fill(block, 0, size);
    live--;
}

void __wrap_free(void *block)
{
    end_use(block);
    __real_free(block);
}

void __wrap_lp_free_large(void *block)
{
    end_use(block); /* its pages are cleared before it is freed */
    __real_lp_free_large(block);
}

/* The block is longer than was asked for: up to a multiple of 64 bytes. */
static void *end_at(void *block, size_t size)
{
    return guarded ? end_block(block, size) : block;
}

void *__wrap_lp_alloc(size_t count, size_t size)
{
    return end_at(__real_lp_alloc(count, size), count * size);
}

void *__wrap_lp_alloc_raw(size_t count, size_t size)
{
    return end_at(__real_lp_alloc_raw(count, size), count * size);
}

void *__wrap_lp_alloc_small_pages(size_t count, size_t size)
{
    return end_at(__real_lp_alloc_small_pages(count, size), count * size);
}

/* Blocks of a GPU plugin do not come from here. */
__attribute__((destructor)) static void report(void)
{
    if (guarded && live > 0 && strncmp(program_invocation_short_name, "test_cuda", 9) != 0) {
        fprintf(stderr, "%lld blocks were not freed\n", (long long)live);
        fflush(NULL);
        _exit(70);
    }
}
