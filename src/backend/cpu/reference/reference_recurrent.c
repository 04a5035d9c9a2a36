/* reference_recurrent.c: recurrent scans, one segment and one token after the other (recurrent_cell.h). */
#include "backend/cpu/reference/reference.h"
#include "formula/recurrent_cell.h"

#include <string.h>

enum { STORED = LP_CELL_STORED, MOST_GATES = 4 };

/* Inputs: x, W_hh and, of the GRU, a bias. Outputs: h, what is stored and, of the LSTM, c. */
static void scan(const lp_node *node, const lp_run *run, int gates, lp_cell_step *step)
{
    const real *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2); /* [T x gates H], [gates H x H], [gates H] */
    real *h = OUTPUT(0), *stored = OUTPUT(1), *c = OUTPUT(2);       /* [T x H], [T x 4H], [T x H] */
    size_t hidden = (size_t)node->inputs[1]->cols;
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++)
            for (size_t j = 0; j < hidden; j++) {
                bool first = t == run->segment[s];
                size_t at = (size_t)t * hidden + j, previous = (size_t)(t - 1) * hidden;
                real in[MOST_GATES], a[MOST_GATES], out[STORED], state = first ? 0 : (c ? c : h)[previous + j];
                for (int p = 0; p < gates; p++) {
                    size_t row = (size_t)p * hidden + j;
                    in[p] = x[(size_t)t * gates * hidden + row];
                    a[p] = bias ? bias[row] : 0;
                    for (size_t k = 0; k < hidden && !first; k++)
                        a[p] += weight[row * hidden + k] * h[previous + k];
                }
                h[at] = step(in, a, &state, out);
                for (int i = 0; i < STORED; i++)
                    stored[((size_t)t * STORED + i) * hidden + j] = out[i];
                if (c)
                    c[at] = state;
            }
}

void LP_REFERENCE(rnn)(const lp_node *node, const lp_run *run)
{
    scan(node, run, 1, lp_rnn_step);
}

void LP_REFERENCE(lstm)(const lp_node *node, const lp_run *run)
{
    scan(node, run, 4, lp_lstm_step);
}

void LP_REFERENCE(gru)(const lp_node *node, const lp_run *run)
{
    scan(node, run, 3, lp_gru_step);
}

/* The gradients that go from token to token of a segment, against time. */
typedef struct carry {
    real *gates;      /* [gates H]: of the recurrent parts of the gates at the later token */
    real *h, *states; /* [H]: of the hidden states by way of them, and of the states of the cells (lp_cell_gradient) */
} carry;

/* Inputs: what is stored, c of the LSTM, h, W_hh, dh. */
static void token_gradient(const lp_node *node, const lp_run *run, int gates, lp_cell_gradient *gradient, int t,
                           bool first, carry *carried)
{
    int input = node->op->input_count - 2;
    const real *stored = INPUT(0), *state = INPUT(1), *h = INPUT(input - 1), *weight = INPUT(input);
    real *dx = OUTPUT(0), *dweight = OUTPUT(1), *dbias = OUTPUT(2); /* [T x gates H], [gates H x H], [gates H] */
    size_t hidden = (size_t)node->inputs[input]->cols, wide = (size_t)gates * hidden, now = (size_t)t * hidden;
    for (size_t k = 0; k < hidden; k++) {
        carried->h[k] = INPUT(input + 1)[now + k];
        for (size_t row = 0; row < wide; row++)
            carried->h[k] += carried->gates[row] * weight[row * hidden + k];
    }
    for (size_t j = 0; j < hidden; j++) {
        real in[STORED], da[MOST_GATES], previous = first ? 0 : state[now - hidden + j];
        for (int i = 0; i < STORED; i++)
            in[i] = stored[((size_t)t * STORED + i) * hidden + j];
        real last = gradient(in, state[now + j], previous, carried->h[j], &carried->states[j], da);
        for (int p = 0; p < gates; p++) {
            size_t row = (size_t)p * hidden + j;
            carried->gates[row] = da[p];
            if (dx)
                STORE(0, dx[(size_t)t * wide + row], p < gates - 1 ? da[p] : last);
            if (dbias)
                dbias[row] += da[p];
            for (size_t k = 0; k < hidden && dweight && !first; k++)
                dweight[row * hidden + k] += da[p] * h[now - hidden + k];
        }
    }
}

static void scan_gradient(const lp_node *node, const lp_run *run, int gates, lp_cell_gradient *gradient)
{
    size_t hidden = (size_t)node->inputs[node->op->input_count - 2]->cols, wide = (size_t)gates * hidden;
    real *scratch = (real *)(void *)run->scratch, *dweight = OUTPUT(1), *dbias = OUTPUT(2);
    carry carried = {scratch, scratch + wide, scratch + wide + hidden};
    if (dweight && !(node->accumulate & 2))
        memset(dweight, 0, wide * hidden * sizeof *dweight);
    if (dbias && !(node->accumulate & 4))
        memset(dbias, 0, wide * sizeof *dbias);
    for (int s = 0; s < run->segments; s++) {
        if (run->segment[s] < run->segment[s + 1])
            memset(scratch, 0, (wide + 2 * hidden) * sizeof *scratch);
        for (int t = run->segment[s + 1] - 1; t >= run->segment[s]; t--)
            token_gradient(node, run, gates, gradient, t, t == run->segment[s], &carried);
    }
}

void LP_REFERENCE(rnn_gradient)(const lp_node *node, const lp_run *run)
{
    scan_gradient(node, run, 1, lp_rnn_step_gradient);
}

void LP_REFERENCE(lstm_gradient)(const lp_node *node, const lp_run *run)
{
    scan_gradient(node, run, 4, lp_lstm_step_gradient);
}

void LP_REFERENCE(gru_gradient)(const lp_node *node, const lp_run *run)
{
    scan_gradient(node, run, 3, lp_gru_step_gradient);
}
