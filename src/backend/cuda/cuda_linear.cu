/* cuda_linear.cu: products with weights.
 *
 * Rows are many (tokens), columns few (tens to hundreds), so a product moves more than it multiplies: what counts is that a block asks
 * for all it needs at once. A block makes 64 rows of up to 64 columns; its rows of x and its part of the weight go to shared memory whole,
 * up to 128 terms at a time, which for most layers is all of them. Results leave from the registers that they were summed in, with bias and
 * addend.
 *
 * Kernels are short: between two launches of a product a step runs through more code than a multiprocessor keeps, so every instruction is
 * fetched anew, and unrolled loops cost more than they save.
 *
 * Gradients of weights are sums over rows (cuda_reduction.h).
 */
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

enum { ROWS = 64, COLS = 64, TERMS = 128, ROW_WARPS = 4, COL_WARPS = 2, THREADS = 32 * ROW_WARPS * COL_WARPS };
/* Tiles of 16 x 8 that a warp has side by side. */
enum { TILES = COLS / 8 / COL_WARPS };

/* Columns of each part, where so many are cut into as few parts as may be. */
static int part_width(int count, int unit)
{
    int parts = (int)lp_blocks(count, COLS), each = (count + parts - 1) / parts;
    return (each + unit - 1) / unit * unit;
}

/* Floats from row to row where lanes read rows t and columns g, or pairs of columns: 8 modulo 16. */
static int pair_stride(int cols)
{
    return (cols + 7) / 16 * 16 + 8;
}

/* The tiles of a warp: `count` from column 8 * `first` on, in the 16 rows from `row` on. */
typedef struct warp_part {
    int row, first, count;
} warp_part;

__device__ static inline warp_part part_of(int wide)
{
    int warp = (int)threadIdx.x >> 5, all = wide / 8, half = (all + 1) / 2;
    warp_part part = {warp % ROW_WARPS * 16, warp / ROW_WARPS ? half : 0, warp / ROW_WARPS ? all - half : half};
    return part;
}

/* Begins to copy to [rows x cols_wide] = from [present x cols] and zeros elsewhere, `width` floats at a time. A warp takes a row. */
template <int width>
__device__ static inline void ask_tile(float *to, int stride, int rows, int cols_wide, const float *from,
                                       int from_stride, int present, int cols)
{
    int warp = (int)threadIdx.x >> 5;
#pragma unroll 1
    for (int c = width * ((int)threadIdx.x & 31); c < cols_wide; c += 32 * width) {
        const float *source = from + (int64_t)warp * from_stride + c;
        float *place = to + warp * stride + c;
#pragma unroll 1
        for (int r = warp; r < rows; r += THREADS / 32) {
            if (r < present && c < cols)
                tile_copy<width>(place, source);
            else
                lp_write<width>(place, lp_floats<width>{}, 0);
            source += (int64_t)(THREADS / 32) * from_stride;
            place += THREADS / 32 * stride;
        }
    }
}

/* ---- linear -------------------------------------------------------------------------------------------------- */

typedef struct linear_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    const float *x, *weight, *bias, *add;
    float *y;
    int heads, in, out, adds; /* columns of a head */
    int wide;                 /* columns of a block */
    int x_stride, weight_stride;
} linear_task;

/* The terms from `from` on of this block's rows of x: [64 x deep]. */
template <int width> __device__ static inline void ask_x(const linear_task &task, float *x, int present, int from)
{
    int terms = min(task.in - from, (int)TERMS);
    const float *first = task.x + ((int64_t)blockIdx.y * ROWS * task.heads + blockIdx.z) * task.in + from;
    ask_tile<width>(x, task.x_stride, ROWS, tile_pad(terms), first, task.heads * task.in, present, terms);
}

/* And of its columns of the weight: [wide x deep] where it is transposed, else [deep x wide]. */
template <bool transpose, int width>
__device__ static inline void ask_weight(const linear_task &task, float *weight, int from)
{
    int in = task.in, out = task.out, col = (int)blockIdx.x * task.wide;
    int terms = min(in - from, (int)TERMS), deep = tile_pad(terms), cols = min(out - col, task.wide);
    const float *head = task.weight + (size_t)blockIdx.z * in * out;
    head += transpose ? (size_t)col * in + from : (size_t)from * out + col;
    ask_tile<width>(weight, task.weight_stride, transpose ? task.wide : deep, transpose ? deep : task.wide, head,
                    transpose ? in : out, transpose ? cols : terms, transpose ? terms : cols);
}

/* sum[j] += x w_j on tensor cores, x [16 x deep], w_j the 8 columns from 8 j on; numbers are rounded on their way. A warp makes all of its
 * tiles, even those beyond the weight, which nobody looks at. */
template <bool transpose>
__device__ static inline void add_tensor(float (&sum)[TILES][4], const float *x, int x_stride, const float *weight,
                                         int weight_stride, int deep)
{
    tile_lane me = tile_lane_now();
    const float *upper = x + me.group * x_stride + me.member, *lower = upper + 8 * x_stride;
    const float *right =
        weight + (transpose ? me.group * weight_stride + me.member : me.member * weight_stride + me.group);
    int column = 8 * (transpose ? weight_stride : 1), term = transpose ? 1 : weight_stride;
#pragma unroll 2
    for (int k = 0; k < deep; k += 8) {
        float left[4] = {tile_round(upper[k]), tile_round(lower[k]), tile_round(upper[k + 4]),
                         tile_round(lower[k + 4])};
        const float *here = right + k * term;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            tile_multiply(sum[j], left, tile_round(here[j * column]), tile_round(here[j * column + 4 * term]));
    }
}

/* What a lane has at places c, c + 1 (or c alone, with a width of 1) of one of its rows: sum += from, or to = sum. */
template <int width> __device__ static inline void add_pair(float *sum, const float *from)
{
    lp_floats<width> more = lp_read<width>(from);
#pragma unroll
    for (int i = 0; i < width; i++)
        sum[i] += more.at[i];
}

template <int width> __device__ static inline void keep_pair(const float *sum, float *to)
{
    lp_floats<width> all;
#pragma unroll
    for (int i = 0; i < width; i++)
        all.at[i] = sum[i];
    lp_write<width>(to, all, 0);
}

/* Calls each(sums, row, column) for all that the lane has summed and that is there: rows are 0 and 8, and columns those of the tiles, from
 * the lane's first ones on. */
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

/* Adds bias, addend and what was there, each in one go so that all of it is under way at once, and stores. */
template <int width>
__device__ static inline void finish_rows(const linear_task &task, const warp_part &part, int present,
                                          float (&sum)[TILES][4])
{
    tile_lane me = tile_lane_now();
    int col = (int)blockIdx.x * task.wide + 8 * part.first + 2 * me.member, stride = task.heads * task.out;
    int row = part.row + me.group, rows = present - row;
    int cols = min(task.out - col, 8 * part.count - 2 * me.member);
    int64_t place = ((int64_t)blockIdx.y * ROWS + row) * stride + (int64_t)blockIdx.z * task.out + col;
    float *y = task.y + place;
    if (task.bias) {
        const float *bias = task.bias + (int)blockIdx.z * task.out + col;
        for_each_pair<width>(sum, rows, cols, [=](float *pair, int, int c) { add_pair<width>(pair, bias + c); });
    }
    if (task.add) {
        const float *add = task.add + place;
        for_each_pair<width>(sum, rows, cols,
                             [=](float *pair, int r, int c) { add_pair<width>(pair, add + r * stride + c); });
    }
    if (task.adds)
        for_each_pair<width>(sum, rows, cols,
                             [=](float *pair, int r, int c) { add_pair<width>(pair, y + r * stride + c); });
    for_each_pair<width>(sum, rows, cols,
                         [=](float *pair, int r, int c) { keep_pair<width>(pair, y + r * stride + c); });
}

/* Grid: (column parts, row tiles, heads). The weight is asked for first, since it need not wait for the number of rows. */
template <bool tensor, bool transpose, int width>
__global__ void __launch_bounds__(THREADS, 4) linear_kernel(linear_task task)
{
    LP_SHARED(float, memory);
    float *x = memory, *weight = memory + ROWS * task.x_stride;
    warp_part part = part_of(task.wide);
    const float *left = x + part.row * task.x_stride;
    const float *right = weight + 8 * part.first * (transpose ? task.weight_stride : 1);
    float sum[TILES][4] = {};
    int present = 0;
#pragma unroll 1
    for (int from = 0; from < task.in; from += TERMS) {
        if (from)
            __syncthreads();
        ask_weight<transpose, width>(task, weight, from);
        present = lp_rows_now(task.rows, task.shard) - (int)blockIdx.y * ROWS;
        if (present > 0)
            ask_x<width>(task, x, present, from);
        tile_wait();
        if (present <= 0)
            return;
        __syncthreads();
        int deep = tile_pad(min(task.in - from, (int)TERMS));
        if (tensor)
            add_tensor<transpose>(sum, left, task.x_stride, right, task.weight_stride, deep);
        else if (transpose)
            tile_rows<false, TILES>(sum, 0, part.count, left, task.x_stride, right, task.weight_stride, 8, deep);
        else
            tile_columns<false, TILES>(sum, 0, part.count, left, task.x_stride, right, task.weight_stride, deep);
    }
    finish_rows<(width > 1 ? 2 : 1)>(task, part, present, sum);
}

template <bool tensor, bool transpose>
static void linear_launch(const lp_cuda_run *run, const linear_task &task, int largest)
{
    dim3 grid(lp_blocks(task.out, task.wide), lp_blocks(largest, ROWS), (unsigned)task.heads);
    uintptr_t pointers = (uintptr_t)task.x | (uintptr_t)task.weight | (uintptr_t)task.bias | (uintptr_t)task.add;
    int width = lp_width(pointers | (uintptr_t)task.y, task.in | task.out);
    int deep = tile_pad(task.in < TERMS ? task.in : TERMS);
    /* The weight with room for the tiles beyond it. */
    int weight_size = transpose ? COLS * task.weight_stride : deep * task.weight_stride + COLS;
    size_t size = (size_t)(ROWS * task.x_stride + weight_size) * sizeof(float);
    lp_by_width(width, [&](auto by) {
        LP_LAUNCH(run, (linear_kernel<tensor, transpose, decltype(by)::value>), grid, THREADS, size, task);
    });
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    bool transpose = node->with.transpose, tensor = tile_tensor(run);
    linear_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(y);
    task.x = LP_INPUT(0);
    task.weight = LP_INPUT(1);
    task.bias = LP_INPUT(2);
    task.add = LP_INPUT(3);
    task.y = LP_OUTPUT(0);
    task.heads = node->with.heads;
    task.in = transpose ? weight->cols : weight->rows / task.heads;
    task.out = transpose ? weight->rows / task.heads : weight->cols;
    task.adds = LP_ADDS(0);
    task.wide = part_width(task.out, 8);
    int deep = tile_pad(task.in < TERMS ? task.in : TERMS), largest = lp_cuda_largest(run, y);
    task.x_stride = transpose || tensor ? tile_stride(deep) : pair_stride(deep);
    task.weight_stride = transpose ? tile_stride(deep) : tensor ? pair_stride(task.wide) : tile_stride(task.wide);
    if (tensor)
        transpose ? linear_launch<true, true>(run, task, largest) : linear_launch<true, false>(run, task, largest);
    else
        transpose ? linear_launch<false, true>(run, task, largest) : linear_launch<false, false>(run, task, largest);
}
