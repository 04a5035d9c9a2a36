/* cuda_reduction_kernel.cu: the two kernels of a group of reductions.
 *
 * The first is bound by memory bandwidth, so it keeps many loads in flight: each block starts to load all rows of its chunk that fit into shared
 * memory before it processes the first of them. Outer products use tensor cores where the precision allows, which ignore the lower bits of
 * their factors; column sums are always fp32.
 *
 * The second adds the partial sums. It uses programmatic dependent launch, so that its blocks are resident when the first kernel ends.
 *
 * The rows of a chunk depend only on the numbers of rows and chunks, the number of chunks only on the largest shard, and the chunks are added
 * in a fixed order: two runs give the same bits.
 */
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_reduction_copy.h"
#include "backend/cuda/cuda_reduction_task.h"

namespace
{

/* The last index whose first block is not after this one; see reduction_group.first. */
template <int count> __device__ static inline int index_of_block(const int (&first)[count])
{
    int index = 0;
#pragma unroll 1
    while (index + 1 < count && first[index + 1] <= (int)blockIdx.x)
        index++;
    return index;
}

/* ---- the rows and columns of a block ------------------------------------------------------------------------- */

typedef struct reduction_block {
    int chunk, head;
    int a, b;             /* first columns of the tile, within the head */
    int a_count, b_count; /* columns of the tile that exist */
    int begin, end;       /* rows */
} reduction_block;

__device__ static inline reduction_block block_now(const reduction_task &task, int number, int count)
{
    int tiles = task.heads * task.down * task.across;
    int sixteens = (count + 15) / 16, each = sixteens / task.chunks, more = sixteens - each * task.chunks;
    reduction_block block = {};
    block.chunk = number;
    if (tiles > 1) {
        block.chunk = number / tiles;
        int tile = number - block.chunk * tiles, down = tile / task.across;
        block.head = down / task.down;
        block.a = (down - block.head * task.down) * task.a_wide;
        block.b = (tile - down * task.across) * task.b_wide;
    }
    block.a_count = min(task.a - block.a, (int)task.a_wide);
    block.b_count = min(task.b - block.b, (int)task.b_wide);
    block.begin = 16 * (block.chunk * each + min(block.chunk, more));
    block.end = min(block.begin + 16 * (each + (block.chunk < more)), count);
    return block;
}

/* ---- loading rows to shared memory --------------------------------------------------------------------------- */

/* Starts to copy the matrix `from` [present x cols] to `to`. Each warp copies every REDUCTION_WARPS-th row. */
template <int width>
__device__ static inline void load_matrix(float *to, int stride, const float *from, int64_t from_stride, int present,
                                          int cols)
{
    int warp = (int)threadIdx.x >> 5;
#pragma unroll 1
    for (int c = width * ((int)threadIdx.x & 31); c < cols; c += 32 * width) {
        const float *source = from + warp * from_stride + c;
        float *target = to + warp * stride + c;
#pragma unroll 4
        for (int r = warp; r < present; r += REDUCTION_WARPS) {
            tile_cp_async<width>(target, source);
            source += REDUCTION_WARPS * from_stride;
            target += REDUCTION_WARPS * stride;
        }
    }
}

/* Starts to copy the columns of the tile in rows [from, from + present), by all threads. A wide value is two matrices side by side. */
__device__ static inline void load_columns(const reduction_task &task, const reduction_block &block, float *to,
                                           int from, int present)
{
    bool outer = task.type == LP_REDUCTION_OUTER;
    int halves = task.type == LP_REDUCTION_BASIS ? 2 : 1, matrices = task.q ? 2 * halves : 1;
#pragma unroll 1
    for (int m = 0; m < matrices; m++) {
        bool left = m < halves, a = outer && left;
        int half = left ? m : m - halves, width = left ? task.p_width : task.q_width;
        int cols = a ? task.a : task.b, first = a ? block.a : block.b, count = a ? block.a_count : block.b_count;
        int stride = left ? task.p_stride : task.q_stride;
        int64_t from_stride = (int64_t)task.heads * halves * cols;
        const float *source =
            (left ? task.p : task.q) + from * from_stride + (int64_t)block.head * cols + half * task.b + first;
        float *target = to + (left ? 0 : reduction_slot_q(task)) + half * task.b_wide;
        if (width == 4)
            load_matrix<4>(target, stride, source, from_stride, present, count);
        else if (width == 2)
            load_matrix<2>(target, stride, source, from_stride, present, count);
        else
            load_matrix<1>(target, stride, source, from_stride, present, count);
    }
    if (task.extra)
        for (int r = (int)threadIdx.x; r < present; r += REDUCTION_THREADS)
            tile_cp_async<2>(to + reduction_slot_extra(task) + 2 * r, task.extra + 2 * ((int64_t)from + r));
}

/* Copies the floats after the last multiple of 16 bytes synchronously, before the thread arrives at the barrier. Returns the other bytes. */
__device__ static inline uint32_t copy_end(float *to, const float *from, int count)
{
    int whole = count & ~3;
#pragma unroll 1
    for (int i = whole; i < count; i++)
        to[i] = from[i];
    return 4 * (uint32_t)whole;
}

/* Starts to copy whole rows, by one thread. */
__device__ static inline void load_bulk(const reduction_task &task, float *to, int from, int present,
                                        reduction_barrier *barrier)
{
    int p_stride = task.p_stride, q_stride = task.q_stride;
    float *q_to = to + reduction_slot_q(task), *extra_to = to + reduction_slot_extra(task);
    const float *p = task.p + (int64_t)from * p_stride, *q = task.q + (int64_t)from * q_stride;
    const float *extra = task.extra + 2 * (int64_t)from;
    uint32_t p_bytes = copy_end(to, p, present * p_stride), q_bytes = 0, extra_bytes = 0;
    if (task.q)
        q_bytes = copy_end(q_to, q, present * q_stride);
    if (task.extra)
        extra_bytes = copy_end(extra_to, extra, 2 * present);
    reduction_barrier_expect(barrier, p_bytes + q_bytes + extra_bytes);
    if (p_bytes)
        reduction_copy_bulk(to, p, p_bytes, barrier);
    if (q_bytes)
        reduction_copy_bulk(q_to, q, q_bytes, barrier);
    if (extra_bytes)
        reduction_copy_bulk(extra_to, extra, extra_bytes, barrier);
}

/* Each slot has a warp that starts its bulk copies, so that several start at once. */
template <bool bulk>
__device__ static inline void load_rows(const reduction_task &task, const reduction_block &block, float *to, int from,
                                        int slot, reduction_barrier *barriers)
{
    int present = min(block.end - from, (int)task.depth);
    if constexpr (bulk) {
        if ((int)threadIdx.x == 32 * slot)
            load_bulk(task, to, from, present, &barriers[slot]);
    } else {
        load_columns(task, block, to, from, present);
        reduction_arrive(&barriers[slot]);
    }
}

/* Initializes the barriers and starts to load all slots. Returns the first row that is not being loaded. */
template <bool bulk>
__device__ static inline int begin_slots(const reduction_task &task, const reduction_block &block, float *memory,
                                         reduction_barrier *barriers)
{
    int depth = task.depth, slots = task.slots, size = reduction_slot(task);
    if constexpr (bulk) {
        int slot = (int)threadIdx.x >> 5, from = block.begin + slot * depth;
        if ((threadIdx.x & 31) == 0 && slot < slots) {
            reduction_barrier_init(&barriers[slot], 1);
            reduction_barriers_fence();
            if (from < block.end)
                load_rows<true>(task, block, memory + slot * size, from, slot, barriers);
        }
        __syncthreads();
    } else {
        if (threadIdx.x == 0)
            for (int slot = 0; slot < slots; slot++)
                reduction_barrier_init(&barriers[slot], REDUCTION_THREADS);
        __syncthreads();
#pragma unroll 1
        for (int slot = 0, from = block.begin; slot < slots && from < block.end; slot++, from += depth)
            load_rows<false>(task, block, memory + slot * size, from, slot, barriers);
    }
    return block.begin + slots * depth;
}

/* Zeroes the rows after the last one, up to a multiple of 16: products read 16 rows at a time. */
__device__ static inline void clear_rows(float *rows, int stride, int present)
{
    int end = (present + 15) / 16 * 16 * stride;
#pragma unroll 1
    for (int i = present * stride + (int)threadIdx.x; i < end; i += REDUCTION_THREADS)
        rows[i] = 0;
}

/* Calls consume(rows, present) for all rows of the block, slot by slot. On return all threads are done with the slots. */
template <bool bulk, bool outer, typename consumer>
__device__ static inline void for_each_slot(const reduction_task &task, const reduction_block &block, float *memory,
                                            reduction_barrier *barriers, const consumer &consume)
{
    int depth = task.depth, slots = task.slots, size = reduction_slot(task), end = block.end, slot = 0;
    int next = begin_slots<bulk>(task, block, memory, barriers);
    uint32_t phase = 0;
#pragma unroll 1
    for (int from = block.begin; from < end; from += depth) {
        float *rows = memory + slot * size;
        int present = min(end - from, depth);
        reduction_wait(&barriers[slot], phase);
        if (outer && present % 16) {
            clear_rows(rows, task.p_stride, present);
            clear_rows(rows + reduction_slot_q(task), task.q_stride, present);
            __syncthreads();
        }
        consume(rows, present);
        if (next < end) {
            __syncthreads();
            load_rows<bulk>(task, block, rows, next, slot, barriers);
            next += depth;
        }
        if (++slot == slots) {
            slot = 0;
            phase ^= 1;
        }
    }
    lp_pdl_trigger();
    __syncthreads();
}

/* ---- column sums --------------------------------------------------------------------------------------------- */

/* The column of a thread, and its rows: every `apart`-th from `first` on. */
typedef struct reduction_column {
    int column, first, apart;
} reduction_column;

/* A thread's sums. */
typedef struct reduction_mine {
    float one, other;
    double exact;
} reduction_mine;

__device__ static inline void add_columns(const reduction_task &task, const reduction_column &mine, const float *rows,
                                          int present, reduction_mine &sum)
{
    int stride = task.p_stride, first = mine.first * stride + mine.column, apart = mine.apart * stride;
    const float *p = rows + first, *q = p + reduction_slot_q(task), *end = rows + present * stride;
    if (task.type == LP_REDUCTION_COLUMN) {
#pragma unroll 4
        for (; p < end; p += apart)
            sum.one += *p;
    } else if (task.type == LP_REDUCTION_DOT) {
#pragma unroll 4
        for (; p < end; p += apart, q += apart)
            sum.one += *p * *q;
    } else if (task.type == LP_REDUCTION_NORM) {
        const float2 *moments = (const float2 *)(rows + reduction_slot_extra(task)) + mine.first;
#pragma unroll 4
        for (; p < end; p += apart, q += apart, moments += mine.apart) {
            float2 now = *moments;
            sum.one += *q * ((*p - now.x) * now.y);
            sum.other += *q;
        }
    } else {
        const double *time = (const double *)(rows + reduction_slot_extra(task)) + mine.first;
        int sine = task.b_wide;
#pragma unroll 4
        for (; p < end; p += apart, q += apart, time += mine.apart)
            sum.exact += *time * ((double)q[sine] * *p - (double)*q * p[sine]);
    }
}

/* Adds the sums of the threads that share a column, and stores them. */
__device__ static inline void store_columns(const reduction_task &task, const reduction_block &block,
                                            const reduction_column &mine, float *memory, reduction_mine sum)
{
    bool basis = task.type == LP_REDUCTION_BASIS;
    double *exact = (double *)memory;
    float2 *both = (float2 *)memory;
    if (basis)
        exact[threadIdx.x] = sum.exact;
    else
        both[threadIdx.x] = make_float2(sum.one, sum.other);
    __syncthreads();
    if (mine.first > 0 || mine.column >= block.b_count)
        return;
    int width = max(block.b_count, 32), end = mine.apart * width;
#pragma unroll 1
    for (int i = width + mine.column; i < end; i += width)
        if (basis) {
            sum.exact += exact[i];
        } else {
            sum.one += both[i].x;
            sum.other += both[i].y;
        }
    int64_t column = block.b + mine.column, chunk = block.chunk;
    if (basis)
        ((double *)task.out[0])[chunk * task.step[0] + column] = sum.exact;
    else if (task.out[0])
        ((float *)task.out[0])[chunk * task.step[0] + column] = sum.one;
    if (task.out[1])
        ((float *)task.out[1])[chunk * task.step[1] + column] = sum.other;
}

template <bool bulk>
__device__ static inline void sum_columns(const reduction_task &task, const reduction_block &block, float *memory,
                                          reduction_barrier *barriers)
{
    int width = max(block.b_count, 32), first = (int)threadIdx.x / width;
    reduction_column column = {(int)threadIdx.x - first * width, first, task.sets};
    bool sums = column.column < block.b_count && first < column.apart;
    reduction_mine mine = {};
    for_each_slot<bulk, false>(task, block, memory, barriers, [&](const float *rows, int present) {
        if (sums)
            add_columns(task, column, rows, present, mine);
    });
    store_columns(task, block, column, memory, mine);
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* The tile of a warp: its first columns of p and q, and its set. side: it also sums columns of p (1) or of q (2). */
typedef struct reduction_warp {
    int number, set, p, q, side;
} reduction_warp;

__device__ static inline reduction_warp warp_now(const reduction_task &task, const reduction_block &block)
{
    int warp = (int)threadIdx.x >> 5, all = task.warps;
    reduction_warp mine = {warp, 0, 0, 0, 0};
    for (; mine.number >= all; mine.number -= all)
        mine.set++;
    int down = mine.number;
    for (; down >= task.warps_down; down -= task.warps_down)
        mine.q += REDUCTION_WIDE;
    mine.p = REDUCTION_WIDE * down;
    if (task.out[1] && !task.q_summed && block.b == 0 && mine.q == 0)
        mine.side = 1;
    if (task.out[1] && task.q_summed && block.a == 0 && mine.p == 0)
        mine.side = 2;
    return mine;
}

/* The accumulators of a lane (cuda_tile.h). Columns 2g and 2g + 1 of each 16 of p take the part of rows g and g + 8, so that one load reads
 * both. column: partial column sums of 2g and 2g + 1 of each 16 of p, or of g of each 8 of q. */
typedef struct reduction_product {
    float sum[2][4][4], column[4];
} reduction_product;

/* Adds 16 rows. Their order is free: lane t takes those that p and q point to. */
__device__ static inline void add_tensor(reduction_product &product, const float *(&p)[4], const float *(&q)[4],
                                         int side)
{
    float2 left[4][2];
    float right[4][4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            left[k][i] = *(const float2 *)(p[k] + 16 * i);
#pragma unroll
        for (int j = 0; j < 4; j++)
            right[k][j] = q[k][8 * j];
    }
#pragma unroll
    for (int k = 0; k < 4; k += 2)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float a[4] = {left[k][i].x, left[k][i].y, left[k + 1][i].x, left[k + 1][i].y};
#pragma unroll
            for (int j = 0; j < 4; j++)
                tile_mma_tf32(product.sum[i][j], a, right[k][j], right[k + 1][j]);
        }
    if (side == 1)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            product.column[2 * i] += (left[0][i].x + left[1][i].x) + (left[2][i].x + left[3][i].x);
            product.column[2 * i + 1] += (left[0][i].y + left[1][i].y) + (left[2][i].y + left[3][i].y);
        }
    if (side == 2)
#pragma unroll
        for (int j = 0; j < 4; j++)
            product.column[j] += (right[0][j] + right[1][j]) + (right[2][j] + right[3][j]);
}

/* Adds one row in fp32; p and q point to the lane's first columns. */
__device__ static inline void add_row(reduction_product &product, const float *p, const float *q)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 x = *(const float2 *)(p + 16 * i), y = *(const float2 *)(q + 8 * j);
            float(&sum)[4] = product.sum[i][j];
            sum[0] = fmaf(x.x, y.x, sum[0]);
            sum[1] = fmaf(x.x, y.y, sum[1]);
            sum[2] = fmaf(x.y, y.x, sum[2]);
            sum[3] = fmaf(x.y, y.y, sum[3]);
        }
}

/* Offset of the lane's i-th summed column from its first one. */
__device__ static inline int side_offset(int side, int i)
{
    return side == 1 ? i / 2 * 16 + i % 2 : 8 * i;
}

template <bool tensor>
__device__ static inline void add_rows(const reduction_task &task, const reduction_warp &mine, const float *rows,
                                       int present, reduction_product &product)
{
    tile_lane me = tile_lane_now();
    int p_stride = task.p_stride, q_stride = task.q_stride, apart = 16 * task.sets;
    const float *p = rows + mine.p + 2 * me.group, *q = rows + reduction_slot_q(task) + mine.q + me.group;
    if constexpr (tensor) {
        int spread = task.spread, near = spread == 1 ? 4 : 1, far = spread == 4 ? 2 : 8;
        int row = 16 * mine.set + spread * me.member;
        const int rows_of_lane[4] = {row, row + near, row + far, row + near + far};
        const float *left[4], *right[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            left[k] = p + rows_of_lane[k] * p_stride;
            right[k] = q + rows_of_lane[k] * q_stride;
        }
#pragma unroll 1
        for (int from = 16 * mine.set; from < present; from += apart) {
            add_tensor(product, left, right, mine.side);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                left[k] += apart * p_stride;
                right[k] += apart * q_stride;
            }
        }
    } else {
        const float *right = q - me.group + 2 * me.member;
#pragma unroll 1
        for (int from = 16 * mine.set; from < present; from += apart)
#pragma unroll 2
            for (int k = from; k < from + 16; k++) {
                add_row(product, p + k * p_stride, right + k * q_stride);
                if (mine.side && k % 4 == me.member)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        product.column[i] +=
                            (mine.side == 1 ? p + k * p_stride : q + k * q_stride)[side_offset(mine.side, i)];
            }
    }
}

/* Adds the sums of all sets, in order, to those of the first. */
__device__ static inline void add_sets(const reduction_task &task, const reduction_warp &mine, float *memory,
                                       reduction_product &product)
{
    float *exchange = memory + mine.number * (REDUCTION_LANE * 32) + ((int)threadIdx.x & 31);
    int apart = task.warps * (REDUCTION_LANE * 32);
    if (task.sets == 1)
        return;
    if (mine.set > 0 && mine.set < task.sets)
#pragma unroll
        for (int i = 0; i < REDUCTION_LANE; i++)
            exchange[(mine.set - 1) * apart + 32 * i] =
                i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4];
    __syncthreads();
    if (mine.set == 0)
#pragma unroll 1
        for (int set = 1; set < task.sets; set++, exchange += apart)
#pragma unroll
            for (int i = 0; i < REDUCTION_LANE; i++)
                (i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4]) += exchange[32 * i];
}

__device__ static inline void store_product(const reduction_task &task, const reduction_block &block,
                                            const reduction_warp &mine, const reduction_product &product)
{
    tile_lane me = tile_lane_now();
    int row = mine.p + 2 * me.group, col = mine.q + 2 * me.member, cols = block.b_count - col;
    float *out = (float *)task.out[0] + (int64_t)block.chunk * task.step[0] +
                 ((int64_t)block.head * task.a + block.a + row) * task.b + block.b + col;
    bool pairs = task.pairs;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float *row_out = out + (i / 2 * 16 + i % 2) * task.b;
        if (row + i / 2 * 16 + i % 2 >= block.a_count)
            continue;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x = product.sum[i / 2][j][i % 2 * 2], y = product.sum[i / 2][j][i % 2 * 2 + 1];
            if (pairs && 8 * j < cols)
                *(float2 *)(row_out + 8 * j) = make_float2(x, y);
            if (!pairs && 8 * j < cols)
                row_out[8 * j] = x;
            if (!pairs && 8 * j + 1 < cols)
                row_out[8 * j + 1] = y;
        }
    }
}

/* Adds the column sums of the four lanes of a group, each of which has some of the rows. */
__device__ static inline void store_side(const reduction_task &task, const reduction_block &block,
                                         const reduction_warp &mine, reduction_product &product)
{
    tile_lane me = tile_lane_now();
    bool left = mine.side == 1;
    int column = left ? mine.p + 2 * me.group : mine.q + me.group, count = left ? block.a_count : block.b_count;
    float *out = (float *)task.out[1] + (int64_t)block.chunk * task.step[1] + column +
                 (left ? block.head * task.a + block.a : block.head * task.b + block.b);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float sum = tile_row_sum(product.column[i]);
        if (me.member == 0 && column + side_offset(mine.side, i) < count)
            out[side_offset(mine.side, i)] = sum;
    }
}

template <bool bulk, bool tensor>
__device__ static inline void sum_outer(const reduction_task &task, const reduction_block &block, float *memory,
                                        reduction_barrier *barriers)
{
    reduction_warp warp = warp_now(task, block);
    reduction_product product = {};
    for_each_slot<bulk, true>(task, block, memory, barriers, [&](const float *rows, int present) {
        if (warp.set < task.sets)
            add_rows<tensor>(task, warp, rows, present, product);
    });
    add_sets(task, warp, memory, product);
    if (warp.set > 0)
        return;
    store_product(task, block, warp, product);
    if (warp.side)
        store_side(task, block, warp, product);
}

/* ---- the kernels --------------------------------------------------------------------------------------------- */

/* bulk: all tasks of the group use bulk copies; a template argument, so that less code is fetched. */
template <bool bulk, bool tensor>
__global__ void __launch_bounds__(REDUCTION_THREADS, 2) partial_kernel(const __grid_constant__ reduction_group group)
{
    LP_SHARED(float, memory);
    __shared__ reduction_barrier barriers[REDUCTION_SLOTS];
    int lane = (int)threadIdx.x & 31, known = lane < LP_ROWS_COUNT ? group.shard->rows[lane] : 0;
    int index = index_of_block(group.first);
    const reduction_task &task = group.task[index];
    int count = __shfl_sync(0xFFFFFFFFu, known, task.rows.type);
    int rows = task.rows.type == LP_ROWS_FIXED ? task.rows.fixed : count;
    reduction_block block = block_now(task, (int)blockIdx.x - group.first[index], rows);
    if (task.type == LP_REDUCTION_OUTER)
        sum_outer<bulk, tensor>(task, block, memory, barriers);
    else
        sum_columns<bulk>(task, block, memory, barriers);
}

/* Neighbours of a slice, whose number of elements is a multiple of four. */
template <typename type, int n> struct alignas(n * sizeof(type) < 16 ? n * sizeof(type) : 16) reduction_some {
    type at[n];
};

/* A lane has n outputs. Each warp adds every REDUCTION_WARPS-th slice, with several loads in flight. */
template <typename type, int n>
__device__ static inline void add_slices(const reduction_output &output, int block, reduction_some<type, n> *sums)
{
    enum { IN_FLIGHT = n == 1 ? 16 : 8 };
    int warp = (int)threadIdx.x >> 5, slices = output.slices, first = 32 * n * block;
    int i = first + n * ((int)threadIdx.x & 31), mine = first + (int)threadIdx.x;
    bool stores = threadIdx.x < 32 * n && mine < output.size;
    type *out = (type *)output.out, total = stores && output.adds ? out[mine] : 0;
    const type *partial = (const type *)output.partial + i + (int64_t)warp * output.step;
    int64_t apart = (int64_t)REDUCTION_WARPS * output.step;
    reduction_some<type, n> sum = {}, none = {};
    lp_pdl_wait();
#pragma unroll 1
    for (; i < output.size && warp < slices; warp += IN_FLIGHT * REDUCTION_WARPS) {
        reduction_some<type, n> part[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++, partial += apart)
            part[k] = warp + k * REDUCTION_WARPS < slices ? *(const reduction_some<type, n> *)partial : none;
#pragma unroll
        for (int k = 0; k < n * IN_FLIGHT; k++)
            sum.at[k % n] += part[k / n].at[k % n];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (!stores)
        return;
    for (int w = 0; w < REDUCTION_WARPS; w++)
        total += sums[32 * w + (int)threadIdx.x / n].at[threadIdx.x % n];
    out[mine] = total;
}

__global__ void __launch_bounds__(REDUCTION_THREADS) final_kernel(const __grid_constant__ reduction_outputs outputs)
{
    __shared__ reduction_some<float, 4> sums[REDUCTION_THREADS];
    int index = index_of_block(outputs.first);
    const reduction_output &output = outputs.output[index];
    int block = (int)blockIdx.x - outputs.first[index];
    if (output.is_double)
        add_slices(output, block, (reduction_some<double, 1> *)sums);
    else if (output.fours)
        add_slices(output, block, sums);
    else
        add_slices(output, block, (reduction_some<float, 1> *)sums);
}

} // namespace

void lp_cuda_reduction_launch_partial(const lp_cuda_run *run, const reduction_group &group, bool bulk, unsigned blocks,
                                      size_t shared)
{
    bool tensor = tile_tensor(run);
    if (bulk && tensor)
        LP_LAUNCH(run, (partial_kernel<true, true>), blocks, REDUCTION_THREADS, shared, group);
    else if (bulk)
        LP_LAUNCH(run, (partial_kernel<true, false>), blocks, REDUCTION_THREADS, shared, group);
    else if (tensor)
        LP_LAUNCH(run, (partial_kernel<false, true>), blocks, REDUCTION_THREADS, shared, group);
    else
        LP_LAUNCH(run, (partial_kernel<false, false>), blocks, REDUCTION_THREADS, shared, group);
}

void lp_cuda_reduction_launch_final(const lp_cuda_run *run, const reduction_outputs &outputs, unsigned blocks)
{
    LP_LAUNCH_PDL(run, final_kernel, blocks, REDUCTION_THREADS, 0, outputs);
}
