/* cuda_attention_wide.cu: attention and its gradient for heads and bases of any width, in fp32, read from global memory.
 *
 * A block takes a token and a head. Its warps divide the tokens of the other side, and the lanes the columns; numbers of pairs go to
 * shared memory. Then a thread has a column, and adds up the pairs in their order: two runs give the same bits. Every pair reads all
 * columns from the L2 cache, so it is for widths that no tile of cuda_attention.h holds: from about 600 columns a head on in fp32 and
 * tf32, and 1,000 in bf16.
 */
#include "backend/cuda/cuda_attention_wide.h"

#include "backend/cuda/cuda_attention.h"

typedef float real;
#define LP_ROW_LANES 32
#include "formula/softmax_row.h"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32 };

/* Matrices have `heads` times the columns, but the basis. */
typedef struct wide_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    lp_rows rows_of;
    int heads, cols, extra; /* columns of a head, and of the basis */
    int longest;            /* tokens of a segment */
    float scale, dropout_scale;
    uint32_t dropout_threshold, dropout_purpose;
    const float *query, *key, *value, *time_query, *basis;
    float *lse; /* [T x heads]: attention writes it */
    float *out, *time_out;
    const float *dout, *dtime_out; /* of the gradient */
    float *delta;                         /* [T x heads] */
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int adds[5]; /* by output of the gradient */
} wide_task;

/* The lane's part of a dot product. */
__device__ __forceinline__ float lane_dot(const float *x, const float *y, int count)
{
    float sum = 0;
#pragma unroll 4
    for (int c = (int)threadIdx.x % 32; c < count; c += 32)
        sum += x[c] * y[c];
    return sum;
}

/* The row of a token and head in a matrix of `cols` columns a head. */
template <typename type>
__device__ __forceinline__ type *row_of(const wide_task &task, type *matrix, int token, int head, int cols)
{
    return matrix + ((int64_t)token * task.heads + head) * cols;
}

/* scale * (a . b of a head + time . basis), in all lanes. */
__device__ __forceinline__ float pair_dot(const wide_task &task, const float *a, const float *b, const float *time,
                                          int key)
{
    float sum = lane_dot(a, b, task.cols);
    return lp_warp_sum(sum + lane_dot(time, task.basis + (int64_t)key * task.extra, task.extra));
}

/* The dropout factor of a query and the key at `position` of its segment. */
__device__ __forceinline__ float factor_of(const wide_task &task, int query, int head, int position)
{
    if (!task.dropout_threshold)
        return 1;
    uint64_t row = (task.shard->first_token + (uint64_t)query) * (uint64_t)task.heads + (uint64_t)head;
    lp_random_block block =
        lp_philox(task.shard->seed, task.dropout_purpose, task.shard->step, row * 65536 + (uint64_t)(position / 8));
    return lp_dropout_keep(&block, position, task.dropout_threshold) ? task.dropout_scale : 0;
}

__device__ __forceinline__ float score_of(const wide_task &task, int query, int key, int head)
{
    return task.scale * pair_dot(task, row_of(task, task.query, query, head, task.cols),
                                 row_of(task, task.key, key, head, task.cols),
                                 row_of(task, task.time_query, query, head, task.extra), key);
}

__global__ void __launch_bounds__(THREADS) wide_forward(const __grid_constant__ wide_task task)
{
    LP_SHARED(float, p); /* [longest]: scores, then probabilities */
    int query = (int)blockIdx.x, head = (int)blockIdx.y, lane = (int)threadIdx.x % 32;
    if (query >= task.shard->rows[task.rows_of])
        return;
    int first = task.bounds.start[query], keys = query - first + 1;
    for (int i = (int)threadIdx.x / 32; i < keys; i += WARPS) {
        float score = score_of(task, query, first + i, head);
        if (lane == 0)
            p[i] = score;
    }
    __syncthreads();
    float lse = lp_log_sum_exp_row(p, keys, lane);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < keys; i += THREADS)
        p[i] = expf(p[i] - lse) * factor_of(task, query, head, i);
    if (threadIdx.x == 0 && task.lse)
        *row_of(task, task.lse, query, head, 1) = lse;
    __syncthreads();
    for (int c = (int)threadIdx.x; c < task.cols + task.extra; c += THREADS) {
        bool of_time = c >= task.cols;
        int col = of_time ? c - task.cols : c, stride = of_time ? task.extra : task.heads * task.cols;
        const float *from =
            (of_time ? task.basis + (int64_t)first * stride : row_of(task, task.value, first, head, task.cols)) + col;
        float sum = 0;
#pragma unroll 4
        for (int i = 0; i < keys; i++)
            sum += p[i] * from[(int64_t)i * stride];
        (of_time ? row_of(task, task.time_out, query, head, task.extra)
                 : row_of(task, task.out, query, head, task.cols))[col] = sum;
    }
}

/* f p and ds of a pair (cuda_attention_gradient.cu), in all lanes. */
__device__ __forceinline__ float2 pair_gradient(const wide_task &task, int query, int key, int head, float delta)
{
    float p = expf(score_of(task, query, key, head) - *row_of(task, task.lse, query, head, 1));
    float dp = pair_dot(task, row_of(task, task.dout, query, head, task.cols),
                        row_of(task, task.value, key, head, task.cols),
                        row_of(task, task.dtime_out, query, head, task.extra), key);
    float factor = factor_of(task, query, head, key - task.bounds.start[query]);
    return make_float2(factor * p, task.scale * p * (factor * dp - delta));
}

__global__ void __launch_bounds__(THREADS) wide_query_gradient(const __grid_constant__ wide_task task)
{
    LP_SHARED(float, ds); /* [longest] */
    int query = (int)blockIdx.x, head = (int)blockIdx.y, lane = (int)threadIdx.x % 32;
    if (query >= task.shard->rows[task.rows_of])
        return;
    int first = task.bounds.start[query], keys = query - first + 1;
    auto row = [&](const float *matrix, int cols) { return row_of(task, matrix, query, head, cols); };
    float delta = lane_dot(row(task.dout, task.cols), row(task.out, task.cols), task.cols) +
                  lane_dot(row(task.dtime_out, task.extra), row(task.time_out, task.extra), task.extra);
    delta = lp_warp_sum(delta);
    if (threadIdx.x == 0)
        *row_of(task, task.delta, query, head, 1) = delta;
    for (int i = (int)threadIdx.x / 32; i < keys; i += WARPS) {
        float2 pair = pair_gradient(task, query, first + i, head, delta);
        if (lane == 0)
            ds[i] = pair.y;
    }
    __syncthreads();
    for (int c = (int)threadIdx.x; c < task.cols + task.extra; c += THREADS) {
        bool of_time = c >= task.cols;
        int col = of_time ? c - task.cols : c, stride = of_time ? task.extra : task.heads * task.cols;
        const float *from =
            (of_time ? task.basis + (int64_t)first * stride : row_of(task, task.key, first, head, task.cols)) + col;
        float *to = of_time ? task.dtime_query : task.dquery, sum = 0;
#pragma unroll 4
        for (int i = 0; i < keys; i++)
            sum += ds[i] * from[(int64_t)i * stride];
        if (to)
            lp_store(row_of(task, to, query, head, of_time ? task.extra : task.cols) + col, sum,
                     task.adds[of_time ? 3 : 0]);
    }
}

/* dkey and dvalue of a head. dbasis: of all heads, one after another, which are added up. */
__device__ void key_gradient(const wide_task &task, int key, int head, float *p, float *ds)
{
    int queries = task.bounds.end[key] - key, lane = (int)threadIdx.x % 32;
    for (int i = (int)threadIdx.x / 32; i < queries; i += WARPS) {
        float2 pair = pair_gradient(task, key + i, key, head, *row_of(task, task.delta, key + i, head, 1));
        if (lane == 0) {
            p[i] = pair.x;
            ds[i] = pair.y;
        }
    }
    __syncthreads();
    for (int c = (int)threadIdx.x; c < task.cols + task.extra; c += THREADS) {
        bool of_time = c >= task.cols;
        int cols = of_time ? task.extra : task.cols, col = of_time ? c - task.cols : c, stride = task.heads * cols;
        const float *left = row_of(task, of_time ? task.time_query : task.query, key, head, cols) + col;
        const float *right = row_of(task, of_time ? task.dtime_out : task.dout, key, head, cols) + col;
        float of_scores = 0, of_values = 0;
#pragma unroll 4
        for (int i = 0; i < queries; i++) {
            of_scores += ds[i] * left[(int64_t)i * stride];
            of_values += p[i] * right[(int64_t)i * stride];
        }
        if (of_time && task.dbasis)
            lp_store(task.dbasis + (int64_t)key * cols + col, of_scores + of_values, head > 0 || task.adds[4]);
        if (!of_time && task.dkey)
            lp_store(row_of(task, task.dkey, key, head, cols) + col, of_scores, task.adds[1]);
        if (!of_time && task.dvalue)
            lp_store(row_of(task, task.dvalue, key, head, cols) + col, of_values, task.adds[2]);
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) wide_key_gradient(const __grid_constant__ wide_task task)
{
    LP_SHARED(float, p); /* [longest] */
    int key = (int)blockIdx.x;
    if (key >= task.shard->rows[task.rows_of])
        return;
    for (int head = 0; head < task.heads; head++)
        key_gradient(task, key, head, p, p + task.longest);
}

wide_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    wide_task task = {};
    task.shard = run->shard;
    task.bounds = lp_cuda_bounds_of(run);
    task.rows_of = node->inputs[0]->rows_of;
    task.heads = node->attributes.heads;
    task.cols = node->inputs[0]->cols / task.heads;
    task.extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    task.longest = run->run->plan->largest.longest;
    task.scale = (float)node->attributes.scale;
    task.dropout_threshold = lp_dropout_threshold(node->attributes.rate);
    task.dropout_purpose = lp_dropout_purpose(node->attributes.stream);
    task.dropout_scale = (float)(65536.0 / (65536.0 - task.dropout_threshold));
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    return task;
}

void launch(const lp_node *node, const lp_cuda_run *run)
{
    wide_task task = task_of(node, run);
    task.out = LP_OUTPUT(0);
    task.lse = LP_OUTPUT(1);
    task.time_out = LP_OUTPUT(2);
    dim3 grid((unsigned)lp_cuda_largest(run, node->inputs[0]), (unsigned)task.heads);
    LP_LAUNCH(run, wide_forward, grid, THREADS, (size_t)task.longest * sizeof(float), task);
}

void launch_gradient(const lp_node *node, const lp_cuda_run *run)
{
    wide_task task = task_of(node, run);
    unsigned tokens = (unsigned)lp_cuda_largest(run, node->inputs[0]);
    task.lse = (float *)LP_INPUT(5);
    task.out = (float *)LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = (float *)LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.dtime_query = LP_OUTPUT(3);
    task.dbasis = LP_OUTPUT(4);
    for (int i = 0; i < 5; i++)
        task.adds[i] = LP_ADDS(i);
    task.delta = (float *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.heads * sizeof(float));
    if (!task.delta)
        return;
    size_t shared = (size_t)task.longest * sizeof(float);
    LP_LAUNCH(run, wide_query_gradient, dim3(tokens, (unsigned)task.heads), THREADS, shared, task);
    LP_LAUNCH(run, wide_key_gradient, tokens, THREADS, 2 * shared, task);
}

/* Whether a block of cuda_attention.h has shared memory for the tiles of this node, at their smallest. */
bool fits(const lp_node *node, bool bf16, bool backward, int shared)
{
    int step = bf16 ? 16 : 8, inner = backward && step == 8 ? 16 : 32;
    int head = (int)lp_blocks(node->inputs[0]->cols / node->attributes.heads, step);
    int basis = (int)lp_blocks(node->inputs[4] ? node->inputs[4]->cols : 0, step);
    attention_size size = attention_size_of(head, basis, inner, backward, shared, shared / 2);
    return attention_floats(size, inner, backward) * (int)sizeof(float) <= shared;
}

} // namespace

lp_cuda_kernel lp_cuda_attention_wide_of(const lp_node *node, bool bf16, int shared)
{
    bool attention = node->op->id == LP_OP_ATTENTION, gradient = node->op->id == LP_OP_ATTENTION_GRADIENT;
    if (!attention && !gradient)
        return NULL;
    bool wide = !fits(node, bf16, false, shared) || !fits(node, bf16, true, shared); /* both: dropout masks are those of attention */
    return !wide ? NULL : attention ? launch : launch_gradient;
}
