/* recurrent_cell.h: the cells of the plain layer, the LSTM and the GRU, for kernels of all backends. A cell is a column of the hidden state; op.h has the
 * formulas.
 *
 * `real`, the type of the numbers, is defined where this is included. Functions are computed in double, on a GPU in float.
 */
#ifndef LP_RECURRENT_CELL_H
#define LP_RECURRENT_CELL_H

#include "base/random.h"

#ifdef __cplusplus
typedef real lp_cell_number; /* exp and tanh are overloaded */
#else
typedef double lp_cell_number;
#endif

/* Numbers of a token and cell that are stored for the gradient: the LSTM's gates i, f, g, o; the GRU's r, z, n, and the recurrent part q
 * of n. The plain layer needs none of them: zeros. */
enum { LP_CELL_STORED = 4 };

/* Returns the next hidden state. x, a: the input parts of the gates, and the recurrent parts with their bias. state: of the cell, c of
 * the LSTM and h of the GRU; replaced by the next. */
typedef real lp_cell_step(const real *x, const real *a, real *state, real *stored);

/* dh: the gradient of the hidden state, but by way of the later state: `carried` has that and is replaced by that of the previous state.
 * da: the gradients of the recurrent parts. Returns that of the input part of the last gate; those of the others are da. */
typedef real lp_cell_gradient(const real *stored, real state, real previous, real dh, real *carried, real *da);

LP_INLINE real lp_cell_sigmoid(real x)
{
    return (real)(1 / (1 + exp(-(lp_cell_number)x)));
}

LP_INLINE real lp_cell_tanh(real x)
{
    return (real)tanh((lp_cell_number)x);
}

LP_INLINE real lp_rnn_step(const real *x, const real *a, real *state, real *stored)
{
    for (int i = 0; i < LP_CELL_STORED; i++)
        stored[i] = 0;
    return *state = x[0] + a[0] > 0 ? x[0] + a[0] : 0;
}

LP_INLINE real lp_rnn_step_gradient(const real *stored, real state, real previous, real dh, real *carried, real *da)
{
    (void)stored, (void)previous, (void)carried;
    return da[0] = state > 0 ? dh : 0;
}

LP_INLINE real lp_lstm_step(const real *x, const real *a, real *state, real *stored)
{
    for (int p = 0; p < 4; p++)
        stored[p] = p == 2 ? lp_cell_tanh(x[p] + a[p]) : lp_cell_sigmoid(x[p] + a[p]);
    *state = stored[1] * *state + stored[0] * stored[2];
    return stored[3] * lp_cell_tanh(*state);
}

LP_INLINE real lp_lstm_step_gradient(const real *stored, real state, real previous, real dh, real *carried, real *da)
{
    real i = stored[0], f = stored[1], g = stored[2], o = stored[3], c = lp_cell_tanh(state);
    real dc = *carried + dh * o * (1 - c * c);
    da[0] = dc * g * i * (1 - i);
    da[1] = dc * previous * f * (1 - f);
    da[2] = dc * i * (1 - g * g);
    da[3] = dh * c * o * (1 - o);
    *carried = dc * f;
    return da[3];
}

LP_INLINE real lp_gru_step(const real *x, const real *a, real *state, real *stored)
{
    real r = lp_cell_sigmoid(x[0] + a[0]), z = lp_cell_sigmoid(x[1] + a[1]), n = lp_cell_tanh(x[2] + r * a[2]);
    stored[0] = r;
    stored[1] = z;
    stored[2] = n;
    stored[3] = a[2];
    return *state = n + z * (*state - n);
}

LP_INLINE real lp_gru_step_gradient(const real *stored, real state, real previous, real dh, real *carried, real *da)
{
    real r = stored[0], z = stored[1], n = stored[2], q = stored[3];
    real dh_all = dh + *carried, dn = dh_all * (1 - z) * (1 - n * n);
    (void)state;
    da[0] = dn * q * r * (1 - r);
    da[1] = dh_all * (previous - n) * z * (1 - z);
    da[2] = dn * r;
    *carried = dh_all * z;
    return dn;
}

#endif
