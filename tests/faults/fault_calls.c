/* fault_calls.c: replacements of the C library's functions. They count calls, fail the Nth one, and record which blocks
 * are live.
 *
 * The definitions in this program take precedence over those of all shared libraries, so the calls of jansson, zlib and
 * of the C library itself (strdup) are counted too. Excluded are calls from
 * - libgomp: it ends the process if an allocation fails (gomp_fatal), and has no other way to report it;
 * - OpenBLAS: it tries again for ever, or ends the process. It allocates work buffers once per thread;
 * - threads that have not come to their start function: the address sanitizer ends the process;
 * and, for leaks alone,
 * - ld.so: the thread-local storage of pool threads, which live as long as the process.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, dl_iterate_phdr */
#endif
#include "fault.h"

#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    int error;
} calls[FAULT_CALLS] = {
    [FAULT_ALLOCATE] = {"allocate", ENOMEM}, [FAULT_MAP] = {"map", ENOMEM},
    [FAULT_OPEN] = {"open", EMFILE},         [FAULT_READ] = {"read", EIO},
    [FAULT_WRITE] = {"write", ENOSPC},       [FAULT_SYNC] = {"sync", EIO},
    [FAULT_LINK] = {"link", EDQUOT},         [FAULT_CLOSE] = {"close", EIO},
    [FAULT_STATUS] = {"status", EIO},        [FAULT_THREAD] = {"thread", EAGAIN},
};

const char *fault_call_name(fault_call call)
{
    return calls[call].name;
}

const char *fault_call_error(fault_call call)
{
    return calls[call].error == ENOMEM ? "memory" : strerror(calls[call].error);
}

/* NULL: calls are not counted. */
static fault_control *control;
static _Thread_local bool begun; /* this thread has come to its start function */

/* ---------------------------------------------------------------------------------------------- exclusions ------ */

enum { MAX_RANGES = 8, FILES = 256 };

typedef struct range {
    uintptr_t begin, end;
    bool fails; /* its calls may fail; its blocks are not leaks */
} range;

static range ranges[MAX_RANGES];
static int range_count;
static int open_before;

static int find_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    bool loader = strstr(info->dlpi_name, "ld-linux") != NULL;
    if (!loader && !strstr(info->dlpi_name, "libgomp") && !strstr(info->dlpi_name, "libopenblas"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && range_count < MAX_RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            ranges[range_count++] = (range){begin, begin + info->dlpi_phdr[i].p_memsz, loader};
        }
    return 0;
}

static const range *range_of(const void *caller)
{
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
            return &ranges[i];
    return NULL;
}

static int count_open_files(void)
{
    int count = 0;
    for (int handle = 0; handle < FILES; handle++)
        count += fcntl(handle, F_GETFD) >= 0;
    return count;
}

/* --------------------------------------------------------------------------------------------- live blocks ------ */

enum { SLOTS = 1 << 16, SHORT_TRACE = 12 };

typedef struct block {
    void *address; /* NULL: free slot; REMOVED: was in use */
    size_t size;
    void *frames[SHORT_TRACE];
    int depth;
} block;

#define REMOVED ((void *)(uintptr_t)1)

static block blocks[SLOTS];
static int live; /* blocks */
static atomic_flag blocks_lock = ATOMIC_FLAG_INIT;

static size_t slot_of(const void *address)
{
    return ((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15u >> 48;
}

static void record(void *address, size_t size, void *caller)
{
    if (!control || !address || range_of(caller))
        return;
    block new = {.address = address, .size = size, .frames = {caller}, .depth = 1};
    if (control->traced)
        new.depth = backtrace(new.frames, SHORT_TRACE);
    while (atomic_flag_test_and_set(&blocks_lock))
        ;
    size_t at = slot_of(address);
    for (int i = 0; i < SLOTS && blocks[at].address && blocks[at].address != REMOVED; i++)
        at = (at + 1) % SLOTS;
    blocks[at] = new;
    live++;
    atomic_flag_clear(&blocks_lock);
}

static void forget(void *address)
{
    if (!control || !address)
        return;
    while (atomic_flag_test_and_set(&blocks_lock))
        ;
    size_t at = slot_of(address);
    for (int i = 0; i < SLOTS && blocks[at].address; i++, at = (at + 1) % SLOTS)
        if (blocks[at].address == address) {
            blocks[at].address = REMOVED;
            live--;
            break;
        }
    atomic_flag_clear(&blocks_lock);
}

/* ------------------------------------------------------------------------------------------------- failing ------ */

/* Counts a call of this group; whether it must fail. Sets errno. */
static bool fails_now(fault_call call, const void *caller)
{
    fault_control *c = control;
    const range *library = c ? range_of(caller) : NULL;
    if (!c || !begun || (library && !library->fails))
        return false;
    int64_t now = atomic_fetch_add(&c->counts[call], 1) + 1;
    bool hit = c->at > 0 && call == c->call && (now == c->at || (now > c->at && c->effect == FAULT_FROM));
    if (hit && atomic_exchange(&c->fired, 1) == 0)
        c->where.depth = backtrace(c->where.frames, FAULT_FRAMES);
    if (hit)
        errno = calls[call].error;
    return hit;
}

void fault_begin(fault_control *shared)
{
    void *first;
    backtrace(&first, 1); /* loads the unwinder, which allocates */
    range_count = 0;
    dl_iterate_phdr(find_library, NULL);
    open_before = count_open_files();
    begun = true;
    control = shared;
}

void fault_end(void)
{
    fault_control *c = control;
    control = NULL;
    for (int i = 0; live > 0 && i < SLOTS; i++) {
        if (!blocks[i].address || blocks[i].address == REMOVED)
            continue;
        if (c->leaked < FAULT_LEAKS) {
            c->leak_sizes[c->leaked] = blocks[i].size;
            c->leaks[c->leaked].depth = blocks[i].depth;
            memcpy(c->leaks[c->leaked].frames, blocks[i].frames, sizeof blocks[i].frames);
        }
        c->leaked++;
    }
    c->open_files = count_open_files() - open_before;
    c->completed = true;
}

#define FAILS(call) fails_now(call, __builtin_return_address(0))

/* --------------------------------------------------------------------------------------------- allocations ------ */

/* The original functions: those of the address sanitizer, or of glibc. */
#ifdef LP_FAULT_SANITIZED
#define ORIGINAL(name) __interceptor_##name
#else
#define ORIGINAL(name) __libc_##name
#endif
void *ORIGINAL(malloc)(size_t size);
void *ORIGINAL(calloc)(size_t count, size_t size);
void *ORIGINAL(realloc)(void *address, size_t size);
void *ORIGINAL(memalign)(size_t alignment, size_t size);
void ORIGINAL(free)(void *address);

void *malloc(size_t size)
{
    void *address = FAILS(FAULT_ALLOCATE) ? NULL : ORIGINAL(malloc)(size);
    record(address, size, __builtin_return_address(0));
    return address;
}

void *calloc(size_t count, size_t size)
{
    void *address = FAILS(FAULT_ALLOCATE) ? NULL : ORIGINAL(calloc)(count, size);
    record(address, count * size, __builtin_return_address(0));
    return address;
}

void *realloc(void *old, size_t size)
{
    if (FAILS(FAULT_ALLOCATE))
        return NULL;
    forget(old);
    void *address = ORIGINAL(realloc)(old, size);
    record(address, size, __builtin_return_address(0));
    return address;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    void *address = FAILS(FAULT_ALLOCATE) ? NULL : ORIGINAL(memalign)(alignment, size);
    record(address, size, __builtin_return_address(0));
    return address;
}

void *memalign(size_t alignment, size_t size)
{
    void *address = FAILS(FAULT_ALLOCATE) ? NULL : ORIGINAL(memalign)(alignment, size);
    record(address, size, __builtin_return_address(0));
    return address;
}

int posix_memalign(void **address, size_t alignment, size_t size)
{
    if (FAILS(FAULT_ALLOCATE))
        return ENOMEM;
    *address = ORIGINAL(memalign)(alignment, size);
    record(*address, size, __builtin_return_address(0));
    return *address ? 0 : ENOMEM;
}

void free(void *address)
{
    forget(address);
    ORIGINAL(free)(address);
}

/* --------------------------------------------------------------------------------------- files and threads ------ */

/* Declares `next`, the function that this one replaces. */
#define NEXT(name)                 \
    static __typeof__(&name) next; \
    if (!next)                     \
    next = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

void *mmap(void *address, size_t size, int protection, int flags, int handle, off_t offset)
{
    NEXT(mmap);
    if (FAILS(FAULT_MAP))
        return MAP_FAILED;
    void *mapped = next(address, size, protection, flags, handle, offset);
    if (mapped != MAP_FAILED)
        record(mapped, size, __builtin_return_address(0));
    return mapped;
}

int munmap(void *address, size_t size)
{
    NEXT(munmap);
    forget(address);
    return next(address, size);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return FAILS(FAULT_OPEN) ? -1 : next(path, flags, mode);
}

static bool always_named;

void lp_writer_name_always(bool always)
{
    always_named = always;
}

int openat(int folder, const char *path, int flags, ...)
{
    NEXT(openat);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (always_named && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return FAILS(FAULT_OPEN) ? -1 : next(folder, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir);
    return FAILS(FAULT_OPEN) ? -1 : next(path, mode);
}

char *mkdtemp(char *template)
{
    NEXT(mkdtemp);
    return FAILS(FAULT_OPEN) ? NULL : next(template);
}

/* The number of bytes that a call transfers; -1: the call fails. */
static ssize_t transfer_size(fault_call call, size_t size, const void *caller)
{
    if (!fails_now(call, caller))
        return (ssize_t)size;
    if (control->effect == FAULT_SHORT)
        return (ssize_t)(size > 1 ? size / 2 : size);
    if (control->effect == FAULT_INTERRUPT)
        errno = EINTR;
    return -1;
}

ssize_t read(int handle, void *data, size_t size)
{
    NEXT(read);
    ssize_t part = transfer_size(FAULT_READ, size, __builtin_return_address(0));
    return part < 0 ? -1 : next(handle, data, (size_t)part);
}

ssize_t write(int handle, const void *data, size_t size)
{
    NEXT(write);
    ssize_t part =
        handle == STDERR_FILENO ? (ssize_t)size : transfer_size(FAULT_WRITE, size, __builtin_return_address(0));
    if (part < 0 && handle == STDOUT_FILENO)
        control->on_output = true;
    return part < 0 ? -1 : next(handle, data, (size_t)part);
}

int fsync(int handle)
{
    NEXT(fsync);
    return FAILS(FAULT_SYNC) ? -1 : next(handle);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return FAILS(FAULT_LINK) ? -1 : next(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    NEXT(linkat);
    return FAILS(FAULT_LINK) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int close(int handle)
{
    NEXT(close);
    bool fails = FAILS(FAULT_CLOSE);
    int status = next(handle);
    if (fails)
        errno = calls[FAULT_CLOSE].error;
    return fails ? -1 : status;
}

int stat(const char *path, struct stat *status)
{
    NEXT(stat);
    return FAILS(FAULT_STATUS) ? -1 : next(path, status);
}

int lstat(const char *path, struct stat *status)
{
    NEXT(lstat);
    return FAILS(FAULT_STATUS) ? -1 : next(path, status);
}

int fstat(int handle, struct stat *status)
{
    NEXT(fstat);
    return FAILS(FAULT_STATUS) ? -1 : next(handle, status);
}

int access(const char *path, int mode)
{
    NEXT(access);
    return FAILS(FAULT_STATUS) ? -1 : next(path, mode);
}

char *realpath(const char *path, char *resolved)
{
    NEXT(realpath);
    return FAILS(FAULT_STATUS) ? NULL : next(path, resolved);
}

typedef struct thread_start {
    void *(*start)(void *context);
    void *context;
} thread_start;

static void *begin_thread(void *context)
{
    thread_start given = *(thread_start *)context;
    ORIGINAL(free)(context);
    begun = true;
    return given.start(given.context);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context)
{
    NEXT(pthread_create);
    if (FAILS(FAULT_THREAD))
        return EAGAIN;
    thread_start *given = ORIGINAL(malloc)(sizeof *given);
    if (!given)
        return EAGAIN;
    *given = (thread_start){start, context};
    int status = next(thread, attributes, begin_thread, given);
    if (status != 0)
        ORIGINAL(free)(given);
    return status;
}
