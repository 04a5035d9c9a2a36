/* paired_test.c: see paired_test.h. */
#include "search/paired_test.h"

#include "base/random.h"
#include "base/threads.h"
#include "evaluate/bootstrap.h"

#include <math.h>
#include <string.h>

enum { PAIRED_SEED = 2 };

typedef struct resampling {
    int seeds, groups;         /* groups: of all seeds, by their number */
    const double *differences; /* [seeds x groups]: sums over cases */
    const double *cases;       /* [seeds x groups] */
    double *weights;           /* [threads x groups] */
    double *out;               /* [resamples] */
} resampling;

static double seed_mean(const resampling *r, int seed, const double *weights)
{
    const double *differences = r->differences + (size_t)seed * (size_t)r->groups;
    const double *cases = r->cases + (size_t)seed * (size_t)r->groups;
    double sum = 0, count = 0;
    for (int g = 0; g < r->groups; g++) {
        sum += weights[g] * differences[g];
        count += weights[g] * cases[g];
    }
    return count > 0 ? sum / count : 0;
}

static void resample(void *context, int task, int worker)
{
    const resampling *r = context;
    double *weights = r->weights + (size_t)worker * (size_t)r->groups, sum = 0;
    lp_random random = lp_random_start(PAIRED_SEED, LP_PURPOSE_BOOTSTRAP, (uint32_t)task);
    memset(weights, 0, (size_t)r->groups * sizeof *weights);
    for (int g = 0; g < r->groups; g++)
        weights[lp_random_below(&random, (uint32_t)r->groups)] += 1;
    for (int s = 0; s < r->seeds; s++)
        sum += seed_mean(r, (int)lp_random_below(&random, (uint32_t)r->seeds), weights);
    r->out[task] = sum / r->seeds;
}

/* The smallest level at which the interval does not contain 0. */
static void summarize(double *means, int count, lp_paired *out)
{
    int below = 0, above = 0;
    lp_sort_numbers(means, count);
    for (int i = 0; i < count; i++) {
        below += means[i] <= 0;
        above += means[i] >= 0;
    }
    int fewer = below < above ? below : above;
    out->difference.low = lp_quantile(means, count, 0.025);
    out->difference.high = lp_quantile(means, count, 0.975);
    out->p = fmin(1, 2.0 * (fewer + 1) / (count + 1));
}

static bool same_cases(const lp_run_record *a, const lp_run_record *b)
{
    bool same = a->group_count == b->group_count && a->cases == b->cases;
    for (int g = 0; same && g < a->group_count; g++)
        same = a->groups[g].group == b->groups[g].group && a->groups[g].cases == b->groups[g].cases;
    return same;
}

static bool paired(const lp_run_record *a, const lp_run_record *b, int metric)
{
    return a && b && !a->diverged && !b->diverged && metric < a->metrics && metric < b->metrics;
}

/* Groups that no seed has are left out: `place` maps a group to its column. */
static int number_groups(const lp_run_record *const *row, const lp_run_record *const *best, int count, int metric,
                         int place[LP_RECORD_GROUPS])
{
    int groups = 0;
    for (int g = 0; g < LP_RECORD_GROUPS; g++)
        place[g] = -1;
    for (int i = 0; i < count; i++)
        for (int g = 0; paired(row[i], best[i], metric) && g < row[i]->group_count; g++)
            place[row[i]->groups[g].group] = 0;
    for (int g = 0; g < LP_RECORD_GROUPS; g++)
        if (place[g] == 0)
            place[g] = groups++;
    return groups;
}

lapse_status lp_paired_test(const lp_run_record *const *row, const lp_run_record *const *best, int count, int metric,
                            int resamples, int threads, lp_paired *out, lapse_error *error)
{
    int place[LP_RECORD_GROUPS];
    int groups = number_groups(row, best, count, metric, place);
    *out = (lp_paired){{NAN, NAN, NAN}, NAN};
    size_t cells = (size_t)count * (size_t)groups;
    resampling r = {.groups = groups};
    double *differences = lp_alloc(cells, sizeof *differences), *cases = lp_alloc(cells, sizeof *cases), mean = 0;
    r.weights = lp_alloc((size_t)threads * (size_t)groups, sizeof *r.weights);
    r.out = lp_alloc((size_t)resamples, sizeof *r.out);
    lapse_status status = differences && cases && r.weights && r.out
                              ? LAPSE_OK
                              : lp_fail_memory(error, "a paired test", 2 * cells * sizeof *cases);
    bool same = true;
    for (int i = 0; status == LAPSE_OK && i < count; i++) {
        if (!paired(row[i], best[i], metric))
            continue;
        same = same && same_cases(row[i], best[i]);
        for (int g = 0; same && g < row[i]->group_count; g++) {
            size_t cell = (size_t)r.seeds * (size_t)groups + (size_t)place[row[i]->groups[g].group];
            differences[cell] = row[i]->groups[g].sums[metric] - best[i]->groups[g].sums[metric];
            cases[cell] = (double)row[i]->groups[g].cases;
        }
        mean += lp_run_record_mean(row[i], metric) - lp_run_record_mean(best[i], metric);
        r.seeds++;
    }
    r.differences = differences;
    r.cases = cases;
    if (status == LAPSE_OK && r.seeds > 0 && same) {
        out->difference.mean = mean / r.seeds;
        if (resamples > 0 && groups >= LP_PAIRED_GROUPS) {
            lp_threads_run(threads, resamples, resample, &r);
            summarize(r.out, resamples, out);
        }
    }
    lp_free(differences);
    lp_free(cases);
    lp_free(r.weights);
    lp_free(r.out);
    return status;
}
