/* test_memory_pages.c: advice about memory stays within a block on kernels with pages of 4, 16 and 64 KB. The C library's madvise and
 * sysconf are replaced by those of such a kernel: it refuses addresses that are not at a page, and rounds lengths up. */
#include "base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page; /* 0: the system's */
static uintptr_t first, end;
static int calls, beyond;

int madvise(void *address, size_t size, int advice)
{
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
    if (!page)
        return real(address, size, advice);
    uintptr_t begin = (uintptr_t)address;
    if (begin % page) {
        errno = EINVAL;
        return -1;
    }
    calls++;
    beyond += begin < first || begin + (size + page - 1) / page * page > end;
    return 0;
}

long sysconf(int name)
{
    long (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PAGESIZE && page ? (long)page : real(name);
}

/* A block that begins at a page and ends within one, as most do. */
static void advice_stays_within_the_block(void **state)
{
    (void)state;
    static const size_t pages[] = {4096, 16384, 65536};
    for (int p = 0; p < 3; p++)
        for (size_t size = (2 << 20) + 5000; size < 3 << 20; size += 65536 + 4096) {
            void *block = NULL;
            assert_int_equal(posix_memalign(&block, 65536, size / 64 * 64), 0);
            first = (uintptr_t)block;
            end = first + malloc_usable_size(block);
            page = pages[p];
            lp_memory_populate(block, size / 64 * 64);
            lp_memory_populate((char *)block + 100, 50000);
            lp_free_large(block);
            page = 0;
        }
    assert_true(calls > 50);
    assert_int_equal(beyond, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(advice_stays_within_the_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
