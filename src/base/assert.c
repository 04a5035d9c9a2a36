/* assert.c: the end of a program whose own state is wrong. */
#include <stdio.h>
#include <stdlib.h>

_Noreturn void lp_assert_failed(const char *condition, const char *file, int line);

_Noreturn void lp_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: the invariant %s does not hold\n", file, line, condition);
    abort();
}
