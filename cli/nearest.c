/* nearest.c: what a mistyped word most likely meant: the known name with the fewest letters changed, added, dropped or
 * swapped with their neighbour (Damerau's distance), where that is few enough to be a slip. */
#include <string.h>

#include "options.h"

#define LONGEST 40

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int rows = (int)strlen(a), columns = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return LONGEST;
    for (int i = 0; i <= rows; i++) {
        for (int j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[rows][columns];
}

const char *cli_nearest(const char *typed, const char *const *names)
{
    const char *best = NULL;
    int best_distance = LONGEST;
    size_t length = strlen(typed);
    for (; *names; names++) {
        int slips = distance(typed, *names);
        /* A name cut short counts as one slip: --learn is --learning-rate. */
        if (length >= 3 && strncmp(typed, *names, length) == 0)
            slips = least(slips, 1);
        if (slips < best_distance) {
            best_distance = slips;
            best = *names;
        }
    }
    return best_distance <= (length >= 6 ? 3 : length >= 4 ? 2 : 1) ? best : NULL;
}
