/* spill.c: blocks in an unlinked file, and the thread that unmaps their pages. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp */
#endif
#include "base/spill.h"

#include "base/system.h"
#include "lapse_lab.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* BLOCKS: at most at once; later ones are usual blocks. The watcher looks every INTERVAL nanoseconds. */
enum { BLOCKS = 4096, INTERVAL = 5000000, LEAST = 64000000 };

typedef struct block {
    char *data;
    size_t size, mapped;
    off_t offset; /* in the file; -1: it is not there */
} block;

static struct {
    pthread_mutex_t phase; /* held while a bound holds */
    pthread_mutex_t lock;  /* guards the members below */
    block blocks[BLOCKS];
    int count;
    int file;  /* -1: none */
    off_t end; /* of the file: space is not used twice, but given back */
    int64_t memory;
    pthread_t watcher;
    _Atomic bool on;
    _Atomic int live; /* blocks: so that lp_free need not look where there are none */
} spill = {.phase = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static void *watch(void *unused)
{
    (void)unused;
    const struct timespec pause = {0, INTERVAL};
    while (atomic_load(&spill.on)) {
        if (lp_system_resident() > spill.memory - spill.memory / 4) {
            pthread_mutex_lock(&spill.lock);
            for (int i = 0; i < spill.count; i++)
                if (spill.blocks[i].offset >= 0)
                    madvise(spill.blocks[i].data, spill.blocks[i].mapped, MADV_DONTNEED);
            pthread_mutex_unlock(&spill.lock);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* An unlinked file in a folder. */
static int open_file(const char *folder)
{
    char path[4096];
    int file = lp_system_open_unnamed(folder, 0600);
    if (file >= 0 || errno != EOPNOTSUPP)
        return file;
    snprintf(path, sizeof path, "%s/lapse-XXXXXX", folder);
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

lapse_status lapse_memory_bound_begin(const char *folder, int64_t memory, lapse_error *error)
{
    LP_REQUIRE(error, folder);
    if (memory < LEAST)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the memory is %g MB; it must be at least %d MB", (double)memory / 1e6,
                       LEAST / 1000000);
    pthread_mutex_lock(&spill.phase);
    pthread_mutex_lock(&spill.lock);
    if (spill.file < 0)
        spill.file = open_file(folder);
    spill.memory = memory;
    bool good = spill.file >= 0;
    pthread_mutex_unlock(&spill.lock);
    lapse_status status = good ? LAPSE_OK : lp_fail_errno(error, "write a temporary file in", folder);
    atomic_store(&spill.on, good);
    if (good && pthread_create(&spill.watcher, NULL, watch, NULL) != 0) {
        atomic_store(&spill.on, false);
        status = lp_fail_memory(error, "a thread", 0);
    }
    if (status != LAPSE_OK)
        pthread_mutex_unlock(&spill.phase);
    return status;
}

static void close_unused(void)
{
    for (int i = 0; i < spill.count; i++)
        if (spill.blocks[i].offset >= 0)
            return;
    if (spill.file < 0 || atomic_load(&spill.on))
        return;
    close(spill.file);
    spill.file = -1;
    spill.end = 0;
}

void lapse_memory_bound_end(void)
{
    atomic_store(&spill.on, false);
    pthread_join(spill.watcher, NULL);
    pthread_mutex_lock(&spill.lock);
    close_unused();
    pthread_mutex_unlock(&spill.lock);
    pthread_mutex_unlock(&spill.phase);
}

void *lp_spill_alloc(size_t size)
{
    if (!atomic_load(&spill.on))
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + page - 1) / page * page;
    void *data = MAP_FAILED;
    pthread_mutex_lock(&spill.lock);
    if (spill.count < BLOCKS && ftruncate(spill.file, spill.end + (off_t)mapped) == 0)
        data = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, spill.file, spill.end);
    if (data != MAP_FAILED) {
        spill.blocks[spill.count++] = (block){data, size, mapped, spill.end};
        spill.end += (off_t)mapped;
        atomic_fetch_add(&spill.live, 1);
    }
    pthread_mutex_unlock(&spill.lock);
    return data == MAP_FAILED ? NULL : data;
}

void *lp_spill_sparse(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + page - 1) / page * page;
    void *data = MAP_FAILED;
    pthread_mutex_lock(&spill.lock);
    if (spill.count < BLOCKS)
        data = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) {
        spill.blocks[spill.count++] = (block){data, size, mapped, -1};
        atomic_fetch_add(&spill.live, 1);
    }
    pthread_mutex_unlock(&spill.lock);
    return data == MAP_FAILED ? NULL : data;
}

/* The index of a block; -1: it is neither in the file nor sparse. With the lock held. */
static int find(const void *data)
{
    for (int i = spill.count - 1; i >= 0; i--)
        if (spill.blocks[i].data == data)
            return i;
    return -1;
}

size_t lp_spill_size(const void *data)
{
    if (!data || atomic_load(&spill.live) == 0)
        return 0;
    pthread_mutex_lock(&spill.lock);
    int i = find(data);
    size_t size = i >= 0 ? spill.blocks[i].size : 0;
    pthread_mutex_unlock(&spill.lock);
    return size;
}

bool lp_spill_free(void *data)
{
    if (!data || atomic_load(&spill.live) == 0)
        return false;
    pthread_mutex_lock(&spill.lock);
    int i = find(data);
    if (i >= 0) {
        block freed = spill.blocks[i];
        spill.blocks[i] = spill.blocks[--spill.count];
        munmap(freed.data, freed.mapped);
        if (freed.offset >= 0)
            lp_system_punch(spill.file, freed.offset, (off_t)freed.mapped);
        atomic_fetch_sub(&spill.live, 1);
        close_unused();
    }
    pthread_mutex_unlock(&spill.lock);
    return i >= 0;
}
