/* elementwise.h: functions of elements, for kernels of all backends. op.h has the formulas; those of gradients are of the result, or of x.
 *
 * `real`, the type of the elements, is defined where this is included.
 */
#ifndef LP_ELEMENTWISE_H
#define LP_ELEMENTWISE_H

#include "backend/backend.h"

/* Op, and f(a, b); b is 0 for an op with one input. scale and shift: attributes of the node, in double; the scale is the bound of tanh, or
 * the least value of log_abs. */
#define LP_ELEMENTWISE(X)                                           \
    X(add, a + b)                                                   \
    X(relu, a > 0 ? a : 0)                                          \
    X(relu_gradient, a > 0 ? b : 0)                                 \
    X(multiply, (a * b))                                            \
    X(affine, (real)shift + (real)scale * a)                        \
    X(exp, (real)exp((double)a))                                    \
    X(tanh, (real)(scale * tanh((double)a / scale)))                \
    X(tanh_gradient, (1 - a / (real)scale * (a / (real)scale)) * b) \
    X(log_abs, (real)log(hypot((double)a, scale)))                  \
    X(log_abs_gradient, (b * a) / (a * a + (real)scale * (real)scale))

#define LP_ELEMENT(name, f)                                                      \
    LP_INLINE real lp_element_##name(real a, real b, double scale, double shift) \
    {                                                                            \
        (void)b, (void)scale, (void)shift;                                       \
        return f;                                                                \
    }
LP_ELEMENTWISE(LP_ELEMENT)
#undef LP_ELEMENT

/* Element of column c of place_columns: of the row x of `cols` columns. */
LP_INLINE real lp_element_placed(const real *x, int cols, int first, int c)
{
    return c >= first && c - first < cols ? x[c - first] : 0;
}

/* Element i of noise of `size` elements: in the sequence of random.h the i-th uniform number, two words of block i / 2. */
LP_INLINE real lp_element_noise(const lp_attributes *with, uint64_t seed, uint32_t step, int i, int size)
{
    lp_random random = lp_random_start(seed, (uint32_t)LP_PURPOSE_NOISE | with->stream << 8, step);
    random.element = (uint64_t)i / 2;
    if (i % 2)
        lp_random_uniform(&random);
    double u = lp_random_uniform(&random), p = with->independent ? u : ((double)i + u) / (double)size;
    return (real)(with->uniform ? p : lp_normal_quantile(p));
}

#endif
