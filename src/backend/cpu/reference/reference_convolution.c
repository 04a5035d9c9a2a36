/* reference_convolution.c: convolutions over the tokens of packed sequences. */
#include "backend/cpu/reference/reference.h"

/* Calls of a kernel for each token t of segment begin .. end - 1. */
#define FOR_EACH_TOKEN                                                                                             \
    for (int s = 0, begin, end; s < run->segments && (begin = run->segment[s], end = run->segment[s + 1], 1); s++) \
        for (int t = begin; t < end; t++)

void LP_REFERENCE(fold)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *bias = INPUT(1); /* [T x height*a], [a] */
    real *y = OUTPUT(0);                        /* [T x a] */
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    FOR_EACH_TOKEN
    for (int c = 0; c < cols; c++) {
        real sum = bias ? bias[c] : 0;
        for (int m = 0; m < height && t - m >= begin; m++)
            sum += x[((size_t)(t - m) * height + m) * cols + c];
        STORE(0, y[(size_t)t * cols + c], sum);
    }
}

void LP_REFERENCE(unfold)(const lp_node *node, const lp_run *run)
{
    const real *dy = INPUT(0); /* [T x a] */
    real *dx = OUTPUT(0);      /* [T x height*a] */
    int height = node->attributes.height, cols = node->inputs[0]->cols;
    FOR_EACH_TOKEN
    for (int m = 0; m < height; m++)
        for (int c = 0; c < cols; c++)
            STORE(0, dx[((size_t)t * height + m) * cols + c], t + m < end ? dy[(size_t)(t + m) * cols + c] : 0);
}

void LP_REFERENCE(max_rows)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [T x a] */
    real *y = OUTPUT(0);      /* [T x a] */
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    FOR_EACH_TOKEN
    for (int c = 0; c < cols; c++) {
        real most = x[(size_t)t * cols + c];
        for (int m = 1; m < height && t - m >= begin; m++)
            most = x[(size_t)(t - m) * cols + c] > most ? x[(size_t)(t - m) * cols + c] : most;
        STORE(0, y[(size_t)t * cols + c], most);
    }
}

/* Row t has the maximum of row t + m if none of the rows in between is at least as large, and none before t is larger. */
void LP_REFERENCE(max_rows_gradient)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *y = INPUT(1), *dy = INPUT(2);
    real *dx = OUTPUT(0);
    int height = node->attributes.height, cols = node->outputs[0]->cols;
    FOR_EACH_TOKEN
    for (int c = 0; c < cols; c++) {
        real mine = x[(size_t)t * cols + c], sum = 0;
        for (int m = 0; m < height && t + m < end; m++) {
            size_t at = (size_t)(t + m) * cols + c;
            if (m > 0 && x[at] >= mine)
                break;
            sum += y[at] == mine ? dy[at] : 0;
        }
        STORE(0, dx[(size_t)t * cols + c], sum);
    }
}

void LP_REFERENCE(vertical_conv)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1); /* [T x a], [filters x height] */
    real *y = OUTPUT(0);                          /* [T x filters*a] */
    int height = node->attributes.height, cols = node->inputs[0]->cols, filters = node->inputs[1]->cols / height;
    FOR_EACH_TOKEN
    for (int j = 0; j < filters; j++)
        for (int c = 0; c < cols; c++) {
            real sum = 0;
            for (int m = 0; m < height && t - m >= begin; m++)
                sum += weight[j * height + m] * x[(size_t)(t - m) * cols + c];
            STORE(0, y[((size_t)t * filters + j) * cols + c], sum);
        }
}

void LP_REFERENCE(vertical_conv_gradient)(const lp_node *node, const lp_run *run)
{
    const real *weight = INPUT(0), *dy = INPUT(1);
    real *dx = OUTPUT(0);
    int height = node->attributes.height, cols = node->outputs[0]->cols, filters = node->inputs[0]->cols / height;
    FOR_EACH_TOKEN
    for (int c = 0; c < cols; c++) {
        real sum = 0;
        for (int m = 0; m < height && t + m < end; m++)
            for (int j = 0; j < filters; j++)
                sum += weight[j * height + m] * dy[((size_t)(t + m) * filters + j) * cols + c];
        STORE(0, dx[(size_t)t * cols + c], sum);
    }
}

void LP_REFERENCE(vertical_conv_products)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *dy = INPUT(1);
    real *products = OUTPUT(0); /* [T x filters*height] */
    int height = node->attributes.height, cols = node->inputs[0]->cols, filters = node->outputs[0]->cols / height;
    FOR_EACH_TOKEN
    for (int j = 0; j < filters; j++)
        for (int m = 0; m < height; m++) {
            real sum = 0;
            for (int c = 0; t - m >= begin && c < cols; c++)
                sum += x[(size_t)(t - m) * cols + c] * dy[((size_t)t * filters + j) * cols + c];
            products[((size_t)t * filters + j) * height + m] = sum;
        }
}
