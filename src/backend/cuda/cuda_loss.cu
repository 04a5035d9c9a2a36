/* cuda_loss.cu: softmax, and losses of rows that are independent of each other: cross-entropy over stored logits with classes or
 * probabilities as targets, the losses of the time of the next event; and their gradients. A type for each of them computes the
 * loss and its gradient: a warp for each row, or a thread in double. */
#include "backend/cuda/cuda_reduce.h"
#include "base/hazard.h"

typedef float real;
#include "base/mixture_row.h"

namespace
{

enum { SUM_WARPS = 32 };

/* By one block, in a fixed order. scale: may be NULL. */
__global__ void sum_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, const double *terms, const float *scale,
                           float *to, int adds)
{
    double sum = 0;
    for (int row = (int)threadIdx.x; row < lp_rows_now(rows, shard); row += 32 * SUM_WARPS)
        sum += terms[row];
    sum = lp_block_sum<SUM_WARPS>(sum);
    if (threadIdx.x == 0)
        lp_store(to, (float)(scale ? *scale * sum : sum), adds);
}

/* Calls by_row.run(row, lane) for each row, with type::lanes lanes. */
template <typename type> __global__ void rows_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, type by_row)
{
    int thread = (int)(blockIdx.x * blockDim.x + threadIdx.x), row = thread / type::lanes;
    if (row < lp_rows_now(rows, shard))
        by_row.run(row, thread % type::lanes);
}

template <typename type> void launch_rows(const lp_node *node, const lp_cuda_run *run, const type &by_row)
{
    const lp_value *like = node->inputs[0];
    enum { THREADS = type::lanes > 1 ? 256 : 64 };
    LP_LAUNCH(run, rows_kernel<type>, lp_blocks(lp_cuda_largest(run, like), THREADS / type::lanes), THREADS, 0,
              run->shard, lp_cuda_rows_of(like), by_row);
}

/* What all losses have. dloss: NULL: computes the loss of each row as its term, otherwise the gradient of the first input, which
 * may be NULL, and the terms, where there are any, of that of the second. */
typedef struct row_loss {
    const float *dloss;
    float *gradient;
    int adds;
    double *terms;
} row_loss;

template <typename type> void launch_loss(const lp_node *node, const lp_cuda_run *run, type by_row, const float *dloss)
{
    const lp_value *like = node->inputs[0];
    by_row.dloss = dloss;
    by_row.gradient = dloss ? LP_OUTPUT(0) : NULL;
    by_row.adds = LP_ADDS(0);
    if (!(by_row.terms = (double *)lp_cuda_scratch(run, (size_t)lp_cuda_largest(run, like) * sizeof(double))))
        return;
    launch_rows(node, run, by_row);
    float *sum = LP_OUTPUT(dloss ? 1 : 0);
    if (sum)
        LP_LAUNCH(run, sum_kernel, 1, 32 * SUM_WARPS, 0, run->shard, lp_cuda_rows_of(like), by_row.terms, dloss, sum,
                  dloss ? LP_ADDS(1) : 0);
}

/* ---- softmax over the columns of each row ---------------------------------------------------------------------- */

/* y = softmax(x), or dx = y (dy - y . dy). */
typedef struct softmax_rows {
    enum { lanes = 32 };
    int cols;
    const float *from, *dy; /* from: x; y where there is dy */
    float *to;
    int adds;

    __device__ void run(int row, int lane) const
    {
        size_t first = (size_t)row * cols;
        float dot = 0, lse = dy ? 0 : lp_row_lse(from + first, cols, lane);
        for (int c = lane; dy && c < cols; c += 32)
            dot += from[first + c] * dy[first + c];
        dot = lp_warp_sum(dot);
        for (int c = lane; c < cols; c += 32) {
            float x = from[first + c];
            lp_store(&to[first + c], dy ? x * (dy[first + c] - dot) : expf(x - lse), adds);
        }
    }
} softmax_rows;

/* sum_c target_c (lse - logit_c), or dlogit = dloss (softmax sum_c target_c - target). */
typedef struct cross_entropy : row_loss {
    enum { lanes = 32 };
    int cols;
    const float *logits, *probabilities; /* [rows x cols] */
    const int32_t *classes;              /* [rows]; NULL: targets are probabilities */

    __device__ void run(int row, int lane) const
    {
        size_t first = (size_t)row * cols;
        const float *mine = logits + first;
        float lse = lp_row_lse(mine, cols, lane), sum = 0;
        auto target = [&](int c) { return classes ? (float)(c == classes[row]) : probabilities[first + c]; };
        for (int c = lane; c < cols; c += 32)
            sum += target(c) != 0 ? target(c) * (dloss ? 1 : lse - mine[c]) : 0;
        sum = lp_warp_sum(sum);
        if (!dloss && lane == 0)
            terms[row] = (double)sum;
        for (int c = lane; dloss && c < cols; c += 32)
            lp_store(&gradient[first + c], *dloss * (sum * expf(mine[c] - lse) - target(c)), adds);
    }
} cross_entropy;

/* ---- the time of the next event -------------------------------------------------------------------------------- */

/* The Gompertz law (hazard.h). The second input is the slope. */
typedef struct time_loss : row_loss {
    enum { lanes = 1 };
    double scale;
    const float *score, *slope;
    const double *gap;

    __device__ void run(int row, int) const
    {
        double d = fabs(gap[row]) * scale, s = (double)score[row], w = (double)*slope;
        double hazard = lp_hazard_cumulative(s, w, d), ended = gap[row] < 0 ? 0 : 1;
        terms[row] = dloss ? hazard * lp_hazard_log_slope(w, d) - ended * d : hazard - ended * (s + w * d);
        if (gradient)
            lp_store(&gradient[row], (float)((double)*dloss * (hazard - ended)), adds);
    }
} time_loss;

/* A mixture of normal distributions. */
typedef struct mixture_loss : row_loss {
    enum { lanes = 1 };
    double floor, mean, scale; /* lp_mixture_gap_of */
    int cols;                  /* 3K numbers, or 3K + 1 with a background */
    const float *mixture;
    const double *gap, *season;

    __device__ void run(int row, int) const
    {
        size_t first = (size_t)row * cols;
        const float *mine = mixture + first;
        lp_mixture_gap now = lp_mixture_gap_of(gap[row], floor, mean, scale, season ? season + 2 * (size_t)row : NULL,
                                               (double)mine[cols - 1]);
        terms[row] =
            lp_mixture_row(mine, cols, now, scale, dloss ? (double)*dloss : 0, dloss ? gradient + first : NULL, adds);
    }
} mixture_loss;

} // namespace

void lp_cuda_loss_sum(const lp_cuda_run *run, lp_cuda_rows rows, const double *terms, float *loss)
{
    LP_LAUNCH(run, sum_kernel, 1, 32 * SUM_WARPS, 0, run->shard, rows, terms, (const float *)NULL, loss, 0);
}

/* The launchers serve an op and its gradient, which has dloss, or dy, as one more input. */
void lp_cuda_softmax(const lp_node *node, const lp_cuda_run *run)
{
    softmax_rows task = {node->inputs[0]->cols, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0)};
    launch_rows(node, run, task);
}

void lp_cuda_cross_entropy(const lp_node *node, const lp_cuda_run *run)
{
    bool soft = node->op->id == LP_OP_SOFT_LOSS || node->op->id == LP_OP_SOFT_LOSS_GRADIENT;
    const int32_t *classes = soft ? NULL : LP_INPUT_AS(int32_t, 1);
    cross_entropy task = {{}, node->inputs[0]->cols, LP_INPUT(0), LP_INPUT(1), classes};
    launch_loss(node, run, task, LP_INPUT(2));
}

void lp_cuda_time_loss(const lp_node *node, const lp_cuda_run *run)
{
    time_loss task = {{}, node->attributes.scale, LP_INPUT(0), LP_INPUT(1), LP_INPUT_AS(double, 2)};
    launch_loss(node, run, task, LP_INPUT(3));
}

void lp_cuda_mixture_loss(const lp_node *node, const lp_cuda_run *run)
{
    const lp_attributes &of = node->attributes;
    const double *gap = LP_INPUT_AS(double, 1), *season = LP_INPUT_AS(double, 2);
    mixture_loss task = {{}, of.epsilon, of.shift, of.scale, node->inputs[0]->cols, LP_INPUT(0), gap, season};
    launch_loss(node, run, task, LP_INPUT(3));
}

LP_CUDA_OP_BY(softmax_gradient, lp_cuda_softmax)
LP_CUDA_OP_BY(cross_entropy_gradient, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(soft_loss, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(soft_loss_gradient, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(time_loss_gradient, lp_cuda_time_loss)
LP_CUDA_OP_BY(mixture_loss_gradient, lp_cuda_mixture_loss)
