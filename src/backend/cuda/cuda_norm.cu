/* cuda_norm.cu: layer norm, a warp for each row.
 *
 * The gradients of gain and shift are sums over all rows. Every block sums its own run of rows, rows apart by the number of its warps to
 * each warp; one block then adds those of the blocks in their order. The number of blocks depends on the largest shard alone and
 * which rows are whose on the number of rows, so that two runs give the same bits.
 */
#include "backend/cuda/cuda.h"

namespace
{

enum { WARPS = 8, SLICES = 256 };

typedef struct norm_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols;
    const float *x, *gain, *shift, *moments, *dy;
    float *y, *moments_out, *dx, *dgain, *dshift;
    float *sums; /* [slices x 2 cols]: of dgain, then of dshift */
    int slices, adds;
    double epsilon;
} norm_task;

__global__ void __launch_bounds__(32 * WARPS) norm_forward(norm_task task)
{
    int cols = task.cols, lane = (int)threadIdx.x & 31;
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (t >= lp_rows_now(task.rows, task.shard))
        return;
    const float *row = task.x + t * cols;
    float sum = 0, square = 0;
    for (int c = lane; c < cols; c += 32)
        sum += row[c];
    float mean = lp_warp_sum(sum) / (float)cols;
    for (int c = lane; c < cols; c += 32)
        square += (row[c] - mean) * (row[c] - mean);
    float inverse = (float)(1 / sqrt((double)(lp_warp_sum(square) / (float)cols) + task.epsilon));
    for (int c = lane; c < cols; c += 32)
        task.y[t * cols + c] = (row[c] - mean) * inverse * task.gain[c] + task.shift[c];
    if (lane == 0) {
        task.moments_out[2 * t] = mean;
        task.moments_out[2 * t + 1] = inverse;
    }
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ void row_backward(const norm_task *task, int64_t t)
{
    int cols = task->cols, lane = (int)threadIdx.x & 31;
    const float *row = task->x + t * cols, *drow = task->dy + t * cols;
    float mean = task->moments[2 * t], inverse = task->moments[2 * t + 1], sum = 0, dot = 0;
    for (int c = lane; c < cols; c += 32) {
        float g = drow[c] * task->gain[c];
        sum += g;
        dot += g * ((row[c] - mean) * inverse);
    }
    sum = lp_warp_sum(sum) / (float)cols;
    dot = lp_warp_sum(dot) / (float)cols;
    for (int c = lane; c < cols; c += 32) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * task->gain[c];
        lp_store(task->dx + t * cols + c, inverse * (g - sum - normal * dot), task->adds & 1);
    }
}

/* Sums of one column over the warp's rows of this block. */
__device__ float2 column_sums(const norm_task *task, int64_t first, int64_t end, int c)
{
    float2 sums = {0, 0};
    for (int64_t t = first + (threadIdx.x >> 5); t < end; t += WARPS) {
        float dy = task->dy[t * task->cols + c];
        sums.x += dy * ((task->x[t * task->cols + c] - task->moments[2 * t]) * task->moments[2 * t + 1]);
        sums.y += dy;
    }
    return sums;
}

/* Every block takes an equal run of rows. */
__global__ void __launch_bounds__(32 * WARPS) norm_backward(norm_task task)
{
    __shared__ float2 parts[WARPS][32];
    int rows = lp_rows_now(task.rows, task.shard), lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    int64_t first = (int64_t)rows * blockIdx.x / task.slices, end = (int64_t)rows * (blockIdx.x + 1) / task.slices;
    for (int64_t t = first + warp; task.dx && t < end; t += WARPS)
        row_backward(&task, t);
    if (!task.sums)
        return;
    for (int from = 0; from < task.cols; from += 32) {
        int c = from + lane;
        float2 none = {0, 0};
        parts[warp][lane] = c < task.cols ? column_sums(&task, first, end, c) : none;
        __syncthreads();
        float2 sum = {0, 0};
        for (int i = 0; warp == 0 && i < WARPS; i++) {
            sum.x += parts[i][lane].x;
            sum.y += parts[i][lane].y;
        }
        if (warp == 0 && c < task.cols) {
            task.sums[(int64_t)blockIdx.x * 2 * task.cols + c] = sum.x;
            task.sums[((int64_t)blockIdx.x * 2 + 1) * task.cols + c] = sum.y;
        }
        __syncthreads();
    }
}

/* A warp adds the blocks' sums of one element. */
__global__ void __launch_bounds__(32 * WARPS) norm_finish(norm_task task)
{
    int i = (int)blockIdx.x * WARPS + (int)(threadIdx.x >> 5), lane = (int)threadIdx.x & 31;
    if (i >= 2 * task.cols)
        return;
    float sum = 0;
    for (int s = lane; s < task.slices; s += 32)
        sum += task.sums[(int64_t)s * 2 * task.cols + i];
    sum = lp_warp_sum(sum);
    float *to = i < task.cols ? task.dgain : task.dshift;
    if (lane == 0 && to)
        lp_store(to + i % task.cols, sum, task.adds & (i < task.cols ? 2 : 4));
}

} // namespace

void lp_cuda_layer_norm(const lp_node *node, const lp_cuda_run *run)
{
    norm_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.cols = node->inputs[0]->cols;
    task.x = LP_INPUT(0);
    task.gain = LP_INPUT(1);
    task.shift = LP_INPUT(2);
    task.y = LP_OUTPUT(0);
    task.moments_out = LP_OUTPUT(1);
    task.epsilon = node->with.epsilon;
    LP_LAUNCH(run, norm_forward, lp_blocks(lp_cuda_largest(run, node->inputs[0]), WARPS), 32 * WARPS, 0, task);
}

void lp_cuda_layer_norm_gradient(const lp_node *node, const lp_cuda_run *run)
{
    norm_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.cols = node->inputs[0]->cols;
    task.x = LP_INPUT(0);
    task.gain = LP_INPUT(1);
    task.moments = LP_INPUT(2);
    task.dy = LP_INPUT(3);
    task.dx = LP_OUTPUT(0);
    task.dgain = LP_OUTPUT(1);
    task.dshift = LP_OUTPUT(2);
    task.adds = (int)node->accumulate;
    task.slices = (int)lp_blocks(lp_cuda_largest(run, node->inputs[0]), WARPS);
    task.slices = task.slices < SLICES ? (task.slices > 0 ? task.slices : 1) : SLICES;
    if (task.dgain || task.dshift) {
        task.sums = (float *)lp_cuda_scratch(run, (size_t)task.slices * 2 * (size_t)task.cols * sizeof(float));
        if (!task.sums)
            return;
    }
    LP_LAUNCH(run, norm_backward, (unsigned)task.slices, 32 * WARPS, 0, task);
    if (task.sums)
        LP_LAUNCH(run, norm_finish, lp_blocks(2 * task.cols, WARPS), 32 * WARPS, 0, task);
}
