/* cuda_additive_attention.cu: additive attention, and its gradient. A block has one token, as a query or as a key, and
 * loops over the tokens of the other side in chunks: its warps compute a number for each pair, then each thread has a
 * column and adds up the chunk's pairs in their order. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

enum { CHUNK = 64, MOST_THREADS = LP_RECURRENT_HIDDEN };

/* The score of a pair is weight . sigmoid(query + key), and its gradient dout . value. Sums over the pairs of a token:
 *
 *     sum = score other_b     down = weight dscore sigmoid'(own + other)     dweight = dscore sigmoid(own + other)
 */
typedef struct additive_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    int a, b;
    const float *weight;          /* [a] */
    bool keys;                    /* the tokens are keys, and the others are queries */
    const float *own, *other;     /* [T x a]: query and key */
    const float *own_b, *other_b; /* [T x b]: dout and value */
    float *sum, *down, *dweight;  /* [T x b], [T x a], [T x a]: each may be NULL */
    int adds_sum, adds_down;
} additive_task;

__device__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

__global__ void __launch_bounds__(MOST_THREADS) additive_kernel(const __grid_constant__ additive_task task)
{
    __shared__ float score[CHUNK], dscore[CHUNK];
    int c = (int)threadIdx.x, lane = c % 32, warps = (int)blockDim.x / 32, a = task.a, b = task.b;
    int64_t t = blockIdx.x;
    if (t >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    int first = task.keys ? (int)t : task.bounds.start[t], end = task.keys ? task.bounds.end[t] : (int)t + 1;
    float sum = 0, down = 0, dweight = 0;
    for (int from = first; from < end; from += CHUNK) {
        int count = min((int)CHUNK, end - from);
        const float *other = task.other + (int64_t)from * a, *other_b = task.other_b + (int64_t)from * b;
        for (int i = c / 32; i < count; i += warps) {
            float s = 0, d = 0;
            for (int k = lane; task.sum && k < a; k += 32)
                s += task.weight[k] * sigmoid(task.own[t * a + k] + other[i * a + k]);
            for (int k = lane; task.own_b && k < b; k += 32)
                d += task.own_b[t * b + k] * other_b[i * b + k];
            s = lp_warp_sum(s);
            d = lp_warp_sum(d);
            if (lane == 0) {
                score[i] = s;
                dscore[i] = d;
            }
        }
        __syncthreads();
        for (int i = 0; task.sum && c < b && i < count; i++)
            sum += score[i] * other_b[i * b + c];
        for (int i = 0; task.own_b && c < a && i < count; i++) {
            float y = sigmoid(task.own[t * a + c] + other[i * a + c]), weighted = dscore[i] * y;
            dweight += weighted;
            down += weighted * (1 - y);
        }
        __syncthreads();
    }
    if (task.sum && c < b)
        lp_store(&task.sum[t * b + c], sum, task.adds_sum);
    if (task.down && c < a)
        lp_store(&task.down[t * a + c], down * task.weight[c], task.adds_down);
    if (task.dweight && c < a)
        task.dweight[t * a + c] = dweight;
}

/* dweight = the column sums of those of all queries, a warp for each column. */
__global__ void weight_kernel(const lp_cuda_shard *shard, const float *rows, int a, float *dweight, int adds)
{
    double sum = 0;
    for (int64_t t = threadIdx.x; t < shard->rows[LP_ROWS_TOKENS]; t += 32)
        sum += (double)rows[t * a + blockIdx.x];
    sum = lp_warp_sum(sum);
    if (threadIdx.x == 0)
        lp_store(&dweight[blockIdx.x], (float)sum, adds);
}

/* A block for each token, a thread for each column. */
void launch(const lp_node *node, const lp_cuda_run *run, const additive_task &task)
{
    unsigned threads = (unsigned)((task.a > task.b ? task.a : task.b) + 31) / 32 * 32;
    if (task.sum || task.down || task.dweight)
        LP_LAUNCH(run, additive_kernel, (unsigned)lp_cuda_largest(run, node->inputs[0]), threads, 0, task);
}

} // namespace

void lp_cuda_additive_attention(const lp_node *node, const lp_cuda_run *run)
{
    launch(node, run,
           {run->shard, lp_cuda_bounds_of(run), node->inputs[0]->cols, node->inputs[2]->cols, LP_INPUT(3), false,
            LP_INPUT(0), LP_INPUT(1), NULL, LP_INPUT(2), LP_OUTPUT(0), NULL, NULL, 0, 0});
}

void lp_cuda_additive_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int a = node->inputs[0]->cols, b = node->inputs[2]->cols;
    const float *query = LP_INPUT(0), *key = LP_INPUT(1), *value = LP_INPUT(2), *weight = LP_INPUT(3);
    const float *dout = LP_INPUT(4);
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    float *dweight = NULL;
    if (node->outputs[3]) {
        size_t tokens = (size_t)lp_cuda_largest(run, node->inputs[0]);
        dweight = (float *)lp_cuda_scratch(run, tokens * (size_t)a * sizeof(float));
        if (!dweight)
            return;
    }
    launch(
        node, run,
        {run->shard, bounds, a, b, weight, false, query, key, dout, value, NULL, LP_OUTPUT(0), dweight, 0, LP_ADDS(0)});
    launch(node, run,
           {run->shard, bounds, a, b, weight, true, key, query, value, dout, LP_OUTPUT(2), LP_OUTPUT(1), NULL,
            LP_ADDS(2), LP_ADDS(1)});
    if (dweight)
        LP_LAUNCH(run, weight_kernel, (unsigned)a, 32, 0, run->shard, dweight, a, LP_OUTPUT(3), LP_ADDS(3));
}
