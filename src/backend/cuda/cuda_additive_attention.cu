/* cuda_additive_attention.cu: additive attention, and its gradient. A block has one token, as a query or as a key: its
 * warps compute a number for each token of the other side, then each thread has a column and adds up the pairs in their
 * order. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

/* The score of a pair is weight . sigmoid(query + key), and its gradient dout . value. Sums over the pairs of a token:
 *
 *     sum = score other_b     down = weight dscore sigmoid'(own + other)     dweight = dscore sigmoid(own + other)
 */
typedef struct additive_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    int longest, a, b;            /* longest: tokens of a segment */
    const float *weight;          /* [a] */
    bool keys;                    /* the tokens are keys, and the others are queries */
    const float *own, *other;     /* [T x a]: query and key */
    const float *own_b, *other_b; /* [T x b]: dout and value; own_b may be NULL: no gradient */
    float *sum, *down, *dweight;  /* [T x b], [T x a], [T x a]: each may be NULL */
    int adds_sum, adds_down;
} additive_task;

__device__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

__global__ void __launch_bounds__(LP_RECURRENT_HIDDEN) additive_kernel(const __grid_constant__ additive_task task)
{
    LP_SHARED(float, score); /* [longest] */
    float *dscore = score + task.longest;
    int c = (int)threadIdx.x, lane = c % 32, a = task.a, b = task.b;
    int64_t t = blockIdx.x;
    if (t >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    int first = task.keys ? (int)t : task.bounds.start[t], end = task.keys ? task.bounds.end[t] : (int)t + 1;
    const float *own = task.own + t * a, *other = task.other + (int64_t)first * a;
    const float *own_b = task.own_b ? task.own_b + t * b : NULL, *other_b = task.other_b + (int64_t)first * b;
    for (int i = c / 32; i < end - first; i += (int)blockDim.x / 32) {
        float s = 0, d = 0;
        for (int k = lane; k < a; k += 32)
            s += task.weight[k] * sigmoid(own[k] + other[i * a + k]);
        for (int k = lane; own_b && k < b; k += 32)
            d += own_b[k] * other_b[i * b + k];
        score[i] = lp_warp_sum(s);
        dscore[i] = lp_warp_sum(d);
    }
    __syncthreads();
    float sum = 0, down = 0, dweight = 0;
    for (int i = 0; i < end - first; i++) {
        sum += c < b ? score[i] * other_b[i * b + c] : 0;
        float y = c < a ? sigmoid(own[c] + other[i * a + c]) : 0;
        dweight += dscore[i] * y;
        down += dscore[i] * y * (1 - y);
    }
    if (task.sum && c < b)
        lp_store(&task.sum[t * b + c], sum, task.adds_sum);
    if (task.down && c < a)
        lp_store(&task.down[t * a + c], down * task.weight[c], task.adds_down);
    if (task.dweight && c < a)
        task.dweight[t * a + c] = dweight;
}

void launch(const lp_node *node, const lp_cuda_run *run, bool keys, float *sum, float *down, float *dweight)
{
    int a = node->inputs[0]->cols, b = node->inputs[2]->cols, longest = run->run->plan->largest.longest;
    int adds_sum = keys ? LP_ADDS(2) : 0, adds_down = LP_ADDS(keys);
    const float *weight = LP_INPUT(3), *own = LP_INPUT(keys), *other = LP_INPUT(!keys);
    const float *own_b = LP_INPUT(keys ? 2 : 4), *other_b = LP_INPUT(keys ? 4 : 2);
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    additive_task task = {run->shard, bounds, longest, a,   b,    weight,  keys,     own,
                          other,      own_b,  other_b, sum, down, dweight, adds_sum, adds_down};
    if (sum || down || dweight)
        LP_LAUNCH(run, additive_kernel, (unsigned)lp_cuda_largest(run, node->inputs[0]),
                  lp_blocks(a > b ? a : b, 32) * 32, 2 * (size_t)longest * sizeof(float), task);
}

} // namespace

void lp_cuda_additive_attention(const lp_node *node, const lp_cuda_run *run)
{
    launch(node, run, false, LP_OUTPUT(0), NULL, NULL);
}

void lp_cuda_additive_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int a = node->inputs[0]->cols;
    const lp_value *weight = node->outputs[3];
    size_t size = (size_t)(lp_cuda_largest(run, node->inputs[0]) + 1) * (size_t)a * sizeof(float); /* not 0 */
    /* Of each query. lp_cuda_outer, which adds them up, uses the scratch itself. */
    float *dweight = weight ? (float *)lp_cuda_side_buffer(run, weight, size) : NULL;
    launch(node, run, false, NULL, LP_OUTPUT(0), dweight);
    launch(node, run, true, LP_OUTPUT(2), LP_OUTPUT(1), NULL);
    if (dweight)
        lp_cuda_outer(run, {LP_ROWS_TOKENS, 0}, dweight, a, NULL, 0, NULL, 0, LP_OUTPUT(3), LP_ADDS(3));
}
