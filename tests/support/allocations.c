/* allocations.c: counts the allocations of a unit program and makes the n-th one fail (base/memory.h). The linker puts these functions in
 * the place of aligned_alloc and realloc, from which all blocks of the library come (cmake/tests.cmake). */
#include "base/memory.h"

#include <stdatomic.h>

static _Atomic int64_t allocations, fail_at;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *block, size_t size);

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

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return must_fail() ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return must_fail() ? NULL : __real_realloc(block, size);
}
