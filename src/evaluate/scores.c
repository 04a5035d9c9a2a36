/* scores.c: accuracy, log-loss and per-class precision, recall and F1 of predictions. */
#include "evaluate/scores.h"

#include "evaluate/bootstrap.h"

/* Sums over one sequence: a row of lp_bootstrap's parts. */
typedef struct part {
    double cases, correct, loss;
} part;

static lapse_status intervals(const part *parts, int64_t count, int bootstrap, lapse_scores *scores, lapse_error *error)
{
    double low[2], high[2];
    LP_TRY(lp_bootstrap(&parts->cases, count, 2, bootstrap, 1, low, high, error));
    scores->accuracy_low = low[0];
    scores->accuracy_high = high[0];
    scores->log_loss_low = low[1];
    scores->log_loss_high = high[1];
    return LAPSE_OK;
}

static void score_classes(lapse_scores *scores)
{
    double sum = 0;
    int64_t happened = 0;
    for (int64_t i = 0; i < scores->class_count; i++) {
        lapse_class_score *class = &scores->classes[i];
        double correct = (double)class->correct;
        class->precision = class->predicted ? correct / (double)class->predicted : 0;
        class->recall = class->cases ? correct / (double)class->cases : 0;
        class->f1 = class->correct ? 2 * correct / (double)(class->cases + class->predicted) : 0;
        if (class->cases) {
            sum += class->f1;
            happened++;
        }
    }
    scores->macro_f1 = happened ? sum / (double)happened : 0;
}

lapse_status lp_scores_make(const lp_case *cases, int64_t count, const lp_names *names, int bootstrap,
                            lapse_scores *scores, lapse_error *error)
{
    *scores = (lapse_scores){.cases = count, .class_count = names->count};
    scores->classes = lp_alloc((size_t)names->count, sizeof *scores->classes);
    part *parts = lp_alloc((size_t)count, sizeof *parts), total = {0};
    if (!scores->classes || !parts) {
        lp_free(parts);
        lapse_scores_clear(scores);
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *parts);
    }
    for (int64_t i = 0; i < names->count; i++)
        scores->classes[i].name = lp_names_get(names, i);
    for (int64_t i = 0; i < count; i++) {
        bool correct = cases[i].target == cases[i].predicted;
        if (i == 0 || cases[i].sequence != cases[i - 1].sequence)
            scores->sequences++;
        part *sum = &parts[scores->sequences - 1];
        *sum = (part){sum->cases + 1, sum->correct + correct, sum->loss + cases[i].loss};
        total = (part){total.cases + 1, total.correct + correct, total.loss + cases[i].loss};
        scores->classes[cases[i].target].cases++;
        scores->classes[cases[i].predicted].predicted++;
        scores->classes[cases[i].target].correct += correct;
    }
    scores->accuracy = scores->accuracy_low = scores->accuracy_high = total.correct / total.cases;
    scores->log_loss = scores->log_loss_low = scores->log_loss_high = total.loss / total.cases;
    score_classes(scores);
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
        lp_free(scores->classes);
        *scores = (lapse_scores){0};
    }
}
