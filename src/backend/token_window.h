/* token_window.h: ops over the neighbours of a token in its segment, element by element, for kernels of all backends: shifts of rows, and
 * convolutions. op.h has the formulas.
 *
 * `real`, the type of the elements, is defined where this is included.
 */
#ifndef LP_TOKEN_WINDOW_H
#define LP_TOKEN_WINDOW_H

#include "backend/backend.h"

/* What an op has for the elements of its result's row of a token. */
typedef struct lp_token_window {
    const real *in[3];                /* data of the node's inputs */
    int cols, height, filters, shift; /* columns and rows of the window; of a convolution; the distance of a shift */
    int t, begin, end;                /* the token, and the tokens of its segment */
} lp_token_window;

/* The ops, and the value whose columns a row of the window has. */
#define LP_WINDOW_OPS(X)                  \
    X(shift_rows, outputs[0])             \
    X(fold, outputs[0])                   \
    X(unfold, inputs[0])                  \
    X(max_rows, outputs[0])               \
    X(max_rows_gradient, outputs[0])      \
    X(vertical_conv, inputs[0])           \
    X(vertical_conv_gradient, outputs[0]) \
    X(vertical_conv_products, inputs[0])

/* Without data and token. */
static inline lp_token_window lp_window_of(const lp_node *node, const lp_value *like)
{
    const lp_value *dy = node->inputs[1]; /* of a vertical convolution, [T x filters*cols] */
    int shift = (int)node->attributes.shift, filters = dy ? dy->cols / like->cols : 0;
    lp_token_window w = {{NULL, NULL, NULL}, like->cols, node->attributes.height, filters, shift, 0, 0, 0};
    return w;
}

/* Element i of the token's row. */
LP_INLINE real lp_window_shift_rows(const lp_token_window *w, int i)
{
    int from = w->t - w->shift;
    return from >= w->begin && from < w->end ? w->in[0][(size_t)from * w->cols + i] : 0;
}

LP_INLINE real lp_window_fold(const lp_token_window *w, int i)
{
    real sum = w->in[1] ? w->in[1][i] : 0;
    for (int m = 0; m < w->height && w->t - m >= w->begin; m++)
        sum += w->in[0][((size_t)(w->t - m) * w->height + m) * w->cols + i];
    return sum;
}

LP_INLINE real lp_window_unfold(const lp_token_window *w, int i)
{
    int m = i / w->cols, c = i % w->cols;
    return w->t + m < w->end ? w->in[0][(size_t)(w->t + m) * w->cols + c] : 0;
}

LP_INLINE real lp_window_max_rows(const lp_token_window *w, int i)
{
    const real *x = w->in[0] + (size_t)w->t * w->cols + i;
    real most = *x;
    for (int m = 1; m < w->height && w->t - m >= w->begin; m++) {
        x -= w->cols;
        most = *x > most ? *x : most;
    }
    return most;
}

/* Row t has the maximum of row t + m if none of the rows in between is at least as large, and none before t is larger. */
LP_INLINE real lp_window_max_rows_gradient(const lp_token_window *w, int i)
{
    const real *x = w->in[0], *y = w->in[1], *dy = w->in[2];
    real mine = x[(size_t)w->t * w->cols + i], sum = 0;
    for (int m = 0; m < w->height && w->t + m < w->end; m++) {
        size_t at = (size_t)(w->t + m) * w->cols + i;
        if (m > 0 && x[at] >= mine)
            break;
        sum += y[at] == mine ? dy[at] : 0;
    }
    return sum;
}

LP_INLINE real lp_window_vertical_conv(const lp_token_window *w, int i)
{
    const real *x = w->in[0], *weight = w->in[1]; /* [T x cols], [filters x height] */
    int j = i / w->cols, c = i % w->cols;
    real sum = 0;
    for (int m = 0; m < w->height && w->t - m >= w->begin; m++)
        sum += weight[j * w->height + m] * x[(size_t)(w->t - m) * w->cols + c];
    return sum;
}

LP_INLINE real lp_window_vertical_conv_gradient(const lp_token_window *w, int i)
{
    const real *weight = w->in[0], *dy = w->in[1];
    real sum = 0;
    for (int m = 0; m < w->height && w->t + m < w->end; m++)
        for (int j = 0; j < w->filters; j++)
            sum += weight[j * w->height + m] * dy[((size_t)(w->t + m) * w->filters + j) * w->cols + i];
    return sum;
}

/* The sum over columns, for a filter and a tap: the result is [T x filters*height]. */
LP_INLINE real lp_window_vertical_conv_products(const lp_token_window *w, int i)
{
    const real *x = w->in[0], *dy = w->in[1];
    int j = i / w->height, m = i % w->height;
    real sum = 0;
    for (int c = 0; w->t - m >= w->begin && c < w->cols; c++)
        sum += x[(size_t)(w->t - m) * w->cols + c] * dy[((size_t)w->t * w->filters + j) * w->cols + c];
    return sum;
}

#endif
