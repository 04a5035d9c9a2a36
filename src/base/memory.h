/* memory.h: the three ways Lapse holds memory.
 *
 *   lp_alloc   one block, 64-byte aligned, zeroed; freed by lp_free
 *   lp_arena   many small things that die together (a graph's nodes, a dataset's names)
 *   lp_buffer  bytes that grow
 *
 * Every block of the library comes from lp_alloc or lp_grow, so a test can make the n-th one fail and can count them.
 */
#ifndef LP_MEMORY_H
#define LP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LP_ALIGN 64

/* A zeroed, 64-byte aligned block of count * size bytes (at least 1), or NULL. */
void *lp_alloc(size_t count, size_t size);
void lp_free(void *block);

/* Resizes a block of lp_grow (or NULL); new bytes are not zeroed. On failure returns NULL and keeps the block. Freed by
 * lp_free. The caller tracks the size. */
void *lp_grow(void *block, size_t count, size_t size);

/* A copy of text, or NULL. */
char *lp_text_copy(const char *text);

/* For tests: the n-th allocation from now fails, once (0: none); and how many there have been. */
void lp_memory_fail_at(int64_t n);
int64_t lp_memory_count(void);

typedef struct lp_arena {
    struct lp_arena_chunk *chunk; /* newest first; owned */
} lp_arena;

/* An arena starts as {0}. */
void *lp_arena_alloc(lp_arena *arena, size_t size); /* zeroed, 16-byte aligned, or NULL */
char *lp_arena_text(lp_arena *arena, const char *text);
void lp_arena_clear(lp_arena *arena);

typedef struct lp_buffer {
    char *data; /* owned */
    size_t size, capacity;
} lp_buffer;

/* A buffer starts as {0}. Each returns false when out of memory and leaves the buffer as it was. */
bool lp_buffer_reserve(lp_buffer *buffer, size_t extra);
bool lp_buffer_add(lp_buffer *buffer, const void *data, size_t size);
bool lp_buffer_print(lp_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lp_buffer_clear(lp_buffer *buffer); /* frees */

#endif
