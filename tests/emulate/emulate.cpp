/* emulate.cpp: runs the blocks and threads of a launch one after another.
 *
 * A thread runs on a fiber, which has a stack of its own and is entered and left by longjmp. The fiber runs the thread to its end and then starts
 * the next one; if the thread waits at a barrier, another fiber continues. When all threads have stopped, those whose barrier is complete are
 * resumed: a warp whose lanes (of the given mask) have all reached it, or else the whole block. If no thread can be resumed, threads have
 * diverged around a barrier, which is undefined behaviour on a GPU and an error here.
 *
 * Dynamic shared memory ends where a page begins that nobody may access, and is no better aligned than CUDA promises: an access beyond
 * its bytes stops with a message, and what lies before it is checked after every block.
 *
 * The state is global: only one launch may run at a time. The mutex of the CUDA backend ensures that.
 */
#include "emulate.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{

enum { THREADS = 1024, WARP = 32, STACK = 256 * 1024, BEFORE = 1024 /* bytes before shared memory that are checked */ };

enum state { READY, AT_WARP, AT_BLOCK, DONE };

struct fiber {
    jmp_buf resume;
    bool made;
};

struct thread {
    state now;
    fiber *on;     /* whose stack it uses */
    unsigned mask; /* of the warp barrier it waits at */
    uint64_t hand; /* value for the other lanes */
    int predicate; /* of __syncthreads_or */
    uint3 index;
};

fiber fibers[THREADS], *idle[THREADS], *entered;
thread threads[THREADS];
jmp_buf scheduler;
int idle_count;              /* fibers without a thread */
int current, started, count; /* thread that runs; threads begun; threads of the block */
int any_predicate;
lp_emulate_body body;
const void *body_context;
char *shared_end, *shared_memory; /* the page that nobody may access; the launch's memory, before that */
struct sigaction earlier_action;  /* on an access outside of memory */

void fail(const char *why)
{
    fprintf(stderr, "emulated kernel, block (%u, %u, %u), thread %d: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, current,
            why);
    abort();
}

void on_bad_access(int, siginfo_t *info, void *)
{
    char *at = (char *)info->si_addr;
    sigaction(SIGSEGV, &earlier_action, NULL); /* then the access happens again */
    if (at >= shared_end && at < shared_end + getpagesize())
        fail("an access beyond the shared memory of its block");
}

/* Memory that ends at a page which nobody may access. */
void make_shared()
{
    size_t page = (size_t)getpagesize(), size = (BEFORE + LP_EMULATE_SHARED + page - 1) / page * page;
    char *memory = (char *)mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + size, page, PROT_NONE) != 0)
        fail("no shared memory");
    shared_end = memory + size;
}

void leave(fiber *self)
{
    if (_setjmp(self->resume) == 0)
        _longjmp(scheduler, 1);
}

/* Runs threads that have not started, until none is left; then the fiber is idle. */
void fiber_main()
{
    fiber *self = entered;
    for (;;) {
        while (started < count) {
            current = started++;
            threads[current].on = self;
            threadIdx = threads[current].index;
            body(body_context);
            threads[current].now = DONE;
        }
        idle[idle_count++] = self;
        leave(self);
    }
}

/* A new stack is entered through makecontext; later switches use longjmp, which makes no system call. */
void enter_new(fiber *one)
{
    ucontext_t context;
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        fail("no memory for its stack");
    one->made = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

/* Returns when the fiber leaves. */
void enter(fiber *one)
{
    entered = one;
    if (_setjmp(scheduler) == 0) {
        if (one->made)
            _longjmp(one->resume, 1);
        enter_new(one);
    }
}

void wait(state type)
{
    threads[current].now = type;
    leave(threads[current].on);
}

/* Starts threads and resumes those that are ready. Returns whether some are not done. */
bool run_ready()
{
    while (started < count)
        enter(idle[--idle_count]);
    bool left = false;
    for (int i = 0; i < count; i++) {
        if (threads[i].now == READY) {
            current = i;
            threadIdx = threads[i].index;
            enter(threads[i].on);
        }
        left = left || threads[i].now != DONE;
    }
    return left;
}

/* Resumes the warps of which all lanes in the mask wait. */
bool release_warps()
{
    bool any = false;
    for (int first = 0; first < count; first += WARP) {
        int end = first + WARP < count ? first + WARP : count;
        unsigned waiting = 0, done = 0;
        for (int i = first; i < end; i++) {
            waiting |= (unsigned)(threads[i].now == AT_WARP) << (i - first);
            done |= (unsigned)(threads[i].now == DONE) << (i - first);
        }
        if (end - first < WARP)
            done |= ~0u << (end - first);
        for (int i = first; i < end; i++)
            if (threads[i].now == AT_WARP && (threads[i].mask & ~waiting & ~done) == 0) {
                unsigned mask = threads[i].mask;
                for (int k = i; k < end; k++)
                    if (mask >> (k - first) & 1 && threads[k].now == AT_WARP) {
                        if (threads[k].mask != mask)
                            fail("lanes of a warp wait with different masks");
                        threads[k].now = READY;
                    }
                any = true;
            }
    }
    return any;
}

void release_block()
{
    any_predicate = 0;
    for (int i = 0; i < count; i++) {
        current = i;
        if (threads[i].now == AT_WARP)
            fail("waits at a warp's barrier that other lanes do not reach");
        if (threads[i].now == AT_BLOCK)
            any_predicate |= threads[i].predicate;
    }
    for (int i = 0; i < count; i++)
        if (threads[i].now == AT_BLOCK)
            threads[i].now = READY;
}

void run_block(size_t shared_size)
{
    memset(shared_memory - BEFORE, 0xFF, BEFORE + shared_size);
    started = 0;
    for (int i = 0; i < count; i++) {
        unsigned n = (unsigned)i;
        threads[i].now = READY;
        threads[i].index = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
    }
    while (run_ready())
        if (!release_warps())
            release_block();
    for (int i = 1; i <= BEFORE; i++)
        if (shared_memory[-i] != (char)0xFF)
            fail("a store before the shared memory of its block");
}

} // namespace

void lp_emulate_run(dim3 grid, dim3 block, size_t shared_size, lp_emulate_body what, const void *context)
{
    gridDim = grid;
    blockDim = block;
    count = (int)(block.x * block.y * block.z);
    body = what;
    body_context = context;
    if (!shared_end)
        make_shared();
    shared_size = (shared_size + 15) / 16 * 16; /* CUDA aligns it to 16 bytes */
    shared_memory = shared_end - shared_size;
    struct sigaction action = {};
    action.sa_sigaction = on_bad_access;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &earlier_action);
    for (idle_count = 0; idle_count < THREADS; idle_count++)
        idle[idle_count] = &fibers[idle_count];
    const char *reverse = getenv("LAPSE_EMULATE_REVERSE");
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t n = reverse ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y), (unsigned)(n / grid.x / grid.y)};
        run_block(shared_size);
    }
    sigaction(SIGSEGV, &earlier_action, NULL);
}

void lp_emulate_aligned(const void *at, size_t bytes, const char *what)
{
    if ((uintptr_t)at % bytes)
        fail(what);
}

void *lp_emulate_shared(void)
{
    return shared_memory;
}

int lp_emulate_lane(void)
{
    return current % WARP;
}

void __syncthreads(void)
{
    __syncthreads_or(0);
}

int __syncthreads_or(int predicate)
{
    threads[current].predicate = predicate;
    wait(AT_BLOCK);
    return any_predicate != 0;
}

void __syncwarp(unsigned mask)
{
    threads[current].mask = mask;
    wait(AT_WARP);
}

uint64_t lp_emulate_exchange(unsigned mask, uint64_t mine, int from)
{
    int self = current;
    threads[self].hand = mine;
    __syncwarp(mask);
    int other = self / WARP * WARP + from;
    uint64_t theirs = mask >> from & 1 && other < count ? threads[other].hand : mine;
    __syncwarp(mask);
    return theirs;
}

unsigned __ballot_sync(unsigned mask, int predicate)
{
    int self = current, first = self / WARP * WARP;
    threads[self].hand = predicate != 0;
    __syncwarp(mask);
    unsigned bits = 0;
    for (int lane = 0; lane < WARP && first + lane < count; lane++)
        if (mask >> lane & 1 && threads[first + lane].now != DONE)
            bits |= (unsigned)threads[first + lane].hand << lane;
    __syncwarp(mask);
    return bits;
}
