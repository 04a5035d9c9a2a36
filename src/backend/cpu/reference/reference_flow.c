/* reference_flow.c: noise, and the ops of normalizing flows. */
#include "backend/cpu/reference/reference.h"

void LP_REFERENCE(noise)(const lp_node *node, const lp_run *run)
{
    real *y = OUTPUT(0);
    size_t size = lp_run_size(run, node->outputs[0]);
    lp_random random = lp_random_start(run->seed, (uint32_t)LP_PURPOSE_NOISE | node->attributes.stream << 8, run->step);
    for (size_t i = 0; i < size; i++) {
        double u = lp_random_uniform(&random), p = node->attributes.independent ? u : ((double)i + u) / (double)size;
        y[i] = (real)(node->attributes.uniform ? p : lp_normal_quantile(p));
    }
}

void LP_REFERENCE(multiply)(const lp_node *node, const lp_run *run)
{
    const real *a = INPUT(0), *b = INPUT(1);
    real *y = OUTPUT(0);
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        STORE(0, y[i], a[i] * b[i]);
}

void LP_REFERENCE(affine)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0), scale = (real)node->attributes.scale, shift = (real)node->attributes.shift;
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        STORE(0, y[i], scale * x[i] + shift);
}

void LP_REFERENCE(exp)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0);
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        y[i] = (real)exp((double)x[i]);
}

void LP_REFERENCE(tanh)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0);
    double bound = node->attributes.scale;
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        y[i] = (real)(bound * tanh((double)x[i] / bound));
}

void LP_REFERENCE(tanh_gradient)(const lp_node *node, const lp_run *run)
{
    const real *y = INPUT(0), *dy = INPUT(1);
    real *dx = OUTPUT(0), bound = (real)node->attributes.scale;
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        STORE(0, dx[i], dy[i] * (1 - y[i] / bound * (y[i] / bound)));
}

void LP_REFERENCE(log_abs)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0);
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        y[i] = (real)log(hypot((double)x[i], node->attributes.scale));
}

void LP_REFERENCE(log_abs_gradient)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *dy = INPUT(1);
    real *dx = OUTPUT(0), least = (real)node->attributes.scale;
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        STORE(0, dx[i], dy[i] * x[i] / (x[i] * x[i] + least * least));
}

void LP_REFERENCE(mask)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [rows x cols] */
    real *y = OUTPUT(0);
    int cols = node->outputs[0]->cols;
    for (int r = 0; r < lp_run_rows(run, node->outputs[0]); r++)
        for (int c = 0; c < cols; c++) {
            size_t i = (size_t)r * (size_t)cols + (size_t)c;
            STORE(0, y[i], lp_mask_keeps(&node->attributes, r, c) ? x[i] : 0);
        }
}
