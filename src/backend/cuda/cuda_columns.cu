/* cuda_columns.cu: sums of columns, and factors for them. */
#include "backend/cuda/cuda_reduce.h"

struct column_sum_term {
    const float *x;
    int cols;
    __device__ float operator()(int row, int col) const
    {
        return x[(size_t)row * cols + col];
    }
};

void lp_cuda_column_sum(const lp_node *node, const lp_cuda_run *run)
{
    int cols = node->inputs[0]->cols;
    column_sum_term term = {LP_INPUT(0), cols};
    lp_cuda_column_sums<float>(run, node->inputs[0], cols, term, LP_OUTPUT(0), LP_ADDS(0));
}

struct column_dot_term {
    const float *x, *y;
    int cols;
    __device__ float operator()(int row, int col) const
    {
        size_t i = (size_t)row * cols + col;
        return x[i] * y[i];
    }
};

void lp_cuda_column_dot(const lp_node *node, const lp_cuda_run *run)
{
    int cols = node->inputs[0]->cols;
    column_dot_term term = {LP_INPUT(0), LP_INPUT(1), cols};
    lp_cuda_column_sums<float>(run, node->inputs[0], cols, term, LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void scale_columns_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *x,
                                     const float *scale, float *y, int adds)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (int64_t)lp_rows_now(rows, shard) * cols)
        lp_store(&y[i], x[i] * scale[i % cols], adds);
}

void lp_cuda_scale_columns(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    LP_LAUNCH(run, scale_columns_kernel, lp_blocks((int64_t)lp_cuda_largest(run, out) * out->cols, 256), 256, 0,
              run->shard, lp_cuda_rows_of(out), out->cols, LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0));
}
