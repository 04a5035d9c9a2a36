/* reference_time_loss.c: the loss function of the time of the next event (hazard.h). The sums are in double. */
#include "backend/cpu/reference/reference.h"

#include "formula/hazard.h"

/* Returns the loss. dscore: of the rows, times dloss; NULL: not stored. dslope: the gradient of the slope, without dloss. */
static double run_rows(const lp_node *node, const lp_run *run, double dloss, real *dscore, double *dslope)
{
    const real *score = INPUT(0), *slope = INPUT(1);       /* [A], [1] */
    const double *gap = lp_run_data(run, node->inputs[2]); /* [A] */
    double loss = 0, by_score, by_slope;
    for (int t = 0; t < lp_run_rows(run, node->inputs[0]); t++) {
        loss += lp_hazard_loss((double)score[t], (double)*slope, gap[t], node->attributes.scale, &by_score, &by_slope);
        *dslope += by_slope;
        if (dscore)
            STORE(0, dscore[t], dloss * by_score);
    }
    return loss;
}

void LP_REFERENCE(time_loss)(const lp_node *node, const lp_run *run)
{
    double dslope = 0;
    *OUTPUT(0) = (real)run_rows(node, run, 0, NULL, &dslope);
}

void LP_REFERENCE(time_loss_gradient)(const lp_node *node, const lp_run *run)
{
    double dloss = (double)*INPUT(3), dslope = 0;
    run_rows(node, run, dloss, OUTPUT(0), &dslope);
    if (node->outputs[1])
        STORE(1, *OUTPUT(1), dloss * dslope);
}
