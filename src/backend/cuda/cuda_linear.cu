/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head.
 *
 * Rows are many (tokens), columns few (tens to hundreds), so the product is bound by memory latency: a block issues
 * all its loads at once. Grid: (column tiles, row tiles, heads); 256 threads, 4 x 2 warps. A block computes 64 rows by
 * up to 64 columns; its rows of x and its part of the weight are staged in shared memory, 128 of the depth at a time,
 * which is the whole depth of most layers (at most 68 KiB). Results are stored from registers, with bias and addend.
 *
 * Loops are hardly unrolled: between two launches a training step runs more code than the instruction cache holds, so
 * every instruction is fetched again.
 *
 * Gradients of weights are reductions over rows (cuda_reduction.h).
 */
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

enum { ROWS = 64, COLS = 64, BLOCK_K = 128, ROW_WARPS = 4, COL_WARPS = 2, THREADS = 32 * ROW_WARPS * COL_WARPS };
/* 16 x 8 tiles of a warp. */
enum { TILES = COLS / 8 / COL_WARPS };

/* A warp's tiles: `count` from column 8 * `first` on, in the 16 rows from `row` on. */
typedef struct warp_tile {
    int row, first, count;
} warp_tile;

__device__ static inline warp_tile warp_tile_of(int block_cols)
{
    int warp = (int)threadIdx.x >> 5, all = block_cols / 8, half = (all + 1) / 2;
    warp_tile part = {warp % ROW_WARPS * 16, warp / ROW_WARPS ? half : 0, warp / ROW_WARPS ? all - half : half};
    return part;
}

/* Starts to copy to [rows x cols_padded] = from [present x cols], zeros elsewhere, `width` floats at a time. A warp
 * copies a row. */
template <int width>
__device__ static inline void copy_tile(float *to, int stride, int rows, int cols_padded, const float *from,
                                        int from_stride, int present, int cols)
{
    int warp = (int)threadIdx.x >> 5;
#pragma unroll 1
    for (int c = width * ((int)threadIdx.x & 31); c < cols_padded; c += 32 * width) {
        const float *source = from + (int64_t)warp * from_stride + c;
        float *dst = to + warp * stride + c;
#pragma unroll 1
        for (int r = warp; r < rows; r += THREADS / 32) {
            if (r < present && c < cols)
                tile_cp_async<width>(dst, source);
            else
                lp_vector_store<width>(dst, lp_vector<width>{}, 0);
            source += (int64_t)(THREADS / 32) * from_stride;
            dst += THREADS / 32 * stride;
        }
    }
}

/* ---- linear -------------------------------------------------------------------------------------------------- */

typedef struct linear_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    const float *x, *weight, *bias, *add;
    float *y;
    int heads, in, out, accumulate; /* in, out: columns of a head */
    int block_cols;                 /* columns of a block */
    int x_stride, weight_stride;
} linear_task;

/* x [64 x depth_padded] of this block, from depth `from` on. */
template <int width> __device__ static inline void copy_x(const linear_task &task, float *x, int present, int from)
{
    int depth = min(task.in - from, (int)BLOCK_K);
    const float *first = task.x + ((int64_t)blockIdx.y * ROWS * task.heads + blockIdx.z) * task.in + from;
    copy_tile<width>(x, task.x_stride, ROWS, tile_pad(depth), first, task.heads * task.in, present, depth);
}

/* The block's columns of the weight: [block_cols x depth_padded] if transposed, else [depth_padded x block_cols]. */
template <bool transpose, int width>
__device__ static inline void copy_weight(const linear_task &task, float *weight, int from)
{
    int in = task.in, out = task.out, col = (int)blockIdx.x * task.block_cols;
    int depth = min(in - from, (int)BLOCK_K), depth_padded = tile_pad(depth), cols = min(out - col, task.block_cols);
    const float *head = task.weight + (size_t)blockIdx.z * in * out;
    head += transpose ? (size_t)col * in + from : (size_t)from * out + col;
    copy_tile<width>(weight, task.weight_stride, transpose ? task.block_cols : depth_padded,
                     transpose ? depth_padded : task.block_cols, head, transpose ? in : out, transpose ? cols : depth,
                     transpose ? depth : cols);
}

/* sum[j] += x w_j on tensor cores: x [16 x depth_padded], w_j: the 8 columns from 8 j on. Operands are rounded to tf32
 * when loaded. A warp computes all of its tiles; those beyond the weight are not stored. */
template <bool transpose>
__device__ static inline void matmul_tensor(float (&sum)[TILES][4], const float *x, int x_stride, const float *weight,
                                            int weight_stride, int depth_padded)
{
    tile_lane me = tile_lane_now();
    const float *upper = x + me.group * x_stride + me.member, *lower = upper + 8 * x_stride;
    const float *right =
        weight + (transpose ? me.group * weight_stride + me.member : me.member * weight_stride + me.group);
    int tile_stride_b = 8 * (transpose ? weight_stride : 1), k_stride = transpose ? 1 : weight_stride;
#pragma unroll 2
    for (int k = 0; k < depth_padded; k += 8) {
        float left[4] = {tile_round_tf32(upper[k]), tile_round_tf32(lower[k]), tile_round_tf32(upper[k + 4]),
                         tile_round_tf32(lower[k + 4])};
        const float *here = right + k * k_stride;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            tile_mma_tf32(sum[j], left, tile_round_tf32(here[j * tile_stride_b]),
                          tile_round_tf32(here[j * tile_stride_b + 4 * k_stride]));
    }
}

/* A lane's columns c and c + 1 of a row (c only, if width is 1): sum += from, and to = sum. */
template <int width> __device__ static inline void add_pair(float *sum, const float *from)
{
    lp_vector<width> more = lp_vector_load<width>(from);
#pragma unroll
    for (int i = 0; i < width; i++)
        sum[i] += more.at[i];
}

template <int width> __device__ static inline void store_pair(const float *sum, float *to)
{
    lp_vector<width> all;
#pragma unroll
    for (int i = 0; i < width; i++)
        all.at[i] = sum[i];
    lp_vector_store<width>(to, all, 0);
}

/* Calls each(sums, row, column) for the lane's accumulators inside the result: rows 0 and 8, columns of the tiles,
 * both relative to the lane's first. */
template <int width, typename function>
__device__ static inline void for_each_pair(float (&sum)[TILES][4], int rows, int cols, const function &each)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int c = 0; c < 2; c += width)
                if (8 * half < rows && 8 * j + c < cols)
                    each(&sum[j][2 * half + c], 8 * half, 8 * j + c);
}

/* Adds bias, addend and the old value, one loop for each so that its loads are issued together, and stores. */
template <int width>
__device__ static inline void finish_rows(const linear_task &task, const warp_tile &part, int present,
                                          float (&sum)[TILES][4])
{
    tile_lane me = tile_lane_now();
    int col = (int)blockIdx.x * task.block_cols + 8 * part.first + 2 * me.member, stride = task.heads * task.out;
    int row = part.row + me.group, rows = present - row;
    int cols = min(task.out - col, 8 * part.count - 2 * me.member);
    int64_t index = ((int64_t)blockIdx.y * ROWS + row) * stride + (int64_t)blockIdx.z * task.out + col;
    float *y = task.y + index;
    if (task.bias) {
        const float *bias = task.bias + (int)blockIdx.z * task.out + col;
        for_each_pair<width>(sum, rows, cols, [=](float *pair, int, int c) { add_pair<width>(pair, bias + c); });
    }
    if (task.add) {
        const float *add = task.add + index;
        for_each_pair<width>(sum, rows, cols,
                             [=](float *pair, int r, int c) { add_pair<width>(pair, add + r * stride + c); });
    }
    if (task.accumulate)
        for_each_pair<width>(sum, rows, cols,
                             [=](float *pair, int r, int c) { add_pair<width>(pair, y + r * stride + c); });
    for_each_pair<width>(sum, rows, cols,
                         [=](float *pair, int r, int c) { store_pair<width>(pair, y + r * stride + c); });
}

/* Grid: (column tiles, row tiles, heads). The weight is copied first: it does not depend on the number of rows. */
template <bool tensor, bool transpose, int width>
__global__ void __launch_bounds__(THREADS, 4) linear_kernel(linear_task task)
{
    LP_SHARED(float, memory);
    float *x = memory, *weight = memory + ROWS * task.x_stride;
    warp_tile part = warp_tile_of(task.block_cols);
    const float *left = x + part.row * task.x_stride;
    const float *right = weight + 8 * part.first * (transpose ? task.weight_stride : 1);
    float sum[TILES][4] = {};
    int present = 0;
#pragma unroll 1
    for (int from = 0; from < task.in; from += BLOCK_K) {
        if (from)
            __syncthreads();
        copy_weight<transpose, width>(task, weight, from);
        present = lp_rows_now(task.rows, task.shard) - (int)blockIdx.y * ROWS;
        if (present > 0)
            copy_x<width>(task, x, present, from);
        tile_cp_async_wait();
        if (present <= 0)
            return;
        __syncthreads();
        int depth_padded = tile_pad(min(task.in - from, (int)BLOCK_K));
        if (tensor)
            matmul_tensor<transpose>(sum, left, task.x_stride, right, task.weight_stride, depth_padded);
        else if (transpose)
            tile_matmul_nt<false, TILES>(sum, 0, part.count, left, task.x_stride, right, task.weight_stride, 8,
                                         depth_padded);
        else
            tile_matmul_nn<false, TILES>(sum, 0, part.count, left, task.x_stride, right, task.weight_stride,
                                         depth_padded);
    }
    finish_rows<(width > 1 ? 2 : 1)>(task, part, present, sum);
}

template <bool tensor, bool transpose>
static void linear_launch(const lp_cuda_run *run, const linear_task &task, int largest)
{
    dim3 grid(lp_blocks(task.out, task.block_cols), lp_blocks(largest, ROWS), (unsigned)task.heads);
    uintptr_t pointers = (uintptr_t)task.x | (uintptr_t)task.weight | (uintptr_t)task.bias | (uintptr_t)task.add;
    int width = lp_vector_width(pointers | (uintptr_t)task.y, task.in | task.out);
    int depth_padded = tile_pad(task.in < BLOCK_K ? task.in : BLOCK_K);
    /* The weight, padded to whole tiles of all warps. */
    int weight_size = transpose ? COLS * task.weight_stride : depth_padded * task.weight_stride + COLS;
    size_t size = (size_t)(ROWS * task.x_stride + weight_size) * sizeof(float);
    lp_with_vector_width(width, [&](auto by) {
        LP_LAUNCH(run, (linear_kernel<tensor, transpose, decltype(by)::value>), grid, THREADS, size, task);
    });
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    bool transpose = node->attributes.transpose, tensor = tile_tensor(run);
    linear_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(y);
    task.x = LP_INPUT(0);
    task.weight = LP_INPUT(1);
    task.bias = LP_INPUT(2);
    task.add = LP_INPUT(3);
    task.y = LP_OUTPUT(0);
    task.heads = node->attributes.heads;
    task.in = transpose ? weight->cols : weight->rows / task.heads;
    task.out = transpose ? weight->rows / task.heads : weight->cols;
    task.accumulate = LP_ADDS(0);
    task.block_cols = tile_width(task.out, COLS, 8);
    int depth_padded = tile_pad(task.in < BLOCK_K ? task.in : BLOCK_K), largest = lp_cuda_largest(run, y);
    task.x_stride = transpose || tensor ? tile_stride(depth_padded) : tile_pair_stride(depth_padded);
    task.weight_stride = transpose ? tile_stride(depth_padded)
                         : tensor  ? tile_pair_stride(task.block_cols)
                                   : tile_stride(task.block_cols);
    if (tensor)
        transpose ? linear_launch<true, true>(run, task, largest) : linear_launch<true, false>(run, task, largest);
    else
        transpose ? linear_launch<false, true>(run, task, largest) : linear_launch<false, false>(run, task, largest);
}
