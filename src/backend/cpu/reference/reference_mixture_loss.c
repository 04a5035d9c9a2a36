/* reference_mixture_loss.c: the loss function of the law of the time to the next event, in double. */
#include "backend/cpu/reference/reference.h"

#include "formula/mixture_row.h"

/* out: of the gradient; NULL: only the loss. */
static double row_loss(const lp_node *node, const lp_run *run, int t, double dloss, real *out)
{
    const lp_attributes *attributes = &node->attributes;
    const double *gap = lp_run_data(run, node->inputs[1]);
    const double *season = node->inputs[2] ? (const double *)lp_run_data(run, node->inputs[2]) + 2 * (size_t)t : NULL;
    int cols = node->inputs[0]->cols;
    const real *numbers = INPUT(0) + (size_t)t * (size_t)cols;
    lp_mixture_gap seen = lp_mixture_gap_of(gap[t], attributes->epsilon, attributes->shift, attributes->scale, season,
                                            (double)numbers[cols - 1]);
    return lp_mixture_row(numbers, cols, seen, attributes->scale, dloss, out, node->accumulate & 1);
}

void LP_REFERENCE(mixture_loss)(const lp_node *node, const lp_run *run)
{
    double loss = 0;
    for (int t = 0; t < lp_run_rows(run, node->inputs[0]); t++)
        loss += row_loss(node, run, t, 0, NULL);
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(mixture_loss_gradient)(const lp_node *node, const lp_run *run)
{
    for (int t = 0; t < lp_run_rows(run, node->inputs[0]); t++)
        row_loss(node, run, t, (double)*INPUT(3), OUTPUT(0) + (size_t)t * (size_t)node->inputs[0]->cols);
}
