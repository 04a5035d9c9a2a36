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
                             double span)
{
    double t = fmax(gap, floor);
    lp_time_case one = {.sequence = sequence, .event = event, .gap = gap, .nll = -lp_next_time_log_density(law, t)};
    if (!(span > 0))
        return one;
    double comes = 1 - lp_next_time_never(law);
    one.pit = lp_time_pit(law, gap, floor);
    LP_ASSERT(!(one.pit < 0 || one.pit > 1));
    one.median = lp_next_time_quantile(law, 0.5 * comes);
    one.mean = lp_next_time_mean(law, span);
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
    double nll = 0, error_sum = 0, squares = 0, crps = 0;
    double *pit = lp_alloc((size_t)count, sizeof *pit);
    if (!pit)
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *pit);
    int64_t covered[LAPSE_COVERAGE_COUNT] = {0};
    for (int64_t i = 0; i < count; i++) {
        const lp_time_case *one = &cases[i];
        nll += one->nll;
        error_sum += fabs(one->median - one->gap);
        squares += (one->mean - one->gap) * (one->mean - one->gap);
        crps += one->crps;
        pit[i] = one->pit;
        for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
            covered[c] += fabs(one->pit - 0.5) <= levels[c] / 2;
    }
    score->nll = nll / (double)count - log(unit);
    score->mae = error_sum / (double)count / unit;
    score->rmse = sqrt(squares / (double)count) / unit;
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

/* A histogram of log(gap) over equal bins between the smallest and the largest of the training split, and one for each bin of the gap
 * before. */
enum { BINS = 80 };
typedef struct gap_histogram {
    double low, width;        /* of a bin, > 0 */
    double mean[BINS];        /* centers of the bins */
    double deviation[BINS];   /* half a width: the histogram is smoothed by a normal kernel */
    double all[BINS];         /* log-weights where there is no gap before */
    double after[BINS][BINS]; /* log-weights by the bin of the gap before */
} gap_histogram;

/* Gaps that the deviation of a type's own log-normal needs at least; gaps that the histogram of all counts as in that of a gap before. */
enum { MIN_GAPS = 20, ADDED_GAPS = 5 };

typedef struct scoring {
    const lp_time_baseline *baseline;
    const lapse_dataset *dataset;
    const gap_sums *sums; /* row 0: all types; row 1 + k: type k */
    const gap_histogram *histogram;
    double floor, span;
    const lp_time_case *cases;
    int64_t count;
    lp_time_case *scored;
} scoring;

struct lp_time_baseline {
    const char *name;
    lp_time_case (*score)(const scoring *s, const lp_time_case *one);
};

static lp_time_case score_law(const scoring *s, const lp_time_case *one, lp_next_time law)
{
    return lp_time_case_of(&law, one->sequence, one->event, one->gap, s->floor, s->span);
}

static lp_time_case score_exponential(const scoring *s, const lp_time_case *one)
{
    return score_law(s, one, lp_next_time_gompertz(0, 0, s->sums->gap / s->sums->count));
}

static lp_time_case score_by_sums(const scoring *s, const lp_time_case *one, const gap_sums *sums)
{
    double weight = 0, mean = sums->log_gap / sums->count;
    double deviation = fmax(sqrt(fmax(sums->square / sums->count - mean * mean, 0)), 1e-6);
    return score_law(s, one, lp_next_time_mixture(1, &weight, &mean, &deviation));
}

static lp_time_case score_log_normal(const scoring *s, const lp_time_case *one)
{
    return score_by_sums(s, one, s->sums);
}

/* Statistics of the last event's type, where it has MIN_GAPS of them. */
static lp_time_case score_by_type(const scoring *s, const lp_time_case *one)
{
    const gap_sums *own = &s->sums[1 + s->dataset->type[one->event - 1]];
    return score_by_sums(s, one, own->count >= MIN_GAPS ? own : s->sums);
}

/* The gap before the last event, in log seconds; NaN: there is none. */
static double log_gap_before(const lapse_dataset *dataset, int64_t sequence, int64_t event, double floor)
{
    if ((uint64_t)event < dataset->start[sequence] + 2)
        return NAN;
    return log(fmax(dataset->time[event - 1] - dataset->time[event - 2], floor));
}

static int bin_of(const gap_histogram *histogram, double log_gap)
{
    return (int)fmin(fmax((log_gap - histogram->low) / histogram->width, 0), BINS - 1);
}

static lp_time_case score_histogram(const scoring *s, const lp_time_case *one)
{
    const gap_histogram *h = s->histogram;
    double before = log_gap_before(s->dataset, one->sequence, one->event, s->floor);
    const double *weight = isnan(before) ? h->all : h->after[bin_of(h, before)];
    return score_law(s, one, lp_next_time_mixture(BINS, weight, h->mean, h->deviation));
}

static const lp_time_baseline exponential = {"exponential", score_exponential},
                              log_normal = {"log-normal", score_log_normal},
                              by_type = {"log-normal-type", score_by_type},
                              histogram = {"gap-histogram", score_histogram};
const lp_time_baseline *const lp_time_baselines[] = {&exponential, &log_normal, &by_type, &histogram, NULL};

const char *lp_time_baseline_name(const lp_time_baseline *baseline)
{
    return baseline->name;
}

typedef struct statistics {
    const lapse_dataset *dataset;
    const uint8_t *split;
    double floor;
    gap_sums *sums;
    gap_histogram *histogram;
} statistics;

/* Calls on_gap with every gap of the training split and that before it, in log seconds; NaN: there is none. */
static void walk_gaps(const statistics *s,
                      void (*on_gap)(const statistics *, uint64_t event, double log_gap, double before))
{
    const lapse_dataset *dataset = s->dataset;
    for (int64_t q = 0; q < dataset->sequence_count; q++)
        for (uint64_t i = dataset->start[q] + 1; i < dataset->start[q + 1]; i++)
            if (s->split[i] == LP_SPLIT_TRAIN)
                on_gap(s, i, log(fmax(dataset->time[i] - dataset->time[i - 1], s->floor)),
                       log_gap_before(dataset, q, (int64_t)i, s->floor));
}

static void add_gap(gap_sums *sums, double x)
{
    *sums = (gap_sums){sums->count + 1, sums->gap + exp(x), sums->log_gap + x, sums->square + x * x};
}

static void add_to_sums(const statistics *s, uint64_t event, double log_gap, double before)
{
    (void)before;
    gap_histogram *h = s->histogram;
    add_gap(&s->sums[0], log_gap);
    add_gap(&s->sums[1 + s->dataset->type[event - 1]], log_gap);
    h->low = fmin(h->low, log_gap);
    h->width = fmax(h->width, log_gap); /* the largest, as yet */
}

static void count_bin(const statistics *s, uint64_t event, double log_gap, double before)
{
    (void)event;
    gap_histogram *h = s->histogram;
    h->all[bin_of(h, log_gap)]++;
    if (!isnan(before))
        h->after[bin_of(h, before)][bin_of(h, log_gap)]++;
}

static void fit(const statistics *s)
{
    gap_histogram *h = s->histogram;
    h->low = INFINITY;
    h->width = -INFINITY;
    walk_gaps(s, add_to_sums);
    h->width = fmax((h->width - h->low) / BINS, 1e-3);
    walk_gaps(s, count_bin);
    for (int b = 0; b < BINS; b++) {
        h->mean[b] = h->low + h->width * (b + 0.5);
        h->deviation[b] = h->width / 2;
        h->all[b] = (h->all[b] + 1) / (s->sums->count + BINS);
    }
    for (int a = 0; a < BINS; a++) {
        double total = ADDED_GAPS;
        for (int b = 0; b < BINS; b++)
            total += h->after[a][b];
        for (int b = 0; b < BINS; b++)
            h->after[a][b] = log((h->after[a][b] + ADDED_GAPS * h->all[b]) / total);
    }
    for (int b = 0; b < BINS; b++)
        h->all[b] = log(h->all[b]);
}

enum { TASKS = 64 };

static void score_task(void *context, int task, int worker)
{
    (void)worker;
    const scoring *s = context;
    int64_t end = s->count * (task + 1) / TASKS;
    for (int64_t i = s->count * task / TASKS; i < end; i++)
        s->scored[i] = s->baseline->score(s, &s->cases[i]);
}

lapse_status lp_time_baseline_score(const lp_time_baseline *baseline, const lapse_dataset *dataset,
                                    const uint8_t *split, double floor, double span, const lp_time_case *cases,
                                    int64_t count, int threads, lp_time_case *scored, lapse_error *error)
{
    size_t size = ((size_t)dataset->types.count + 1) * sizeof(gap_sums);
    statistics found = {dataset, split, floor, lp_alloc(size, 1), lp_alloc(1, sizeof(gap_histogram))};
    lapse_status status = LAPSE_OK;
    if (found.sums && found.histogram) {
        fit(&found);
        scoring s = {baseline, dataset, found.sums, found.histogram, floor, span, cases, count, scored};
        lp_threads_run(threads, TASKS, score_task, &s);
    } else
        status = lp_fail_memory(error, "the baselines", size + sizeof(gap_histogram));
    lp_free(found.sums);
    lp_free(found.histogram);
    return status;
}
