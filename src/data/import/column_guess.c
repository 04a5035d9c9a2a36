/* column_guess.c: finds the column of a role by its name and the values of the first rows. A name decides; values only move
 * a column back (times that are none, sequences that never repeat) or, if its name says little, exclude it. */
#include "data/import/columns.h"

#include "base/memory.h"
#include "data/import/column_names.h"

/* Rows from which values that are all different mean something. */
enum { ENOUGH_ROWS = 20 };

/* How a column fits a role; less is better. */
typedef enum fit {
    FITS = 0,
    DOUBTFUL = 1, /* its values speak against it */
    IN_USE = 2,   /* it is a field or the split */
    UNFIT = 3     /* excluded */
} fit;

typedef struct candidate {
    int64_t column; /* -1: none */
    fit fit;
    lp_name_match match;
} candidate;

static fit fit_of(lapse_column_role role, bool weak, const lp_sample_column *values, int64_t rows)
{
    bool all_different = values->filled >= ENOUGH_ROWS && values->different == values->filled;
    if (rows > 0 && values->filled == 0)
        return weak ? UNFIT : DOUBTFUL;
    if (role == LAPSE_COLUMN_TIME)
        return values->times * 10 >= values->filled * 9 ? FITS : weak ? UNFIT : DOUBTFUL;
    if (!all_different)
        return FITS;
    if (weak)
        return UNFIT;
    /* Few rows of a large catalogue rarely have an item twice. */
    return role == LAPSE_COLUMN_SEQUENCE ? DOUBTFUL : FITS;
}

static bool better(const candidate *a, const candidate *b)
{
    if (b->column < 0 || a->fit != b->fit)
        return b->column < 0 || a->fit < b->fit;
    if (a->match.weak != b->match.weak)
        return b->match.weak;
    return a->match.rank < b->match.rank;
}

/* Whether neither of two columns is the better one. */
static bool equal(const candidate *a, const candidate *b)
{
    return a->fit == b->fit && a->match.weak == b->match.weak &&
           (a->match.rank == b->match.rank || (!a->match.weak && a->match.group != b->match.group));
}

/* The best of the candidates that are not `except`; if like is not NULL, of those equal to it. */
static candidate best_of(const candidate *all, int64_t count, int64_t except, const candidate *like)
{
    candidate best = {.column = -1};
    for (int64_t i = 0; i < count; i++)
        if (all[i].column != except && (!like || equal(&all[i], like)) && better(&all[i], &best))
            best = all[i];
    return best;
}

/* The columns with a usual name; NULL when out of memory. */
static candidate *candidates_new(const lp_columns *columns, const lp_sample *sample, lapse_column_role role,
                                 const bool *taken, const bool *used, int64_t *count, int64_t *rejected)
{
    candidate *all = lp_alloc((size_t)columns->count, sizeof *all);
    *count = 0;
    *rejected = -1;
    for (int64_t i = 0; all && i < columns->count; i++) {
        candidate next = {.column = i, .match = lp_column_name_match(columns->name[i], role)};
        lp_sample_column values;
        if (taken[i] || next.match.rank < 0)
            continue;
        if (!lp_sample_describe(sample, i, &values)) {
            lp_free(all);
            return NULL;
        }
        next.fit = fit_of(role, next.match.weak, &values, sample->row_count);
        if (next.fit == UNFIT) {
            *rejected = *rejected < 0 ? i : *rejected;
            continue;
        }
        next.fit = used[i] ? IN_USE : next.fit;
        all[(*count)++] = next;
    }
    return all;
}

bool lp_column_guess(const lp_columns *columns, const lp_sample *sample, lapse_column_role role, const bool *taken,
                     const bool *used, int64_t *column, int64_t *runner_up, int64_t *tied, int64_t *rejected)
{
    int64_t count;
    candidate *all = candidates_new(columns, sample, role, taken, used, &count, rejected);
    if (!all)
        return false;
    candidate best = best_of(all, count, -1, NULL);
    *column = best.column;
    candidate second = best_of(all, count, best.column, NULL);
    *runner_up = second.fit == IN_USE ? -1 : second.column;
    *tied = best_of(all, count, best.column, &best).column;
    lp_free(all);
    return true;
}
