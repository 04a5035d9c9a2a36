/* reference_time.c: time features. */
#include "backend/cpu/reference/reference.h"

static const double TWO_PI = 6.283185307179586476925;

void LP_REFERENCE(harmonics)(const lp_node *node, const lp_run *run)
{
    const real *log_period = INPUT(0);                      /* [n] */
    double *frequency = lp_run_data(run, node->outputs[0]); /* [n*k] */
    int count = node->attributes.harmonics;
    for (int i = 0; i < node->inputs[0]->cols; i++)
        for (int j = 0; j < count; j++)
            frequency[i * count + j] = TWO_PI * (j + 1) * exp(-(double)log_period[i]);
}

/* d(2 pi j exp(-x)) / dx = -(2 pi j exp(-x)) */
void LP_REFERENCE(harmonics_gradient)(const lp_node *node, const lp_run *run)
{
    const double *frequency = lp_run_data(run, node->inputs[0]), *dfrequency = lp_run_data(run, node->inputs[1]);
    real *dlog_period = OUTPUT(0);
    int count = node->attributes.harmonics;
    for (int i = 0; i < node->outputs[0]->cols; i++) {
        double sum = 0;
        for (int j = 0; j < count; j++)
            sum -= frequency[i * count + j] * dfrequency[i * count + j];
        STORE(0, dlog_period[i], sum);
    }
}

void LP_REFERENCE(basis)(const lp_node *node, const lp_run *run)
{
    const double *time = lp_run_data(run, node->inputs[0]);      /* [T] */
    const double *frequency = lp_run_data(run, node->inputs[1]); /* [F] */
    real *u = OUTPUT(0);                                         /* [T x 2F]: cosines, then sines */
    int rows = lp_run_rows(run, node->outputs[0]), count = node->inputs[1]->cols;
    for (int t = 0; t < rows; t++)
        for (int f = 0; f < count; f++) {
            double turns = time[t] * frequency[f] / TWO_PI;
            double angle = TWO_PI * (turns - nearbyint(turns));
            u[(size_t)t * 2 * count + f] = (real)cos(angle);
            u[(size_t)t * 2 * count + count + f] = (real)sin(angle);
        }
}

void LP_REFERENCE(basis_gradient)(const lp_node *node, const lp_run *run)
{
    const double *time = lp_run_data(run, node->inputs[0]);  /* [T] */
    const real *u = INPUT(1), *du = INPUT(2);                /* [T x 2F] */
    double *dfrequency = lp_run_data(run, node->outputs[0]); /* [F] */
    int rows = lp_run_rows(run, node->inputs[1]), count = node->outputs[0]->cols;
    for (int f = 0; f < count; f++) {
        double sum = 0;
        for (int t = 0; t < rows; t++) {
            const real *row = u + (size_t)t * 2 * count, *drow = du + (size_t)t * 2 * count;
            sum += time[t] * ((double)drow[count + f] * row[f] - (double)drow[f] * row[count + f]);
        }
        dfrequency[f] = (node->accumulate & 1) ? dfrequency[f] + sum : sum;
    }
}

/* y = M x */
static void reflect_rows(const lp_node *node, const real *x, const real *u, real *y, int rows, int heads, int count)
{
    for (int t = 0; t < rows; t++)
        for (int h = 0; h < heads; h++)
            for (int f = 0; f < count; f++) {
                size_t c = ((size_t)t * heads + h) * 2 * count + f, s = c + count;
                real cosine = u[(size_t)t * 2 * count + f], sine = u[(size_t)t * 2 * count + count + f];
                real xc = x[c], xs = x[s];
                STORE(0, y[c], xc * cosine + xs * sine);
                STORE(0, y[s], xc * sine - xs * cosine);
            }
}

void LP_REFERENCE(reflect)(const lp_node *node, const lp_run *run)
{
    int rows = lp_run_rows(run, node->inputs[0]), count = node->inputs[1]->cols / 2; /* x [T x H*2F], u [T x 2F] */
    reflect_rows(node, INPUT(0), INPUT(1), OUTPUT(0), rows, node->inputs[0]->cols / (2 * count), count);
}

void LP_REFERENCE(reflect_gradient)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *dy = INPUT(2); /* [T x H*2F] */
    real *du = OUTPUT(1);                     /* [T x 2F] */
    int rows = lp_run_rows(run, node->inputs[0]), count = node->inputs[1]->cols / 2;
    int heads = node->inputs[0]->cols / (2 * count);
    if (node->outputs[0])
        reflect_rows(node, dy, INPUT(1), OUTPUT(0), rows, heads, count);
    for (int t = 0; du && t < rows; t++)
        for (int f = 0; f < count; f++) {
            real dcosine = 0, dsine = 0;
            for (int h = 0; h < heads; h++) {
                size_t c = ((size_t)t * heads + h) * 2 * count + f, s = c + count;
                dcosine += x[c] * dy[c] - x[s] * dy[s];
                dsine += x[s] * dy[c] + x[c] * dy[s];
            }
            STORE(1, du[(size_t)t * 2 * count + f], dcosine);
            STORE(1, du[(size_t)t * 2 * count + count + f], dsine);
        }
}
