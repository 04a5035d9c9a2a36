/* test_cpu_level.c: LAPSE_CPU_LEVEL lowers the selected level, and never raises it. The level is selected once per process,
 * so every case runs in a child process. Products stay in the thread that calls them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "backend/cpu/fast/fast_product.h"
#include "base/memory.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a child that sets LAPSE_CPU_LEVEL to `wanted` (NULL: unset) gets `level`. */
static bool gets(const char *wanted, const char *level)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (wanted)
            setenv("LAPSE_CPU_LEVEL", wanted, 1);
        else
            unsetenv("LAPSE_CPU_LEVEL");
        _exit(strcmp(lp_cpu_level(), level) == 0 && lp_cpu_kernels() != NULL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The highest level, determined in a child, so that this process has not selected one when it forks. */
static int highest(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int level = 0;
        while (lp_cpu_level_name(level + 1))
            level++;
        _exit(level);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "x86-64-v3", "x86-64-v4"};
    int most = highest();
    assert_in_range(most, 0, 2);
    for (int i = 0; i < 3; i++)
        assert_true(gets(names[i], names[i < most ? i : most]));
    assert_true(gets(NULL, names[most]));
    assert_true(gets("", names[most]));
    assert_true(gets("x86-64-v9", names[most]));
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(lp_cpu_level_name(0), "portable");
    for (int i = 0; lp_cpu_level_name(i); i++)
        for (int op = 0; op < LP_OP_COUNT; op++)
            assert_non_null(lp_cpu_level_kernels(i)[op]);
    assert_null(lp_cpu_level_name(3));
    assert_null(lp_cpu_level_kernels(3));
    assert_non_null(lp_backend_find("cpu"));
    assert_non_null(lp_backend_find("reference"));
    assert_int_equal(lp_backend_find("reference-double")->real_size, sizeof(double));
    assert_null(lp_backend_find("abacus"));
}

static int count_threads(void)
{
    int count = 0;
    DIR *listing = opendir("/proc/self/task");
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;)
        count += entry->d_name[0] != '.';
    if (listing)
        closedir(listing);
    return count;
}

/* A product that is large enough for BLAS. *context is the number of threads that it has started, or -1 if it has changed
 * the number of OpenMP threads. */
static void *multiply(void *context)
{
    enum { SIZE = 600 };
    int (*omp_threads)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    void (*set_omp_threads)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_omp_threads)
        set_omp_threads(3); /* on one core too */
    int before = count_threads(), allowed = omp_threads ? omp_threads() : 0;
    float *data = lp_alloc((size_t)3 * SIZE * SIZE, sizeof *data);
    matrix a = {data, SIZE, false}, b = {data + SIZE * SIZE, SIZE, false};
    if (data)
        fast_product(SIZE, SIZE, SIZE, 1, a, b, false, data + 2 * SIZE * SIZE, SIZE);
    lp_free(data);
    *(int *)context = omp_threads && omp_threads() != allowed ? -1 : count_threads() - before;
    return NULL;
}

static void products_start_no_threads(void **state)
{
    (void)state;
    int started[2] = {-2, -2};
    pthread_t thread;
    assert_non_null(lp_cpu_kernels());
    multiply(&started[0]);
    assert_int_equal(pthread_create(&thread, NULL, multiply, &started[1]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(started[0], 0);
    assert_int_equal(started[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_environment), cmocka_unit_test(test_names),
                                       cmocka_unit_test(products_start_no_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
