/* cuda_attend_self.cu: joins a row's attention to earlier rows with that to its own key (lp_attend_self), and its
 * gradient. One warp for each row and head. */
#include "backend/cuda/cuda_attention_order.h"

typedef float real;
#define lp_lanes_sum lp_warp_sum
#include "formula/attend_self.h"

static void launch(const lp_node *node, const lp_cuda_run *run)
{
    int heads = node->attributes.heads, cols = node->inputs[0]->cols / heads;
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    float scale = (float)node->attributes.scale, *first = LP_OUTPUT(0);
    float *joined = node->inputs[5] ? NULL : first, *dquery = node->inputs[5] ? first : NULL;
    lp_self_join join = {heads,        cols,         scale,        LP_INPUT(0),
                         LP_INPUT(1),  LP_INPUT(2),  LP_INPUT(3),  LP_INPUT(4),
                         joined,       LP_INPUT(5),  dquery,       LP_OUTPUT(1),
                         LP_OUTPUT(2), LP_OUTPUT(3), LP_OUTPUT(4), (uint32_t)node->accumulate};
    lp_cuda_each<32>(run, node->inputs[0], heads, [=] __device__(int64_t i, int lane) {
        int64_t token = i / heads;
        lp_attend_self_row(&join, i, bounds.start[token] == token, bounds.end[token] == token + 1, lane, 32);
    });
}

LP_CUDA_OP_BY(attend_self, launch)
LP_CUDA_OP_BY(attend_self_gradient, launch)
