/* cuda_embed.cu: rows of tables, and the sums of gradients by row.
 *
 * The gradient adds rows that share an id. To do so without atomics, and always in the order of the tokens, the host sorts the
 * ids of each shard while the device is busy with the one before (cuda_lists.h): here a warp sums one piece of up to
 * LP_CUDA_PIECE rows of one id, and ids with several pieces are added up by a second kernel.
 */
#include "backend/cuda/cuda_lists.h"

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

enum { WARPS = 8 };

/* A piece by a warp: the rows of dy in their order. */
__global__ void embed_pieces_kernel(lp_cuda_lists lists, int cols, const float *dy, float *dtable, float *partial)
{
    int n = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (n >= lists.counts->pieces)
        return;
    lp_cuda_piece piece = lists.pieces[n];
    for (int c = (int)(threadIdx.x % 32); c < cols; c += 32) {
        float sum = 0;
        for (int k = piece.begin; k < piece.end; k++)
            sum += dy[(size_t)lists.order[k] * cols + c];
        if (piece.place < 0)
            dtable[(size_t)piece.id * cols + c] += sum;
        else
            partial[(size_t)piece.place * cols + c] = sum;
    }
}

/* The ids with several pieces, each by a warp. */
__global__ void embed_groups_kernel(lp_cuda_lists lists, int cols, const float *partial, float *dtable)
{
    int n = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (n >= lists.counts->groups)
        return;
    lp_cuda_group group = lists.groups[n];
    for (int c = (int)(threadIdx.x % 32); c < cols; c += 32) {
        float sum = 0;
        for (int k = 0; k < group.count; k++)
            sum += partial[((size_t)group.place + k) * cols + c];
        dtable[(size_t)group.id * cols + c] += sum;
    }
}

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    lp_cuda_lists lists = lp_cuda_lists_of(run, node->inputs[1]);
    float *partial = (float *)lp_cuda_scratch(run, (size_t)lists.largest_partial * (size_t)out->cols * sizeof *partial);
    if (!partial)
        return;
    if (!LP_ADDS(0))
        lp_cuda_clear(run, LP_OUTPUT(0), (size_t)lp_cuda_largest(run, out) * (size_t)out->cols * sizeof(float));
    LP_LAUNCH(run, embed_pieces_kernel, lp_blocks(lists.largest_pieces, WARPS), WARPS * 32, 0, lists, out->cols,
              LP_INPUT(0), LP_OUTPUT(0), partial);
    LP_LAUNCH(run, embed_groups_kernel, lp_blocks(lists.largest_groups, WARPS), WARPS * 32, 0, lists, out->cols,
              partial, LP_OUTPUT(0));
}
