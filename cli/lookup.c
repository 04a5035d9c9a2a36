/* lookup.c: see lookup.h. The nearest name is the one with the smallest Damerau-Levenshtein distance, if that distance is
 * small enough for a typing error. */
#include "lookup.h"

#include <string.h>

int cli_name_find(const char *const *names, const char *text, size_t length)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
            return i;
    return -1;
}

const char *cli_model_property(const lapse_model *model, const char *name)
{
    const char *each, *value;
    for (int i = 0; lapse_model_property(model, i, &each, &value); i++)
        if (strcmp(each, name) == 0)
            return value;
    return NULL;
}

#define LONGEST 40

static int minimum(int a, int b)
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
            d[i][j] = minimum(minimum(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = minimum(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[rows][columns];
}

const char *cli_name_nearest(const char *typed, const char *const *names)
{
    const char *best = NULL;
    int best_distance = LONGEST;
    size_t length = strlen(typed);
    for (; *names; names++) {
        int edits = distance(typed, *names);
        /* A prefix counts as one edit: --learn is close to --learning-rate. */
        if (length >= 3 && strncmp(typed, *names, length) == 0)
            edits = minimum(edits, 1);
        if (edits < best_distance) {
            best_distance = edits;
            best = *names;
        }
    }
    return best_distance <= (length >= 6 ? 3 : length >= 4 ? 2 : 1) ? best : NULL;
}
