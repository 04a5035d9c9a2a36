/* cuda_attend_self.cu: joins a row's attention to earlier rows with that to its own key (lp_attend_self), and its
 * gradient. One warp for each row and head. */
#include "backend/cuda/cuda_attention_order.h"

typedef float real;
#define lp_lanes_sum lp_warp_sum
#include "base/attend_self.h"

namespace
{

enum { WARPS = 8 };

__global__ void join_kernel(const lp_cuda_shard *shard, lp_rows rows_of, lp_cuda_bounds bounds,
                            const __grid_constant__ lp_self_join join)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, token = i / join.heads;
    if (token < shard->rows[rows_of])
        lp_attend_self_row(&join, i, bounds.start[token] == token, bounds.end[token] == token + 1,
                           (int)threadIdx.x % 32, 32);
}

void launch(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *query = node->inputs[0];
    int heads = node->attributes.heads, cols = query->cols / heads;
    float scale = (float)node->attributes.scale, *first = LP_OUTPUT(0);
    float *joined = node->inputs[5] ? NULL : first, *dquery = node->inputs[5] ? first : NULL;
    lp_self_join join = {heads,        cols,         scale,        LP_INPUT(0),
                         LP_INPUT(1),  LP_INPUT(2),  LP_INPUT(3),  LP_INPUT(4),
                         joined,       LP_INPUT(5),  dquery,       LP_OUTPUT(1),
                         LP_OUTPUT(2), LP_OUTPUT(3), LP_OUTPUT(4), (uint32_t)node->accumulate};
    LP_LAUNCH(run, join_kernel, lp_blocks((int64_t)lp_cuda_largest(run, query) * heads, WARPS), WARPS * 32, 0,
              run->shard, query->rows_of, lp_cuda_bounds_of(run), join);
}

} // namespace

LP_CUDA_OP_BY(attend_self, launch)
LP_CUDA_OP_BY(attend_self_gradient, launch)
