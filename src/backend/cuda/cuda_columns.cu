/* cuda_columns.cu: scale_columns. Column sums are in cuda_reduction.cu. */
#include "backend/cuda/cuda_rows.h"

template <int n>
__global__ void scale_columns_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *x,
                                     const float *scale, float *y, int adds)
{
    int row = lp_row_index();
    if (row >= lp_rows_now(rows, shard))
        return;
    size_t first = (size_t)row * cols;
#pragma unroll 1
    for (int c = n * (int)threadIdx.x; c < cols; c += n * (int)blockDim.x) {
        lp_vector<n> value = lp_vector_load<n>(x + first + c), factor = lp_vector_load<n>(scale + c);
#pragma unroll
        for (int i = 0; i < n; i++)
            value.at[i] *= factor.at[i];
        lp_vector_store<n>(y + first + c, value, adds);
    }
}

void lp_cuda_scale_columns(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    const float *x = LP_INPUT(0), *scale = LP_INPUT(1);
    float *y = LP_OUTPUT(0);
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(out);
    int cols = out->cols, adds = LP_ADDS(0), largest = lp_cuda_largest(run, out);
    int width = lp_vector_width((uintptr_t)x | (uintptr_t)scale | (uintptr_t)y, cols);
    dim3 block = lp_row_block(cols / width);
    lp_with_vector_width(width, [&](auto by) {
        LP_LAUNCH(run, scale_columns_kernel<decltype(by)::value>, lp_blocks(largest, block.y), block, 0, shard, rows,
                  cols, x, scale, y, adds);
    });
}
