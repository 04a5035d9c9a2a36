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
 * Gradients of weights sum over all rows. These are cut into chunks, one block each and about as many as there are multiprocessors;
 * their sums are added in their order, so that two runs give the same bits.
 */
#include "backend/cuda/cuda_reduce.h"
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

/* ---- outer products ------------------------------------------------------------------------------------------ */

enum { CHUNK = 128 }; /* rows of a chunk that go to shared memory at a time */

/* Results go to the chunk's place in scratch, [heads x a x b] and then the sums of columns; or where there is one chunk, to the outputs. */
typedef struct outer_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    const float *p, *q;
    float *out, *sums;  /* of the first chunk; sums NULL: not wanted */
    size_t step;        /* floats from chunk to chunk */
    int heads, a, b;    /* columns of a head */
    int a_wide, b_wide; /* columns of a block */
    int across;         /* parts of b */
    int p_stride, q_stride;
    int adds;      /* bits of out and sums */
    bool q_summed; /* the sums are of q, not of p */
} outer_task;

/* The first columns of p and q that this block works on. */
typedef struct outer_place {
    int a, b;
} outer_place;

__device__ static inline outer_place outer_place_now(const outer_task &task)
{
    int down = (int)blockIdx.x / task.across, across = (int)blockIdx.x - down * task.across;
    outer_place place = {down * task.a_wide, across * task.b_wide};
    return place;
}

/* Rows [from, from + present) of this block's columns of p and q. */
template <int width>
__device__ static inline void ask_rows(const outer_task &task, const outer_place &at, float *p, float *q, int from,
                                       int present)
{
    int deep = tile_pad(present), a = at.a, b = at.b;
    int64_t row = (int64_t)from * task.heads + blockIdx.z;
    ask_tile<width>(p, task.p_stride, deep, task.a_wide, task.p + row * task.a + a, task.heads * task.a, present,
                    min(task.a - a, task.a_wide));
    ask_tile<width>(q, task.q_stride, deep, task.b_wide, task.q + row * task.b + b, task.heads * task.b, present,
                    min(task.b - b, task.b_wide));
}

/* On tensor cores all tiles are made, as above.
 * sum[j] += p^T q_j over `depth` rows: the 16 columns of p from `p` on, and the 8 of q from q + 8 j on. */
template <bool tensor>
__device__ static inline void add_outer(float (&sum)[TILES][4], int count, const float *p, int p_stride, const float *q,
                                        int q_stride, int depth)
{
    tile_lane me = tile_lane_now();
    if constexpr (tensor) {
#pragma unroll 2
        for (int k = me.member; k < depth; k += 8) {
            const float *upper = p + k * p_stride + me.group, *lower = upper + 4 * p_stride;
            const float *right = q + k * q_stride + me.group;
            float left[4] = {tile_round(upper[0]), tile_round(upper[8]), tile_round(lower[0]), tile_round(lower[8])};
#pragma unroll
            for (int j = 0; j < TILES; j++)
                tile_multiply(sum[j], left, tile_round(right[8 * j]), tile_round(right[8 * j + 4 * q_stride]));
        }
    } else {
#pragma unroll 4
        for (int k = 0; k < depth; k++) {
            float x = p[k * p_stride + me.group], y = p[k * p_stride + me.group + 8];
#pragma unroll
            for (int j = 0; j < TILES; j++)
                if (j < count) {
                    float2 v = *(const float2 *)(q + k * q_stride + 8 * j + 2 * me.member);
                    sum[j][0] = fmaf(x, v.x, sum[j][0]);
                    sum[j][1] = fmaf(x, v.y, sum[j][1]);
                    sum[j][2] = fmaf(y, v.x, sum[j][2]);
                    sum[j][3] = fmaf(y, v.y, sum[j][3]);
                }
        }
    }
}

template <int width>
__device__ static inline void keep_outer(const outer_task &task, const outer_place &at, const warp_part &part,
                                         float (&sum)[TILES][4])
{
    tile_lane me = tile_lane_now();
    int row = at.a + part.row + me.group, col = at.b + 8 * part.first + 2 * me.member, b = task.b;
    int rows = task.a - row, cols = min(b - col, 8 * part.count - 2 * me.member);
    float *out = task.out + blockIdx.y * task.step + ((size_t)blockIdx.z * task.a + row) * b + col;
    if (task.adds & 1)
        for_each_pair<width>(sum, rows, cols,
                             [=](float *pair, int r, int c) { add_pair<width>(pair, out + r * b + c); });
    for_each_pair<width>(sum, rows, cols, [=](float *pair, int r, int c) { keep_pair<width>(pair, out + r * b + c); });
}

/* The blocks that have all rows of the columns to be summed; no other block has the same. */
__device__ static inline bool sums_here(const outer_task &task, const outer_place &at)
{
    return task.sums && (task.q_summed ? at.a : at.b) == 0;
}

/* Four threads a column. */
enum { SUMMED = THREADS / COLS };

/* This thread's share of the sums over what is in shared memory. */
__device__ static inline float add_columns(const outer_task &task, const float *p, const float *q, int present)
{
    const float *from = (task.q_summed ? q : p) + (int)threadIdx.x % COLS;
    int stride = task.q_summed ? task.q_stride : task.p_stride;
    float sum = 0;
    if ((int)threadIdx.x % COLS < (task.q_summed ? task.b_wide : task.a_wide))
#pragma unroll 4
        for (int r = (int)threadIdx.x / COLS; r < present; r += SUMMED)
            sum += from[r * stride];
    return sum;
}

__device__ static inline void keep_columns(const outer_task &task, const outer_place &at, float *shared, float sum)
{
    int cols = task.q_summed ? task.b : task.a, first = task.q_summed ? at.b : at.a;
    int wide = task.q_summed ? task.b_wide : task.a_wide, c = (int)threadIdx.x;
    __syncthreads();
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (c >= wide || first + c >= cols)
        return;
    sum = 0;
    for (int i = 0; i < SUMMED; i++)
        sum += shared[i * COLS + c];
    lp_store(&task.sums[blockIdx.y * task.step + (size_t)blockIdx.z * cols + first + c], sum, task.adds & 2);
}

/* out[chunk][h][i][j] = sum over the chunk's rows of p[t][h][i] q[t][h][j]. Grid: (parts, chunks, heads). */
template <bool tensor, int width> __global__ void __launch_bounds__(THREADS, 2) linear_outer_kernel(outer_task task)
{
    LP_SHARED(float, memory);
    float *p = memory, *q = memory + CHUNK * task.p_stride, column = 0;
    int count = lp_rows_now(task.rows, task.shard), each = lp_chunk_rows(count, (int)gridDim.y, 8);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count);
    warp_part part = part_of(task.b_wide);
    outer_place at = outer_place_now(task);
    bool mine = part.row < task.a_wide, sums = sums_here(task, at);
    float sum[TILES][4] = {};
    for (int from = begin; from < end; from += CHUNK) {
        int present = min(end - from, (int)CHUNK);
        if (from > begin)
            __syncthreads();
        ask_rows<width>(task, at, p, q, from, present);
        tile_wait();
        __syncthreads();
        if (mine)
            add_outer<tensor>(sum, part.count, p + part.row, task.p_stride, q + 8 * part.first, task.q_stride,
                              tile_pad(present));
        if (sums)
            column += add_columns(task, p, q, present);
    }
    if (mine)
        keep_outer<(width > 1 ? 2 : 1)>(task, at, part, sum);
    if (sums)
        keep_columns(task, at, memory, column);
}

/* Adds up the chunks' results: first those of out, then those of the sums. */
__global__ void __launch_bounds__(LP_REDUCE_COLS *LP_REDUCE_ROWS)
    outer_chunks_kernel(const float *partial, int chunks, int step, int size, int sums_size, float *out, float *sums,
                        int adds)
{
    int blocks = (size + LP_REDUCE_COLS - 1) / LP_REDUCE_COLS, block = (int)blockIdx.x;
    if (block < blocks)
        lp_add_chunks(partial, chunks, step, size, block * LP_REDUCE_COLS, out, adds & 1);
    else
        lp_add_chunks(partial + size, chunks, step, sums_size, (block - blocks) * LP_REDUCE_COLS, sums, adds & 2);
}

/* The shape of a node's product, without where it goes. */
static outer_task outer_task_of(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    outer_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.p = LP_INPUT(0);
    task.q = LP_INPUT(1);
    task.heads = node->with.heads;
    task.a = out->rows / task.heads;
    task.b = out->cols;
    task.a_wide = part_width(task.a, 16);
    task.b_wide = part_width(task.b, 8);
    task.p_stride = pair_stride(task.a_wide);
    task.q_stride = pair_stride(task.b_wide);
    task.across = (int)lp_blocks(task.b, task.b_wide);
    task.q_summed = node->with.transpose;
    return task;
}

void lp_cuda_linear_outer(const lp_node *node, const lp_cuda_run *run)
{
    outer_task task = outer_task_of(node, run);
    unsigned parts = lp_blocks(task.a, task.a_wide) * lp_blocks(task.b, task.b_wide);
    int largest = lp_cuda_largest(run, node->inputs[0]), adds = (int)node->accumulate;
    int chunks = largest <= CHUNK ? 1 : lp_cuda_chunks(largest, (int64_t)parts * task.heads);
    int size = task.heads * task.a * task.b, sums_size = node->outputs[1] ? node->outputs[1]->cols : 0;
    float *out = LP_OUTPUT(0), *sums = LP_OUTPUT(1), *partial = NULL;
    task.out = out;
    task.sums = sums;
    task.adds = adds;
    if (chunks > 1) {
        task.step = ((size_t)size + (size_t)sums_size + 1) / 2 * 2; /* so that pairs begin where they may */
        partial = (float *)lp_cuda_scratch(run, (size_t)chunks * task.step * sizeof(float));
        if (!partial)
            return;
        task.out = partial;
        task.sums = sums ? partial + size : NULL;
        task.adds = 0;
    }
    dim3 grid(parts, (unsigned)chunks, (unsigned)task.heads);
    size_t shared = ((size_t)CHUNK * (size_t)(task.p_stride + task.q_stride) + COLS) * sizeof(float);
    bool tensor = tile_tensor(run);
    lp_by_width(lp_width((uintptr_t)task.p | (uintptr_t)task.q | (uintptr_t)task.out, task.a | task.b), [&](auto by) {
        if (tensor)
            LP_LAUNCH(run, (linear_outer_kernel<true, decltype(by)::value>), grid, THREADS, shared, task);
        else
            LP_LAUNCH(run, (linear_outer_kernel<false, decltype(by)::value>), grid, THREADS, shared, task);
    });
    unsigned blocks = lp_blocks(size, LP_REDUCE_COLS) + lp_blocks(sums_size, LP_REDUCE_COLS);
    if (chunks > 1)
        LP_LAUNCH(run, outer_chunks_kernel, blocks, dim3(LP_REDUCE_COLS, LP_REDUCE_ROWS), 0, partial, chunks,
                  (int)task.step, size, sums_size, out, sums, adds);
}
