/* thinning.c: which frequencies stay, and what the others are made of.
 *
 * Functions over the span have the inner product (f, g) = 1/span times the integral of f g, which for cosines and sines is
 * known in closed form. Frequencies are taken one by one, the one that those before explain least first (a Cholesky
 * factorization of all inner products, with pivots), until the rest of every function is nothing. Taking the largest rest
 * keeps the factors of the sums small, so that rounding does not grow by them.
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
    int count;               /* of frequencies; functions are 2 count: cosines, then sines */
    const double *frequency; /* [count] */
    double span;
    int directions;
    int *pivots;  /* [2 count]: the function that each direction is the rest of */
    double *part; /* [2 count x 2 count]: of function c along direction k */
    double *rest; /* [2 count]: mean square of what is left of a function */
    bool *stays;  /* [count] */
    double *sums; /* [2 count]: factors of one function; values of all of them at one place */
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

/* Row c of the change: the function by the pivots, from the last direction to the first. */
static void solve(thinner *t, int c, const int *places, int kept, float *row)
{
    int all = 2 * t->count;
    memcpy(t->sums, t->part + (size_t)c * all, (size_t)t->directions * sizeof *t->sums);
    for (int k = t->directions - 1; k >= 0; k--) {
        const double *along = t->part + (size_t)t->pivots[k] * all;
        double factor = t->sums[k] / along[k];
        for (int j = 0; j < k; j++)
            t->sums[j] -= factor * along[j];
        row[places[t->pivots[k] % t->count] + (t->pivots[k] >= t->count ? kept : 0)] = (float)factor;
    }
}

/* The largest difference between a function and the sum that stands for it; places crowd towards the ends, where it is. */
static double largest_error(thinner *t, const lp_thinning *thinning)
{
    double largest = 0;
    int kept = thinning->kept;
    for (int p = 0; p <= PLACES; p++) {
        double s = t->span * (1 - cos(3.14159265358979 * p / PLACES)) / 2;
        for (int k = 0; k < kept; k++) {
            t->sums[k] = cos(thinning->frequency[k] * s);
            t->sums[kept + k] = sin(thinning->frequency[k] * s);
        }
        for (int c = 0; c < 2 * t->count; c++) {
            double phase = t->frequency[c % t->count] * s, sum = c < t->count ? -cos(phase) : -sin(phase);
            for (int k = 0; k < 2 * kept && !t->stays[c % t->count]; k++)
                sum += (double)thinning->change[(size_t)c * 2 * kept + k] * t->sums[k];
            largest = t->stays[c % t->count] ? largest : fmax(largest, fabs(sum));
        }
    }
    return largest;
}

static lapse_status fill(thinner *t, lp_thinning *thinning, lapse_error *error)
{
    int count = t->count, kept = thinning->kept, done = 0;
    size_t size = 4 * (size_t)count * (size_t)kept;
    int *places = lp_alloc((size_t)count, sizeof *places);
    thinning->frequency = lp_alloc((size_t)kept, sizeof *thinning->frequency);
    thinning->change = lp_alloc(size, sizeof *thinning->change);
    if (places && thinning->frequency && thinning->change) {
        for (int f = 0; f < count; f++)
            if (t->stays[f]) {
                places[f] = done;
                thinning->frequency[done++] = t->frequency[f];
            }
        for (int c = 0; c < 2 * count; c++) {
            float *row = thinning->change + (size_t)c * 2 * kept;
            if (t->stays[c % count])
                row[places[c % count] + (c >= count ? kept : 0)] = 1;
            else
                solve(t, c, places, kept, row);
        }
        thinning->error = largest_error(t, thinning);
    }
    bool made = places && thinning->frequency && thinning->change;
    lp_free(places);
    return made ? LAPSE_OK : lp_fail_memory(error, "frequencies", size * sizeof *thinning->change);
}

static lapse_status make(thinner *t, lp_thinning *thinning, lapse_error *error)
{
    thinning->kept = choose(t);
    LP_TRY(fill(t, thinning, error));
    if (thinning->error <= LP_THINNING_ERROR)
        return LAPSE_OK;
    lp_thinning_clear(thinning);
    *thinning = (lp_thinning){.count = t->count, .kept = t->count};
    for (int f = 0; f < t->count; f++)
        t->stays[f] = true;
    return fill(t, thinning, error);
}

lapse_status lp_thinning_make(lp_thinning *thinning, int count, const double *frequency, double span,
                              lapse_error *error)
{
    size_t all = 2 * (size_t)count;
    thinner t = {.count = count, .frequency = frequency, .span = span};
    *thinning = (lp_thinning){.count = count};
    t.pivots = lp_alloc(all, sizeof *t.pivots);
    t.part = lp_alloc(all * all, sizeof *t.part);
    t.rest = lp_alloc(all, sizeof *t.rest);
    t.stays = lp_alloc((size_t)count, sizeof *t.stays);
    t.sums = lp_alloc(all, sizeof *t.sums);
    lapse_status status = t.pivots && t.part && t.rest && t.stays && t.sums
                              ? make(&t, thinning, error)
                              : lp_fail_memory(error, "frequencies", all * all * sizeof *t.part);
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
