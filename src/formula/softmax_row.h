/* softmax_row.h: the softmax and the cross-entropy of a row, for kernels of all backends (row_lanes.h). */
#ifndef LP_SOFTMAX_ROW_H
#define LP_SOFTMAX_ROW_H

#include "formula/row_lanes.h"

#include <stddef.h>

LP_ROW_INLINE lp_row_number lp_log_sum_exp_row(const real *row, int cols, int lane)
{
    lp_row_number largest = -INFINITY, sum = 0;
    for (int c = lane; c < cols; c += LP_ROW_LANES) /* fmax in such a loop crashes gcc 12.2 for aarch64 */
        largest = row[c] > largest ? (lp_row_number)row[c] : largest;
    largest = lp_row_max(largest);
    for (int c = lane; c < cols; c += LP_ROW_LANES)
        sum += exp((lp_row_number)row[c] - largest);
    return largest + log(lp_row_sum(sum));
}

/* out = softmax(x); with dy, where x is the softmax: x (dy - x . dy). Stored, or added if `adds`. */
LP_ROW_INLINE void lp_softmax_row(const real *x, const real *dy, int cols, real *out, int adds, int lane)
{
    lp_row_number dot = 0, lse = dy ? 0 : lp_log_sum_exp_row(x, cols, lane);
    for (int c = lane; dy && c < cols; c += LP_ROW_LANES)
        dot += (lp_row_number)x[c] * dy[c];
    dot = lp_row_sum(dot);
    for (int c = lane; c < cols; c += LP_ROW_LANES) {
        lp_row_number y = dy ? x[c] * (dy[c] - dot) : exp(x[c] - lse);
        out[c] = (real)(adds ? out[c] + y : y);
    }
}

/* sum_c target_c (lse - logit_c). targets: probabilities [cols]; NULL: 1 at the column `target`. dloss: NULL, or the gradient of the
 * loss: gradient = dloss (softmax sum_c target_c - target) is stored, or added if `adds`. */
LP_ROW_INLINE lp_row_number lp_cross_entropy_row(const real *logits, const real *targets, int target, int cols,
                                                 const real *dloss, real *gradient, int adds, int lane)
{
    lp_row_number lse = lp_log_sum_exp_row(logits, cols, lane), loss = 0, sum = 0;
    for (int c = lane; c < cols; c += LP_ROW_LANES) {
        lp_row_number mass = targets ? targets[c] : c == target;
        sum += mass;
        loss += mass != 0 ? mass * (lse - logits[c]) : 0;
    }
    sum = lp_row_sum(sum);
    for (int c = lane; dloss && c < cols; c += LP_ROW_LANES) {
        lp_row_number d = *dloss * (sum * exp(logits[c] - lse) - (targets ? targets[c] : c == target));
        gradient[c] = (real)(adds ? gradient[c] + d : d);
    }
    return lp_row_sum(loss);
}

#endif
