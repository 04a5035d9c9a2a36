/* reference_recurrent.c: recurrent scans, one segment and one token after the other. */
#include "backend/cpu/reference/reference.h"

#include <string.h>

static real sigmoid(real x)
{
    return (real)(1 / (1 + exp(-(double)x)));
}

/* out [rows] = start + weight h, with weight [rows x H]; h is NULL at the first token. */
static void recurrent_part(int rows, int hidden, const real *start, const real *weight, const real *h, real *out)
{
    for (int r = 0; r < rows; r++) {
        out[r] = start[r];
        for (int k = 0; k < hidden && h; k++)
            out[r] += weight[(size_t)r * hidden + k] * h[k];
    }
}

void LP_REFERENCE(lstm)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1);            /* [T x 4H], [4H x H] */
    real *h = OUTPUT(0), *gates = OUTPUT(1), *c = OUTPUT(2); /* [T x H], [T x 4H], [T x H] */
    size_t hidden = (size_t)node->inputs[1]->cols;
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++) {
            size_t now = (size_t)t * hidden;
            bool first = t == run->segment[s];
            real *i = gates + 4 * now, *f = i + hidden, *g = f + hidden, *o = g + hidden;
            recurrent_part(4 * (int)hidden, (int)hidden, x + 4 * now, weight, first ? NULL : h + now - hidden, i);
            for (size_t j = 0; j < hidden; j++) {
                i[j] = sigmoid(i[j]);
                f[j] = sigmoid(f[j]);
                g[j] = (real)tanh((double)g[j]);
                o[j] = sigmoid(o[j]);
                c[now + j] = i[j] * g[j] + (first ? 0 : f[j] * c[now - hidden + j]);
                h[now + j] = o[j] * (real)tanh((double)c[now + j]);
            }
        }
}

/* The gradients that go from token to token of a segment, against time. */
typedef struct lstm_carry {
    real *gates; /* [4H]: of the gates before their activation, at the later token */
    real *h, *c; /* [H]: of the hidden state and the cell state at this token, through the later ones */
} lstm_carry;

static void lstm_token_gradient(const lp_node *node, const lp_run *run, int t, bool first, lstm_carry *carry)
{
    const real *c = INPUT(1), *weight = INPUT(3), *dh = INPUT(4);
    size_t hidden = (size_t)node->inputs[3]->cols, now = (size_t)t * hidden;
    const real *i = INPUT(0) + 4 * now, *f = i + hidden, *g = f + hidden, *o = g + hidden;
    for (size_t j = 0; j < hidden; j++) {
        carry->h[j] = dh[now + j];
        for (size_t r = 0; r < 4 * hidden; r++)
            carry->h[j] += carry->gates[r] * weight[r * hidden + j];
    }
    for (size_t j = 0; j < hidden; j++) {
        real tanh_c = (real)tanh((double)c[now + j]), previous = first ? 0 : c[now - hidden + j];
        real dc = carry->c[j] + carry->h[j] * o[j] * (1 - tanh_c * tanh_c);
        carry->gates[j] = dc * g[j] * i[j] * (1 - i[j]);
        carry->gates[hidden + j] = dc * previous * f[j] * (1 - f[j]);
        carry->gates[2 * hidden + j] = dc * i[j] * (1 - g[j] * g[j]);
        carry->gates[3 * hidden + j] = carry->h[j] * tanh_c * o[j] * (1 - o[j]);
        carry->c[j] = dc * f[j];
    }
}

void LP_REFERENCE(lstm_gradient)(const lp_node *node, const lp_run *run)
{
    const real *h = INPUT(2);                   /* [T x H] */
    real *dx = OUTPUT(0), *dweight = OUTPUT(1); /* [T x 4H], [4H x H] */
    size_t hidden = (size_t)node->inputs[3]->cols, gates = 4 * hidden;
    real *scratch = (real *)(void *)run->scratch;
    lstm_carry carry = {scratch, scratch + gates, scratch + gates + hidden};
    if (dweight && !(node->accumulate & 2))
        memset(dweight, 0, gates * hidden * sizeof *dweight);
    for (int s = 0; s < run->segments; s++) {
        if (run->segment[s] < run->segment[s + 1])
            memset(scratch, 0, (gates + 2 * hidden) * sizeof *scratch);
        for (int t = run->segment[s + 1] - 1; t >= run->segment[s]; t--) {
            bool first = t == run->segment[s];
            lstm_token_gradient(node, run, t, first, &carry);
            for (size_t r = 0; r < gates; r++) {
                if (dx)
                    STORE(0, dx[(size_t)t * gates + r], carry.gates[r]);
                for (size_t k = 0; k < hidden && dweight && !first; k++)
                    dweight[r * hidden + k] += carry.gates[r] * h[(size_t)(t - 1) * hidden + k];
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------- gru ------- */

void LP_REFERENCE(gru)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2); /* [T x 3H], [3H x H], [1 x 3H] */
    real *h = OUTPUT(0), *gates = OUTPUT(1);                        /* [T x H], [T x 4H] */
    size_t hidden = (size_t)node->inputs[1]->cols;
    real *a = (real *)(void *)run->scratch; /* [3H] */
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++) {
            size_t now = (size_t)t * hidden;
            const real *previous = t == run->segment[s] ? NULL : h + now - hidden, *in = x + 3 * now;
            real *r = gates + 4 * now, *z = r + hidden, *n = z + hidden, *q = n + hidden;
            recurrent_part(3 * (int)hidden, (int)hidden, bias, weight, previous, a);
            for (size_t j = 0; j < hidden; j++) {
                r[j] = sigmoid(in[j] + a[j]);
                z[j] = sigmoid(in[hidden + j] + a[hidden + j]);
                q[j] = a[2 * hidden + j];
                n[j] = (real)tanh((double)(in[2 * hidden + j] + r[j] * q[j]));
                h[now + j] = (1 - z[j]) * n[j] + (previous ? z[j] * previous[j] : 0);
            }
        }
}

/* One token, against time. dh [H] is the gradient of the hidden state and becomes that of the previous one by way of z; dx [3H]
 * gets the gradients of the gates' input parts, and da [3H] of their recurrent parts. */
static void gru_token_gradient(size_t hidden, const real *gates, const real *previous, real *dh, real *dx, real *da)
{
    const real *r = gates, *z = r + hidden, *n = z + hidden, *q = n + hidden;
    for (size_t j = 0; j < hidden; j++) {
        real dn = dh[j] * (1 - z[j]) * (1 - n[j] * n[j]);
        dx[j] = da[j] = dn * q[j] * r[j] * (1 - r[j]);
        dx[hidden + j] = da[hidden + j] = dh[j] * ((previous ? previous[j] : 0) - n[j]) * z[j] * (1 - z[j]);
        dx[2 * hidden + j] = dn;
        da[2 * hidden + j] = dn * r[j];
        dh[j] *= z[j];
    }
}

void LP_REFERENCE(gru_gradient)(const lp_node *node, const lp_run *run)
{
    const real *gates = INPUT(0), *h = INPUT(1), *weight = INPUT(2), *dh = INPUT(3); /* [T x 4H], [T x H], [3H x H] */
    real *dx = OUTPUT(0), *dweight = OUTPUT(1), *dbias = OUTPUT(2);                  /* [T x 3H], [3H x H], [1 x 3H] */
    size_t hidden = (size_t)node->inputs[2]->cols, wide = 3 * hidden;
    real *carry = (real *)(void *)run->scratch, *dgates = carry + hidden, *da = dgates + wide; /* [H], [3H], [3H] */
    if (dweight && !(node->accumulate & 2))
        memset(dweight, 0, wide * hidden * sizeof *dweight);
    if (dbias && !(node->accumulate & 4))
        memset(dbias, 0, wide * sizeof *dbias);
    for (int s = 0; s < run->segments; s++) {
        if (run->segment[s] < run->segment[s + 1])
            memset(carry, 0, hidden * sizeof *carry);
        for (int t = run->segment[s + 1] - 1; t >= run->segment[s]; t--) {
            const real *previous = t == run->segment[s] ? NULL : h + (size_t)(t - 1) * hidden;
            for (size_t j = 0; j < hidden; j++)
                carry[j] += dh[(size_t)t * hidden + j];
            gru_token_gradient(hidden, gates + 4 * (size_t)t * hidden, previous, carry, dgates, da);
            for (size_t row = 0; row < wide; row++) {
                if (dx)
                    STORE(0, dx[(size_t)t * wide + row], dgates[row]);
                if (dbias)
                    dbias[row] += da[row];
                for (size_t k = 0; k < hidden; k++) {
                    carry[k] += da[row] * weight[row * hidden + k];
                    if (dweight && previous)
                        dweight[row * hidden + k] += da[row] * previous[k];
                }
            }
        }
    }
}
