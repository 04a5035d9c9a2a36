/* cuda_loss.cu: softmax, and losses of rows that are independent of each other: cross-entropy over stored logits with classes or
 * probabilities as targets, the losses of the time of the next event; and their gradients. A warp for each row, or a thread in double,
 * with the formulas of the reference kernels. */
#include "backend/cuda/cuda_reduce.h"
#include "formula/hazard.h"

typedef float real;
#define LP_ROW_LANES 32
#include "formula/mixture_row.h"
#include "formula/softmax_row.h"

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

template <int lanes, typename function>
__global__ void rows_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, double *terms, function of_row)
{
    int thread = (int)(blockIdx.x * blockDim.x + threadIdx.x), row = thread / lanes;
    if (row >= lp_rows_now(rows, shard))
        return;
    double term = of_row(row, thread % lanes);
    if (terms && thread % lanes == 0)
        terms[row] = term;
}

/* Calls of_row(row, lane) for each row of the first input, and stores the sum of what it returns, times *scale unless that is NULL. sum:
 * NULL: not stored. */
template <int lanes, typename function>
static void launch_rows(const lp_node *node, const lp_cuda_run *run, const float *scale, float *sum, int adds,
                        const function &of_row)
{
    enum { THREADS = lanes > 1 ? 256 : 64 };
    int most = lp_cuda_largest(run, node->inputs[0]);
    lp_cuda_rows rows = lp_cuda_rows_of(node->inputs[0]);
    double *terms = sum ? (double *)lp_cuda_scratch(run, (size_t)most * sizeof *terms) : NULL;
    if (sum && !terms)
        return;
    LP_LAUNCH(run, (rows_kernel<lanes, function>), lp_blocks(most, THREADS / lanes), THREADS, 0, run->shard, rows,
              terms, of_row);
    if (sum)
        LP_LAUNCH(run, sum_kernel, 1, 32 * SUM_WARPS, 0, run->shard, rows, terms, scale, sum, adds);
}

void lp_cuda_loss_sum(const lp_cuda_run *run, lp_cuda_rows rows, const double *terms, float *loss)
{
    LP_LAUNCH(run, sum_kernel, 1, 32 * SUM_WARPS, 0, run->shard, rows, terms, (const float *)NULL, loss, 0);
}

/* The launchers serve an op and its gradient, which has dloss, or dy, as one more input. */
void lp_cuda_softmax(const lp_node *node, const lp_cuda_run *run)
{
    const float *x = LP_INPUT(0), *dy = LP_INPUT(1);
    float *y = LP_OUTPUT(0);
    int cols = node->inputs[0]->cols, adds = LP_ADDS(0);
    launch_rows<32>(node, run, NULL, NULL, 0, [=] __device__(int row, int lane) {
        size_t first = (size_t)row * cols;
        lp_softmax_row(x + first, dy ? dy + first : NULL, cols, y + first, adds, lane);
        return 0;
    });
}

void lp_cuda_cross_entropy(const lp_node *node, const lp_cuda_run *run)
{
    bool soft = node->op->id == LP_OP_SOFT_LOSS || node->op->id == LP_OP_SOFT_LOSS_GRADIENT;
    const float *logits = LP_INPUT(0), *probabilities = LP_INPUT(1), *dloss = LP_INPUT(2);
    const int32_t *classes = LP_INPUT_AS(int32_t, 1);
    float *out = LP_OUTPUT(0);
    int cols = node->inputs[0]->cols, adds = LP_ADDS(0);
    launch_rows<32>(node, run, NULL, dloss ? NULL : out, 0, [=] __device__(int row, int lane) {
        size_t first = (size_t)row * cols;
        return lp_cross_entropy_row(logits + first, soft ? probabilities + first : NULL, soft ? 0 : classes[row], cols,
                                    dloss, out + first, adds, lane);
    });
}

/* The Gompertz law. The second input is the slope. */
void lp_cuda_time_loss(const lp_node *node, const lp_cuda_run *run)
{
    const float *score = LP_INPUT(0), *slope = LP_INPUT(1), *dloss = LP_INPUT(3);
    const double *gap = LP_INPUT_AS(double, 2);
    float *gradient = dloss ? LP_OUTPUT(0) : NULL, *sum = LP_OUTPUT(dloss ? 1 : 0);
    double scale = node->attributes.scale;
    int adds = LP_ADDS(0);
    launch_rows<1>(node, run, dloss, sum, dloss ? LP_ADDS(1) : 0, [=] __device__(int row, int) {
        double dscore, dslope;
        double loss = lp_hazard_loss((double)score[row], (double)*slope, gap[row], scale, &dscore, &dslope);
        if (gradient)
            lp_store(&gradient[row], (float)((double)*dloss * dscore), adds);
        return dloss ? dslope : loss;
    });
}

/* A mixture of normal distributions: rows of 3K numbers, or 3K + 1 with a background. */
void lp_cuda_mixture_loss(const lp_node *node, const lp_cuda_run *run)
{
    lp_attributes with = node->attributes;
    const float *mixture = LP_INPUT(0), *dloss = LP_INPUT(3);
    const double *gap = LP_INPUT_AS(double, 1), *season = LP_INPUT_AS(double, 2);
    float *out = LP_OUTPUT(0);
    int cols = node->inputs[0]->cols, adds = LP_ADDS(0);
    launch_rows<1>(node, run, NULL, dloss ? NULL : out, 0, [=] __device__(int row, int) {
        const float *mine = mixture + (size_t)row * cols;
        lp_mixture_gap now = lp_mixture_gap_of(gap[row], with.epsilon, with.shift, with.scale,
                                               season ? season + 2 * (size_t)row : NULL, (double)mine[cols - 1]);
        return lp_mixture_row(mine, cols, now, with.scale, dloss ? (double)*dloss : 0,
                              dloss ? out + (size_t)row * cols : NULL, adds);
    });
}

LP_CUDA_OP_BY(softmax_gradient, lp_cuda_softmax)
LP_CUDA_OP_BY(cross_entropy_gradient, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(soft_loss, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(soft_loss_gradient, lp_cuda_cross_entropy)
LP_CUDA_OP_BY(time_loss_gradient, lp_cuda_time_loss)
LP_CUDA_OP_BY(mixture_loss_gradient, lp_cuda_mixture_loss)
