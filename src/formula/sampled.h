/* sampled.h: the losses of a target and its negative samples, for kernels of all backends (row_lanes.h). The first score of a row is that
 * of the target. op.h has the formulas.
 *
 * Each function replaces the scores by their gradients. It returns the loss, or the lane's part of it. lane: of the row, 0 on a CPU; at
 * least `count`: of no row.
 */
#ifndef LP_SAMPLED_H
#define LP_SAMPLED_H

#include "formula/row_lanes.h"

/* log(1 + exp(x)) without overflow */
LP_ROW_INLINE lp_row_number lp_softplus(lp_row_number x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

LP_ROW_INLINE lp_row_number lp_sigmoid(lp_row_number x)
{
    return 1 / (1 + exp(-x));
}

LP_ROW_INLINE lp_row_number lp_bce_row(real *row, int count, lp_row_number regularization, int lane)
{
    (void)regularization;
    lp_row_number loss = 0;
    for (int i = lane; i < count; i += LP_ROW_LANES) {
        lp_row_number sign = i ? 1 : -1, x = sign * (lp_row_number)row[i];
        loss += lp_softplus(x);
        row[i] = (real)(sign * lp_sigmoid(x));
    }
    return loss;
}

LP_ROW_INLINE lp_row_number lp_bpr_row(real *row, int count, lp_row_number regularization, int lane)
{
    lp_row_number loss = 0, target = (lp_row_number)row[0], dtarget = 0;
    (void)regularization;
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number margin = (lp_row_number)row[i] - target;
        loss += lp_softplus(margin) / (count - 1);
        row[i] = (real)(lp_sigmoid(margin) / (count - 1));
        dtarget -= (lp_row_number)row[i];
    }
    dtarget = lp_row_sum(dtarget);
    if (lane == 0)
        row[0] = (real)dtarget;
    return loss;
}

LP_ROW_INLINE lp_row_number lp_largest_negative(const real *row, int count, int lane)
{
    lp_row_number largest = (lp_row_number)row[1];
    for (int i = 2 + lane; i < count; i += LP_ROW_LANES)
        largest = row[i] > largest ? (lp_row_number)row[i] : largest; /* see lp_log_sum_exp_row */
    return lp_row_max(largest);
}

/* With w_j = softmax(s_j) and p_j = w_j g(r - s_j), normalized: the softmax of s_j - lp_softplus(s_j - r), whose log-sum-exp gives
 * the loss without underflow. */
LP_ROW_INLINE lp_row_number lp_bpr_max_row(real *row, int count, lp_row_number regularization, int lane)
{
    lp_row_number target = (lp_row_number)row[0], largest = lp_largest_negative(row, count, lane), dtarget = 0;
    lp_row_number weights = 0, products = 0, squares = 0;
    lp_row_number shift = largest - lp_softplus(largest - target); /* s - lp_softplus(s - r) increases with s */
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number s = (lp_row_number)row[i], weight = exp(s - largest);
        weights += weight;
        products += exp(s - lp_softplus(s - target) - shift);
        squares += weight * s * s;
    }
    weights = lp_row_sum(weights);
    products = lp_row_sum(products);
    squares = lp_row_sum(squares) / weights;
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number s = (lp_row_number)row[i], weight = exp(s - largest) / weights;
        lp_row_number product = exp(s - lp_softplus(s - target) - shift) / products;
        dtarget -= product * lp_sigmoid(s - target);
        row[i] =
            (real)(weight - product * lp_sigmoid(target - s) + regularization * weight * (s * s - squares + 2 * s));
    }
    dtarget = lp_row_sum(dtarget);
    if (lane != 0)
        return 0;
    row[0] = (real)dtarget;
    return log(weights) + largest - log(products) - shift + regularization * squares;
}

LP_ROW_INLINE lp_row_number lp_top1_row(real *row, int count, lp_row_number regularization, int lane)
{
    lp_row_number loss = 0, target = (lp_row_number)row[0], dtarget = 0;
    (void)regularization;
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number s = (lp_row_number)row[i], above = lp_sigmoid(s - target), far = lp_sigmoid(s * s);
        loss += (above + far) / (count - 1);
        dtarget -= above * (1 - above) / (count - 1);
        row[i] = (real)((above * (1 - above) + 2 * s * far * (1 - far)) / (count - 1));
    }
    dtarget = lp_row_sum(dtarget);
    if (lane == 0)
        row[0] = (real)dtarget;
    return loss;
}

LP_ROW_INLINE lp_row_number lp_top1_max_row(real *row, int count, lp_row_number regularization, int lane)
{
    lp_row_number target = (lp_row_number)row[0], largest = lp_largest_negative(row, count, lane);
    lp_row_number weights = 0, loss = 0, dtarget = 0;
    (void)regularization;
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number s = (lp_row_number)row[i], weight = exp(s - largest);
        weights += weight;
        loss += weight * (lp_sigmoid(s - target) + lp_sigmoid(s * s));
    }
    weights = lp_row_sum(weights);
    loss = lp_row_sum(loss) / weights;
    for (int i = 1 + lane; i < count; i += LP_ROW_LANES) {
        lp_row_number s = (lp_row_number)row[i], weight = exp(s - largest) / weights;
        lp_row_number above = lp_sigmoid(s - target), far = lp_sigmoid(s * s);
        dtarget -= weight * above * (1 - above);
        row[i] = (real)(weight * (above + far - loss + above * (1 - above) + 2 * s * far * (1 - far)));
    }
    dtarget = lp_row_sum(dtarget);
    if (lane != 0)
        return 0;
    row[0] = (real)dtarget;
    return loss;
}

#endif
