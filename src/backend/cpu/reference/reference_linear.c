/* reference_linear.c: linear layers and column reductions. */
#include "backend/cpu/reference/reference.h"

void LP_REFERENCE(linear)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2), *add = INPUT(3);
    real *y = OUTPUT(0);
    int heads = node->attributes.heads, a = node->inputs[1]->rows / heads, b = node->inputs[1]->cols;
    bool transpose = node->attributes.transpose;
    int in = transpose ? b : a, out = transpose ? a : b; /* columns per head */
    int rows = lp_run_rows(run, node->outputs[0]);
    for (int t = 0; t < rows; t++)
        for (int h = 0; h < heads; h++)
            for (int o = 0; o < out; o++) {
                const real *row = x + ((size_t)t * heads + h) * in;
                const real *head = weight + (size_t)h * a * b; /* [a x b] */
                size_t element = ((size_t)t * heads + h) * out + o;
                real sum = 0;
                for (int i = 0; i < in; i++)
                    sum += row[i] * (transpose ? head[(size_t)o * b + i] : head[(size_t)i * b + o]);
                sum += (bias ? bias[h * out + o] : 0) + (add ? add[element] : 0);
                STORE(0, y[element], sum);
            }
}

/* x [rows x cols] */
static void sum_columns(const lp_node *node, int output, real *y, const real *x, int rows, int cols)
{
    for (int c = 0; c < cols; c++) {
        real sum = 0;
        for (int t = 0; t < rows; t++)
            sum += x[(size_t)t * cols + c];
        STORE(output, y[c], sum);
    }
}

void LP_REFERENCE(linear_outer)(const lp_node *node, const lp_run *run)
{
    const real *p = INPUT(0), *q = INPUT(1); /* [T x H*a], [T x H*b] */
    real *out = OUTPUT(0);                   /* [H*a x b] */
    int heads = node->attributes.heads, a = node->outputs[0]->rows / heads, b = node->outputs[0]->cols;
    int rows = lp_run_rows(run, node->inputs[0]);
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < a; i++)
            for (int j = 0; j < b; j++) {
                real sum = 0;
                for (int t = 0; t < rows; t++)
                    sum += p[((size_t)t * heads + h) * a + i] * q[((size_t)t * heads + h) * b + j];
                STORE(0, out[((size_t)h * a + i) * b + j], sum);
            }
    if (node->outputs[1])
        sum_columns(node, 1, OUTPUT(1), node->attributes.transpose ? q : p, rows, node->outputs[1]->cols);
}

void LP_REFERENCE(column_sum)(const lp_node *node, const lp_run *run)
{
    sum_columns(node, 0, OUTPUT(0), INPUT(0), lp_run_rows(run, node->inputs[0]), node->inputs[0]->cols);
}

void LP_REFERENCE(column_dot)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *z = INPUT(1); /* [rows x cols] */
    real *y = OUTPUT(0);                     /* [cols] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int c = 0; c < cols; c++) {
        real sum = 0;
        for (int t = 0; t < rows; t++)
            sum += x[(size_t)t * cols + c] * z[(size_t)t * cols + c];
        STORE(0, y[c], sum);
    }
}

void LP_REFERENCE(scale_columns)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *scale = INPUT(1); /* [rows x cols], [cols] */
    real *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < cols; c++)
            STORE(0, y[(size_t)t * cols + c], x[(size_t)t * cols + c] * scale[c]);
}

void LP_REFERENCE(transpose)(const lp_node *node, const lp_run *run)
{
    const real *weight = INPUT(0); /* [H*a x b] */
    real *out = OUTPUT(0);         /* [H*b x a] */
    int heads = node->attributes.heads, a = node->inputs[0]->rows / heads, b = node->inputs[0]->cols;
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < a; i++)
            for (int j = 0; j < b; j++)
                out[((size_t)h * b + j) * a + i] = weight[((size_t)h * a + i) * b + j];
}
