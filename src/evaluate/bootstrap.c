/* bootstrap.c: percentile bootstrap over sequences. */
#include "evaluate/bootstrap.h"

#include "base/assert.h"
#include "base/random.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>

enum { BOOTSTRAP_SEED = 1 };

typedef struct resampling {
    const double *parts;
    int64_t sequences;
    int columns, resamples;
    double *sums;  /* [resamples x (1 + columns)] */
    double *means; /* [columns x resamples] */
} resampling;

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void lp_sort_numbers(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare_double);
}

double lp_quantile(const double *sorted, int count, double fraction)
{
    double position = fraction * (count - 1);
    int low = (int)position;
    LP_ASSERT(low >= 0 && low < count && sorted[0] <= sorted[count - 1]);
    return low + 1 < count ? sorted[low] + (position - low) * (sorted[low + 1] - sorted[low]) : sorted[low];
}

/* The part of a random sequence. */
static const double *draw(const resampling *r, lp_random *random)
{
    return r->parts + (size_t)lp_random_below(random, (uint32_t)r->sequences) * (size_t)(1 + r->columns);
}

static void resample(void *context, int task, int worker)
{
    (void)worker;
    const resampling *r = context;
    int width = 1 + r->columns;
    double *sum = r->sums + (size_t)task * (size_t)width;
    lp_random random = lp_random_start(BOOTSTRAP_SEED, LP_PURPOSE_BOOTSTRAP, (uint32_t)task);
    int64_t i = 0;
    for (; i + 4 <= r->sequences; i += 4) { /* together, in the same order, because the sums are in memory */
        const double *a = draw(r, &random), *b = draw(r, &random), *d = draw(r, &random), *e = draw(r, &random);
        for (int c = 0; c < width; c++)
            sum[c] = sum[c] + a[c] + b[c] + d[c] + e[c];
    }
    for (; i < r->sequences; i++) {
        const double *part = draw(r, &random);
        for (int c = 0; c < width; c++)
            sum[c] += part[c];
    }
    for (int c = 0; c < r->columns; c++)
        r->means[(size_t)c * (size_t)r->resamples + (size_t)task] = sum[1 + c] / sum[0];
}

lapse_status lp_bootstrap(const double *parts, int64_t sequences, int columns, int resamples, int threads, double *low,
                          double *high, lapse_error *error)
{
    size_t count = (size_t)resamples * (size_t)(1 + columns);
    resampling r = {
        parts, sequences, columns, resamples, lp_alloc(count, sizeof(double)), lp_alloc(count, sizeof(double))};
    lapse_status status = LAPSE_OK;
    if (r.sums && r.means)
        lp_threads_run(threads, resamples, resample, &r);
    else
        status = lp_fail_memory(error, "the bootstrap", 2 * count * sizeof(double));
    for (int c = 0; status == LAPSE_OK && c < columns; c++) {
        double *means = r.means + (size_t)c * (size_t)resamples;
        lp_sort_numbers(means, resamples);
        low[c] = lp_quantile(means, resamples, 0.025);
        high[c] = lp_quantile(means, resamples, 0.975);
    }
    lp_free(r.sums);
    lp_free(r.means);
    return status;
}
