/* reference_time_loss.c: the loss function of the time of the next event. The sums are in double. */
#include "backend/cpu/reference/reference.h"

#include "base/hazard.h"

void LP_REFERENCE(time_loss)(const lp_node *node, const lp_run *run)
{
    const real *score = INPUT(0), *slope = INPUT(1);       /* [A], [1] */
    const double *gap = lp_run_data(run, node->inputs[2]); /* [A] */
    int rows = lp_run_rows(run, node->inputs[0]);
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        double d = fabs(gap[t]) * node->attributes.scale, s = (double)score[t], w = (double)*slope;
        double hazard = lp_hazard_cumulative(s, w, d);
        loss += gap[t] < 0 ? hazard : hazard - s - w * d;
    }
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(time_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const real *score = INPUT(0), *slope = INPUT(1), *dloss = INPUT(3);
    const double *gap = lp_run_data(run, node->inputs[2]);
    real *dscore = OUTPUT(0), *dslope = OUTPUT(1);
    int rows = lp_run_rows(run, node->inputs[0]);
    double sum = 0;
    for (int t = 0; t < rows; t++) {
        double d = fabs(gap[t]) * node->attributes.scale, w = (double)*slope, ended = gap[t] < 0 ? 0 : 1;
        double hazard = lp_hazard_cumulative((double)score[t], w, d);
        if (dscore)
            STORE(0, dscore[t], (double)*dloss * (hazard - ended));
        sum += hazard * lp_hazard_log_slope(w, d) - ended * d;
    }
    if (dslope)
        STORE(1, *dslope, (double)*dloss * sum);
}
