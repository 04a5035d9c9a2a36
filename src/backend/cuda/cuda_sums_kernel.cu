/* cuda_sums_kernel.cu: the two launches of a group of sums.
 *
 * The first reads everything once, so what counts is that as much as possible is on its way: each block copies the rows of its chunk to
 * shared memory in two halves in turn. Outer products go to tensor cores where the precision allows, columns are added by all
 * threads from shared memory, whichever sum they belong to.
 *
 * Which rows are whose depends on the number of rows and of chunks alone, and the chunks, whose number depends on the largest shard alone,
 * are added in a fixed order: two runs give the same bits.
 */
#include "backend/cuda/cuda_sums_task.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

/* ---- copies that come in turn -------------------------------------------------------------------------------- */

#ifdef __CUDACC__

/* What this thread has begun to copy since the last call is one delivery. */
__device__ static inline void close_delivery(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all deliveries but the last. */
__device__ static inline void wait_but_one(void)
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

#else

__device__ static inline void close_delivery(void)
{
}

__device__ static inline void wait_but_one(void)
{
}

#endif

/* The last of `count` places whose first block is not behind this one: firsts ascend. */
template <int count> __device__ static inline int place_of_block(const int (&first)[count])
{
    int place = -1;
#pragma unroll
    for (int i = 0; i < count; i++)
        place += first[i] <= (int)blockIdx.x;
    return place;
}

/* ---- what a block works on ----------------------------------------------------------------------------------- */

typedef struct sums_block {
    int chunk, head;
    int a, b;             /* its first columns, within the head */
    int a_count, b_count; /* how many of them are there */
    int begin, end;       /* rows */
} sums_block;

__device__ static inline sums_block block_now(const sums_task &task, int number, int count)
{
    int parts = task.heads * task.down * task.across, chunk = number / parts, part = number - chunk * parts;
    int across = part % task.across, down = part / task.across, head = down / task.down;
    int each = ((count + task.chunks - 1) / task.chunks + 7) / 8 * 8;
    sums_block block = {};
    block.chunk = chunk;
    block.head = head;
    block.a = (down - head * task.down) * task.a_wide;
    block.b = across * task.b_wide;
    block.a_count = min(task.a - block.a, task.a_wide);
    block.b_count = min(task.b - block.b, task.b_wide);
    block.begin = min(chunk * each, count);
    block.end = min(block.begin + each, count);
    return block;
}

/* Begins to copy to [rows x cols] = from [present x cols], and zeros below. A warp takes a row. */
template <int width>
__device__ static inline void ask_matrix(float *to, int stride, int rows, const float *from, int64_t from_stride,
                                         int present, int cols)
{
    int warp = (int)threadIdx.x >> 5;
#pragma unroll 1
    for (int c = width * ((int)threadIdx.x & 31); c < cols; c += 32 * width) {
        const float *source = from + warp * from_stride + c;
        float *place = to + warp * stride + c;
        int r = warp;
#pragma unroll 4
        for (; r < present; r += SUMS_WARPS) {
            tile_copy<width>(place, source);
            source += SUMS_WARPS * from_stride;
            place += SUMS_WARPS * stride;
        }
        if (r < rows)
            lp_write<width>(place, lp_floats<width>{}, 0);
    }
}

/* Rows [from, from + present) of the block's columns, matrix below matrix: p, q; of a basis the halves of p, and those of q. Where
 * there is more for each row, it comes last. */
__device__ static inline void ask_rows(const sums_task &task, const sums_block &block, float *to, int from, int present)
{
    bool outer = task.kind == SUMS_OUTER, basis = task.kind == SUMS_BASIS;
    int halves = basis ? 2 : 1, matrices = task.q ? 2 * halves : 1, rows = tile_pad(present);
#pragma unroll 1
    for (int m = 0; m < matrices; m++) {
        bool left = m < halves, a = outer && left;
        int cols = a ? task.a : task.b, first = a ? block.a : block.b, count = a ? block.a_count : block.b_count;
        int stride = left ? task.p_stride : task.q_stride, half = basis ? (m & 1) * task.b : 0;
        int64_t from_stride = (int64_t)task.heads * halves * cols;
        const float *source = (left ? task.p : task.q) + from * from_stride + (int64_t)block.head * cols + half + first;
        if (task.width == 4)
            ask_matrix<4>(to, stride, rows, source, from_stride, present, count);
        else if (task.width == 2)
            ask_matrix<2>(to, stride, rows, source, from_stride, present, count);
        else
            ask_matrix<1>(to, stride, rows, source, from_stride, present, count);
        to += task.depth * stride;
    }
    if (task.extra)
        for (int r = (int)threadIdx.x; r < present; r += SUMS_THREADS)
            tile_copy<2>(to + 2 * r, task.extra + 2 * ((int64_t)from + r));
}

/* Calls consume(rows, present) for all rows of the block in turn, from shared memory. */
template <typename consumer>
__device__ static inline void for_each_half(const sums_task &task, const sums_block &block, float *memory,
                                            const consumer &consume)
{
    int depth = task.depth;
#pragma unroll 1
    for (int from = block.begin - 2 * depth, half = 0; from < block.end; from += depth, half ^= 1) {
        float *rows = memory + half * task.half;
        int next = from + 2 * depth;
        if (from >= block.begin) {
            wait_but_one();
            __syncthreads();
            consume(rows, min(block.end - from, depth));
            __syncthreads();
        }
        if (next < block.end)
            ask_rows(task, block, rows, next, min(block.end - next, depth));
        close_delivery();
    }
}

/* ---- sums of columns ----------------------------------------------------------------------------------------- */

/* A thread's column, and which of the rows it takes: every `apart`-th from `first` on. */
typedef struct sums_column {
    int column, first, apart, shift;
} sums_column;

__device__ static inline sums_column column_now(int cols)
{
    int shift = cols <= 32 ? 5 : cols <= 64 ? 6 : 7, thread = (int)threadIdx.x;
    sums_column mine = {thread & ((1 << shift) - 1), thread >> shift, SUMS_THREADS >> shift, shift};
    return mine;
}

__device__ static inline float add_column(const sums_column &mine, const float *x, int stride, int present)
{
    float sum = 0;
#pragma unroll 4
    for (int r = mine.first; r < present; r += mine.apart)
        sum += x[r * stride + mine.column];
    return sum;
}

/* Adds what the threads have of each column, and stores it. Every thread of the block must come. */
template <typename type>
__device__ static inline void keep_column(const sums_task &task, int which, const sums_column &mine, float *memory,
                                          type sum, int64_t place, int cols)
{
    type *parts = (type *)memory;
    __syncthreads();
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (mine.first > 0 || mine.column >= cols || !task.out[which])
        return;
    for (int i = 1; i < mine.apart; i++)
        sum += parts[(i << mine.shift) + mine.column];
    type *to = (type *)task.out[which] + place + mine.column;
    *to = task.adds[which] ? *to + sum : sum;
}

__device__ static inline int64_t column_place(const sums_task &task, int which, const sums_block &block, int column)
{
    return (int64_t)block.chunk * task.step[which] + column;
}

__device__ static void column_block(const sums_task &task, const sums_block &block, float *memory)
{
    sums_column mine = column_now(block.b_count);
    int stride = task.p_stride, size = task.depth * stride, kind = task.kind;
    bool there = mine.column < block.b_count;
    float sum = 0, other = 0;
    for_each_half(task, block, memory, [&](const float *rows, int present) {
        const float *p = rows + mine.column, *q = p + size;
        const float2 *moments = (const float2 *)(rows + 2 * size);
        if (there && kind == SUMS_COLUMN)
            sum += add_column(mine, rows, stride, present);
        else if (there && kind == SUMS_DOT)
#pragma unroll 4
            for (int r = mine.first; r < present; r += mine.apart)
                sum += p[r * stride] * q[r * stride];
        else if (there)
#pragma unroll 4
            for (int r = mine.first; r < present; r += mine.apart) {
                float2 moment = moments[r];
                float dy = q[r * stride];
                sum += dy * ((p[r * stride] - moment.x) * moment.y);
                other += dy;
            }
    });
    keep_column(task, 0, mine, memory, sum, column_place(task, 0, block, block.b), block.b_count);
    if (kind == SUMS_NORM)
        keep_column(task, 1, mine, memory, other, column_place(task, 1, block, block.b), block.b_count);
}

__device__ static void basis_block(const sums_task &task, const sums_block &block, float *memory)
{
    sums_column mine = column_now(block.b_count);
    int stride = task.p_stride, size = task.depth * stride;
    bool there = mine.column < block.b_count;
    double sum = 0;
    for_each_half(task, block, memory, [&](const float *rows, int present) {
        const float *cosine = rows + mine.column, *sine = cosine + size, *dcosine = sine + size;
        const float *dsine = dcosine + size;
        const double *time = (const double *)(rows + 4 * size);
        if (there)
#pragma unroll 2
            for (int r = mine.first; r < present; r += mine.apart) {
                int i = r * stride;
                sum += time[r] * ((double)dsine[i] * cosine[i] - (double)dcosine[i] * sine[i]);
            }
    });
    keep_column(task, 0, mine, memory, sum, column_place(task, 0, block, block.b), block.b_count);
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* A warp's place in the product of a block: its first columns of p and q, and which set it belongs to. */
typedef struct sums_warp {
    int number; /* within its set */
    int set, sets, p, q;
} sums_warp;

__device__ static inline sums_warp warp_now(const sums_task &task)
{
    sums_warps warps = sums_warps_of(task);
    int warp = (int)threadIdx.x >> 5, all = warps.down * warps.across, set = warp / all, number = warp - set * all;
    int across = number / warps.down;
    sums_warp mine = {number, set, warps.sets, 16 * (number - across * warps.down), SUMS_WIDE * across};
    return mine;
}

/* sum[j] += p^T q_j over `depth` rows, every `apart`-th 8 of them: the 16 columns of p from `p` on, and the 8 of q from q + 8 j on. On
 * tensor cores all tiles are made, even those beyond q, which nobody looks at; numbers are rounded on their way. */
template <bool tensor>
__device__ static inline void add_outer(float (&sum)[SUMS_TILES][4], int count, const float *p, int p_stride,
                                        const float *q, int q_stride, int from, int apart, int depth)
{
    tile_lane me = tile_lane_now();
    if constexpr (tensor) {
#pragma unroll 1
        for (int k = from + me.member; k < depth; k += apart) {
            const float *upper = p + k * p_stride + me.group, *lower = upper + 4 * p_stride;
            const float *right = q + k * q_stride + me.group, *below = right + 4 * q_stride;
            float left[4] = {tile_round(upper[0]), tile_round(upper[8]), tile_round(lower[0]), tile_round(lower[8])};
#pragma unroll
            for (int j = 0; j < SUMS_TILES; j++)
                tile_multiply(sum[j], left, tile_round(right[8 * j]), tile_round(below[8 * j]));
        }
    } else {
#pragma unroll 1
        for (int first = from; first < depth; first += apart)
#pragma unroll 2
            for (int k = first; k < first + 8; k++) {
                float x = p[k * p_stride + me.group], y = p[k * p_stride + me.group + 8];
#pragma unroll
                for (int j = 0; j < SUMS_TILES; j++)
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

/* The first set has the sums of all sets, added in their order. */
__device__ static inline void add_sets(const sums_task &task, const sums_warp &mine, float *memory,
                                       float (&sum)[SUMS_TILES][4])
{
    sums_warps warps = sums_warps_of(task);
    int all = warps.down * warps.across, lane = (int)threadIdx.x & 31;
    if (mine.sets == 1)
        return;
    __syncthreads();
    if (mine.set > 0 && mine.set < mine.sets)
#pragma unroll
        for (int i = 0; i < 4 * SUMS_TILES; i++)
            memory[(((mine.set - 1) * all + mine.number) * 4 * SUMS_TILES + i) * 32 + lane] = sum[i / 4][i % 4];
    __syncthreads();
    if (mine.set == 0)
#pragma unroll 1
        for (int set = 1; set < mine.sets; set++)
#pragma unroll
            for (int i = 0; i < 4 * SUMS_TILES; i++)
                sum[i / 4][i % 4] += memory[(((set - 1) * all + mine.number) * 4 * SUMS_TILES + i) * 32 + lane];
}

template <int width>
__device__ static inline void keep_outer(const sums_task &task, const sums_block &block, const sums_warp &mine,
                                         float (&sum)[SUMS_TILES][4])
{
    tile_lane me = tile_lane_now();
    int row = mine.p + me.group, col = mine.q + 2 * me.member;
    float *out = (float *)task.out[0] + (int64_t)block.chunk * task.step[0] +
                 ((int64_t)block.head * task.a + block.a + row) * task.b + block.b + col;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < SUMS_TILES; j++)
#pragma unroll
            for (int c = 0; c < 2; c += width)
                if (row + 8 * half < block.a_count && col + 8 * j + c < block.b_count) {
                    lp_floats<width> pair;
#pragma unroll
                    for (int i = 0; i < width; i++)
                        pair.at[i] = sum[j][2 * half + c + i];
                    lp_write<width>(out + (int64_t)8 * half * task.b + 8 * j + c, pair, task.adds[0]);
                }
}

template <bool tensor> __device__ static void outer_block(const sums_task &task, const sums_block &block, float *memory)
{
    sums_warp mine = warp_now(task);
    int p_stride = task.p_stride, q_stride = task.q_stride, size = task.depth * p_stride;
    int cols = task.q_summed ? block.b_count : block.a_count, tiles = (block.b_count - mine.q + 7) / 8;
    /* Blocks that have the same columns leave them to one of them. */
    bool multiplies = mine.set < mine.sets, sums = task.out[1] && (task.q_summed ? block.a : block.b) == 0;
    sums_column column = column_now(cols);
    float sum[SUMS_TILES][4] = {}, other = 0;
    for_each_half(task, block, memory, [&](const float *p, int present) {
        const float *q = p + size;
        if (multiplies)
            add_outer<tensor>(sum, tiles, p + mine.p, p_stride, q + mine.q, q_stride, 8 * mine.set, 8 * mine.sets,
                              tile_pad(present));
        if (sums && column.column < cols)
            other += add_column(column, task.q_summed ? q : p, task.q_summed ? q_stride : p_stride, present);
    });
    add_sets(task, mine, memory, sum);
    if (mine.set == 0 && task.pairs)
        keep_outer<2>(task, block, mine, sum);
    else if (mine.set == 0)
        keep_outer<1>(task, block, mine, sum);
    if (sums) {
        int first = task.q_summed ? block.head * task.b + block.b : block.head * task.a + block.a;
        keep_column(task, 1, column, memory, other, column_place(task, 1, block, first), cols);
    }
}

/* ---- the launches -------------------------------------------------------------------------------------------- */

template <bool tensor>
__global__ void __launch_bounds__(SUMS_THREADS, 2) sums_kernel(const __grid_constant__ sums_group group)
{
    LP_SHARED(float, memory);
    int place = place_of_block(group.first);
    const sums_task &task = group.task[place];
    sums_block block = block_now(task, (int)blockIdx.x - group.first[place], lp_rows_now(task.rows, group.shard));
    if (task.kind == SUMS_OUTER)
        outer_block<tensor>(task, block, memory);
    else if (task.kind == SUMS_BASIS)
        basis_block(task, block, memory);
    else
        column_block(task, block, memory);
}

/* Every warp takes every so many slices, and eight of them at once. */
template <typename type> __device__ static inline void add_slices(const sums_output &output, int i, type *parts)
{
    enum { AT_ONCE = 8 };
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, slices = output.slices;
    bool there = i < output.size, mine = there && warp == 0;
    type *out = (type *)output.out, sum = 0, before = mine && output.adds ? out[i] : 0;
    const type *partial = (const type *)output.partial + i;
#pragma unroll 1
    for (int first = warp; there && first < slices; first += AT_ONCE * SUMS_WARPS) {
        type part[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int slice = first + k * SUMS_WARPS;
            part[k] = slice < slices ? partial[(int64_t)slice * output.step] : 0;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            sum += part[k];
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (!mine)
        return;
    for (int w = 1; w < SUMS_WARPS; w++)
        sum += parts[32 * w + lane];
    out[i] = before + sum;
}

__global__ void __launch_bounds__(SUMS_THREADS) add_up_kernel(const __grid_constant__ sums_outputs outputs)
{
    __shared__ double parts[SUMS_THREADS];
    int place = place_of_block(outputs.first);
    const sums_output &output = outputs.output[place];
    int i = ((int)blockIdx.x - outputs.first[place]) * SUMS_EACH + ((int)threadIdx.x & 31);
    if (output.is_double)
        add_slices(output, i, parts);
    else
        add_slices(output, i, (float *)parts);
}

} // namespace

void lp_cuda_sums_launch(const lp_cuda_run *run, const sums_group &group, unsigned blocks, size_t shared)
{
    if (tile_tensor(run))
        LP_LAUNCH(run, sums_kernel<true>, blocks, SUMS_THREADS, shared, group);
    else
        LP_LAUNCH(run, sums_kernel<false>, blocks, SUMS_THREADS, shared, group);
}

void lp_cuda_sums_add_up(const lp_cuda_run *run, const sums_outputs &outputs, unsigned blocks)
{
    LP_LAUNCH(run, add_up_kernel, blocks, SUMS_THREADS, 0, outputs);
}
