/* fast_mixture_loss.c: the loss function of the law of the time to the next event. The components of a row are
 * the lanes of a vector; sums over rows are in double. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "formula/mixture.h"

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

/* lp_mixture_part_of for a gap that has ended, with a background. With g = exp(-z^2 / 2), c = hazard sqrt(2 pi) deviation and Q the tail,
 * the likelihood is (g + c Q) / deviation; above 0 the factor g is left out of the logarithm, so that it does not underflow. */
static void add_background(terms *t, const float *row, int count, float hazard)
{
    const float bound = (float)LP_MIXTURE_BOUND, root_2_pi = 2.50662827f;
    float *bend = t->bend, *narrow = t->narrow, *at = t->z, *slope = t->slope, *likelihood = t->likelihood;
    float *part = t->own;
#pragma omp simd
    for (int k = 0; k < count; k++) {
        float z = at[k], half = z * z / 2, g = fast_exp_low(-half), c = hazard * root_2_pi / narrow[k];
        float ratio = fast_normal_tail_ratio(z < 0 ? -z : z);
        float tail = z < 0 ? 1 - ratio * g : ratio, own = z < 0 ? g : 1; /* Q and g; above 0 both divided by g */
        float sum = own + c * tail, normal_hazard = own / (root_2_pi * tail);
        sum = sum < 1e-37f ? 1e-37f : sum;
        own /= sum;
        part[k] = own;
        slope[k] = own * z + (1 - own) * normal_hazard;
        likelihood[k] = row[k] - bound * bend[k] - (z < 0 ? 0 : half) + fast_log(sum);
    }
}

static void fill(terms *t, const float *row, int count, lp_mixture_gap gap)
{
    const float bound = (float)LP_MIXTURE_BOUND, y = (float)gap.y;
    float *bend = t->bend, *narrow = t->narrow, *z = t->z, *slope = t->slope, *own = t->own;
    float *likelihood = t->likelihood;
    exponentials(row + 2 * count, bend, count, 2 / bound);
#pragma omp simd
    for (int k = 0; k < count; k++)
        bend[k] = 1 - 2 / (bend[k] + 1); /* tanh */
    exponentials(bend, narrow, count, -bound);
#pragma omp simd
    for (int k = 0; k < count; k++) {
        z[k] = slope[k] = (y - row[count + k]) * narrow[k];
        own[k] = 1;
        likelihood[k] = row[k] - bound * bend[k] - z[k] * z[k] / 2;
    }
    /* At most one row of a sequence is censored, so these functions of the tail need no vectors. */
    for (int k = 0; gap.censored && k < count; k++) {
        lp_mixture_part part = lp_mixture_part_of(gap, (double)(bound * t->bend[k]), (double)t->z[k]);
        t->slope[k] = (float)part.slope;
        t->own[k] = (float)part.own;
        t->likelihood[k] = row[k] + (float)part.log_likelihood;
    }
    if (!gap.censored && gap.hazard > 0)
        add_background(t, row, count, (float)gap.hazard);
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
        loss +=
            (double)(t.weight_most - t.most) + log((double)t.weight_sum / (double)t.sum) - lp_mixture_log_common(seen);
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
