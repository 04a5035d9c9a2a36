/* reference_recurrent.c: plain shifts and recurrent scans, one segment and one token after the other. */
#include "backend/cpu/reference/reference.h"

#include <string.h>

void LP_REFERENCE(shift_rows)(const lp_node *node, const lp_run *run)
{
    const real *x = INPUT(0); /* [T x cols] */
    real *y = OUTPUT(0);
    int cols = node->outputs[0]->cols, k = (int)node->attributes.shift;
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++) {
            bool inside = t - k >= run->segment[s] && t - k < run->segment[s + 1];
            for (int c = 0; c < cols; c++)
                STORE(0, y[(size_t)t * cols + c], inside ? x[(size_t)(t - k) * cols + c] : 0);
        }
}

static real sigmoid(real x)
{
    return (real)(1 / (1 + exp(-(double)x)));
}

/* gates [4H] = x + weight h, before their activation; h is NULL at the first token. */
static void lstm_gates(int hidden, const real *x, const real *weight, const real *h, real *gates)
{
    for (int r = 0; r < 4 * hidden; r++) {
        gates[r] = x[r];
        for (int k = 0; k < hidden && h; k++)
            gates[r] += weight[(size_t)r * hidden + k] * h[k];
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
            lstm_gates((int)hidden, x + 4 * now, weight, first ? NULL : h + now - hidden, i);
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
