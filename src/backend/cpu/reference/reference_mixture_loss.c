/* reference_mixture_loss.c: the loss function of a mixture of log-normals of the time to the next event, in double. */
#include "backend/cpu/reference/reference.h"

#include "base/mixture.h"

/* Sums of exponentials relative to the largest: of a, and of a plus the log likelihood. */
typedef struct sums {
    lp_mixture_gap gap;
    double weight_most, weight_sum, most, sum;
} sums;

static double part(const real *row, int count, int k, lp_mixture_gap gap)
{
    return (double)row[k] +
           lp_mixture_log_part(gap, (double)row[count + k], lp_mixture_log_deviation((double)row[2 * count + k]));
}

static sums row_sums(const lp_attributes *attributes, const real *row, int count, double gap)
{
    sums s = {.gap = lp_mixture_gap_of(gap, attributes->epsilon, attributes->shift, attributes->scale),
              .weight_most = -INFINITY,
              .most = -INFINITY};
    for (int k = 0; k < count; k++) {
        s.weight_most = fmax(s.weight_most, (double)row[k]);
        s.most = fmax(s.most, part(row, count, k, s.gap));
    }
    for (int k = 0; k < count; k++) {
        s.weight_sum += exp((double)row[k] - s.weight_most);
        s.sum += exp(part(row, count, k, s.gap) - s.most);
    }
    return s;
}

void LP_REFERENCE(mixture_loss)(const lp_node *node, const lp_run *run)
{
    const real *mixture = INPUT(0);                        /* [A x 3K] */
    const double *gap = lp_run_data(run, node->inputs[1]); /* [A] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        sums s = row_sums(&node->attributes, mixture + (size_t)t * (size_t)cols, cols / 3, gap[t]);
        loss += s.weight_most + log(s.weight_sum) - s.most - log(s.sum) - lp_mixture_log_constant(s.gap);
    }
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(mixture_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const real *mixture = INPUT(0), *dloss = INPUT(2);
    const double *gap = lp_run_data(run, node->inputs[1]);
    real *dmixture = OUTPUT(0);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = cols / 3;
    for (int t = 0; t < rows; t++) {
        const real *row = mixture + (size_t)t * (size_t)cols;
        real *out = dmixture + (size_t)t * (size_t)cols;
        sums s = row_sums(&node->attributes, row, count, gap[t]);
        for (int k = 0; k < count; k++) {
            double l = lp_mixture_log_deviation((double)row[2 * count + k]), bend = l / LP_MIXTURE_BOUND;
            double z = (s.gap.y - (double)row[count + k]) * exp(-l), slope = lp_mixture_slope(s.gap, z);
            double p = exp((double)row[k] - s.weight_most) / s.weight_sum;
            double q = exp(part(row, count, k, s.gap) - s.most) / s.sum;
            STORE(0, out[k], (double)*dloss * (p - q));
            STORE(0, out[count + k], -(double)*dloss * q * slope * exp(-l));
            STORE(0, out[2 * count + k],
                  (double)*dloss * q * ((s.gap.censored ? 0 : 1) - slope * z) * (1 - bend * bend));
        }
    }
}
