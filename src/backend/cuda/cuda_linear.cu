/* cuda_linear.cu: products with weights.
 *
 * Rows are many (tokens), columns few (tens to hundreds), so a product moves more than it multiplies: what counts is that a block asks
 * for all it needs at once. A block makes 64 rows of up to 64 columns; its rows of x and its part of the weight go to shared memory whole,
 * up to 128 terms at a time, which for most layers is all of them. Results leave from the registers that they were summed in, with bias and
 * addend.
 *
 * Gradients of weights sum over all rows. These are cut into chunks, one block each and about as many as there are multiprocessors;
 * their sums are added in their order, so that two runs give the same bits.
 */
#include "backend/cuda/cuda_reduce.h"
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

/* Rounds what all threads of the block have brought to shared memory, four numbers at a time. */
__device__ static inline void round_all(float *from, int count)
{
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS) {
        float4 v = *(const float4 *)(from + i);
        *(float4 *)(from + i) = make_float4(tile_round(v.x), tile_round(v.y), tile_round(v.z), tile_round(v.w));
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
    bool pairs; /* all that goes with y may be read two at a time */
} linear_task;

/* The terms from `from` on of this block's rows of x: [64 x deep]. */
__device__ static inline void ask_x(const linear_task &task, float *x, int present, int from)
{
    int terms = min(task.in - from, (int)TERMS);
    int64_t row = (int64_t)blockIdx.y * ROWS;
    tile_move<false, TILE_ASK>(x, task.x_stride, ROWS, tile_pad(terms),
                               task.x + (row * task.heads + blockIdx.z) * task.in + from, task.heads * task.in, present,
                               terms);
}

/* And of its columns of the weight: [wide x deep] where it is transposed, else [deep x wide]. */
template <bool transpose> __device__ static inline void ask_weight(const linear_task &task, float *weight, int from)
{
    int in = task.in, out = task.out, col = (int)blockIdx.x * task.wide;
    int terms = min(in - from, (int)TERMS), deep = tile_pad(terms), cols = min(out - col, task.wide);
    const float *head = task.weight + (size_t)blockIdx.z * in * out;
    if (transpose)
        tile_move<false, TILE_ASK>(weight, task.weight_stride, task.wide, deep, head + (size_t)col * in + from, in,
                                   cols, terms);
    else
        tile_move<false, TILE_ASK>(weight, task.weight_stride, deep, task.wide, head + (size_t)from * out + col, out,
                                   terms, cols);
}

/* y at `place` and the place after it, which is there if `both`. */
__device__ static inline void finish_pair(const linear_task &task, size_t place, int column, float a, float b,
                                          bool both)
{
    if (task.pairs && both) {
        float2 bias = task.bias ? *(const float2 *)(task.bias + column) : make_float2(0, 0);
        float2 add = task.add ? *(const float2 *)(task.add + place) : make_float2(0, 0);
        float2 old = task.adds ? *(const float2 *)(task.y + place) : make_float2(0, 0);
        *(float2 *)(task.y + place) = make_float2(old.x + (a + (bias.x + add.x)), old.y + (b + (bias.y + add.y)));
        return;
    }
    for (int i = 0; i < 1 + both; i++) {
        float more = (task.bias ? task.bias[column + i] : 0) + (task.add ? task.add[place + i] : 0);
        lp_store(&task.y[place + i], (i ? b : a) + more, task.adds);
    }
}

/* What the block's warps have summed, with bias and addend. */
__device__ static inline void finish_rows(const linear_task &task, const warp_part &part, int present,
                                          const float (&sum)[TILES][4])
{
    tile_lane me = tile_lane_now();
    int h = (int)blockIdx.z, col = (int)blockIdx.x * task.wide + 8 * part.first + 2 * me.member;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = part.row + me.group + 8 * half;
        size_t place = (((size_t)blockIdx.y * ROWS + r) * task.heads + h) * task.out;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            int c = col + 8 * j;
            if (j < part.count && r < present && c < task.out)
                finish_pair(task, place + c, h * task.out + c, sum[j][2 * half], sum[j][2 * half + 1],
                            c + 1 < task.out);
        }
    }
}

/* Grid: (column parts, row tiles, heads). The weight is asked for first, since it need not wait for the number of rows. */
template <bool tensor, bool transpose> __global__ void __launch_bounds__(THREADS, 4) linear_kernel(linear_task task)
{
    lp_begin();
    LP_SHARED(float, memory);
    float *x = memory, *weight = memory + ROWS * task.x_stride;
    ask_weight<transpose>(task, weight, 0);
    int present = lp_rows_now(task.rows, task.shard) - (int)blockIdx.y * ROWS;
    if (present <= 0) {
        tile_wait();
        return;
    }
    warp_part part = part_of(task.wide);
    float sum[TILES][4] = {};
    for (int from = 0; from < task.in; from += TERMS) {
        if (from) {
            __syncthreads();
            ask_weight<transpose>(task, weight, from);
        }
        ask_x(task, x, present, from);
        tile_wait();
        __syncthreads();
        int deep = tile_pad(min(task.in - from, (int)TERMS));
        if (tensor) {
            round_all(memory, ROWS * task.x_stride + (transpose ? task.wide : deep) * task.weight_stride);
            __syncthreads();
        }
        const float *left = x + part.row * task.x_stride;
        if (transpose)
            tile_rows<tensor, TILES>(sum, 0, part.count, left, task.x_stride,
                                     weight + 8 * part.first * task.weight_stride, task.weight_stride, 8, deep);
        else
            tile_columns<tensor, TILES>(sum, 0, part.count, left, task.x_stride, weight + 8 * part.first,
                                        task.weight_stride, deep);
    }
    finish_rows(task, part, present, sum);
}

static bool even_address(const void *data)
{
    return (uintptr_t)data % 8 == 0;
}

template <bool tensor>
static void linear_launch(const lp_cuda_run *run, const linear_task &task, bool transpose, int largest)
{
    dim3 grid(lp_blocks(task.out, task.wide), lp_blocks(largest, ROWS), (unsigned)task.heads);
    int deep = tile_pad(task.in < TERMS ? task.in : TERMS);
    size_t size = (size_t)(ROWS * task.x_stride + (transpose ? task.wide : deep) * task.weight_stride) * sizeof(float);
    if (transpose)
        LP_LAUNCH_EARLY(run, (linear_kernel<tensor, true>), grid, THREADS, size, task);
    else
        LP_LAUNCH_EARLY(run, (linear_kernel<tensor, false>), grid, THREADS, size, task);
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    bool transpose = node->with.transpose;
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
    task.pairs = task.out % 2 == 0 && even_address(task.y) && even_address(task.add) && even_address(task.bias);
    int deep = tile_pad(task.in < TERMS ? task.in : TERMS);
    task.x_stride = transpose ? tile_stride(deep) : pair_stride(deep);
    task.weight_stride = transpose ? tile_stride(deep) : tile_stride(task.wide);
    if (tile_tensor(run))
        linear_launch<true>(run, task, transpose, lp_cuda_largest(run, y));
    else
        linear_launch<false>(run, task, transpose, lp_cuda_largest(run, y));
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
    int p_stride, q_stride;
    int adds;      /* bits of out and sums */
    bool q_summed; /* the sums are of q, not of p */
} outer_task;

/* Rows [from, from + present) of this block's columns of p and q. */
__device__ static inline void ask_rows(const outer_task &task, float *p, float *q, int from, int present)
{
    int across = (task.b + task.b_wide - 1) / task.b_wide, h = (int)blockIdx.z, deep = tile_pad(present);
    int a = (int)blockIdx.x / across * task.a_wide, b = (int)blockIdx.x % across * task.b_wide;
    tile_move<false, TILE_ASK>(p, task.p_stride, deep, task.a_wide,
                               task.p + ((int64_t)from * task.heads + h) * task.a + a, task.heads * task.a, present,
                               min(task.a - a, task.a_wide));
    tile_move<false, TILE_ASK>(q, task.q_stride, deep, task.b_wide,
                               task.q + ((int64_t)from * task.heads + h) * task.b + b, task.heads * task.b, present,
                               min(task.b - b, task.b_wide));
}

/* sum[j] += p^T q_j over `depth` rows: the 16 columns of p from `p` on, and the 8 of q from q + 8 j on. */
template <bool tensor>
__device__ static inline void add_outer(float (&sum)[TILES][4], int count, const float *p, int p_stride, const float *q,
                                        int q_stride, int depth)
{
    tile_lane me = tile_lane_now();
    if constexpr (tensor) {
        for (int k = me.member; k < depth; k += 8) {
            const float *upper = p + k * p_stride + me.group, *lower = upper + 4 * p_stride;
            const float *right = q + k * q_stride + me.group;
            float left[4] = {upper[0], upper[8], lower[0], lower[8]};
#pragma unroll
            for (int j = 0; j < TILES; j++)
                if (j < count)
                    tile_multiply(sum[j], left, right[8 * j], right[8 * j + 4 * q_stride]);
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

__device__ static inline void keep_outer(const outer_task &task, const warp_part &part, const float (&sum)[TILES][4])
{
    tile_lane me = tile_lane_now();
    int across = (task.b + task.b_wide - 1) / task.b_wide;
    int row = (int)blockIdx.x / across * task.a_wide + part.row + me.group;
    int col = (int)blockIdx.x % across * task.b_wide + 8 * part.first + 2 * me.member;
    float *out = task.out + blockIdx.y * task.step + (size_t)blockIdx.z * task.a * task.b;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (j < part.count && row + 8 * (i / 2) < task.a && col + 8 * j + i % 2 < task.b)
                lp_store(&out[(size_t)(row + 8 * (i / 2)) * task.b + col + 8 * j + i % 2], sum[j][i], task.adds & 1);
}

/* The blocks that have all rows of the columns to be summed; no other block has the same. */
__device__ static inline bool sums_here(const outer_task &task)
{
    int across = (task.b + task.b_wide - 1) / task.b_wide;
    return task.sums && (task.q_summed ? (int)blockIdx.x / across : (int)blockIdx.x % across) == 0;
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

__device__ static inline void keep_columns(const outer_task &task, float *shared, float sum)
{
    int across = (task.b + task.b_wide - 1) / task.b_wide, cols = task.q_summed ? task.b : task.a;
    int first = task.q_summed ? (int)blockIdx.x % across * task.b_wide : (int)blockIdx.x / across * task.a_wide;
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
template <bool tensor> __global__ void __launch_bounds__(THREADS) linear_outer_kernel(outer_task task)
{
    lp_begin();
    LP_SHARED(float, memory);
    float *p = memory, *q = memory + CHUNK * task.p_stride, column = 0;
    int count = lp_rows_now(task.rows, task.shard), each = lp_chunk_rows(count, (int)gridDim.y, 8);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count);
    warp_part part = part_of(task.b_wide);
    bool mine = part.row < task.a_wide, sums = sums_here(task);
    float sum[TILES][4] = {};
    for (int from = begin; from < end; from += CHUNK) {
        int present = min(end - from, (int)CHUNK);
        if (from > begin)
            __syncthreads();
        ask_rows(task, p, q, from, present);
        tile_wait();
        __syncthreads();
        if (tensor) {
            round_all(p, tile_pad(present) * task.p_stride);
            round_all(q, tile_pad(present) * task.q_stride);
            __syncthreads();
        }
        if (mine)
            add_outer<tensor>(sum, part.count, p + part.row, task.p_stride, q + 8 * part.first, task.q_stride,
                              tile_pad(present));
        if (sums)
            column += add_columns(task, p, q, present);
    }
    if (mine)
        keep_outer(task, part, sum);
    if (sums)
        keep_columns(task, memory, column);
}

/* Adds up the chunks' results: first those of out, then those of the sums. */
__global__ void outer_chunks_kernel(const float *partial, int chunks, int size, int sums_size, float *out, float *sums,
                                    int adds)
{
    lp_begin();
    int blocks = (size + LP_REDUCE_COLS - 1) / LP_REDUCE_COLS, block = (int)blockIdx.x, stride = size + sums_size;
    if (block < blocks)
        lp_add_chunks(partial, chunks, stride, size, block * LP_REDUCE_COLS, out, adds & 1);
    else
        lp_add_chunks(partial + size, chunks, stride, sums_size, (block - blocks) * LP_REDUCE_COLS, sums, adds & 2);
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
        task.step = (size_t)size + (size_t)sums_size;
        partial = (float *)lp_cuda_scratch(run, (size_t)chunks * task.step * sizeof(float));
        if (!partial)
            return;
        task.out = partial;
        task.sums = sums ? partial + size : NULL;
        task.adds = 0;
    }
    dim3 grid(parts, (unsigned)chunks, (unsigned)task.heads);
    size_t shared = (size_t)CHUNK * (size_t)(task.p_stride + task.q_stride) * sizeof(float);
    if (tile_tensor(run))
        LP_LAUNCH_EARLY(run, linear_outer_kernel<true>, grid, THREADS, shared, task);
    else
        LP_LAUNCH_EARLY(run, linear_outer_kernel<false>, grid, THREADS, shared, task);
    unsigned blocks = lp_blocks(size, LP_REDUCE_COLS) + lp_blocks(sums_size, LP_REDUCE_COLS);
    if (chunks > 1)
        LP_LAUNCH_EARLY(run, outer_chunks_kernel, blocks, dim3(LP_REDUCE_COLS, LP_REDUCE_ROWS), 0, partial, chunks,
                        size, sums_size, out, sums, adds);
}
