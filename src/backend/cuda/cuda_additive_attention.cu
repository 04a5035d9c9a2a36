/* cuda_additive_attention.cu: additive attention. A block has one token and loops over the others in chunks: its warps compute a number
 * for each pair, then each thread has a column and adds up the chunk's pairs in their order. */
#include "backend/cuda/cuda_rows.h"

enum { CHUNK = 64, MOST_THREADS = LP_RECURRENT_HIDDEN, SUM_ROWS = 32 };

typedef struct additive_task {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int a, b;
    const float *query, *key, *value, *weight, *dout; /* [T x a], [T x a], [T x b], [a], [T x b] */
    float *out;                                       /* [T x b] */
    float *dquery, *dkey, *dvalue;                    /* may be NULL */
    float *dweight_rows; /* [T x a]: each query's part of the weight's gradient; may be NULL */
    int adds_query, adds_key, adds_value;
} additive_task;

__device__ static inline float additive_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* weight . sigmoid(query_t + key_j), in every lane of the warp. */
__device__ static inline float pair_score(const additive_task &task, int t, int j)
{
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < task.a; c += 32)
        sum += task.weight[c] * additive_sigmoid(task.query[(size_t)t * task.a + c] + task.key[(size_t)j * task.a + c]);
    return lp_warp_sum(sum);
}

/* dout_t . value_j, the gradient of the pair's score, in every lane of the warp. */
__device__ static inline float pair_dscore(const additive_task &task, int t, int j)
{
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < task.b; c += 32)
        sum += task.dout[(size_t)t * task.b + c] * task.value[(size_t)j * task.b + c];
    return lp_warp_sum(sum);
}

__global__ void __launch_bounds__(MOST_THREADS) additive_kernel(additive_task task)
{
    __shared__ float score[CHUNK];
    int t = (int)blockIdx.x, c = (int)threadIdx.x, warps = (int)blockDim.x / 32;
    if (t >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    float sum = 0;
    for (int from = task.segment[lp_segment_of(task.segment, task.shard->segments, t)]; from <= t; from += CHUNK) {
        int count = min((int)CHUNK, t + 1 - from);
        for (int i = c / 32; i < count; i += warps) {
            float mine = pair_score(task, t, from + i);
            if (c % 32 == 0)
                score[i] = mine;
        }
        __syncthreads();
        for (int i = 0; c < task.b && i < count; i++)
            sum += score[i] * task.value[(size_t)(from + i) * task.b + c];
        __syncthreads();
    }
    if (c < task.b)
        task.out[(size_t)t * task.b + c] = sum;
}

/* The gradients of the query and, row by row, of the weight: sums over the keys of a query. */
__global__ void __launch_bounds__(MOST_THREADS) additive_query_kernel(additive_task task)
{
    __shared__ float dscore[CHUNK];
    int t = (int)blockIdx.x, c = (int)threadIdx.x, warps = (int)blockDim.x / 32;
    if (t >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    bool mine = c < task.a;
    float query = mine ? task.query[(size_t)t * task.a + c] : 0, dquery = 0, dweight = 0;
    for (int from = task.segment[lp_segment_of(task.segment, task.shard->segments, t)]; from <= t; from += CHUNK) {
        int count = min((int)CHUNK, t + 1 - from);
        for (int i = c / 32; i < count; i += warps) {
            float d = pair_dscore(task, t, from + i);
            if (c % 32 == 0)
                dscore[i] = d;
        }
        __syncthreads();
        for (int i = 0; mine && i < count; i++) {
            float y = additive_sigmoid(query + task.key[(size_t)(from + i) * task.a + c]), weighted = dscore[i] * y;
            dweight += weighted;
            dquery += weighted * (1 - y);
        }
        __syncthreads();
    }
    if (mine && task.dquery)
        lp_store(&task.dquery[(size_t)t * task.a + c], dquery * task.weight[c], task.adds_query);
    if (mine && task.dweight_rows)
        task.dweight_rows[(size_t)t * task.a + c] = dweight;
}

/* The gradients of key and value: sums over the queries that attend to a token. */
__global__ void __launch_bounds__(MOST_THREADS) additive_key_kernel(additive_task task)
{
    __shared__ float score[CHUNK], dscore[CHUNK];
    int j = (int)blockIdx.x, c = (int)threadIdx.x, warps = (int)blockDim.x / 32;
    if (j >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    float key = c < task.a ? task.key[(size_t)j * task.a + c] : 0, dkey = 0, dvalue = 0;
    int end = task.segment[lp_segment_of(task.segment, task.shard->segments, j) + 1];
    for (int from = j; from < end; from += CHUNK) {
        int count = min((int)CHUNK, end - from);
        for (int i = c / 32; i < count; i += warps) {
            float s = task.dvalue ? pair_score(task, from + i, j) : 0,
                  d = task.dkey ? pair_dscore(task, from + i, j) : 0;
            if (c % 32 == 0) {
                score[i] = s;
                dscore[i] = d;
            }
        }
        __syncthreads();
        for (int i = 0; task.dkey && c < task.a && i < count; i++) {
            float y = additive_sigmoid(task.query[(size_t)(from + i) * task.a + c] + key);
            dkey += dscore[i] * y * (1 - y);
        }
        for (int i = 0; task.dvalue && c < task.b && i < count; i++)
            dvalue += score[i] * task.dout[(size_t)(from + i) * task.b + c];
        __syncthreads();
    }
    if (task.dkey && c < task.a)
        lp_store(&task.dkey[(size_t)j * task.a + c], dkey * task.weight[c], task.adds_key);
    if (task.dvalue && c < task.b)
        lp_store(&task.dvalue[(size_t)j * task.b + c], dvalue, task.adds_value);
}

/* dweight = the column sums of dweight_rows. */
__global__ void additive_weight_kernel(additive_task task, float *dweight, int adds)
{
    __shared__ double part[SUM_ROWS][32];
    int c = (int)(blockIdx.x * 32 + threadIdx.x), tokens = task.shard->rows[LP_ROWS_TOKENS];
    double sum = 0;
    for (int t = (int)threadIdx.y; c < task.a && t < tokens; t += SUM_ROWS)
        sum += (double)task.dweight_rows[(size_t)t * task.a + c];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || c >= task.a)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    lp_store(&dweight[c], (float)sum, adds);
}

static additive_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    additive_task task = {};
    task.shard = run->shard;
    task.segment = run->segment;
    task.a = node->inputs[0]->cols;
    task.b = node->inputs[2]->cols;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.weight = LP_INPUT(3);
    return task;
}

/* A thread for each column. */
static unsigned threads_of(const additive_task &task)
{
    return (unsigned)((task.a > task.b ? task.a : task.b) + 31) / 32 * 32;
}

void lp_cuda_additive_attention(const lp_node *node, const lp_cuda_run *run)
{
    additive_task task = task_of(node, run);
    task.out = LP_OUTPUT(0);
    LP_LAUNCH(run, additive_kernel, (unsigned)lp_cuda_largest(run, node->inputs[0]), threads_of(task), 0, task);
}

void lp_cuda_additive_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    additive_task task = task_of(node, run);
    unsigned tokens = (unsigned)lp_cuda_largest(run, node->inputs[0]);
    task.dout = LP_INPUT(4);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.adds_query = LP_ADDS(0);
    task.adds_key = LP_ADDS(1);
    task.adds_value = LP_ADDS(2);
    if (node->outputs[3]) {
        task.dweight_rows = (float *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.a * sizeof *task.dweight_rows);
        if (!task.dweight_rows)
            return;
    }
    if (task.dquery || task.dweight_rows)
        LP_LAUNCH(run, additive_query_kernel, tokens, threads_of(task), 0, task);
    if (task.dkey || task.dvalue)
        LP_LAUNCH(run, additive_key_kernel, tokens, threads_of(task), 0, task);
    if (task.dweight_rows)
        LP_LAUNCH(run, additive_weight_kernel, lp_blocks(task.a, 32), dim3(32, SUM_ROWS), 0, task, LP_OUTPUT(3),
                  LP_ADDS(3));
}
