#include "train/scores.h"

#include "train/bootstrap.h"

/* What one sequence adds to the sums: a row of lp_bootstrap. */
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
    for (int64_t i = 0; i < scores->type_count; i++) {
        lapse_class_score *type = &scores->types[i];
        double correct = (double)type->correct;
        type->precision = type->predicted ? correct / (double)type->predicted : 0;
        type->recall = type->cases ? correct / (double)type->cases : 0;
        type->f1 = type->correct ? 2 * correct / (double)(type->cases + type->predicted) : 0;
        if (type->cases) {
            sum += type->f1;
            happened++;
        }
    }
    scores->macro_f1 = happened ? sum / (double)happened : 0;
}

lapse_status lp_scores_make(const lp_case *cases, int64_t count, const lp_names *types, int bootstrap,
                            lapse_scores *scores, lapse_error *error)
{
    *scores = (lapse_scores){.cases = count, .type_count = types->count};
    scores->types = lp_alloc((size_t)types->count, sizeof *scores->types);
    part *parts = lp_alloc((size_t)count, sizeof *parts), total = {0};
    if (!scores->types || !parts) {
        lp_free(parts);
        lapse_scores_clear(scores);
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *parts);
    }
    for (int64_t i = 0; i < types->count; i++)
        scores->types[i].name = lp_names_get(types, i);
    for (int64_t i = 0; i < count; i++) {
        bool correct = cases[i].target == cases[i].predicted;
        if (i == 0 || cases[i].sequence != cases[i - 1].sequence)
            scores->sequences++;
        part *mine = &parts[scores->sequences - 1];
        *mine = (part){mine->cases + 1, mine->correct + correct, mine->loss + cases[i].loss};
        total = (part){total.cases + 1, total.correct + correct, total.loss + cases[i].loss};
        scores->types[cases[i].target].cases++;
        scores->types[cases[i].predicted].predicted++;
        scores->types[cases[i].target].correct += correct;
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
        lp_free(scores->types);
        *scores = (lapse_scores){0};
    }
}
