/* reference_basic.c: row-wise kernels: embed, gather, dropout, layer norm. */
#include "backend/cpu/reference/reference.h"

#include "backend/elementwise.h"

#include <string.h>

void LP_REFERENCE(place_columns)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols, from = node->inputs[0]->cols;
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            STORE(0, y[(size_t)t * cols + c], lp_element_placed(x + (size_t)t * from, from, node->attributes.first, c));
}

void LP_REFERENCE(embed)(const lp_node *node, const lp_run *run)
{
    const real *table = INPUT(0);                           /* [V x cols] */
    const int32_t *ids = lp_run_data(run, node->inputs[1]); /* [T] */
    real *y = OUTPUT(0);                                    /* [T x cols] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            y[(size_t)t * cols + c] = table[(size_t)ids[t] * cols + c];
}

void LP_REFERENCE(embed_gradient)(const lp_node *node, const lp_run *run)
{
    const real *dy = INPUT(0);                              /* [T x cols] */
    const int32_t *ids = lp_run_data(run, node->inputs[1]); /* [T] */
    real *dtable = OUTPUT(0);                               /* [V x cols] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (!(node->accumulate & 1))
        memset(dtable, 0, (size_t)lp_run_rows(run, node->outputs[0]) * (size_t)cols * sizeof *dtable);
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            dtable[(size_t)ids[t] * cols + c] += dy[(size_t)t * cols + c];
}

void LP_REFERENCE(embed_pair)(const lp_node *node, const lp_run *run)
{
    const real *a = INPUT(0), *b = INPUT(2); /* [V x cols], [W x cols] */
    const int32_t *i = lp_run_data(run, node->inputs[1]), *j = lp_run_data(run, node->inputs[3]); /* [T] */
    real *y = OUTPUT(0);                                                                          /* [T x cols] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            y[(size_t)t * cols + c] = a[(size_t)i[t] * cols + c] + b[(size_t)j[t] * cols + c];
}

void LP_REFERENCE(gather)(const lp_node *node, const lp_run *run)
{
    LP_REFERENCE(embed)(node, run); /* same kernel, different gradient */
}

void LP_REFERENCE(dropout)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0);
    real *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    uint32_t threshold = lp_dropout_threshold(node->attributes.rate),
             purpose = lp_dropout_purpose(node->attributes.stream);
    real scale = (real)(65536.0 / (65536.0 - threshold));
    for (int t = 0; t < rows; t++) {
        lp_random_block block = {{0}};
        for (int c = 0; c < cols; c++) {
            size_t i = (size_t)t * cols + c;
            if (c % 8 == 0)
                block = lp_philox(run->seed, purpose, run->step, (run->first_token + t) * 65536 + c / 8);
            STORE(0, y[i], lp_dropout_keep(&block, c, threshold) ? x[i] * scale : 0);
        }
    }
}

void LP_REFERENCE(layer_norm)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2); /* [T x cols], [cols], [cols] */
    real *y = OUTPUT(0), *moments = OUTPUT(1);                      /* [T x cols], [T x 2] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        const real *row = x + (size_t)t * cols;
        real mean = 0, variance = 0;
        for (int c = 0; c < cols; c++)
            mean += row[c];
        mean /= (real)cols;
        for (int c = 0; c < cols; c++)
            variance += (row[c] - mean) * (row[c] - mean);
        real inverse = (real)(1 / sqrt((double)(variance / (real)cols) + node->attributes.epsilon));
        for (int c = 0; c < cols; c++)
            y[(size_t)t * cols + c] = (row[c] - mean) * inverse * weight[c] + bias[c];
        moments[2 * t] = mean;
        moments[2 * t + 1] = inverse;
    }
}

/* With n = (x - mean) * inverse and g = dy * weight:  dx = inverse * (g - mean(g) - n * mean(g n)) */
void LP_REFERENCE(layer_norm_gradient)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1), *moments = INPUT(2), *dy = INPUT(3);
    real *dx = OUTPUT(0), *dweight = OUTPUT(1), *dbias = OUTPUT(2);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int c = 0; c < cols; c++) {
        if (dweight)
            STORE(1, dweight[c], 0);
        if (dbias)
            STORE(2, dbias[c], 0);
    }
    for (int t = 0; t < rows; t++) {
        const real *row = x + (size_t)t * cols, *drow = dy + (size_t)t * cols;
        real mean = moments[2 * t], inverse = moments[2 * t + 1], sum = 0, dot = 0;
        for (int c = 0; c < cols; c++) {
            real normal = (row[c] - mean) * inverse, g = drow[c] * weight[c];
            sum += g;
            dot += g * normal;
            if (dweight)
                dweight[c] += drow[c] * normal;
            if (dbias)
                dbias[c] += drow[c];
        }
        for (int c = 0; dx && c < cols; c++) {
            real normal = (row[c] - mean) * inverse, g = drow[c] * weight[c];
            STORE(0, dx[(size_t)t * cols + c], inverse * (g - sum / (real)cols - normal * dot / (real)cols));
        }
    }
}
