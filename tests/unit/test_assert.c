/* test_assert.c: an invariant that does not hold ends the program and says where, in a build that checks. */
#define LP_CHECKED
#include "base/assert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void holds(void **state)
{
    (void)state;
    int count = 0;
    LP_ASSERT(++count == 1);
    assert_int_equal(count, 1);
}

static void fails(void **state)
{
    (void)state;
    int ends[2], result;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        int rows = 3;
        LP_ASSERT(rows < 3);
        _exit(0);
    }
    close(ends[1]);
    char text[512] = "";
    size_t size = 0;
    for (ssize_t got; size + 1 < sizeof text && (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGABRT);
    assert_non_null(strstr(text, "test_assert.c:"));
    assert_non_null(strstr(text, "the invariant rows < 3 does not hold"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(holds), cmocka_unit_test(fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
