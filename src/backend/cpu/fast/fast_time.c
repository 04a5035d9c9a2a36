/* fast_time.c: time features: basis and reflect. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

/* The row of the known basis at this time, if it is row t or t + 1; otherwise NULL. */
static const float *known_row(const lp_node *node, const lp_run *run, int t, int rows, double time)
{
    const double *known = node->inputs[2] ? lp_run_data(run, node->inputs[2]) : NULL; /* [T] */
    for (int k = t; known && k < rows && k < t + 2; k++)
        if (known[k] == time)
            return INPUT(3) + (size_t)k * node->inputs[3]->cols;
    return NULL;
}

/* Whole vectors of a row; the last ends with the last frequency and may overlap the one before. */
static void basis_row(double time, const double *frequency, float *cosine, float *sine, int count)
{
    for (int f = 0; f < count && count < FAST_LANES; f++)
        fast_turn(time * frequency[f], &cosine[f], &sine[f]);
    for (int done = 0; done < count && count >= FAST_LANES; done += FAST_LANES) {
        int from = done + FAST_LANES <= count ? done : count - FAST_LANES;
#pragma omp simd
        for (int f = 0; f < FAST_LANES; f++)
            fast_turn(time * frequency[from + f], &cosine[from + f], &sine[from + f]);
    }
}

void LP_FAST(basis)(const lp_node *node, const lp_run *run)
{
    const double *time = lp_run_data(run, node->inputs[0]);      /* [T] */
    const double *frequency = lp_run_data(run, node->inputs[1]); /* [F] */
    float *u = OUTPUT(0);                                        /* [T x 2F]: cosines, then sines */
    int rows = lp_run_rows(run, node->outputs[0]), count = node->inputs[1]->cols;
    for (int t = 0; t < rows; t++) {
        double scaled = time[t] * 0.15915494309189535; /* 1 / (2 pi) */
        float *cosine = u + (size_t)t * 2 * count, *sine = cosine + count;
        const float *known = known_row(node, run, t, rows, time[t]);
        if (known) {
            memcpy(cosine, known, 2 * (size_t)count * sizeof *known);
            continue;
        }
        basis_row(scaled, frequency, cosine, sine, count);
    }
}

void LP_FAST(basis_gradient)(const lp_node *node, const lp_run *run)
{
    const double *time = lp_run_data(run, node->inputs[0]);  /* [T] */
    const float *u = INPUT(1), *du = INPUT(2);               /* [T x 2F] */
    double *dfrequency = lp_run_data(run, node->outputs[0]); /* [F] */
    int rows = lp_run_rows(run, node->inputs[1]), count = node->outputs[0]->cols;
    if (!ADDED(0))
        memset(dfrequency, 0, (size_t)count * sizeof *dfrequency);
    for (int t = 0; t < rows; t++) {
        const float *cosine = u + (size_t)t * 2 * count, *sine = cosine + count;
        const float *dcosine = du + (size_t)t * 2 * count, *dsine = dcosine + count;
        double when = time[t];
#pragma omp simd
        for (int f = 0; f < count; f++)
            dfrequency[f] += when * ((double)dsine[f] * (double)cosine[f] - (double)dcosine[f] * (double)sine[f]);
    }
}

/* y = M x, x and y [rows x heads*2F], u [rows x 2F] */
static void reflect_rows(const float *x, const float *u, float *y, int rows, int heads, int count, bool added)
{
    for (int t = 0; t < rows; t++)
        for (int h = 0; h < heads; h++) {
            size_t at = ((size_t)t * heads + h) * 2 * count;
            fast_reflect(x + at, u + (size_t)t * 2 * count, y + at, count, added);
        }
}

void LP_FAST(reflect)(const lp_node *node, const lp_run *run)
{
    int rows = lp_run_rows(run, node->inputs[0]), count = node->inputs[1]->cols / 2;
    reflect_rows(INPUT(0), INPUT(1), OUTPUT(0), rows, node->inputs[0]->cols / (2 * count), count, ADDED(0));
}

void LP_FAST(reflect_gradient)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *dy = INPUT(2); /* [T x H*2F] */
    float *du = OUTPUT(1);                     /* [T x 2F] */
    int rows = lp_run_rows(run, node->inputs[0]), count = node->inputs[1]->cols / 2;
    int heads = node->inputs[0]->cols / (2 * count);
    for (int t = 0; t < rows; t++)
        for (int h = 0; h < heads; h++) {
            size_t at = ((size_t)t * heads + h) * 2 * count;
            const float *u = INPUT(1) + (size_t)t * 2 * count, *xc = x + at, *xs = xc + count;
            const float *dc = dy + at, *ds = dc + count;
            if (node->outputs[0])
                fast_reflect(dy + at, u, OUTPUT(0) + at, count, ADDED(0));
            if (!du)
                continue;
            float *ducosine = du + (size_t)t * 2 * count, *dusine = ducosine + count;
            bool added = ADDED(1) || h > 0;
#pragma omp simd
            for (int f = 0; f < count; f++) {
                float c = xc[f] * dc[f] - xs[f] * ds[f], s = xs[f] * dc[f] + xc[f] * ds[f];
                ducosine[f] = added ? ducosine[f] + c : c;
                dusine[f] = added ? dusine[f] + s : s;
            }
        }
}
