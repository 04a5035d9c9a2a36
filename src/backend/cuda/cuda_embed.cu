/* cuda_embed.cu: rows of tables, and the sums of gradients by row. */
#include "backend/cuda/cuda_by_id.h"

__global__ void embed_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *table,
                             const int32_t *ids, float *y)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (int64_t)lp_rows_now(rows, shard) * cols)
        y[i] = table[(size_t)ids[i / cols] * cols + i % cols];
}

void lp_cuda_embed(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    LP_LAUNCH(run, embed_kernel, lp_blocks((int64_t)lp_cuda_largest(run, out) * out->cols, 256), 256, 0, run->shard,
              lp_cuda_rows_of(out), out->cols, LP_INPUT(0), LP_INPUT_AS(int32_t, 1), LP_OUTPUT(0));
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
