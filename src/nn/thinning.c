/* thinning.c: which frequencies stay, and what the others are made of.
 *
 * Functions over the span have the inner product (f, g) = 1/span times the integral of f g, which for cosines and sines is
 * known in closed form. Frequencies are taken one by one, the one that those before explain least first (a Cholesky
 * factorization of all inner products, with pivots), until the rest of every function is nothing. Taking the largest rest
 * keeps the factors of the sums small, so that rounding does not grow by them. The fast ones stay unseen: functions that turn up
 * to n times within the span have some 2 n + 10 dimensions, so those that turn more often than there are frequencies
 * would all stay.
 */
#include "nn/thinning.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

/* Mean square of a rest that is nothing; inner products are within 1e-16. And how much larger the rest of a function must be to
 * come before one that costs nothing. */
static const double NOTHING = 1e-14, FREE = 100;

/* Places at which the sums are compared with what they stand for. */
enum { PLACES = 128 };

typedef struct thinner {
    int count;         /* of slow frequencies; functions are 2 count: cosines, then sines */
    int *number;       /* [count]: of each among all */
    double *frequency; /* [count] */
    double span;
    int directions;
    int *pivots;  /* [2 count]: the function that each direction is the rest of */
    double *part; /* [2 count x 2 count]: of function c along direction k */
    double *rest; /* [2 count]: mean square of what is left of a function */
    bool *stays;  /* [count] */
    double *sums; /* [2 count]: factors of one function; values of the pivots at one place */
} thinner;

/* Means over 0 .. span of cos(w s) and of sin(w s), for x = w span. */
static double mean_cosine(double x)
{
    return fabs(x) < 1e-4 ? 1 - x * x / 6 : sin(x) / x;
}

static double mean_sine(double x)
{
    double half = sin(x / 2);
    return fabs(x) < 1e-12 ? x / 2 : 2 * half * half / x;
}

static double inner(const thinner *t, int a, int b)
{
    bool sine_a = a >= t->count, sine_b = b >= t->count;
    double x = t->span * t->frequency[a % t->count], y = t->span * t->frequency[b % t->count];
    if (sine_a == sine_b)
        return (mean_cosine(x - y) + (sine_a ? -1 : 1) * mean_cosine(x + y)) / 2;
    return (mean_sine(x + y) + mean_sine(sine_a ? x - y : y - x)) / 2;
}

/* One more direction: the rest of function `pivot`. */
static void add_direction(thinner *t, int pivot)
{
    int all = 2 * t->count, k = t->directions++;
    const double *along = t->part + (size_t)pivot * all;
    double length = sqrt(t->rest[pivot]);
    t->pivots[k] = pivot;
    for (int c = 0; c < all; c++) {
        double *part = t->part + (size_t)c * all, sum = inner(t, c, pivot);
        for (int j = 0; j < k; j++)
            sum -= part[j] * along[j];
        part[k] = sum / length;
        t->rest[c] -= part[k] * part[k];
    }
    t->rest[pivot] = 0;
}

/* Takes functions until nothing is left of those whose frequencies do not stay. The other function of a frequency that stays
 * costs nothing, and is taken before a new one that is not much larger. */
static int choose(thinner *t)
{
    int kept = 0;
    for (int c = 0; c < 2 * t->count; c++)
        t->rest[c] = inner(t, c, c);
    for (;;) {
        int most = -1, free = -1;
        for (int c = 0; c < 2 * t->count; c++) {
            int *best = t->stays[c % t->count] ? &free : &most;
            if (*best < 0 || t->rest[c] > t->rest[*best])
                *best = c;
        }
        if (most < 0 || t->rest[most] < NOTHING)
            return kept;
        if (free >= 0 && t->rest[free] * FREE > t->rest[most]) {
            add_direction(t, free);
            continue;
        }
        t->stays[most % t->count] = true;
        kept++;
        add_direction(t, most);
    }
}

/* The factors of the pivots in function c, from the last direction to the first. */
static void solve(thinner *t, int c)
{
    int all = 2 * t->count;
    memcpy(t->sums, t->part + (size_t)c * all, (size_t)t->directions * sizeof *t->sums);
    for (int k = t->directions - 1; k >= 0; k--) {
        const double *along = t->part + (size_t)t->pivots[k] * all;
        t->sums[k] /= along[k];
        for (int j = 0; j < k; j++)
            t->sums[j] -= t->sums[k] * along[j];
    }
}

static double at_lag(const thinner *t, int c, double s)
{
    double phase = t->frequency[c % t->count] * s;
    return c < t->count ? cos(phase) : sin(phase);
}

/* The largest difference between a function and the sum that stands for it; places crowd towards the ends, where it is.
 * columns[k]: of pivot k in the change. */
static double largest_error(thinner *t, const lp_thinning *thinning, const int *columns)
{
    double largest = 0;
    for (int p = 0; p <= PLACES; p++) {
        double s = t->span * (1 - cos(3.14159265358979 * p / PLACES)) / 2;
        for (int k = 0; k < t->directions; k++)
            t->sums[k] = at_lag(t, t->pivots[k], s);
        for (int c = 0; c < 2 * t->count; c++) {
            if (t->stays[c % t->count])
                continue;
            int row = t->number[c % t->count] + (c < t->count ? 0 : thinning->count);
            double sum = -at_lag(t, c, s);
            for (int k = 0; k < t->directions; k++)
                sum += (double)thinning->change[(size_t)row * 2 * thinning->kept + columns[k]] * t->sums[k];
            largest = fmax(largest, fabs(sum));
        }
    }
    return largest;
}

/* Rows of the change: one element for a frequency that stays, factors of the pivots for any other. places[f]: where frequency f
 * stays, or -1; columns has room for the column of each pivot. */
static void fill_change(thinner *t, lp_thinning *thinning, const int *places, int *columns)
{
    int count = thinning->count, kept = thinning->kept;
    for (int f = 0; f < count; f++)
        if (places[f] >= 0) {
            thinning->change[(size_t)f * 2 * kept + places[f]] = 1;
            thinning->change[(size_t)(count + f) * 2 * kept + kept + places[f]] = 1;
        }
    for (int k = 0; k < t->directions; k++)
        columns[k] = places[t->number[t->pivots[k] % t->count]] + (t->pivots[k] < t->count ? 0 : kept);
    for (int c = 0; c < 2 * t->count; c++) {
        if (t->stays[c % t->count])
            continue;
        int row = t->number[c % t->count] + (c < t->count ? 0 : count);
        solve(t, c);
        for (int k = 0; k < t->directions; k++)
            thinning->change[(size_t)row * 2 * kept + columns[k]] = (float)t->sums[k];
    }
    thinning->error = largest_error(t, thinning, columns);
}

static lapse_status fill(thinner *t, const double *frequency, lp_thinning *thinning, lapse_error *error)
{
    int count = thinning->count, done = 0;
    size_t size = 4 * (size_t)count * (size_t)thinning->kept;
    int *places = lp_alloc(3 * (size_t)count, sizeof *places);
    thinning->frequency = lp_alloc((size_t)thinning->kept, sizeof *thinning->frequency);
    thinning->change = lp_alloc(size, sizeof *thinning->change);
    bool made = places && thinning->frequency && thinning->change;
    for (int f = 0, slow = 0; made && f < count; f++) {
        bool is_slow = slow < t->count && t->number[slow] == f;
        places[f] = is_slow && !t->stays[slow] ? -1 : done;
        if (places[f] >= 0)
            thinning->frequency[done++] = frequency[f];
        slow += is_slow;
    }
    if (made)
        fill_change(t, thinning, places, places + count);
    lp_free(places);
    return made ? LAPSE_OK : lp_fail_memory(error, "frequencies", size * sizeof *thinning->change);
}

static lapse_status make(thinner *t, const double *frequency, lp_thinning *thinning, lapse_error *error)
{
    int count = thinning->count;
    for (int f = 0; f < count; f++)
        if (frequency[f] * t->span < 6.283185307179586 * count) {
            t->number[t->count] = f;
            t->frequency[t->count++] = frequency[f];
        }
    thinning->kept = count - t->count + choose(t);
    LP_TRY(fill(t, frequency, thinning, error));
    if (thinning->error <= LP_THINNING_ERROR)
        return LAPSE_OK;
    lp_thinning_clear(thinning);
    *thinning = (lp_thinning){.count = count, .kept = count};
    t->count = t->directions = 0;
    return fill(t, frequency, thinning, error);
}

lapse_status lp_thinning_make(lp_thinning *thinning, int count, const double *frequency, double span,
                              lapse_error *error)
{
    size_t all = 2 * (size_t)count;
    thinner t = {.span = span};
    *thinning = (lp_thinning){.count = count};
    t.number = lp_alloc((size_t)count, sizeof *t.number);
    t.frequency = lp_alloc((size_t)count, sizeof *t.frequency);
    t.pivots = lp_alloc(all, sizeof *t.pivots);
    t.part = lp_alloc(all * all, sizeof *t.part);
    t.rest = lp_alloc(all, sizeof *t.rest);
    t.stays = lp_alloc((size_t)count, sizeof *t.stays);
    t.sums = lp_alloc(all, sizeof *t.sums);
    lapse_status status = t.number && t.frequency && t.pivots && t.part && t.rest && t.stays && t.sums
                              ? make(&t, frequency, thinning, error)
                              : lp_fail_memory(error, "frequencies", all * all * sizeof *t.part);
    lp_free(t.number);
    lp_free(t.frequency);
    lp_free(t.pivots);
    lp_free(t.part);
    lp_free(t.rest);
    lp_free(t.stays);
    lp_free(t.sums);
    if (status != LAPSE_OK)
        lp_thinning_clear(thinning);
    return status;
}

void lp_thinning_clear(lp_thinning *thinning)
{
    lp_free(thinning->frequency);
    lp_free(thinning->change);
    *thinning = (lp_thinning){0};
}
