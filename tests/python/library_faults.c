/* library_faults.c: makes the Nth call that liblapse.so makes to a group of functions fail. Preloaded into Python (fault_script.py); calls
 * of Python itself and of other libraries are never counted. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALLOCATE, OPEN, TRANSFER, FINISH, THREAD, GROUPS };

static atomic_int group = -1;
static atomic_long at, counts, fired;
static _Atomic uintptr_t begin, end; /* of the code of liblapse.so */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* The library is that of this address; n: 0 counts only. */
void fault_arm(int which, long n, void *function);
long fault_disarm(bool *failed);

void fault_arm(int which, long n, void *function)
{
    char line[1024], name[1024];
    Dl_info found;
    unsigned long low, high;
    FILE *maps = fopen("/proc/self/maps", "r");
    dladdr(function, &found);
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx r-xp %*s %*s %*s %1000s", &low, &high, name) == 3 && (uintptr_t)function >= low &&
            (uintptr_t)function < high) {
            atomic_store(&begin, low);
            atomic_store(&end, high);
        }
    if (maps)
        fclose(maps);
    atomic_store(&counts, 0);
    atomic_store(&fired, 0);
    atomic_store(&at, n);
    atomic_store(&group, which);
}

long fault_disarm(bool *failed)
{
    atomic_store(&group, -1);
    *failed = atomic_load(&fired) > 0;
    return atomic_load(&counts);
}

static bool fails(int which, void *caller, int error)
{
    uintptr_t from = (uintptr_t)caller;
    if (atomic_load(&group) != which || from < atomic_load(&begin) || from >= atomic_load(&end))
        return false;
    if (atomic_fetch_add(&counts, 1) + 1 != atomic_load(&at))
        return false;
    atomic_fetch_add(&fired, 1);
    errno = error;
    return true;
}

#define CALLER __builtin_return_address(0)
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *malloc(size_t size)
{
    return fails(ALLOCATE, CALLER, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(ALLOCATE, CALLER, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return fails(ALLOCATE, CALLER, ENOMEM) ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(ALLOCATE, CALLER, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (fails(ALLOCATE, CALLER, ENOMEM))
        return ENOMEM;
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

char *strdup(const char *text)
{
    if (fails(ALLOCATE, CALLER, ENOMEM))
        return NULL;
    char *copy = __libc_malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return fails(ALLOCATE, CALLER, ENOMEM) ? MAP_FAILED : NEXT(mmap)(address, size, protection, flags, file, offset);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return fails(OPEN, CALLER, EMFILE) ? -1 : NEXT(open)(path, flags, mode);
}

ssize_t read(int file, void *out, size_t size)
{
    return fails(TRANSFER, CALLER, EIO) ? -1 : NEXT(read)(file, out, size);
}

ssize_t write(int file, const void *data, size_t size)
{
    return fails(TRANSFER, CALLER, ENOSPC) ? -1 : NEXT(write)(file, data, size);
}

int fsync(int file)
{
    return fails(FINISH, CALLER, EIO) ? -1 : NEXT(fsync)(file);
}

int rename(const char *from, const char *to)
{
    return fails(FINISH, CALLER, EDQUOT) ? -1 : NEXT(rename)(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return fails(FINISH, CALLER, EDQUOT) ? -1 : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    return fails(THREAD, CALLER, EAGAIN) ? EAGAIN : NEXT(pthread_create)(thread, attributes, start, argument);
}
