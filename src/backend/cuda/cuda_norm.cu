/* cuda_norm.cu: layer norm, a warp for each row.
 *
 * Rows of up to 256 columns are read once and stay in registers, two rows at a time, so that the sums of one wait while those of the other
 * go on. Wider rows are read again for each sum.
 *
 * The gradients of gain and shift are sums over all rows, and made with others of that event type (cuda_reduction.h).
 */
#include "backend/cuda/cuda_reduction.h"

namespace
{

enum { WARPS = 8, PAIR = 2 };

typedef struct norm_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols;
    const float *x, *gain, *shift, *moments, *dy;
    float *y, *moments_out, *dx;
    int adds;
    float epsilon;
} norm_task;

/* ---- narrow rows: `each` columns a lane ---------------------------------------------------------------------- */

/* Columns lane, lane + 32, .. of a row; 0 where there is none. */
template <int each> __device__ static inline void read_row(float (&to)[each], const float *row, int cols, bool there)
{
    int lane = (int)threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < each; i++)
        to[i] = there && lane + 32 * i < cols ? row[lane + 32 * i] : 0;
}

template <int each> __global__ void __launch_bounds__(32 * WARPS) narrow_forward(norm_task task)
{
    const float share = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31, rows = lp_rows_now(task.rows, task.shard);
    int64_t first = PAIR * ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5));
    float x[PAIR][each], gain[each], shift[each];
    if (first >= rows)
        return;
#pragma unroll
    for (int r = 0; r < PAIR; r++)
        read_row<each>(x[r], task.x + (first + r) * cols, cols, first + r < rows);
    read_row<each>(gain, task.gain, cols, true);
    read_row<each>(shift, task.shift, cols, true);
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        float sum = 0, square = 0;
#pragma unroll
        for (int i = 0; i < each; i++)
            sum += x[r][i];
        float mean = lp_warp_sum(sum) * share;
#pragma unroll
        for (int i = 0; i < each; i++)
            square += lane + 32 * i < cols ? (x[r][i] - mean) * (x[r][i] - mean) : 0;
        float inverse = rsqrtf(lp_warp_sum(square) * share + task.epsilon);
#pragma unroll
        for (int i = 0; i < each; i++)
            if (t < rows && lane + 32 * i < cols)
                task.y[t * cols + lane + 32 * i] = (x[r][i] - mean) * inverse * gain[i] + shift[i];
        if (t < rows && lane == 0) {
            task.moments_out[2 * t] = mean;
            task.moments_out[2 * t + 1] = inverse;
        }
    }
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
template <int each> __global__ void __launch_bounds__(32 * WARPS) narrow_backward(norm_task task)
{
    const float share = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31, rows = lp_rows_now(task.rows, task.shard);
    int64_t first = PAIR * ((int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5));
    float gain[each], normal[PAIR][each], dy[PAIR][each], inverse[PAIR];
    if (first >= rows)
        return;
    read_row<each>(gain, task.gain, cols, true);
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        read_row<each>(normal[r], task.x + t * cols, cols, t < rows);
        read_row<each>(dy[r], task.dy + t * cols, cols, t < rows);
        float mean = t < rows ? task.moments[2 * t] : 0;
        inverse[r] = t < rows ? task.moments[2 * t + 1] : 0;
#pragma unroll
        for (int i = 0; i < each; i++)
            normal[r][i] = (normal[r][i] - mean) * inverse[r];
    }
#pragma unroll
    for (int r = 0; r < PAIR; r++) {
        int64_t t = first + r;
        float sum = 0, dot = 0;
#pragma unroll
        for (int i = 0; i < each; i++) {
            dy[r][i] *= gain[i];
            sum += dy[r][i];
            dot += dy[r][i] * normal[r][i];
        }
        sum = lp_warp_sum(sum) * share;
        dot = lp_warp_sum(dot) * share;
#pragma unroll
        for (int i = 0; i < each; i++)
            if (t < rows && lane + 32 * i < cols)
                lp_store(task.dx + t * cols + lane + 32 * i, inverse[r] * (dy[r][i] - sum - normal[r][i] * dot),
                         task.adds);
    }
}

/* ---- wide rows ----------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(32 * WARPS) wide_forward(norm_task task)
{
    const float share = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31;
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (t >= lp_rows_now(task.rows, task.shard))
        return;
    const float *row = task.x + t * cols;
    float sum = 0, square = 0;
    for (int c = lane; c < cols; c += 32)
        sum += row[c];
    float mean = lp_warp_sum(sum) * share;
    for (int c = lane; c < cols; c += 32)
        square += (row[c] - mean) * (row[c] - mean);
    float inverse = rsqrtf(lp_warp_sum(square) * share + task.epsilon);
    for (int c = lane; c < cols; c += 32)
        task.y[t * cols + c] = (row[c] - mean) * inverse * task.gain[c] + task.shift[c];
    if (lane == 0) {
        task.moments_out[2 * t] = mean;
        task.moments_out[2 * t + 1] = inverse;
    }
}

/* As above. */
__global__ void __launch_bounds__(32 * WARPS) wide_backward(norm_task task)
{
    const float share = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31;
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (t >= lp_rows_now(task.rows, task.shard))
        return;
    const float *row = task.x + t * cols, *drow = task.dy + t * cols;
    float mean = task.moments[2 * t], inverse = task.moments[2 * t + 1], sum = 0, dot = 0;
    for (int c = lane; c < cols; c += 32) {
        float g = drow[c] * task.gain[c];
        sum += g;
        dot += g * ((row[c] - mean) * inverse);
    }
    sum = lp_warp_sum(sum) * share;
    dot = lp_warp_sum(dot) * share;
    for (int c = lane; c < cols; c += 32) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * task.gain[c];
        lp_store(task.dx + t * cols + c, inverse * (g - sum - normal * dot), task.adds);
    }
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
    task.epsilon = (float)node->with.epsilon;
    int64_t largest = lp_cuda_largest(run, node->inputs[0]);
    if (task.cols <= 64)
        LP_LAUNCH(run, narrow_forward<2>, lp_blocks(largest, PAIR * WARPS), 32 * WARPS, 0, task);
    else if (task.cols <= 256)
        LP_LAUNCH(run, narrow_forward<8>, lp_blocks(largest, PAIR * WARPS), 32 * WARPS, 0, task);
    else
        LP_LAUNCH(run, wide_forward, lp_blocks(largest, WARPS), 32 * WARPS, 0, task);
}

/* The gradient of x, row by row. */
static void rows_backward(const lp_node *node, const lp_cuda_run *run)
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
    task.adds = LP_ADDS(0);
    int64_t largest = lp_cuda_largest(run, node->inputs[0]);
    if (task.cols <= 64)
        LP_LAUNCH(run, narrow_backward<2>, lp_blocks(largest, PAIR * WARPS), 32 * WARPS, 0, task);
    else if (task.cols <= 256)
        LP_LAUNCH(run, narrow_backward<8>, lp_blocks(largest, PAIR * WARPS), 32 * WARPS, 0, task);
    else
        LP_LAUNCH(run, wide_backward, lp_blocks(largest, WARPS), 32 * WARPS, 0, task);
}

void lp_cuda_layer_norm_gradient(const lp_node *node, const lp_cuda_run *run)
{
    if (node->outputs[0])
        rows_backward(node, run);
    lp_cuda_reduce_node(node, run);
}
