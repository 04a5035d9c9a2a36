/* memory.h: memory allocation.
 *
 *   lp_alloc   one block, 64-byte aligned, zeroed; freed by lp_free
 *   lp_arena   many small blocks freed together (the nodes of a graph, the names of a dataset)
 *   lp_buffer  a growable byte buffer
 *
 * All blocks of the library come from lp_alloc or lp_grow, so tests can count allocations and make the n-th one fail.
 */
#ifndef LP_MEMORY_H
#define LP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LP_ALIGN 64

enum { LP_SPARSE_SIZE = 1 << 22 };

/* A zeroed, 64-byte aligned block of count * size bytes (at least 1), or NULL. */
void *lp_alloc(size_t count, size_t size);
void *lp_alloc_raw(size_t count, size_t size);         /* the same, not zeroed */
void *lp_alloc_small_pages(size_t count, size_t size); /* like lp_alloc_raw; does not ask for huge pages */
/* Like lp_alloc, but pages of a block of LP_SPARSE_SIZE bytes or more take memory when they are first written, so a block may be larger than
 * the memory; lp_memory_drop gives pages back. */
void *lp_alloc_sparse(size_t count, size_t size);
void lp_free(void *block);

/* Empties the whole pages of a part of a sparse block, which then have zeros and take no memory. */
void lp_memory_drop(void *part, size_t size);

/* Sets whether a part of a block gets huge pages, which save TLB misses, but take memory as a whole. */
void lp_memory_huge(void *part, size_t size, bool huge);

/* Lets the system provide the pages of a part of a block, as far as they are whole and it can, so that writes to them do not
 * fault one by one. Does not change what is in the block. */
void lp_memory_populate(void *part, size_t size);

/* Frees a block, and if it has 1 MB or more returns its pages to the system at once: the C library may keep freed blocks of
 * any size, and at the top of a thread's heap even malloc_trim leaves them. For tables that are not soon made again. */
void lp_free_large(void *block);

/* Resizes a block of lp_grow (or NULL); new bytes are not zeroed. On failure returns NULL and leaves the block unchanged.
 * Freed by lp_free. */
void *lp_grow(void *block, size_t count, size_t size);

/* Grows an array, given by the address of its pointer, to at least `need` elements of `size` bytes; new elements are
 * zero. On failure returns false and leaves the array unchanged. */
bool lp_reserve(void *array, size_t *capacity, size_t need, size_t size);

/* Returns freed memory to the system, where the C library keeps it for later allocations: before a long phase that needs
 * much memory in large blocks. */
void lp_memory_trim(void);

/* A copy of text, or NULL. */
char *lp_text_copy(const char *text);

/* For tests: makes the n-th allocation from now fail, once (0: none); counts allocations. */
void lp_memory_fail_at(int64_t n);
int64_t lp_memory_count(void);

typedef struct lp_arena {
    struct lp_arena_chunk *chunk; /* newest first; owned */
} lp_arena;

/* Initialize an arena with {0}. */
void *lp_arena_alloc(lp_arena *arena, size_t size); /* zeroed, 16-byte aligned, or NULL */
char *lp_arena_text(lp_arena *arena, const char *text);
void lp_arena_clear(lp_arena *arena);

typedef struct lp_buffer {
    char *data; /* owned */
    size_t size, capacity;
} lp_buffer;

/* Initialize a buffer with {0}. Functions return false when out of memory and leave the buffer unchanged. */
bool lp_buffer_reserve(lp_buffer *buffer, size_t extra);
bool lp_buffer_add(lp_buffer *buffer, const void *data, size_t size);
bool lp_buffer_print(lp_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lp_buffer_clear(lp_buffer *buffer); /* frees */

#endif
