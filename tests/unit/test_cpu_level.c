/* test_cpu_level.c: LAPSE_CPU_LEVEL lowers the selected level, and never raises it. The level is selected once per process,
 * so every case runs in a child process. */
#include "backend/cpu/cpu.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_environment), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
