/* cuda_embed.cu: rows of tables, and the sums of gradients by row. */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_rows.h"

template <int n>
__global__ void embed_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *table,
                             const int32_t *ids, float *y)
{
    int row = lp_row_here();
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *from = table + (size_t)ids[row] * cols;
#pragma unroll 1
    for (int c = n * (int)threadIdx.x; c < cols; c += n * (int)blockDim.x)
        lp_write<n>(y + (size_t)row * cols + c, lp_read<n>(from + c), 0);
}

void lp_cuda_embed(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    const float *table = LP_INPUT(0);
    const int32_t *ids = LP_INPUT_AS(int32_t, 1);
    float *y = LP_OUTPUT(0);
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(out);
    int cols = out->cols, width = lp_width((uintptr_t)table | (uintptr_t)y, cols), largest = lp_cuda_largest(run, out);
    dim3 block = lp_row_block(cols / width);
    lp_by_width(width, [&](auto by) {
        LP_LAUNCH(run, embed_kernel<decltype(by)::value>, lp_blocks(largest, block.y), block, 0, shard, rows, cols,
                  table, ids, y);
    });
}

/* The rows of a table that the shard lists: its gradient is that of the rows. */
void lp_cuda_gather(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_embed(node, run);
}

struct embed_gradient_term {
    const float *source;
    __device__ float weight(int) const
    {
        return 1;
    }
    __device__ int row(int e) const
    {
        return e;
    }
};

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    lp_cuda_lists lists = lp_cuda_lists_of(run, node->inputs[1]);
    float *scratch = (float *)lp_cuda_scratch(run, lp_by_id_scratch(&lists, out->cols));
    if (!scratch)
        return;
    if (!LP_ADDS(0))
        lp_cuda_clear(run, LP_OUTPUT(0), (size_t)lp_cuda_largest(run, out) * (size_t)out->cols * sizeof(float));
    embed_gradient_term term = {LP_INPUT(0)};
    lp_by_id_place to = {LP_OUTPUT(0), NULL, out->cols};
    lp_cuda_sum_by_id(run, lists, term, to, scratch);
}
