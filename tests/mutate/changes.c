/* changes.c: every kind of change, for tests/scripts/run.sh: prints what each function returns. */
#include <stdio.h>

static int relation(int a, int b)
{
    return a < b;
}

static int sum(int a, int b)
{
    return a * b + b * b;
}

static int constant(int a)
{
    return a * 10;
}

static int statement(int a)
{
    if (a)
        a = 5;
    else
        a = 6;
    return a;
}

static int condition(int a)
{
    return a ? 1 : 2;
}

static int several(const int *p, unsigned n)
{
    int total = 0;
    for (unsigned i = 0; i < n; i++)
        total += p[i] - (n > 2 && p[0] == 1 ? 1 : -1);
    return total;
}

int main(void)
{
    printf("%d %d %d ", relation(2, 2), sum(2, 3), constant(2));
    printf("%d %d %d\n", statement(1), condition(1), several((int[]){1, 2, 3}, 3));
}
