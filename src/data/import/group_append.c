/* group_append.c: appends the values of a column to the partitions of their rows, a cache line at a time.
 *
 * The next lines of all partitions are in a buffer of the worker, which fits the cache. A full line is written by stores
 * that bypass the cache: then its old content, which nobody needs, is not read from memory, and no store waits for it. */
#include "data/import/group.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE = LP_APPEND_LINE };

static inline void store_line(void *to, const void *line)
{
#ifdef __SSE2__
    for (int i = 0; i < LINE / 16; i++)
        _mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)line + i));
#else
    memcpy(to, line, LINE);
#endif
}

/* Writes the elements of a partition's line up to index `end`, from `begin` on: other parts and partitions, perhaps of
 * another thread, may have the elements before it. */
static void store_some(char *column, const char *line, uint64_t begin, uint64_t end, size_t size)
{
    uint64_t elements = LINE / size, first = (end - 1) / elements * elements, from = begin > first ? begin : first;
    memcpy(column + from * size, line + (from - first) * size, (end - from) * size);
}

/* The sizes are constants where this is called. */
static inline __attribute__((always_inline)) void append(const lp_grouping *a, int worker, int part, uint64_t row,
                                                         const char *values, int64_t count, char *column, size_t size,
                                                         size_t number_size)
{
    const lp_partitions *all = &a->partitions;
    const uint64_t *begin = all->begin + part * all->count, elements = LINE / size;
    uint64_t *next = all->next + part * all->count;
    char *lines = (char *)all->lines + (size_t)worker * (size_t)all->count * LINE;
    const char *of_row = (const char *)all->of_row + row * number_size;
    for (int64_t i = 0; i < count; i++) {
        uint64_t p = number_size == 1   ? ((const uint8_t *)of_row)[i]
                     : number_size == 2 ? ((const uint16_t *)of_row)[i]
                                        : ((const uint32_t *)of_row)[i];
        uint64_t at = next[p]++;
        char *line = lines + p * LINE;
        memcpy(line + at % elements * size, values + (size_t)i * size, size);
        if (at % elements != elements - 1)
            continue;
        if (at + 1 - elements >= begin[p])
            store_line(column + (at + 1 - elements) * size, line);
        else
            store_some(column, line, begin[p], at + 1, size);
    }
}

static inline __attribute__((always_inline)) void append_size(const lp_grouping *a, int worker, int part, uint64_t row,
                                                              const void *values, int64_t count, void *column,
                                                              size_t size)
{
    if (a->partitions.size == 1)
        append(a, worker, part, row, values, count, column, size, 1);
    else if (a->partitions.size == 2)
        append(a, worker, part, row, values, count, column, size, 2);
    else
        append(a, worker, part, row, values, count, column, size, 4);
}

void lp_group_append(const lp_grouping *a, int worker, int part, uint64_t row, const void *values, int64_t count,
                     void *column, size_t size)
{
    if (size == 8)
        append_size(a, worker, part, row, values, count, column, 8);
    else if (size == 4)
        append_size(a, worker, part, row, values, count, column, 4);
    else
        append_size(a, worker, part, row, values, count, column, 1);
}

void lp_group_append_end(const lp_grouping *a, int worker, int part, void *column, size_t size)
{
    const lp_partitions *all = &a->partitions;
    const uint64_t *begin = all->begin + part * all->count, *next = all->next + part * all->count;
    const char *lines = (const char *)all->lines + (size_t)worker * (size_t)all->count * LINE;
    for (int64_t p = 0; p < all->count; p++)
        if (next[p] > begin[p] && next[p] % (LINE / size) != 0)
            store_some(column, lines + p * LINE, begin[p], next[p], size);
#ifdef __SSE2__
    _mm_sfence(); /* before another thread reads the lines */
#endif
}
