/* sampled.h: the losses of a target and its negative samples, for kernels of all backends: each function replaces the scores of a row by
 * their gradients, and returns the loss. The first score is that of the target. op.h has the formulas.
 *
 * `real`, the type of scores, is defined where this is included.
 */
#ifndef LP_SAMPLED_H
#define LP_SAMPLED_H

#include <math.h>

#ifdef __CUDACC__
#define LP_SAMPLED_INLINE static inline __host__ __device__
#else
#define LP_SAMPLED_INLINE static inline
#endif

/* log(1 + exp(x)) without overflow */
LP_SAMPLED_INLINE double lp_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

LP_SAMPLED_INLINE double lp_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

LP_SAMPLED_INLINE double lp_bce_row(real *row, int count, double regularization)
{
    (void)regularization;
    double loss = 0;
    for (int i = 0; i < count; i++) {
        double s = (double)row[i];
        loss += lp_softplus(i ? s : -s);
        row[i] = (real)(lp_sigmoid(s) - (i ? 0 : 1));
    }
    return loss;
}

LP_SAMPLED_INLINE double lp_bpr_row(real *row, int count, double regularization)
{
    double loss = 0, target = (double)row[0], dtarget = 0;
    (void)regularization;
    for (int i = 1; i < count; i++) {
        double margin = (double)row[i] - target;
        loss += lp_softplus(margin) / (count - 1);
        row[i] = (real)(lp_sigmoid(margin) / (count - 1));
        dtarget -= (double)row[i];
    }
    row[0] = (real)dtarget;
    return loss;
}

/* With w_j = softmax(s_j) and p_j = w_j g(r - s_j), normalized: the softmax of s_j - lp_softplus(s_j - r), whose log-sum-exp gives
 * the loss without underflow. */
LP_SAMPLED_INLINE double lp_bpr_max_row(real *row, int count, double regularization)
{
    double target = (double)row[0], largest = (double)row[1], dtarget = 0;
    double weights = 0, products = 0, squares = 0;
    for (int i = 2; i < count; i++)
        largest = fmax(largest, (double)row[i]);
    double shift = largest - lp_softplus(largest - target); /* s - lp_softplus(s - r) increases with s */
    for (int i = 1; i < count; i++) {
        double s = (double)row[i], weight = exp(s - largest);
        weights += weight;
        products += exp(s - lp_softplus(s - target) - shift);
        squares += weight * s * s;
    }
    squares /= weights;
    for (int i = 1; i < count; i++) {
        double s = (double)row[i], weight = exp(s - largest) / weights;
        double product = exp(s - lp_softplus(s - target) - shift) / products;
        dtarget -= product * lp_sigmoid(s - target);
        row[i] =
            (real)(weight - product * lp_sigmoid(target - s) + regularization * weight * (s * s - squares + 2 * s));
    }
    row[0] = (real)dtarget;
    return log(weights) + largest - log(products) - shift + regularization * squares;
}

LP_SAMPLED_INLINE double lp_top1_max_row(real *row, int count, double regularization)
{
    double target = (double)row[0], largest = (double)row[1], weights = 0, loss = 0, dtarget = 0;
    (void)regularization;
    for (int i = 2; i < count; i++)
        largest = fmax(largest, (double)row[i]);
    for (int i = 1; i < count; i++) {
        double s = (double)row[i], weight = exp(s - largest);
        weights += weight;
        loss += weight * (lp_sigmoid(s - target) + lp_sigmoid(s * s));
    }
    loss /= weights;
    for (int i = 1; i < count; i++) {
        double s = (double)row[i], weight = exp(s - largest) / weights;
        double above = lp_sigmoid(s - target), far = lp_sigmoid(s * s);
        dtarget -= weight * above * (1 - above);
        row[i] = (real)(weight * (above + far - loss + above * (1 - above) + 2 * s * far * (1 - far)));
    }
    row[0] = (real)dtarget;
    return loss;
}

#endif
