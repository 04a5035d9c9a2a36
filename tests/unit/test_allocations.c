/* test_allocations.c: training allocates nothing after its first step, and a session after its first query, neither in the
 * library nor below it. The program replaces all allocation functions of the C library to count calls. */
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Atomic int counting, counted;

/* The original functions of glibc. */
#if defined(__GLIBC__) && !defined(SANITIZED)
#define INTERPOSED 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count(void)
{
    if (atomic_load(&counting))
        atomic_fetch_add(&counted, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size)
{
    count();
    return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    count();
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
#else
#define INTERPOSED 0
#endif

/* The count at the last progress report: work after it is not a step. */
static int counted_when_last_reported;

/* Counts from the first step on. */
static bool count_steps(const lapse_progress *progress, void *context)
{
    int *epochs = context;
    *epochs += progress->epoch_end;
    counted_when_last_reported = atomic_load(&counted);
    atomic_store(&counting, 1);
    return true;
}

static void training_allocates_nothing(void **state)
{
    (void)state;
    const char *under = getenv("LAPSE_TEST_UNDER");
    if (!INTERPOSED || (under && strcmp(under, "valgrind") == 0))
        skip(); /* sanitizers replace the allocator */
    lapse_dataset *dataset = small_train_data(1);
    for (int e = 0; lp_encodings[e]; e++)
        for (int threads = 1; threads <= 3; threads++) {
            lapse_train_options options = small_train_options();
            small_set(&options, "encoding", lp_encodings[e]->name);
            small_set_number(&options, "blocks", 2);
            options.run.threads = threads;
            options.model.dims = 8 * threads; /* three threads: two tasks of the optimizer, and two shards */
            options.run.shards = 5 - threads;
            int epochs = 0;
            atomic_store(&counted, 0);
            lapse_model *model = small_train(dataset, &options, count_steps, &epochs);
            atomic_store(&counting, 0);
            assert_int_equal(epochs, 3);
            if (counted_when_last_reported != 0)
                fail_msg("%s, %d threads: %d allocations after the first step", lp_encodings[e]->name, threads,
                         counted_when_last_reported);
            lapse_model_free(model);
        }
    lapse_dataset_close(dataset);
}

/* Once a session has had so many events, appends, sliding windows and queries allocate nothing. */
static void sessions_allocate_nothing(void **state)
{
    (void)state;
    const char *under = getenv("LAPSE_TEST_UNDER");
    if (!INTERPOSED || (under && strcmp(under, "valgrind") == 0))
        skip();
    lapse_dataset *dataset = small_train_data(1);
    for (int e = 0; lp_encodings[e]; e++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "encoding", lp_encodings[e]->name);
        small_set(&options, "task", e % 2 ? "recommend" : "classify");
        options.run.epochs = 1;
        options.model.context = 5;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lapse_session *session = NULL;
        lapse_recommendation best[2];
        double *probabilities = lp_alloc((size_t)lapse_model_event_type_count(model), sizeof *probabilities);
        int64_t found;
        assert_non_null(probabilities);
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        atomic_store(&counted, 0);
        for (int round = 0, i = 0; round < 2; i = (i + 1) % 40, round += i == 0) {
            if (i == 0)
                lapse_session_clear(session);
            atomic_store(&counting, round == 1);
            const char *name = lapse_model_event_type_name(model, i % lapse_model_event_type_count(model));
            assert_int_equal(lapse_session_append(session, i, name, NULL), LAPSE_OK);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(lapse_session_predict(session, i + k, probabilities, NULL), LAPSE_OK);
                assert_int_equal(lapse_session_recommend(session, i + k, 2, k, best, &found, NULL), LAPSE_OK);
            }
        }
        atomic_store(&counting, 0);
        if (atomic_load(&counted) != 0)
            fail_msg("%s: %d allocations for the second history", lp_encodings[e]->name, atomic_load(&counted));
        lapse_session_free(session);
        lp_free(probabilities);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* The counter works. */
static void the_counter_counts(void **state)
{
    (void)state;
    if (!INTERPOSED)
        skip();
    const char *under = getenv("LAPSE_TEST_UNDER");
    if (under && strcmp(under, "valgrind") == 0)
        skip();
    void *volatile blocks[5] = {0};
    void *aligned = NULL;
    atomic_store(&counted, 0);
    atomic_store(&counting, 1);
    blocks[0] = malloc(3);
    blocks[1] = calloc(3, 3);
    blocks[2] = realloc(NULL, 3);
    blocks[3] = aligned_alloc(64, 64);
    int status = posix_memalign(&aligned, 64, 64);
    blocks[4] = aligned;
    atomic_store(&counting, 0);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&counted), 5);
    for (int i = 0; i < 5; i++)
        free(blocks[i]);
    int before = atomic_load(&counted);
    atomic_store(&counting, 1);
    lp_free(lp_alloc(1, 1));
    atomic_store(&counting, 0);
    assert_int_equal(atomic_load(&counted), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_counter_counts),
                                       cmocka_unit_test(training_allocates_nothing),
                                       cmocka_unit_test(sessions_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
