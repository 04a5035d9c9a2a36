/* test_base.c: errors, memory, threads and random numbers of src/base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"

/* ----------------------------------------------------------------------------------------------- errors ------ */

static void test_fail_fills_the_error(void **state)
{
    (void)state;
    lapse_error error;
    memset(&error, 'x', sizeof error);
    assert_int_equal(lp_fail(&error, LAPSE_ERROR_USAGE, "%d heads do not divide %d dims", 3, 32), LAPSE_ERROR_USAGE);
    assert_int_equal(error.status, LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "3 heads do not divide 32 dims");
    assert_string_equal(error.file, "");
    assert_int_equal(error.line, 0);
    assert_int_equal(error.column, 0);
}

static void test_fail_at_says_where(void **state)
{
    (void)state;
    lapse_error error;
    assert_int_equal(lp_fail_at(&error, LAPSE_ERROR_INPUT, "events.csv", 7, 3, "no time"), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "no time");
    assert_string_equal(error.file, "events.csv");
    assert_int_equal(error.line, 7);
    assert_int_equal(error.column, 3);
}

static void test_fail_accepts_no_error(void **state)
{
    (void)state;
    assert_int_equal(lp_fail(NULL, LAPSE_ERROR_FORMAT, "unseen"), LAPSE_ERROR_FORMAT);
    assert_int_equal(lp_fail_memory(NULL, "unseen", 1), LAPSE_ERROR_MEMORY);
}

static void test_fail_cuts_what_is_too_long(void **state)
{
    (void)state;
    char longer[2000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    lapse_error error;
    lp_fail_at(&error, LAPSE_ERROR_FILE, longer, 0, 0, "%s", longer);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.file), sizeof error.file - 1);
}

static void test_fail_errno_and_memory(void **state)
{
    (void)state;
    lapse_error error;
    errno = ENOSPC;
    assert_int_equal(lp_fail_errno(&error, "write", "d.lapse"), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No space left on device");
    assert_string_equal(error.file, "d.lapse");
    assert_int_equal(lp_fail_memory(&error, "the table of names", 2500000), LAPSE_ERROR_MEMORY);
    assert_string_equal(error.message, "out of memory: the table of names needs 2.5 MB");
}

static lapse_status tried(lapse_status status, int *reached)
{
    LP_TRY(status);
    *reached += 1;
    return LAPSE_OK;
}

static void test_try_passes_failures_on(void **state)
{
    (void)state;
    int reached = 0;
    assert_int_equal(tried(LAPSE_ERROR_UNKNOWN, &reached), LAPSE_ERROR_UNKNOWN);
    assert_int_equal(reached, 0);
    assert_int_equal(tried(LAPSE_OK, &reached), LAPSE_OK);
    assert_int_equal(reached, 1);
}

static void test_status_names(void **state)
{
    (void)state;
    static const char *const names[] = {"ok", "memory", "usage", "input", "file", "format", "unknown", "internal"};
    for (int i = 0; i < 8; i++)
        assert_string_equal(lapse_status_name((lapse_status)i), names[i]);
    assert_string_equal(lapse_status_name((lapse_status)8), "?");
    assert_string_equal(lapse_status_name((lapse_status)-1), "?");
    assert_string_equal(lapse_version(), LAPSE_VERSION);
}

/* ----------------------------------------------------------------------------------------------- memory ------ */

static int is_zero(const char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != 0)
            return 0;
    return 1;
}

static void test_alloc_is_zeroed_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4097};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = lp_alloc(sizes[i], 3);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % LP_ALIGN, 0);
        assert_true(is_zero(block, 3 * sizes[i]));
        memset(block, 1, 3 * sizes[i]);
        lp_free(block);
    }
    lp_free(NULL);
}

static void test_alloc_refuses_impossible_sizes(void **state)
{
    (void)state;
    assert_null(lp_alloc(SIZE_MAX / 2, 3));
    assert_null(lp_alloc(SIZE_MAX, 1));
    assert_null(lp_alloc(1, SIZE_MAX - 10));
    assert_null(lp_grow(NULL, SIZE_MAX / 2, 3));
    lp_arena arena = {0};
    assert_null(lp_arena_alloc(&arena, SIZE_MAX - 8));
    assert_null(arena.chunk);
    lp_buffer buffer = {0};
    assert_false(lp_buffer_reserve(&buffer, SIZE_MAX - 8));
    assert_null(buffer.data);
}

static void test_grow_keeps_the_bytes(void **state)
{
    (void)state;
    char *block = lp_grow(NULL, 3, 1);
    memcpy(block, "abc", 3);
    block = lp_grow(block, 100000, 1);
    assert_memory_equal(block, "abc", 3);
    lp_memory_fail_at(1);
    assert_null(lp_grow(block, 200000, 1));
    assert_memory_equal(block, "abc", 3);
    lp_free(block);
}

#ifdef __GLIBC__
static int64_t resident_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages;
}

/* Large blocks of the heap, which the C library keeps when they are freed. */
static void test_free_large_returns_memory(void **state)
{
    (void)state;
    enum { BLOCKS = 8, SIZE = 1 << 21 };
    char *blocks[BLOCKS];
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(lp_grow(NULL, SIZE, 1), 1, SIZE);
    int64_t before = resident_pages();
    for (int i = 0; i < BLOCKS; i++)
        lp_free_large(blocks[i]);
    assert_true(before - resident_pages() > BLOCKS / 2 * (SIZE / 4096));
    lp_free_large(NULL);
    lp_free_large(lp_alloc(1, 1));
}
#endif

static void test_pages_are_populated_without_a_change(void **state)
{
    (void)state;
    enum { SIZE = 5 * 4096 + 100 };
    char *block = lp_alloc_small_pages(SIZE, 1);
    assert_true((uintptr_t)block % LP_ALIGN == 0);
    memset(block, 7, SIZE);
    lp_memory_populate(block, SIZE);
    lp_memory_populate(block + 5000, 10);
    lp_memory_populate(block + SIZE, 0);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(block[i], 7);
    lp_free(block);
    lp_free(lp_alloc_small_pages(0, 8));
    assert_null(lp_alloc_small_pages(SIZE_MAX / 4, 8));
    assert_null(lp_alloc_small_pages(SIZE_MAX, 1));
}

static void test_the_nth_allocation_fails_once(void **state)
{
    (void)state;
    int64_t before = lp_memory_count();
    lp_memory_fail_at(3);
    void *blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = lp_alloc(1, 8);
    for (int i = 0; i < 5; i++) {
        assert_true((blocks[i] == NULL) == (i == 2));
        lp_free(blocks[i]);
    }
    assert_int_equal(lp_memory_count() - before, 5);
    lp_memory_fail_at(1);
    lp_memory_fail_at(0);
    void *block = lp_alloc(1, 8);
    assert_non_null(block);
    lp_free(block);
}

static void test_text_copy(void **state)
{
    (void)state;
    char *copy = lp_text_copy("coffee");
    assert_string_equal(copy, "coffee");
    lp_free(copy);
    lp_memory_fail_at(1);
    assert_null(lp_text_copy("coffee"));
}

static void test_arena_holds_many_blocks(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    lp_arena arena = {0};
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i * 37 % 700); /* many fit a chunk */
        if (i % 100 == 99)
            size = 50000; /* one needs a chunk of its own */
        blocks[i] = lp_arena_alloc(&arena, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        assert_true(is_zero(blocks[i], size));
        memset(blocks[i], i, size);
    }
    for (int i = 0; i < COUNT; i++) {
        size_t size = i % 100 == 99 ? 50000 : (size_t)(i * 37 % 700);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], (char)i);
    }
    assert_string_equal(lp_arena_text(&arena, "view tea"), "view tea");
    lp_arena_clear(&arena);
    assert_null(arena.chunk);
    lp_arena_clear(&arena);
}

static void test_arena_survives_a_failing_allocation(void **state)
{
    (void)state;
    lp_arena arena = {0};
    char *first = lp_arena_text(&arena, "first");
    lp_memory_fail_at(1);
    assert_null(lp_arena_alloc(&arena, 100000));
    assert_string_equal(first, "first");
    assert_string_equal(lp_arena_text(&arena, "second"), "second");
    lp_arena_clear(&arena);
    lp_memory_fail_at(1);
    assert_null(lp_arena_text(&arena, "nothing"));
}

static void test_buffer_grows(void **state)
{
    (void)state;
    lp_buffer buffer = {0};
    assert_true(lp_buffer_add(&buffer, NULL, 0));
    for (int i = 0; i < 1000; i++)
        assert_true(lp_buffer_print(&buffer, "%03d", i));
    assert_int_equal(buffer.size, 3000);
    assert_true(buffer.capacity >= buffer.size);
    assert_memory_equal(buffer.data, "000001002", 9);
    assert_memory_equal(buffer.data + 2994, "998999", 6);
    assert_true(lp_buffer_add(&buffer, "ab\0c", 4));
    assert_memory_equal(buffer.data + 3000, "ab\0c", 4);
    lp_buffer_clear(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.size + buffer.capacity, 0);
}

static void test_buffer_survives_a_failing_allocation(void **state)
{
    (void)state;
    lp_buffer buffer = {0};
    assert_true(lp_buffer_add(&buffer, "kept", 4));
    size_t capacity = buffer.capacity;
    char more[1000] = {0};
    lp_memory_fail_at(1);
    assert_false(lp_buffer_add(&buffer, more, sizeof more));
    lp_memory_fail_at(1);
    assert_false(lp_buffer_print(&buffer, "%999d", 1));
    assert_int_equal(buffer.size, 4);
    assert_int_equal(buffer.capacity, capacity);
    assert_memory_equal(buffer.data, "kept", 4);
    lp_buffer_clear(&buffer);
}

/* ---------------------------------------------------------------------------------------------- threads ------ */

enum { TASKS = 1000 };

typedef struct tasks {
    int threads;
    int done[TASKS], worker[TASKS];
    int order[TASKS], count; /* filled by a single thread only */
} tasks;

static void mark(void *context, int task, int worker)
{
    tasks *t = context;
    t->done[task] += 1;
    t->worker[task] = worker;
    if (t->threads <= 1)
        t->order[t->count++] = task;
}

static void test_threads_run_each_task_once(void **state)
{
    (void)state;
    static const int threads[] = {-1, 0, 1, 2, 3, 8};
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        static tasks t;
        t = (tasks){.threads = threads[k]};
        lp_threads_run(threads[k], TASKS, mark, &t);
        for (int i = 0; i < TASKS; i++) {
            assert_int_equal(t.done[i], 1);
            assert_in_range(t.worker[i], 0, threads[k] > 1 ? threads[k] - 1 : 0);
            if (threads[k] <= 1)
                assert_int_equal(t.order[i], i);
        }
    }
}

static void test_threads_have_one_bound(void **state)
{
    (void)state;
    static const int refused[] = {-1, 4097, 1 << 30, INT32_MAX, INT32_MIN};
    lapse_error error;
    int threads = -7;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(lp_threads_resolve(refused[i], &threads, &error), LAPSE_ERROR_USAGE);
    assert_int_equal(threads, -7);
    assert_int_equal(lp_threads_resolve(4096, &threads, &error), LAPSE_OK);
    assert_int_equal(threads, 4096);
    assert_int_equal(lp_threads_resolve(0, &threads, &error), LAPSE_OK);
    assert_int_equal(threads, lp_threads_available());
}

static void test_threads_with_few_tasks(void **state)
{
    (void)state;
    static tasks t;
    t = (tasks){.threads = 8};
    lp_threads_run(8, 0, mark, &t);
    assert_int_equal(t.done[0], 0);
    lp_threads_run(8, 3, mark, &t);
    for (int i = 0; i < 4; i++)
        assert_int_equal(t.done[i], i < 3);
    assert_true(lp_threads_available() >= 1);
}

/* Nested and concurrent calls: each task runs once. */
static void run_more(void *context, int task, int worker)
{
    (void)worker;
    _Atomic int *sums = context;
    for (int i = 0; i <= task; i++)
        atomic_fetch_add(&sums[task], 1);
}

static void run_within(void *context, int task, int worker)
{
    (void)worker;
    _Atomic int(*sums)[TASKS] = context;
    lp_threads_run(3, TASKS, run_more, sums[task]);
}

static void test_threads_within_threads(void **state)
{
    (void)state;
    static _Atomic int sums[8][TASKS];
    memset(sums, 0, sizeof sums);
    lp_threads_run(4, 8, run_within, sums);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < TASKS; k++)
            assert_int_equal(sums[i][k], k + 1);
}

/* The pool is busy with the job of a first caller until the first task of a second caller runs. The other tasks of the second one need
 * two threads: they wait for each other. */
typedef struct callers {
    _Atomic int holding, second, first_done, waiting;
    bool met[3];
} callers;

/* False after ten seconds. */
static bool reaches(const _Atomic int *number, int least)
{
    double start = lp_clock_seconds();
    while (atomic_load(number) < least && lp_clock_seconds() - start < 10)
        sched_yield();
    return atomic_load(number) >= least;
}

static void hold_pool(void *context, int task, int worker)
{
    (void)task, (void)worker;
    callers *c = context;
    atomic_fetch_add(&c->holding, 1);
    reaches(&c->second, 1);
}

static void call_first(void *context)
{
    callers *c = context;
    lp_threads_run(2, 2, hold_pool, c);
    atomic_store(&c->first_done, 1);
}

static void meet(void *context, int task, int worker)
{
    (void)worker;
    callers *c = context;
    if (task == 0) {
        atomic_store(&c->second, 1);
        c->met[0] = reaches(&c->first_done, 1);
    } else {
        atomic_fetch_add(&c->waiting, 1);
        c->met[task] = reaches(&c->waiting, 2);
    }
}

static void test_threads_of_a_second_caller(void **state)
{
    (void)state;
    callers c = {0};
    lp_worker *first = lp_worker_new();
    assert_non_null(first);
    lp_worker_start(first, call_first, &c);
    assert_true(reaches(&c.holding, 2));
    lp_threads_run(2, 3, meet, &c);
    lp_worker_free(first);
    assert_true(c.met[0] && c.met[1] && c.met[2]);
}

/* A child process starts its own pool. */
static void test_threads_after_a_fork(void **state)
{
    (void)state;
    static tasks t = {.threads = 3};
    lp_threads_run(3, TASKS, mark, &t);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        memset(&t, 0, sizeof t);
        t.threads = 3;
        lp_threads_run(3, TASKS, mark, &t);
        int runs = 0;
        for (int i = 0; i < TASKS; i++)
            runs += t.done[i];
        _exit(runs == TASKS ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------------------------------- randomness ------ */

/* The known-answer test vectors of Random123 (Salmon et al. 2011) for philox4x32-10. */
static void test_philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t *c = cases[i].counter, *k = cases[i].key;
        lp_random_block block = lp_philox((uint64_t)k[1] << 32 | k[0], c[3], c[2], (uint64_t)c[1] << 32 | c[0]);
        assert_memory_equal(block.word, cases[i].answer, sizeof block.word);
    }
}

static void test_random_takes_words_in_order(void **state)
{
    (void)state;
    lp_random random = lp_random_start(42, LP_PURPOSE_TEST, 7);
    for (uint64_t element = 0; element < 5; element++) {
        lp_random_block block = lp_philox(42, LP_PURPOSE_TEST, 7, element);
        for (int i = 0; i < 4; i++)
            assert_int_equal(lp_random_word(&random), block.word[i]);
    }
}

/* Means over N draws must lie within five standard errors; the seed is fixed, so this passes always or never. */
static void test_random_distributions(void **state)
{
    (void)state;
    enum { N = 20000 };
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 0);
    double uniform = 0, normal = 0, square = 0, exponential = 0;
    int below[7] = {0};
    for (int i = 0; i < N; i++) {
        double u = lp_random_uniform(&random), z = lp_random_normal(&random), e = lp_random_exponential(&random);
        assert_true(u > 0 && u < 1 && e > 0 && isfinite(z));
        uniform += u;
        normal += z;
        square += z * z;
        exponential += e;
        uint32_t k = lp_random_below(&random, 7);
        assert_in_range(k, 0, 6);
        below[k]++;
    }
    assert_true(fabs(uniform / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    assert_true(fabs(normal / N) < 5 * sqrt(1.0 / N));
    assert_true(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(exponential / N - 1) < 5 * sqrt(1.0 / N));
    for (int k = 0; k < 7; k++)
        assert_true(fabs(below[k] - N / 7.0) < 5 * sqrt(N * 6.0 / 49));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_fills_the_error),
        cmocka_unit_test(test_fail_at_says_where),
        cmocka_unit_test(test_fail_accepts_no_error),
        cmocka_unit_test(test_fail_cuts_what_is_too_long),
        cmocka_unit_test(test_fail_errno_and_memory),
        cmocka_unit_test(test_try_passes_failures_on),
        cmocka_unit_test(test_status_names),
        cmocka_unit_test(test_alloc_is_zeroed_and_aligned),
        cmocka_unit_test(test_alloc_refuses_impossible_sizes),
        cmocka_unit_test(test_grow_keeps_the_bytes),
#ifdef __GLIBC__
        cmocka_unit_test(test_free_large_returns_memory),
#endif
        cmocka_unit_test(test_pages_are_populated_without_a_change),
        cmocka_unit_test(test_the_nth_allocation_fails_once),
        cmocka_unit_test(test_text_copy),
        cmocka_unit_test(test_arena_holds_many_blocks),
        cmocka_unit_test(test_arena_survives_a_failing_allocation),
        cmocka_unit_test(test_buffer_grows),
        cmocka_unit_test(test_buffer_survives_a_failing_allocation),
        cmocka_unit_test(test_threads_run_each_task_once),
        cmocka_unit_test(test_threads_with_few_tasks),
        cmocka_unit_test(test_threads_within_threads),
        cmocka_unit_test(test_threads_of_a_second_caller),
        cmocka_unit_test(test_threads_after_a_fork),
        cmocka_unit_test(test_threads_have_one_bound),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_random_takes_words_in_order),
        cmocka_unit_test(test_random_distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
