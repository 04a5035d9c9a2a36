/* attend_self.h: op attend_self and its gradient in one row and head, for kernels of all backends: joins the row's attention to earlier
 * rows with that to its own key. op_attention.c has the formulas.
 *
 * Defined where this is included: `real`, the type of the numbers, and lp_lanes_sum(x), the sum over the lanes that share the row.
 */
#ifndef LP_ATTEND_SELF_H
#define LP_ATTEND_SELF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define LP_ATTEND_SELF_INLINE static inline __device__
#else
#define LP_ATTEND_SELF_INLINE static inline
#endif

/* [T x H*d], and [T x H]: log_sum and its gradient. */
typedef struct lp_self_join {
    int heads, cols; /* cols: of a head */
    real scale;
    const real *query, *key, *value, *out, *log_sum;
    real *joined;                                   /* NULL: the gradients are computed */
    const real *dy;                                 /* of joined */
    real *dquery, *dkey, *dvalue, *dout, *dlog_sum; /* each may be NULL */
    uint32_t accumulate;                            /* bit i: gradient i accumulates */
} lp_self_join;

/* Stores an element of gradient number `number`, if it is wanted. */
LP_ATTEND_SELF_INLINE void lp_attend_self_store(const lp_self_join *a, int number, real *to, int64_t at, real amount)
{
    if (to)
        to[at] = a->accumulate >> number & 1 ? to[at] + amount : amount;
}

/* i: number of the row and head; first, last: the row is, in its segment. The lane has every `lanes`th column. */
LP_ATTEND_SELF_INLINE void lp_attend_self_row(const lp_self_join *a, int64_t i, bool first, bool last, int lane,
                                              int lanes)
{
    int64_t from = i * a->cols, end = from + a->cols, above = (int64_t)a->heads * a->cols; /* above: one row up */
    real score = 0, dweight = 0;
    for (int64_t c = from + lane; c < end && !first; c += lanes) {
        score += a->query[c] * a->key[c];
        dweight += a->joined ? 0 : a->dy[c] * (a->value[c] - a->out[c - above]);
    }
    score = a->scale * lp_lanes_sum(score);
    dweight = lp_lanes_sum(dweight);
    real w = first ? 1 : (real)(1 / (1 + exp((double)(a->log_sum[i - a->heads] - score)))), ds = w * (1 - w) * dweight;
    for (int64_t c = from + lane; c < end; c += lanes) {
        if (a->joined)
            a->joined[c] = w * a->value[c] + (first ? 0 : (1 - w) * a->out[c - above]);
        lp_attend_self_store(a, 0, a->dquery, c, a->scale * ds * a->key[c]);
        lp_attend_self_store(a, 1, a->dkey, c, a->scale * ds * a->query[c]);
        if (a->dvalue)
            lp_attend_self_store(a, 2, a->dvalue, c, w * a->dy[c]);
        if (a->dout && !first)
            lp_attend_self_store(a, 3, a->dout, c - above, (1 - w) * a->dy[c]);
        if (last)
            lp_attend_self_store(a, 3, a->dout, c, 0);
    }
    if (lane == 0 && !first)
        lp_attend_self_store(a, 4, a->dlog_sum, i - a->heads, -ds);
    if (lane == 0 && last)
        lp_attend_self_store(a, 4, a->dlog_sum, i, 0);
}

#endif
