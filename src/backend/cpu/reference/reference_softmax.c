/* reference_softmax.c: softmax over the columns of each row, and the cross-entropy with soft targets. */
#include "backend/cpu/reference/reference.h"

/* log-sum-exp of a row */
static double log_sum(const real *row, int cols)
{
    double largest = (double)row[0], sum = 0;
    for (int c = 1; c < cols; c++)
        largest = fmax(largest, (double)row[c]);
    for (int c = 0; c < cols; c++)
        sum += exp((double)row[c] - largest);
    return largest + log(sum);
}

void LP_REFERENCE(softmax)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [T x C] */
    real *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        double log = log_sum(x + (size_t)t * cols, cols);
        for (size_t i = (size_t)t * cols; i < (size_t)(t + 1) * cols; i++)
            y[i] = (real)exp((double)x[i] - log);
    }
}

void LP_REFERENCE(softmax_gradient)(const lp_node *node, const lp_run *run)
{
    const real *y = INPUT(0), *dy = INPUT(1); /* [T x C] */
    real *dx = OUTPUT(0);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        size_t first = (size_t)t * cols, end = first + (size_t)cols;
        real dot = 0;
        for (size_t i = first; i < end; i++)
            dot += y[i] * dy[i];
        for (size_t i = first; i < end; i++)
            STORE(0, dx[i], y[i] * (dy[i] - dot));
    }
}

void LP_REFERENCE(soft_loss)(const lp_node *node, const lp_run *run)
{
    const real *logits = INPUT(0), *target = INPUT(1); /* [A x C] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        double log = log_sum(logits + (size_t)t * cols, cols);
        for (size_t i = (size_t)t * cols; i < (size_t)(t + 1) * cols; i++)
            loss += (double)target[i] * (log - (double)logits[i]);
    }
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(soft_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const real *logits = INPUT(0), *target = INPUT(1), *dloss = INPUT(2);
    real *dlogits = OUTPUT(0);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        size_t first = (size_t)t * cols, end = first + (size_t)cols;
        double log = log_sum(logits + first, cols), mass = 0;
        for (size_t i = first; i < end; i++)
            mass += (double)target[i];
        for (size_t i = first; i < end; i++)
            STORE(0, dlogits[i], (double)*dloss * (mass * exp((double)logits[i] - log) - (double)target[i]));
    }
}
