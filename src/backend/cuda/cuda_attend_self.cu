/* cuda_attend_self.cu: joins a row's attention to earlier rows with that to its own key (lp_attend_self), and its
 * gradient. One warp for each row and head. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

enum { WARPS = 8 };

typedef struct self_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    lp_rows rows_of;
    int heads, cols; /* cols: of a head */
    float scale;
    const float *query, *key, *value, *out, *lse;
    float *joined;   /* NULL: the gradients are computed */
    const float *dy; /* the others are for gradients */
    float *dquery, *dkey, *dvalue, *dout, *dlse;
    int accumulate; /* bit i: gradient i accumulates */
} self_task;

__device__ float warp_dot(const float *a, const float *b, int count)
{
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < count; c += 32)
        sum += a[c] * b[c];
    return lp_warp_sum(sum);
}

__global__ void self_kernel(const __grid_constant__ self_task task)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, token = i / task.heads;
    if (token >= task.shard->rows[task.rows_of])
        return;
    bool first = task.bounds.start[token] == token, last = task.bounds.end[token] == token + 1;
    int lane = (int)threadIdx.x % 32, cols = task.cols;
    int64_t at = i * cols, before = at - (int64_t)task.heads * cols;
    const float *dy = task.dy + at;
    float score = task.scale * warp_dot(task.query + at, task.key + at, cols), ds = 0;
    float w = first ? 1 : 1 / (1 + expf(task.lse[i - task.heads] - score)); /* of the row's own key */
    if (!task.joined && !first)
        ds = w * (1 - w) * (warp_dot(dy, task.value + at, cols) - warp_dot(dy, task.out + before, cols));
    for (int c = lane; c < cols; c += 32) {
        if (task.joined)
            task.joined[at + c] = w * task.value[at + c] + (first ? 0 : (1 - w) * task.out[before + c]);
        if (task.dquery)
            lp_store(&task.dquery[at + c], task.scale * ds * task.key[at + c], task.accumulate & 1);
        if (task.dkey)
            lp_store(&task.dkey[at + c], task.scale * ds * task.query[at + c], task.accumulate & 2);
        if (task.dvalue)
            lp_store(&task.dvalue[at + c], w * dy[c], task.accumulate & 4);
        if (task.dout && !first)
            lp_store(&task.dout[before + c], (1 - w) * dy[c], task.accumulate & 8);
        if (task.dout && last)
            lp_store(&task.dout[at + c], 0, task.accumulate & 8);
    }
    if (task.dlse && lane == 0) {
        if (!first)
            lp_store(&task.dlse[i - task.heads], -ds, task.accumulate & 16);
        if (last)
            lp_store(&task.dlse[i], 0, task.accumulate & 16);
    }
}

void launch(const lp_node *node, const lp_cuda_run *run, bool gradient)
{
    const lp_value *query = node->inputs[0];
    int heads = node->attributes.heads, cols = query->cols / heads, adds = (int)node->accumulate;
    float scale = (float)node->attributes.scale;
    float *joined = gradient ? NULL : LP_OUTPUT(0), *dquery = gradient ? LP_OUTPUT(0) : NULL;
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    self_task task = {run->shard,   bounds,       query->rows_of, heads,        cols,   scale,       LP_INPUT(0),
                      LP_INPUT(1),  LP_INPUT(2),  LP_INPUT(3),    LP_INPUT(4),  joined, LP_INPUT(5), dquery,
                      LP_OUTPUT(1), LP_OUTPUT(2), LP_OUTPUT(3),   LP_OUTPUT(4), adds};
    LP_LAUNCH(run, self_kernel, lp_blocks((int64_t)lp_cuda_largest(run, query) * heads, WARPS), WARPS * 32, 0, task);
}

} // namespace

void lp_cuda_attend_self(const lp_node *node, const lp_cuda_run *run)
{
    launch(node, run, false);
}

void lp_cuda_attend_self_gradient(const lp_node *node, const lp_cuda_run *run)
{
    launch(node, run, true);
}
