/* fast_mixture_loss.c: the loss function of the law of the time to the next event. The components of a row are
 * the lanes of a vector; sums over rows are in double. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "base/mixture.h"

/* Of a row: per component; and sums of exponentials relative to the largest, of a and of a plus the log likelihood. */
typedef struct terms {
    float *narrow, *z, *bend;   /* 1 / deviation; (y - m) / deviation; l / B */
    float *slope, *own;         /* lp_mixture_part */
    float *weight, *likelihood; /* exponentials */
    float weight_most, most;
    float weight_sum, sum;
} terms;

static terms terms_in(const lp_run *run, int count)
{
    float *memory = (float *)(void *)run->scratch;
    return (terms){.narrow = memory,
                   .z = memory + count,
                   .bend = memory + 2 * count,
                   .slope = memory + 3 * count,
                   .weight = memory + 4 * count,
                   .likelihood = memory + 5 * count,
                   .own = memory + 6 * count};
}

static float largest(const float *row, int count)
{
    float most = row[0];
    for (int k = 1; k < count; k++)
        most = row[k] > most ? row[k] : most;
    return most;
}

static float powers(const float *row, float *out, int count, float most)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < count; k++) {
        out[k] = fast_exp(row[k] - most);
        sum += out[k];
    }
    return sum;
}

static void fill(terms *restrict t, const float *restrict row, int count, lp_mixture_gap gap)
{
    const float bound = (float)LP_MIXTURE_BOUND, y = (float)gap.y;
#pragma omp simd
    for (int k = 0; k < count; k++) {
        float bend = 1 - 2 / (fast_exp(2 / bound * row[2 * count + k]) + 1), l = bound * bend;
        t->bend[k] = bend;
        t->narrow[k] = fast_exp(-l);
        t->z[k] = (y - row[count + k]) * t->narrow[k];
        t->slope[k] = t->z[k];
        t->own[k] = 1;
        t->likelihood[k] = row[k] - l - t->z[k] * t->z[k] / 2;
    }
    /* Functions of the tail: of one row of a sequence at most, or of all with a background. */
    for (int k = 0; (gap.censored || gap.hazard > 0) && k < count; k++) {
        lp_mixture_part part = lp_mixture_part_of(gap, (double)(bound * t->bend[k]), (double)t->z[k]);
        t->slope[k] = (float)part.slope;
        t->own[k] = (float)part.own;
        t->likelihood[k] = row[k] + (float)part.log_likelihood;
    }
    t->weight_most = largest(row, count);
    t->most = largest(t->likelihood, count);
    t->weight_sum = powers(row, t->weight, count, t->weight_most);
    t->sum = powers(t->likelihood, t->likelihood, count, t->most);
}

static lp_mixture_gap gap_of(const lp_node *node, const lp_run *run, int row)
{
    const lp_attributes *attributes = &node->attributes;
    const double *gap = lp_run_data(run, node->inputs[1]); /* [A] */
    const double *season = node->inputs[2] ? (const double *)lp_run_data(run, node->inputs[2]) + 2 * (size_t)row : NULL;
    size_t cols = (size_t)node->inputs[0]->cols;
    return lp_mixture_gap_of(gap[row], attributes->epsilon, attributes->shift, attributes->scale, season,
                             (double)INPUT(0)[((size_t)row + 1) * cols - 1]);
}

void LP_FAST(mixture_loss)(const lp_node *node, const lp_run *run)
{
    const float *mixture = INPUT(0); /* [A x 3K], or [A x 3K + 1] with a background */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    terms t = terms_in(run, cols / 3);
    double loss = 0;
    for (int a = 0; a < rows; a++) {
        lp_mixture_gap seen = gap_of(node, run, a);
        fill(&t, mixture + (size_t)a * (size_t)cols, cols / 3, seen);
        loss += (double)(t.weight_most - t.most) + log((double)t.weight_sum / (double)t.sum) -
                lp_mixture_log_common(seen);
    }
    *OUTPUT(0) = (float)loss;
}

void LP_FAST(mixture_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const float *mixture = INPUT(0), seed = *INPUT(3);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = cols / 3;
    terms t = terms_in(run, count);
    bool added = ADDED(0);
    for (int a = 0; a < rows; a++) {
        const float *row = mixture + (size_t)a * (size_t)cols;
        float *restrict out = OUTPUT(0) + (size_t)a * (size_t)cols;
        lp_mixture_gap seen = gap_of(node, run, a);
        fill(&t, row, count, seen);
        float of_weights = 1 / t.weight_sum, of_all = 1 / t.sum, rest = 0;
#pragma omp simd reduction(+ : rest)
        for (int k = 0; k < count; k++) {
            float p = t.weight[k] * of_weights, q = t.likelihood[k] * of_all, z = t.z[k], slope = t.slope[k];
            out[k] = (added ? out[k] : 0) + seed * (p - q);
            out[count + k] = (added ? out[count + k] : 0) - seed * q * slope * t.narrow[k];
            out[2 * count + k] =
                (added ? out[2 * count + k] : 0) + seed * q * (t.own[k] - slope * z) * (1 - t.bend[k] * t.bend[k]);
            rest += q * (1 - t.own[k]);
        }
        if (cols > 3 * count)
            out[3 * count] = (added ? out[3 * count] : 0) -
                             seed * (float)lp_mixture_background_slope(seen, (double)rest, (double)row[3 * count],
                                                                       node->attributes.scale);
    }
}
