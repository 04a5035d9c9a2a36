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
        int width = left ? task.p_width : task.q_width;
        int64_t from_stride = (int64_t)task.heads * halves * cols;
        const float *source = (left ? task.p : task.q) + from * from_stride + (int64_t)block.head * cols + half + first;
        if (width == 4)
            ask_matrix<4>(to, stride, rows, source, from_stride, present, count);
        else if (width == 2)
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

/* What a thread sums of its column. */
typedef struct sums_mine {
    float one, other;
    double exact;
} sums_mine;

__device__ static inline void add_columns(const sums_task &task, const sums_column &mine, const float *rows,
                                          int present, sums_mine &sum)
{
    int stride = task.p_stride, size = task.depth * stride;
    const float *p = rows + mine.column, *q = p + size;
    if (task.kind == SUMS_COLUMN) {
        sum.one += add_column(mine, rows, stride, present);
    } else if (task.kind == SUMS_DOT) {
#pragma unroll 4
        for (int r = mine.first; r < present; r += mine.apart)
            sum.one += p[r * stride] * q[r * stride];
    } else if (task.kind == SUMS_NORM) {
        const float2 *moments = (const float2 *)(rows + 2 * size);
#pragma unroll 4
        for (int r = mine.first; r < present; r += mine.apart) {
            float dy = q[r * stride];
            sum.one += dy * ((p[r * stride] - moments[r].x) * moments[r].y);
            sum.other += dy;
        }
    } else {
        const float *cosine = p, *sine = q, *dcosine = sine + size, *dsine = dcosine + size;
        const double *time = (const double *)(rows + 4 * size);
#pragma unroll 2
        for (int r = mine.first; r < present; r += mine.apart) {
            int i = r * stride;
            sum.exact += time[r] * ((double)dsine[i] * cosine[i] - (double)dcosine[i] * sine[i]);
        }
    }
}

/* Adds what the threads have of each column, and stores it from column `first` of the output on. Every thread of the block must come. */
template <typename type>
__device__ static inline void keep_column(const sums_task &task, int which, const sums_column &mine, int chunk,
                                          float *memory, type sum, int first, int cols)
{
    type *parts = (type *)memory;
    __syncthreads();
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (mine.first > 0 || mine.column >= cols || !task.out[which])
        return;
#pragma unroll 1
    for (int i = 1; i < mine.apart; i++)
        sum += parts[(i << mine.shift) + mine.column];
    ((type *)task.out[which])[(int64_t)chunk * task.step[which] + first + mine.column] = sum;
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* A warp's place in the product of a block: its first columns of p and q, and which set it belongs to. */
typedef struct sums_warp {
    int number, all; /* within its set */
    int set, sets, p, q;
} sums_warp;

__device__ static inline sums_warp warp_now(const sums_task &task)
{
    sums_warps warps = sums_warps_of(task);
    int warp = (int)threadIdx.x >> 5, all = warps.down * warps.across, set = warp / all, number = warp - set * all;
    int across = number / warps.down;
    sums_warp mine = {number, all, set, warps.sets, 16 * (number - across * warps.down), SUMS_WIDE * across};
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
__device__ static inline void add_sets(const sums_warp &mine, float *memory, float (&sum)[SUMS_TILES][4])
{
    enum { EACH = 4 * SUMS_TILES * 32 }; /* sums of a warp */
    float *place = memory + mine.number * EACH + ((int)threadIdx.x & 31);
    if (mine.sets == 1)
        return;
    if (mine.set > 0 && mine.set < mine.sets)
#pragma unroll
        for (int i = 0; i < 4 * SUMS_TILES; i++)
            place[(mine.set - 1) * mine.all * EACH + 32 * i] = sum[i / 4][i % 4];
    __syncthreads();
    if (mine.set == 0)
#pragma unroll 1
        for (int set = 1; set < mine.sets; set++)
#pragma unroll
            for (int i = 0; i < 4 * SUMS_TILES; i++)
                sum[i / 4][i % 4] += place[(set - 1) * mine.all * EACH + 32 * i];
}

__device__ static inline void keep_outer(const sums_task &task, const sums_block &block, const sums_warp &mine,
                                         const float (&sum)[SUMS_TILES][4])
{
    tile_lane me = tile_lane_now();
    int row = mine.p + me.group, col = mine.q + 2 * me.member, cols = block.b_count - col;
    float *out = (float *)task.out[0] + (int64_t)block.chunk * task.step[0] +
                 ((int64_t)block.head * task.a + block.a + row) * task.b + block.b + col;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (row + 8 * half >= block.a_count)
            return;
#pragma unroll
        for (int j = 0; j < SUMS_TILES; j++) {
            if (task.pairs && 8 * j < cols)
                *(float2 *)(out + 8 * j) = make_float2(sum[j][2 * half], sum[j][2 * half + 1]);
            if (!task.pairs && 8 * j < cols)
                out[8 * j] = sum[j][2 * half];
            if (!task.pairs && 8 * j + 1 < cols)
                out[8 * j + 1] = sum[j][2 * half + 1];
        }
        out += (int64_t)8 * task.b;
    }
}

/* ---- the launches -------------------------------------------------------------------------------------------- */

/* The columns that the block sums: how many of p or of q, and where in the output they begin. None where another block has the same. */
typedef struct summed_columns {
    int first, count;
} summed_columns;

__device__ static inline summed_columns summed_now(const sums_task &task, const sums_block &block)
{
    bool outer = task.kind == SUMS_OUTER, a = outer && !task.q_summed;
    summed_columns summed = {a ? block.head * task.a + block.a : block.head * task.b + block.b,
                             a ? block.a_count : block.b_count};
    if (outer && (!task.out[1] || (a ? block.b : block.a) > 0))
        summed.count = 0;
    return summed;
}

/* Few registers, since something larger often runs beside it; ordinary products need some more. */
template <bool tensor>
__global__ void __launch_bounds__(SUMS_THREADS, tensor ? 3 : 2) sums_kernel(const __grid_constant__ sums_group group)
{
    LP_SHARED(float, memory);
    int place = place_of_block(group.first);
    const sums_task &task = group.task[place];
    sums_block block = block_now(task, (int)blockIdx.x - group.first[place], lp_rows_now(task.rows, group.shard));
    summed_columns summed = summed_now(task, block);
    sums_column column = column_now(summed.count);
    bool outer = task.kind == SUMS_OUTER, sums = column.column < summed.count;
    sums_warp warp = outer ? warp_now(task) : sums_warp();
    bool multiplies = warp.set < warp.sets;
    float sum[SUMS_TILES][4] = {};
    sums_mine mine = {};
    for_each_half(task, block, memory, [&](const float *rows, int present) {
        const float *q = rows + task.depth * task.p_stride;
        if (multiplies)
            add_outer<tensor>(sum, (block.b_count - warp.q + 7) / 8, rows + warp.p, task.p_stride, q + warp.q,
                              task.q_stride, 8 * warp.set, 8 * warp.sets, tile_pad(present));
        if (sums && outer)
            mine.other +=
                add_column(column, task.q_summed ? q : rows, task.q_summed ? task.q_stride : task.p_stride, present);
        else if (sums)
            add_columns(task, column, rows, present, mine);
    });
    if (outer) {
        add_sets(warp, memory, sum);
        if (warp.set == 0)
            keep_outer(task, block, warp, sum);
    }
    if (task.kind == SUMS_BASIS)
        keep_column(task, 0, column, block.chunk, memory, mine.exact, summed.first, summed.count);
    else if (!outer)
        keep_column(task, 0, column, block.chunk, memory, mine.one, summed.first, summed.count);
    if (task.out[1])
        keep_column(task, 1, column, block.chunk, memory, mine.other, summed.first, summed.count);
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
