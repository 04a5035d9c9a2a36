/* reference_mixture_loss.c: the loss function of the law of the time to the next event, in double. */
#include "backend/cpu/reference/reference.h"

#include "base/mixture.h"

/* A row [3K], or [3K + 1] with a background, and its gap. */
typedef struct mixture_row {
    const real *numbers;
    int count; /* K */
    lp_mixture_gap gap;
    /* Sums of exponentials relative to the largest: of a, and of a plus the log likelihood. */
    double weight_most, weight_sum, most, sum;
} mixture_row;

static double z_of(const mixture_row *row, int k, double l)
{
    return (row->gap.y - (double)row->numbers[row->count + k]) * exp(-l);
}

static lp_mixture_part part(const mixture_row *row, int k)
{
    double l = lp_mixture_bounded((double)row->numbers[2 * row->count + k]);
    return lp_mixture_part_of(row->gap, l, z_of(row, k, l));
}

static double log_term(const mixture_row *row, int k)
{
    return (double)row->numbers[k] + part(row, k).log_likelihood;
}

static mixture_row row_of(const lp_node *node, const lp_run *run, int t)
{
    const lp_attributes *attributes = &node->attributes;
    const double *gap = lp_run_data(run, node->inputs[1]);
    const double *season = node->inputs[2] ? (const double *)lp_run_data(run, node->inputs[2]) + 2 * (size_t)t : NULL;
    int cols = node->inputs[0]->cols;
    const real *numbers = INPUT(0) + (size_t)t * (size_t)cols;
    mixture_row row = {.numbers = numbers,
                       .count = cols / 3,
                       .gap = lp_mixture_gap_of(gap[t], attributes->epsilon, attributes->shift, attributes->scale,
                                                season, (double)numbers[cols - 1]),
                       .weight_most = -INFINITY,
                       .most = -INFINITY};
    for (int k = 0; k < row.count; k++) {
        row.weight_most = fmax(row.weight_most, (double)numbers[k]);
        row.most = fmax(row.most, log_term(&row, k));
    }
    for (int k = 0; k < row.count; k++) {
        row.weight_sum += exp((double)numbers[k] - row.weight_most);
        row.sum += exp(log_term(&row, k) - row.most);
    }
    return row;
}

void LP_REFERENCE(mixture_loss)(const lp_node *node, const lp_run *run)
{
    int rows = lp_run_rows(run, node->inputs[0]);
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        mixture_row row = row_of(node, run, t);
        loss += row.weight_most + log(row.weight_sum) - row.most - log(row.sum) - lp_mixture_log_common(row.gap);
    }
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(mixture_loss_gradient)(const lp_node *node, const lp_run *run)
{
    double dloss = (double)*INPUT(3);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = cols / 3;
    for (int t = 0; t < rows; t++) {
        mixture_row row = row_of(node, run, t);
        real *out = OUTPUT(0) + (size_t)t * (size_t)cols;
        double rest = 0;
        for (int k = 0; k < count; k++) {
            double l = lp_mixture_bounded((double)row.numbers[2 * count + k]), bend = l / LP_MIXTURE_BOUND;
            lp_mixture_part one = part(&row, k);
            double p = exp((double)row.numbers[k] - row.weight_most) / row.weight_sum;
            double q = exp(log_term(&row, k) - row.most) / row.sum;
            STORE(0, out[k], dloss * (p - q));
            STORE(0, out[count + k], -dloss * q * one.slope * exp(-l));
            STORE(0, out[2 * count + k], dloss * q * (one.own - one.slope * z_of(&row, k, l)) * (1 - bend * bend));
            rest += q * (1 - one.own);
        }
        if (cols > 3 * count)
            STORE(0, out[3 * count],
                  -dloss * lp_mixture_background_slope(row.gap, rest, (double)row.numbers[3 * count],
                                                       node->attributes.scale));
    }
}
