/* cuda_norm.cu: layer normalization y = (x - mean) rstd weight + bias, one warp for each row, 8 warps a block.
 *
 * Rows of up to 256 columns are loaded once and stay in registers; a warp interleaves two rows to hide the latency of
 * its reductions. Wider rows are loaded again for each reduction.
 *
 * The gradients of weight and bias are column reductions, deferred to cuda_reduction.h.
 */
#include "backend/cuda/cuda_reduction.h"

namespace
{

enum { WARPS = 8, PAIR = 2 };

typedef struct norm_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols;
    const float *x, *weight, *bias, *stats, *dy; /* stats [rows x 2]: mean and rstd */
    float *y, *stats_out, *dx;
    int accumulate;
    float epsilon;
} norm_task;

/* ---- narrow rows: `each` columns a lane ---------------------------------------------------------------------- */

/* Columns lane, lane + 32, .. of a row; 0 beyond the last. */
template <int each> __device__ static inline void read_row(float (&to)[each], const float *row, int cols, bool valid)
{
    int lane = (int)threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < each; i++)
        to[i] = valid && lane + 32 * i < cols ? row[lane + 32 * i] : 0;
}

template <int each> __global__ void __launch_bounds__(32 * WARPS) narrow_forward(norm_task task)
{
    const float inverse_cols = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31, rows = lp_rows_now(task.rows, task.shard);
    int64_t first = PAIR * ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5));
    float x[PAIR][each], weight[each], bias[each];
    if (first >= rows)
        return;
#pragma unroll
    for (int r = 0; r < PAIR; r++)
        read_row<each>(x[r], task.x + (first + r) * cols, cols, first + r < rows);
    read_row<each>(weight, task.weight, cols, true);
    read_row<each>(bias, task.bias, cols, true);
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        float sum = 0, square = 0;
#pragma unroll
        for (int i = 0; i < each; i++)
            sum += x[r][i];
        float mean = lp_warp_sum(sum) * inverse_cols;
#pragma unroll
        for (int i = 0; i < each; i++)
            square += lane + 32 * i < cols ? (x[r][i] - mean) * (x[r][i] - mean) : 0;
        float rstd = rsqrtf(lp_warp_sum(square) * inverse_cols + task.epsilon);
#pragma unroll
        for (int i = 0; i < each; i++)
            if (t < rows && lane + 32 * i < cols)
                task.y[t * cols + lane + 32 * i] = (x[r][i] - mean) * rstd * weight[i] + bias[i];
        if (t < rows && lane == 0) {
            task.stats_out[2 * t] = mean;
            task.stats_out[2 * t + 1] = rstd;
        }
    }
}

/* With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - n * mean(g n)) */
template <int each> __global__ void __launch_bounds__(32 * WARPS) narrow_backward(norm_task task)
{
    const float inverse_cols = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31, rows = lp_rows_now(task.rows, task.shard);
    int64_t first = PAIR * ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5));
    float weight[each], normalized[PAIR][each], dy[PAIR][each], rstd[PAIR];
    if (first >= rows)
        return;
    read_row<each>(weight, task.weight, cols, true);
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        read_row<each>(normalized[r], task.x + t * cols, cols, t < rows);
        read_row<each>(dy[r], task.dy + t * cols, cols, t < rows);
        float mean = t < rows ? task.stats[2 * t] : 0;
        rstd[r] = t < rows ? task.stats[2 * t + 1] : 0;
#pragma unroll
        for (int i = 0; i < each; i++)
            normalized[r][i] = (normalized[r][i] - mean) * rstd[r];
    }
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        float sum = 0, dot = 0;
#pragma unroll
        for (int i = 0; i < each; i++) {
            dy[r][i] *= weight[i];
            sum += dy[r][i];
            dot += dy[r][i] * normalized[r][i];
        }
        sum = lp_warp_sum(sum) * inverse_cols;
        dot = lp_warp_sum(dot) * inverse_cols;
#pragma unroll
        for (int i = 0; i < each; i++)
            if (t < rows && lane + 32 * i < cols)
                lp_store(task.dx + t * cols + lane + 32 * i, rstd[r] * (dy[r][i] - sum - normalized[r][i] * dot),
                         task.accumulate);
    }
}

/* ---- wide rows ----------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(32 * WARPS) wide_forward(norm_task task)
{
    const float inverse_cols = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31;
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (t >= lp_rows_now(task.rows, task.shard))
        return;
    const float *row = task.x + t * cols;
    float sum = 0, square = 0;
    for (int c = lane; c < cols; c += 32)
        sum += row[c];
    float mean = lp_warp_sum(sum) * inverse_cols;
    for (int c = lane; c < cols; c += 32)
        square += (row[c] - mean) * (row[c] - mean);
    float rstd = rsqrtf(lp_warp_sum(square) * inverse_cols + task.epsilon);
    for (int c = lane; c < cols; c += 32)
        task.y[t * cols + c] = (row[c] - mean) * rstd * task.weight[c] + task.bias[c];
    if (lane == 0) {
        task.stats_out[2 * t] = mean;
        task.stats_out[2 * t + 1] = rstd;
    }
}

__global__ void __launch_bounds__(32 * WARPS) wide_backward(norm_task task)
{
    const float inverse_cols = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31;
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (t >= lp_rows_now(task.rows, task.shard))
        return;
    const float *row = task.x + t * cols, *drow = task.dy + t * cols;
    float mean = task.stats[2 * t], rstd = task.stats[2 * t + 1], sum = 0, dot = 0;
    for (int c = lane; c < cols; c += 32) {
        float g = drow[c] * task.weight[c];
        sum += g;
        dot += g * ((row[c] - mean) * rstd);
    }
    sum = lp_warp_sum(sum) * inverse_cols;
    dot = lp_warp_sum(dot) * inverse_cols;
    for (int c = lane; c < cols; c += 32) {
        float normalized = (row[c] - mean) * rstd, g = drow[c] * task.weight[c];
        lp_store(task.dx + t * cols + c, rstd * (g - sum - normalized * dot), task.accumulate);
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

norm_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    norm_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.cols = node->inputs[0]->cols;
    task.x = LP_INPUT(0);
    task.weight = LP_INPUT(1);
    return task;
}

/* Kernels for up to 64, up to 256, and more columns. */
void launch(const lp_cuda_run *run, norm_task task, int64_t rows, void (*narrow)(norm_task), void (*medium)(norm_task),
            void (*wide)(norm_task))
{
    void (*kernel)(norm_task) = task.cols <= 64 ? narrow : task.cols <= 256 ? medium : wide;
    LP_LAUNCH(run, kernel, lp_blocks(rows, task.cols <= 256 ? PAIR * WARPS : WARPS), 32 * WARPS, 0, task);
}

} // namespace

void lp_cuda_layer_norm(const lp_node *node, const lp_cuda_run *run)
{
    norm_task task = task_of(node, run);
    task.bias = LP_INPUT(2);
    task.y = LP_OUTPUT(0);
    task.stats_out = LP_OUTPUT(1);
    task.epsilon = (float)node->attributes.epsilon;
    launch(run, task, lp_cuda_largest(run, node->inputs[0]), narrow_forward<2>, narrow_forward<8>, wide_forward);
}

void lp_cuda_layer_norm_gradient(const lp_node *node, const lp_cuda_run *run)
{
    if (node->outputs[0]) {
        norm_task task = task_of(node, run);
        task.stats = LP_INPUT(2);
        task.dy = LP_INPUT(3);
        task.dx = LP_OUTPUT(0);
        task.accumulate = LP_ADDS(0);
        launch(run, task, lp_cuda_largest(run, node->inputs[0]), narrow_backward<2>, narrow_backward<8>, wide_backward);
    }
    lp_cuda_reduce_node(node, run);
}
