/* rank_scores.c: ranking metrics and their slices. A row of slice_types is a function that maps a case to a group. */
#include "evaluate/rank_scores.h"

#include "base/threads.h"
#include "evaluate/bootstrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 8, POPULARITY_GROUPS = 4 };

/* ------------------------------------------------------------------------------------------------- slices ---- */

typedef struct slicer {
    const lp_ranking *ranking;
    const int64_t *counts;            /* [items] */
    int64_t least[POPULARITY_GROUPS]; /* range of training events of the items of a group */
    int64_t most[POPULARITY_GROUPS];
} slicer;

typedef struct slice_type {
    const char *by;
    int groups;
    int (*group)(const slicer *s, const lp_rank_case *rank_case);
    void (*name)(const slicer *s, int group, char *out, size_t size);
} slice_type;

/* The number of bounds that are not above the value. */
static int group_of(double value, const double *bounds, int count)
{
    int group = 0;
    while (group < count && value >= bounds[group])
        group++;
    return group;
}

static const double lengths[] = {5, 10, 20, 50, 100, 200, 500};

static int history_group(const slicer *s, const lp_rank_case *rank_case)
{
    int64_t start = (int64_t)s->ranking->setup.dataset->start[rank_case->sequence];
    return group_of((double)(rank_case->event - start), lengths, 7);
}

static void history_name(const slicer *s, int group, char *out, size_t size)
{
    (void)s;
    if (group < 7)
        snprintf(out, size, "%.0f to %.0f events", group ? lengths[group - 1] : 1, lengths[group] - 1);
    else
        snprintf(out, size, "%.0f events or more", lengths[6]);
}

static const double lags[] = {60, 3600, 86400, 7 * 86400.0, 30 * 86400.0, 365.25 * 86400};

static int lag_group(const slicer *s, const lp_rank_case *rank_case)
{
    const double *time = s->ranking->setup.dataset->time + rank_case->event;
    return group_of(time[0] - time[-1], lags, 6);
}

static void lag_name(const slicer *s, int group, char *out, size_t size)
{
    (void)s;
    static const char *const names[] = {"under 1 minute",    "1 minute to 1 hour", "1 hour to 1 day", "1 day to 1 week",
                                        "1 week to 30 days", "30 days to 1 year",  "1 year or more"};
    snprintf(out, size, "%s", names[group]);
}

/* Group 0 has the items without training events; then the groups go from the least to the most popular. */
static int popularity_group(const slicer *s, const lp_rank_case *rank_case)
{
    int64_t count = s->counts[s->ranking->setup.type[rank_case->event]];
    int group = POPULARITY_GROUPS;
    while (group > 0 && count < s->least[group - 1])
        group--;
    return count > 0 ? group : 0;
}

static void popularity_name(const slicer *s, int group, char *out, size_t size)
{
    if (group == 0)
        snprintf(out, size, "new: not in training");
    else if (s->least[group - 1] == s->most[group - 1])
        snprintf(out, size, "%" PRId64 " in training", s->least[group - 1]);
    else
        snprintf(out, size, "%" PRId64 " to %" PRId64 " in training", s->least[group - 1], s->most[group - 1]);
}

static const slice_type slice_types[] = {
    {"history", 8, history_group, history_name},
    {"popularity", POPULARITY_GROUPS + 1, popularity_group, popularity_name},
    {"lag", 7, lag_group, lag_name},
};
enum { SLICE_TYPES = sizeof slice_types / sizeof *slice_types };

static int by_count(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Divides the items, sorted by count, into groups of about a quarter of the training events each. Items of equal counts
 * are in one group. An empty group has least = INT64_MAX. */
static lapse_status cut_popularity(slicer *s, lapse_error *error)
{
    int64_t items = s->ranking->setup.items, total = 0, before = 0;
    int64_t *sorted = lp_alloc((size_t)items, sizeof *sorted);
    if (!sorted)
        return lp_fail_memory(error, "the popularity of items", (size_t)items * sizeof *sorted);
    for (int64_t i = 0; i < items; i++)
        total += sorted[i] = s->counts[i];
    qsort(sorted, (size_t)items, sizeof *sorted, by_count);
    for (int g = 0; g < POPULARITY_GROUPS; g++)
        s->least[g] = INT64_MAX;
    int group = 0;
    for (int64_t i = 0; i < items; i++) {
        if (sorted[i] == 0)
            continue;
        if (i > 0 && sorted[i] != sorted[i - 1])
            while (group + 1 < POPULARITY_GROUPS && POPULARITY_GROUPS * before >= (group + 1) * total)
                group++;
        if (s->least[group] == INT64_MAX)
            s->least[group] = sorted[i];
        s->most[group] = sorted[i];
        before += sorted[i];
    }
    lp_free(sorted);
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- scores ---- */

/* Buffers for sums over cases, and their layout. */
typedef struct summing {
    const lp_ranking *ranking;
    const lapse_rank_options *options;
    int columns; /* of a sequence's row after the number of cases: per protocol hit and ndcg of each cutoff, then mrr */
    double *parts;      /* [cases x (1 + columns)] */
    double *low, *high; /* [columns] */
} summing;

static void add_case(const summing *sums, const lp_rank_result *result, double *part)
{
    int cutoffs = sums->options->cutoff_count;
    *part++ += 1;
    for (int p = 0; p < LP_PROTOCOL_COUNT; p++) {
        for (int k = 0; k < cutoffs && result->candidates[p] > 0; k++) {
            part[2 * k] += result->rank[p] <= sums->options->cutoffs[k];
            part[2 * k + 1] += lp_rank_gain(result->rank[p], sums->options->cutoffs[k]);
        }
        if (result->candidates[p] > 0)
            part[2 * cutoffs] += 1.0 / result->rank[p];
        part += 2 * cutoffs + 1;
    }
}

static lapse_mean mean_of(const summing *sums, const double *total, int column)
{
    double mean = total[1 + column] / total[0];
    if (sums->options->bootstrap <= 0)
        return (lapse_mean){mean, mean, mean};
    return (lapse_mean){mean, sums->low[column], sums->high[column]};
}

static void count_candidates(const summing *sums, const uint8_t *groups, int group, lapse_rank_slice *slice)
{
    const lp_ranking *ranking = sums->ranking;
    for (int p = 0; p < LP_PROTOCOL_COUNT; p++) {
        lapse_rank_score *score = &slice->scores[p];
        score->protocol = lp_protocol_name((lp_protocol)p);
        for (int64_t c = 0; c < ranking->case_count; c++) {
            if (groups && groups[c] != group)
                continue;
            int32_t candidates = ranking->results[c].candidates[p];
            score->candidates += candidates;
            score->short_cases += p >= LP_PROTOCOL_UNIFORM && candidates > 0 && candidates <= ranking->setup.negatives;
        }
        score->candidates /= (double)slice->cases;
    }
}

/* Scores the cases of a group; groups NULL: all cases. means: [LP_PROTOCOL_COUNT x 2 x cutoffs]. */
static lapse_status score(const summing *sums, const uint8_t *groups, int group, lapse_rank_slice *slice,
                          lapse_mean *means, lapse_error *error)
{
    const lp_ranking *ranking = sums->ranking;
    int width = 1 + sums->columns, cutoffs = sums->options->cutoff_count;
    int64_t sequence = -1;
    double *part = NULL;
    for (int64_t c = 0; c < ranking->case_count; c++) {
        if (groups && groups[c] != group)
            continue;
        if (ranking->cases[c].sequence != sequence) {
            sequence = ranking->cases[c].sequence;
            part = sums->parts + (size_t)slice->sequences++ * (size_t)width;
            memset(part, 0, (size_t)width * sizeof *part);
        }
        add_case(sums, &ranking->results[c], part);
        slice->cases++;
    }
    if (slice->cases == 0)
        return LAPSE_OK;
    if (sums->options->bootstrap > 0)
        LP_TRY(lp_bootstrap(sums->parts, slice->sequences, sums->columns, sums->options->bootstrap,
                            ranking->setup.threads, sums->low, sums->high, error));
    double *total = sums->parts + (size_t)ranking->case_count * (size_t)width;
    memset(total, 0, (size_t)width * sizeof *total);
    for (int64_t s = 0; s < slice->sequences; s++)
        for (int i = 0; i < width; i++)
            total[i] += sums->parts[(size_t)s * (size_t)width + (size_t)i];
    count_candidates(sums, groups, group, slice);
    for (int p = 0, column = 0; p < LP_PROTOCOL_COUNT; p++, means += 2 * cutoffs) {
        slice->scores[p].hit = means;
        slice->scores[p].ndcg = means + cutoffs;
        for (int k = 0; k < cutoffs; k++) {
            means[k] = mean_of(sums, total, column++);
            means[cutoffs + k] = mean_of(sums, total, column++);
        }
        slice->scores[p].mrr = mean_of(sums, total, column++);
    }
    return LAPSE_OK;
}

static lapse_status score_slices(const summing *sums, const slicer *s, const slice_type *type, uint8_t *groups,
                                 lapse_rank_scores *scores, lapse_error *error)
{
    for (int64_t c = 0; c < sums->ranking->case_count; c++)
        groups[c] = (uint8_t)type->group(s, &sums->ranking->cases[c]);
    for (int g = 0; g < type->groups; g++) {
        lapse_rank_slice *slice = &scores->slices[scores->slice_count];
        size_t stride = (size_t)LP_PROTOCOL_COUNT * 2 * (size_t)scores->cutoff_count;
        *slice = (lapse_rank_slice){.by = type->by};
        type->name(s, g, slice->name, sizeof slice->name);
        LP_TRY(score(sums, groups, g, slice, scores->means + stride * (size_t)(1 + scores->slice_count), error));
        scores->slice_count += slice->cases > 0;
    }
    return LAPSE_OK;
}

static lapse_status score_all(const summing *sums, const int64_t *counts, uint8_t *groups, lapse_rank_scores *scores,
                              lapse_error *error)
{
    slicer s = {.ranking = sums->ranking, .counts = counts};
    scores->whole = (lapse_rank_slice){.by = "all", .name = "all"};
    LP_TRY(score(sums, NULL, 0, &scores->whole, scores->means, error));
    if (!sums->options->slices)
        return LAPSE_OK;
    LP_TRY(cut_popularity(&s, error));
    for (int k = 0; k < SLICE_TYPES; k++)
        LP_TRY(score_slices(sums, &s, &slice_types[k], groups, scores, error));
    return LAPSE_OK;
}

lapse_status lp_rank_scores_make(const lp_ranking *ranking, const int64_t *counts, const lapse_rank_options *options,
                                 lapse_rank_scores *scores, lapse_error *error)
{
    int cutoffs = options->cutoff_count, slices = options->slices ? SLICE_TYPES * MAX_GROUPS : 0;
    summing sums = {ranking, options, LP_PROTOCOL_COUNT * (2 * cutoffs + 1), NULL, NULL, NULL};
    size_t width = (size_t)sums.columns + 1;
    *scores = (lapse_rank_scores){.items = ranking->setup.items,
                                  .case_total = ranking->case_total,
                                  .negatives = ranking->setup.negatives,
                                  .negative_seed = ranking->setup.seed,
                                  .cutoff_count = cutoffs};
    sums.parts = lp_alloc((size_t)ranking->case_count + 1, width * sizeof *sums.parts);
    sums.low = lp_alloc(width, sizeof *sums.low);
    sums.high = lp_alloc(width, sizeof *sums.high);
    uint8_t *groups = lp_alloc((size_t)ranking->case_count, 1);
    scores->cutoffs = lp_alloc((size_t)cutoffs, sizeof *scores->cutoffs);
    scores->slices = lp_alloc((size_t)slices, sizeof *scores->slices);
    scores->means = lp_alloc((size_t)(1 + slices) * LP_PROTOCOL_COUNT * 2, (size_t)cutoffs * sizeof *scores->means);
    lapse_status status = LAPSE_OK;
    if (!sums.parts || !sums.low || !sums.high || !groups || !scores->cutoffs || !scores->slices || !scores->means)
        status = lp_fail_memory(error, "the scores", (size_t)ranking->case_count * width * sizeof(double));
    if (status == LAPSE_OK) {
        memcpy(scores->cutoffs, options->cutoffs, (size_t)cutoffs * sizeof *scores->cutoffs);
        status = score_all(&sums, counts, groups, scores, error);
    }
    lp_free(sums.parts);
    lp_free(sums.low);
    lp_free(sums.high);
    lp_free(groups);
    if (status != LAPSE_OK)
        lapse_rank_scores_clear(scores);
    return status;
}

void lapse_rank_scores_clear(lapse_rank_scores *scores)
{
    if (!scores)
        return;
    lp_free(scores->cutoffs);
    lp_free(scores->slices);
    lp_free(scores->means);
    *scores = (lapse_rank_scores){0};
}
