#include "train/scores.h"

#include "base/random.h"

#include <stdlib.h>

enum { BOOTSTRAP_SEED = 1 };

/* What one sequence adds to the sums. */
typedef struct part {
    double cases, correct, loss;
} part;

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int count, double share)
{
    double place = share * (count - 1);
    int low = (int)place;
    return low + 1 < count ? sorted[low] + (place - low) * (sorted[low + 1] - sorted[low]) : sorted[low];
}

/* The 95 % percentile interval over resampled sequences; the numbers drawn are always the same. */
static lapse_status intervals(const part *parts, int64_t count, int bootstrap, lapse_scores *scores, lapse_error *error)
{
    double *accuracy = lp_alloc((size_t)bootstrap, sizeof *accuracy), *loss = lp_alloc((size_t)bootstrap, sizeof *loss);
    if (!accuracy || !loss) {
        lp_free(accuracy);
        lp_free(loss);
        return lp_fail_memory(error, "the bootstrap", (size_t)bootstrap * 16);
    }
    for (int b = 0; b < bootstrap; b++) {
        lp_random random = lp_random_start(BOOTSTRAP_SEED, LP_PURPOSE_BOOTSTRAP, (uint32_t)b);
        part sum = {0};
        for (int64_t i = 0; i < count; i++) {
            const part *drawn = &parts[lp_random_below(&random, (uint32_t)count)];
            sum.cases += drawn->cases;
            sum.correct += drawn->correct;
            sum.loss += drawn->loss;
        }
        accuracy[b] = sum.correct / sum.cases;
        loss[b] = sum.loss / sum.cases;
    }
    qsort(accuracy, (size_t)bootstrap, sizeof *accuracy, compare_double);
    qsort(loss, (size_t)bootstrap, sizeof *loss, compare_double);
    scores->accuracy_low = quantile(accuracy, bootstrap, 0.025);
    scores->accuracy_high = quantile(accuracy, bootstrap, 0.975);
    scores->log_loss_low = quantile(loss, bootstrap, 0.025);
    scores->log_loss_high = quantile(loss, bootstrap, 0.975);
    lp_free(accuracy);
    lp_free(loss);
    return LAPSE_OK;
}

static void score_kinds(lapse_scores *scores)
{
    double sum = 0;
    int64_t happened = 0;
    for (int64_t i = 0; i < scores->kind_count; i++) {
        lapse_kind_score *kind = &scores->kinds[i];
        double correct = (double)kind->correct;
        kind->precision = kind->predicted ? correct / (double)kind->predicted : 0;
        kind->recall = kind->cases ? correct / (double)kind->cases : 0;
        kind->f1 = kind->correct ? 2 * correct / (double)(kind->cases + kind->predicted) : 0;
        if (kind->cases) {
            sum += kind->f1;
            happened++;
        }
    }
    scores->macro_f1 = happened ? sum / (double)happened : 0;
}

lapse_status lp_scores_make(const lp_case *cases, int64_t count, const lp_names *kinds, int bootstrap,
                            lapse_scores *scores, lapse_error *error)
{
    *scores = (lapse_scores){.cases = count, .kind_count = kinds->count};
    scores->kinds = lp_alloc((size_t)kinds->count, sizeof *scores->kinds);
    part *parts = lp_alloc((size_t)count, sizeof *parts), total = {0};
    if (!scores->kinds || !parts) {
        lp_free(parts);
        lapse_scores_clear(scores);
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *parts);
    }
    for (int64_t i = 0; i < kinds->count; i++)
        scores->kinds[i].name = lp_names_get(kinds, i);
    for (int64_t i = 0; i < count; i++) {
        bool correct = cases[i].target == cases[i].predicted;
        if (i == 0 || cases[i].sequence != cases[i - 1].sequence)
            scores->sequences++;
        part *mine = &parts[scores->sequences - 1];
        *mine = (part){mine->cases + 1, mine->correct + correct, mine->loss + cases[i].loss};
        total = (part){total.cases + 1, total.correct + correct, total.loss + cases[i].loss};
        scores->kinds[cases[i].target].cases++;
        scores->kinds[cases[i].predicted].predicted++;
        scores->kinds[cases[i].target].correct += correct;
    }
    scores->accuracy = scores->accuracy_low = scores->accuracy_high = total.correct / total.cases;
    scores->log_loss = scores->log_loss_low = scores->log_loss_high = total.loss / total.cases;
    score_kinds(scores);
    lapse_status status = LAPSE_OK;
    if (bootstrap > 0)
        status = intervals(parts, scores->sequences, bootstrap, scores, error);
    lp_free(parts);
    if (status != LAPSE_OK)
        lapse_scores_clear(scores);
    return status;
}

void lapse_scores_clear(lapse_scores *scores)
{
    if (scores) {
        lp_free(scores->kinds);
        *scores = (lapse_scores){0};
    }
}
