/* cuda_norm.cu: layer norm, a warp for each row.
 *
 * Rows of up to 256 columns are read once and stay in registers, two rows at a time, so that the sums of one wait while those of the other
 * go on. Wider rows are read again for each sum.
 *
 * The gradients of gain and shift are sums over all rows. Every block sums its own run of rows, rows apart by the number of its warps to
 * each warp; the block that comes last adds those of the blocks in their order. The number of blocks depends on the largest shard
 * alone and which rows are whose on the number of rows, so that two runs give the same bits.
 */
#include "backend/cuda/cuda_reduce.h"

namespace
{

enum { WARPS = 8, BACK_WARPS = 32, SLICES = 128, PAIR = 2 };

typedef struct norm_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols;
    const float *x, *gain, *shift, *moments, *dy;
    float *y, *moments_out, *dx, *dgain, *dshift;
    float *sums; /* [slices x 2 cols]: of dgain, then of dshift */
    int slices, adds, lane;
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

/* The sums of columns of this block's warps, in the warps' order, to where the last block finds them. */
template <int each>
__device__ static inline void keep_sums(const norm_task &task, const float (&dgain)[each], const float (&dshift)[each])
{
    __shared__ float parts[BACK_WARPS][64];
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    for (int i = 0; i < each; i++) {
        __syncthreads();
        parts[warp][lane] = dgain[i];
        parts[warp][32 + lane] = dshift[i];
        __syncthreads();
        int column = 32 * i + ((int)threadIdx.x & 31);
        if (threadIdx.x < 64 && column < task.cols) {
            float sum = 0;
#pragma unroll 8
            for (int w = 0; w < BACK_WARPS; w++)
                sum += parts[w][threadIdx.x];
            task.sums[((int64_t)blockIdx.x * 2 + (threadIdx.x >> 5)) * task.cols + column] = sum;
        }
    }
}

/* By the last block: the sums of the blocks, as many columns at a time as there are threads for, every so many blocks to a thread. */
__device__ static inline void finish_sums(const norm_task &task)
{
    __shared__ float parts[32 * BACK_WARPS];
    int thread = (int)threadIdx.x, size = 2 * task.cols, wide = min((size + 31) / 32 * 32, 32 * BACK_WARPS);
    int groups = 32 * BACK_WARPS / wide, group = thread / wide;
    for (int from = 0; from < size; from += wide) {
        int i = from + thread - group * wide;
        float sum = 0;
        if (i < size && group < groups)
#pragma unroll 8
            for (int s = group; s < task.slices; s += groups)
                sum += task.sums[(int64_t)s * size + i];
        __syncthreads();
        parts[thread] = sum;
        __syncthreads();
        bool gain = i < task.cols;
        float *to = gain ? task.dgain : task.dshift;
        if (group > 0 || i >= size || !to)
            continue;
        sum = 0;
#pragma unroll 4
        for (int g = 0; g < groups; g++)
            sum += parts[g * wide + thread];
        lp_store(to + (gain ? i : i - task.cols), sum, task.adds & (gain ? 2 : 4));
    }
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
template <int each, int pair> __global__ void __launch_bounds__(32 * BACK_WARPS) narrow_backward(norm_task task)
{
    const float share = 1.0f / (float)task.cols;
    int cols = task.cols, lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    int rows = lp_rows_now(task.rows, task.shard);
    int each_block = lp_chunk_rows(rows, task.slices, 1), from_row = (int)blockIdx.x * each_block;
    int64_t first = from_row, end = min(from_row + each_block, rows);
    float gain[each], dgain[each] = {}, dshift[each] = {};
    read_row<each>(gain, task.gain, cols, true);
    for (int64_t from = first + warp; from < end; from += pair * BACK_WARPS) {
        float normal[pair][each], dy[pair][each], inverse[pair];
#pragma unroll
        for (int r = 0; r < pair; r++) {
            int64_t t = from + r * BACK_WARPS;
            read_row<each>(normal[r], task.x + t * cols, cols, t < end);
            read_row<each>(dy[r], task.dy + t * cols, cols, t < end);
            float mean = t < end ? task.moments[2 * t] : 0;
            inverse[r] = t < end ? task.moments[2 * t + 1] : 0;
#pragma unroll
            for (int i = 0; i < each; i++)
                normal[r][i] = (normal[r][i] - mean) * inverse[r];
        }
#pragma unroll
        for (int r = 0; r < pair; r++) {
            int64_t t = from + r * BACK_WARPS;
            float sum = 0, dot = 0;
#pragma unroll
            for (int i = 0; i < each; i++) {
                dgain[i] += dy[r][i] * normal[r][i];
                dshift[i] += dy[r][i];
                dy[r][i] *= gain[i];
                sum += dy[r][i];
                dot += dy[r][i] * normal[r][i];
            }
            if (!task.dx)
                continue;
            sum = lp_warp_sum(sum) * share;
            dot = lp_warp_sum(dot) * share;
#pragma unroll
            for (int i = 0; i < each; i++)
                if (t < end && lane + 32 * i < cols)
                    lp_store(task.dx + t * cols + lane + 32 * i, inverse[r] * (dy[r][i] - sum - normal[r][i] * dot),
                             task.adds & 1);
        }
    }
    if (!task.sums)
        return;
    keep_sums<each>(task, dgain, dshift);
    if (lp_last_block(task.lane))
        finish_sums(task);
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
__device__ void row_backward(const norm_task *task, int64_t t)
{
    const float share = 1.0f / (float)task->cols;
    int cols = task->cols, lane = (int)threadIdx.x & 31;
    const float *row = task->x + t * cols, *drow = task->dy + t * cols;
    float mean = task->moments[2 * t], inverse = task->moments[2 * t + 1], sum = 0, dot = 0;
    for (int c = lane; c < cols; c += 32) {
        float g = drow[c] * task->gain[c];
        sum += g;
        dot += g * ((row[c] - mean) * inverse);
    }
    sum = lp_warp_sum(sum) * share;
    dot = lp_warp_sum(dot) * share;
    for (int c = lane; c < cols; c += 32) {
        float normal = (row[c] - mean) * inverse, g = drow[c] * task->gain[c];
        lp_store(task->dx + t * cols + c, inverse * (g - sum - normal * dot), task->adds & 1);
    }
}

/* Sums of one column over the warp's rows of this block. */
__device__ float2 column_sums(const norm_task *task, int64_t first, int64_t end, int c)
{
    float2 sums = {0, 0};
    for (int64_t t = first + (threadIdx.x >> 5); t < end; t += BACK_WARPS) {
        float dy = task->dy[t * task->cols + c];
        sums.x += dy * ((task->x[t * task->cols + c] - task->moments[2 * t]) * task->moments[2 * t + 1]);
        sums.y += dy;
    }
    return sums;
}

/* Every block takes an equal run of rows. */
__global__ void __launch_bounds__(32 * BACK_WARPS) wide_backward(norm_task task)
{
    __shared__ float2 parts[BACK_WARPS][32];
    int rows = lp_rows_now(task.rows, task.shard), lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    int each_block = lp_chunk_rows(rows, task.slices, 1), from_row = (int)blockIdx.x * each_block;
    int64_t first = from_row, end = min(from_row + each_block, rows);
    for (int64_t t = first + warp; task.dx && t < end; t += BACK_WARPS)
        row_backward(&task, t);
    if (!task.sums)
        return;
    for (int from = 0; from < task.cols; from += 32) {
        int c = from + lane;
        float2 none = {0, 0};
        parts[warp][lane] = c < task.cols ? column_sums(&task, first, end, c) : none;
        __syncthreads();
        float2 sum = {0, 0};
        for (int i = 0; warp == 0 && i < BACK_WARPS; i++) {
            sum.x += parts[i][lane].x;
            sum.y += parts[i][lane].y;
        }
        if (warp == 0 && c < task.cols) {
            task.sums[(int64_t)blockIdx.x * 2 * task.cols + c] = sum.x;
            task.sums[((int64_t)blockIdx.x * 2 + 1) * task.cols + c] = sum.y;
        }
        __syncthreads();
    }
    if (lp_last_block(task.lane))
        finish_sums(task);
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
    task.lane = run->lane;
    task.slices = (int)lp_blocks(lp_cuda_largest(run, node->inputs[0]), BACK_WARPS);
    task.slices = task.slices < SLICES ? (task.slices > 0 ? task.slices : 1) : SLICES;
    if (task.dgain || task.dshift) {
        task.sums = (float *)lp_cuda_scratch(run, (size_t)task.slices * 2 * (size_t)task.cols * sizeof(float));
        if (!task.sums)
            return;
    }
    if (task.cols <= 64)
        LP_LAUNCH(run, (narrow_backward<2, 2>), (unsigned)task.slices, 32 * BACK_WARPS, 0, task);
    else if (task.cols <= 256)
        LP_LAUNCH(run, (narrow_backward<8, 1>), (unsigned)task.slices, 32 * BACK_WARPS, 0, task);
    else
        LP_LAUNCH(run, wide_backward, (unsigned)task.slices, 32 * BACK_WARPS, 0, task);
}
