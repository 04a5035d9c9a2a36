/* reference_flow.c: elementwise ops (elementwise.h), noise, and masks of normalizing flows. */
#include "backend/cpu/reference/reference.h"
#include "backend/elementwise.h"

typedef real (*element)(real a, real b, double scale, double shift);

static void elementwise(const lp_node *node, const lp_run *run, element f)
{
    const real *a = INPUT(0), *b = INPUT(1); /* [rows x cols] */
    real *y = OUTPUT(0);
    for (size_t i = 0; i < lp_run_size(run, node->outputs[0]); i++)
        STORE(0, y[i], f(a[i], b ? b[i] : 0, node->attributes.scale, node->attributes.shift));
}

#define ELEMENTWISE(name, f)                                        \
    void LP_REFERENCE(name)(const lp_node *node, const lp_run *run) \
    {                                                               \
        elementwise(node, run, lp_element_##name);                  \
    }
LP_ELEMENTWISE(ELEMENTWISE)

void LP_REFERENCE(noise)(const lp_node *node, const lp_run *run)
{
    int size = (int)lp_run_size(run, node->outputs[0]);
    for (int i = 0; i < size; i++)
        OUTPUT(0)[i] = lp_element_noise(&node->attributes, run->seed, run->step, i, size);
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
