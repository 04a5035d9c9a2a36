/* reference_softmax.c: softmax over the columns of each row, and the cross-entropy with classes or soft targets (softmax_row.h). */
#include "backend/cpu/reference/reference.h"
#include "formula/softmax_row.h"

/* The gradient has dy. */
void LP_REFERENCE(softmax)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *dy = INPUT(1); /* [T x C] */
    int cols = node->inputs[0]->cols;
    for (int t = 0; t < lp_run_rows(run, node->inputs[0]); t++) {
        size_t first = (size_t)t * cols;
        lp_softmax_row(x + first, dy ? dy + first : NULL, cols, OUTPUT(0) + first, node->accumulate & 1, 0);
    }
}

void LP_REFERENCE(softmax_gradient)(const lp_node *node, const lp_run *run)
{
    LP_REFERENCE(softmax)(node, run);
}

/* Targets: classes [A], or probabilities [A x C]. dloss: NULL: the loss, otherwise the gradient of the logits. */
static void cross_entropy(const lp_node *node, const lp_run *run, const int32_t *classes, const real *dloss)
{
    const real *logits = INPUT(0); /* [A x C] */
    int cols = node->inputs[0]->cols;
    double loss = 0;
    for (int t = 0; t < lp_run_rows(run, node->inputs[0]); t++) {
        size_t first = (size_t)t * cols;
        loss += lp_cross_entropy_row(logits + first, classes ? NULL : INPUT(1) + first, classes ? classes[t] : 0, cols,
                                     dloss, dloss ? OUTPUT(0) + first : NULL, node->accumulate & 1, 0);
    }
    if (!dloss)
        *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(cross_entropy)(const lp_node *node, const lp_run *run)
{
    cross_entropy(node, run, lp_run_data(run, node->inputs[1]), NULL);
}

void LP_REFERENCE(cross_entropy_gradient)(const lp_node *node, const lp_run *run)
{
    cross_entropy(node, run, lp_run_data(run, node->inputs[1]), INPUT(2));
}

void LP_REFERENCE(soft_loss)(const lp_node *node, const lp_run *run)
{
    cross_entropy(node, run, NULL, NULL);
}

void LP_REFERENCE(soft_loss_gradient)(const lp_node *node, const lp_run *run)
{
    cross_entropy(node, run, NULL, INPUT(2));
}
