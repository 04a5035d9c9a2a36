/* time_scores.c: scores of laws of the next event's time: likelihood, calibration, error of the median, CRPS; and baselines. */
#include "evaluate/time_scores.h"

#include "base/assert.h"
#include "base/threads.h"
#include "data/dataset/gap_quantile.h"
#include "evaluate/bootstrap.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------- scores ----- */

double lp_time_pit(const lp_next_time *law, double gap, double floor)
{
    return fmin(lp_next_time_cdf(law, fmax(gap, floor)) / (1 - lp_next_time_never(law)), 1);
}

lp_time_case lp_time_case_of(const lp_next_time *law, int64_t sequence, int64_t event, double gap, double floor,
                             bool whole)
{
    double t = fmax(gap, floor);
    lp_time_case one = {.sequence = sequence, .event = event, .gap = gap, .nll = -lp_next_time_log_density(law, t)};
    if (!whole)
        return one;
    double comes = 1 - lp_next_time_never(law);
    one.pit = lp_time_pit(law, gap, floor);
    LP_ASSERT(!(one.pit < 0 || one.pit > 1));
    one.median = lp_next_time_quantile(law, 0.5 * comes);
    one.crps = lp_next_time_crps(law, t);
    return one;
}

double lp_time_unit(const lp_time_case *cases, int64_t count, double floor, const char **name)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    double sum = 0;
    int u = 0;
    for (int64_t i = 0; i < count; i++)
        sum += log(fmax(cases[i].gap, floor));
    while (u < 3 && sum < (double)count * log(units[u].seconds))
        u++;
    *name = units[u].name;
    return units[u].seconds;
}

/* The largest distance of the distribution of the PITs from the uniform one. Sorts them. */
static double pit_distance(double *pit, int64_t count)
{
    double most = 0;
    qsort(pit, (size_t)count, sizeof *pit, lp_compare_numbers);
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs(pit[i] - (double)i / (double)count));
        most = fmax(most, fabs(pit[i] - (double)(i + 1) / (double)count));
    }
    return most;
}

/* Sums over one sequence: a row of lp_bootstrap's parts. */
typedef struct part {
    double cases, nll;
} part;

/* Sums by sequence, for the interval of the NLL. */
static lapse_status interval(const lp_time_case *cases, int64_t count, double unit, int bootstrap,
                             lapse_time_score *score, lapse_error *error)
{
    int64_t sequences = 0;
    part *parts = lp_alloc((size_t)count, sizeof *parts);
    if (!parts)
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *parts);
    for (int64_t i = 0; i < count; i++) {
        sequences += i == 0 || cases[i].sequence != cases[i - 1].sequence;
        parts[sequences - 1].cases++;
        parts[sequences - 1].nll += cases[i].nll;
    }
    double low, high;
    lapse_status status = lp_bootstrap(&parts->cases, sequences, 1, bootstrap, 1, &low, &high, error);
    if (status == LAPSE_OK) {
        score->nll_low = low - log(unit);
        score->nll_high = high - log(unit);
    }
    lp_free(parts);
    return status;
}

lapse_status lp_time_score_make(const lp_time_case *cases, int64_t count, double unit, int bootstrap,
                                lapse_time_score *score, lapse_error *error)
{
    static const double levels[LAPSE_COVERAGE_COUNT] = {0.5, 0.8, 0.95};
    double nll = 0, error_sum = 0, crps = 0;
    double *pit = lp_alloc((size_t)count, sizeof *pit);
    if (!pit)
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *pit);
    int64_t covered[LAPSE_COVERAGE_COUNT] = {0};
    for (int64_t i = 0; i < count; i++) {
        const lp_time_case *one = &cases[i];
        nll += one->nll;
        error_sum += fabs(one->median - one->gap);
        crps += one->crps;
        pit[i] = one->pit;
        for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
            covered[c] += fabs(one->pit - 0.5) <= levels[c] / 2;
    }
    score->nll = nll / (double)count - log(unit);
    score->mae = error_sum / (double)count / unit;
    score->crps = crps / (double)count / unit;
    for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
        score->coverage[c] = (double)covered[c] / (double)count;
    score->pit_distance = pit_distance(pit, count);
    lp_free(pit);
    score->nll_low = score->nll_high = score->nll;
    return bootstrap > 0 ? interval(cases, count, unit, bootstrap, score, error) : LAPSE_OK;
}

/* ---------------------------------------------------------------------------------------------- baselines ----- */

/* Statistics of the gaps after events of one type, or of all types. */
typedef struct gap_sums {
    double count, gap, log_gap, square;
} gap_sums;

struct lp_time_baseline {
    const char *name;
    bool by_type; /* statistics of the last event's type, where it has MIN_GAPS of them */
    bool exponential;
};

/* Gaps that the deviation of a type's own log-normal needs at least. */
enum { MIN_GAPS = 20 };

static const lp_time_baseline exponential = {"exponential", false, true}, log_normal = {"log-normal", false, false},
                              by_type = {"log-normal-type", true, false};
const lp_time_baseline *const lp_time_baselines[] = {&exponential, &log_normal, &by_type, NULL};

const char *lp_time_baseline_name(const lp_time_baseline *baseline)
{
    return baseline->name;
}

static void add_gap(gap_sums *sums, double gap)
{
    double x = log(gap);
    *sums = (gap_sums){sums->count + 1, sums->gap + gap, sums->log_gap + x, sums->square + x * x};
}

/* Row 0: all types; row 1 + k: type k. */
static gap_sums *gap_statistics(const lapse_dataset *dataset, const uint8_t *split, double floor)
{
    gap_sums *sums = lp_alloc((size_t)dataset->types.count + 1, sizeof *sums);
    for (int64_t s = 0; sums && s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            if (split[i] == LP_SPLIT_TRAIN) {
                double gap = fmax(dataset->time[i] - dataset->time[i - 1], floor);
                add_gap(&sums[0], gap);
                add_gap(&sums[1 + dataset->type[i - 1]], gap);
            }
    return sums;
}

typedef struct scoring {
    const lp_time_baseline *baseline;
    const lapse_dataset *dataset;
    const gap_sums *sums;
    double floor;
    const lp_time_case *cases;
    int64_t count;
    lp_time_case *scored;
} scoring;

enum { TASKS = 64 };

static void score_task(void *context, int task, int worker)
{
    (void)worker;
    const scoring *s = context;
    int64_t end = s->count * (task + 1) / TASKS;
    for (int64_t i = s->count * task / TASKS; i < end; i++) {
        const lp_time_case *one = &s->cases[i];
        const gap_sums *own = &s->sums[1 + s->dataset->type[one->event - 1]];
        const gap_sums *sums = s->baseline->by_type && own->count >= MIN_GAPS ? own : &s->sums[0];
        double weight = 0, mean = sums->log_gap / sums->count;
        double deviation = fmax(sqrt(fmax(sums->square / sums->count - mean * mean, 0)), 1e-6);
        lp_next_time law = s->baseline->exponential ? lp_next_time_gompertz(0, 0, sums->gap / sums->count)
                                                    : lp_next_time_mixture(1, &weight, &mean, &deviation);
        s->scored[i] = lp_time_case_of(&law, one->sequence, one->event, one->gap, s->floor, true);
    }
}

lapse_status lp_time_baseline_score(const lp_time_baseline *baseline, const lapse_dataset *dataset,
                                    const uint8_t *split, double floor, const lp_time_case *cases, int64_t count,
                                    int threads, lp_time_case *scored, lapse_error *error)
{
    gap_sums *sums = gap_statistics(dataset, split, floor);
    if (!sums)
        return lp_fail_memory(error, "the baselines", (size_t)dataset->types.count * sizeof *sums);
    scoring s = {baseline, dataset, sums, floor, cases, count, scored};
    lp_threads_run(threads, TASKS, score_task, &s);
    lp_free(sums);
    return LAPSE_OK;
}
