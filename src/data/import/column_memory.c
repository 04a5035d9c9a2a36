/* column_memory.c: allocates columns with their pages. */
#include "data/import/column_memory.h"

#include "base/memory.h"
#include "base/threads.h"

struct pages {
    char *block;
    size_t bytes;
};

enum { PART = 1 << 22 };

static void populate_part(void *context, int task, int worker)
{
    (void)worker;
    const struct pages *pages = context;
    size_t first = (size_t)task * PART, left = pages->bytes - first;
    lp_memory_populate(pages->block + first, left < PART ? left : PART);
}

void *lp_column_alloc(size_t count, size_t size, int threads)
{
    struct pages pages = {lp_alloc_small_pages(count, size), count * size};
    if (pages.block && pages.bytes >= PART)
        lp_threads_run(threads, (int)(pages.bytes / PART) + 1, populate_part, &pages);
    return pages.block;
}
