/* fast_mixture_loss.c: the loss function of a mixture of log-normals of the time to the next event. The components of a row are
 * the lanes of a vector; sums over rows are in double. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "base/mixture.h"

/* Of a row: per component; and sums of exponentials relative to the largest, of a and of a plus the log likelihood. */
typedef struct terms {
    float *narrow, *z, *bend;   /* 1 / deviation; (y - m) / deviation; l / B */
    float *slope;               /* lp_mixture_slope */
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
                   .likelihood = memory + 5 * count};
}

static float largest(const float *row, int count)
{
    float most = row[0];
#pragma omp simd reduction(max : most)
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

/* out = e^row; a loop of its own, which compilers vectorize. */
static void exponentials(const float *row, float *out, int count, float scale)
{
#pragma omp simd
    for (int k = 0; k < count; k++)
        out[k] = fast_exp(scale * row[k]);
}

static void fill(terms *t, const float *row, int count, lp_mixture_gap gap)
{
    const float bound = (float)LP_MIXTURE_BOUND, y = (float)gap.y;
    float *bend = t->bend, *narrow = t->narrow, *z = t->z, *slope = t->slope, *likelihood = t->likelihood;
    exponentials(row + 2 * count, bend, count, 2 / bound);
#pragma omp simd
    for (int k = 0; k < count; k++)
        bend[k] = 1 - 2 / (bend[k] + 1); /* tanh */
    exponentials(bend, narrow, count, -bound);
#pragma omp simd
    for (int k = 0; k < count; k++) {
        z[k] = slope[k] = (y - row[count + k]) * narrow[k];
        likelihood[k] = row[k] - bound * bend[k] - z[k] * z[k] / 2;
    }
    /* At most one row of a sequence is censored, so these functions of the tail need no vectors. */
    for (int k = 0; gap.censored && k < count; k++) {
        t->slope[k] = (float)lp_normal_hazard((double)t->z[k]);
        t->likelihood[k] = row[k] + (float)lp_normal_log_tail((double)t->z[k]);
    }
    t->weight_most = largest(row, count);
    t->most = largest(t->likelihood, count);
    t->weight_sum = powers(row, t->weight, count, t->weight_most);
    t->sum = powers(t->likelihood, t->likelihood, count, t->most);
}

static lp_mixture_gap gap_of(const lp_node *node, double gap)
{
    const lp_attributes *attributes = &node->attributes;
    return lp_mixture_gap_of(gap, attributes->epsilon, attributes->shift, attributes->scale);
}

void LP_FAST(mixture_loss)(const lp_node *node, const lp_run *run)
{
    const float *mixture = INPUT(0);                       /* [A x 3K] */
    const double *gap = lp_run_data(run, node->inputs[1]); /* [A] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    terms t = terms_in(run, cols / 3);
    double loss = 0;
    for (int a = 0; a < rows; a++) {
        lp_mixture_gap seen = gap_of(node, gap[a]);
        fill(&t, mixture + (size_t)a * (size_t)cols, cols / 3, seen);
        loss += (double)(t.weight_most - t.most) + log((double)t.weight_sum / (double)t.sum) -
                lp_mixture_log_constant(seen);
    }
    *OUTPUT(0) = (float)loss;
}

void LP_FAST(mixture_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const float *mixture = INPUT(0), seed = *INPUT(2);
    const double *gap = lp_run_data(run, node->inputs[1]);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = cols / 3;
    terms t = terms_in(run, count);
    bool added = ADDED(0);
    for (int a = 0; a < rows; a++) {
        float *restrict out = OUTPUT(0) + (size_t)a * (size_t)cols;
        lp_mixture_gap seen = gap_of(node, gap[a]);
        fill(&t, mixture + (size_t)a * (size_t)cols, count, seen);
        float of_weights = 1 / t.weight_sum, of_all = 1 / t.sum, one = seen.censored ? 0 : 1;
#pragma omp simd
        for (int k = 0; k < count; k++) {
            float p = t.weight[k] * of_weights, q = t.likelihood[k] * of_all, z = t.z[k], slope = t.slope[k];
            out[k] = (added ? out[k] : 0) + seed * (p - q);
            out[count + k] = (added ? out[count + k] : 0) - seed * q * slope * t.narrow[k];
            out[2 * count + k] =
                (added ? out[2 * count + k] : 0) + seed * q * (one - slope * z) * (1 - t.bend[k] * t.bend[k]);
        }
    }
}
