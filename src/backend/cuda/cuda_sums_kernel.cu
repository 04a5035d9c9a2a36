/* cuda_sums_kernel.cu: the two launches of a group of sums.
 *
 * The first reads everything once, so what counts is that as much as possible is on its way: each block asks for all the rows of its chunk
 * that its shared memory has room for, before it works on the first of them. Outer products go to tensor cores where the precision
 * allows, which leave the lower bits of what they multiply unread; columns are always added as floats.
 *
 * The second adds what the blocks have left. It begins when they are about to end, so that it is ready when they have.
 *
 * Which rows are whose depends on the number of rows and of chunks alone, and the chunks, whose number depends on the largest shard alone,
 * are added in a fixed order: two runs give the same bits.
 */
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_sums_copy.h"
#include "backend/cuda/cuda_sums_task.h"

namespace
{

/* The last place whose first block is not behind this one: firsts ascend, and end with numbers that no block has. */
template <int count> __device__ static inline int place_of_block(const int (&first)[count])
{
    int place = 0;
#pragma unroll 1
    while (place + 1 < count && first[place + 1] <= (int)blockIdx.x)
        place++;
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
    int parts = task.heads * task.down * task.across;
    int sixteens = (count + 15) / 16, each = sixteens / task.chunks, more = sixteens - each * task.chunks;
    sums_block block = {};
    block.chunk = number;
    if (parts > 1) {
        block.chunk = number / parts;
        int part = number - block.chunk * parts, down = part / task.across;
        block.head = down / task.down;
        block.a = (down - block.head * task.down) * task.a_wide;
        block.b = (part - down * task.across) * task.b_wide;
    }
    block.a_count = min(task.a - block.a, (int)task.a_wide);
    block.b_count = min(task.b - block.b, (int)task.b_wide);
    block.begin = 16 * (block.chunk * each + min(block.chunk, more));
    block.end = min(block.begin + 16 * (each + (block.chunk < more)), count);
    return block;
}

/* ---- rows come to shared memory ------------------------------------------------------------------------------ */

/* Begins to copy to [present x cols] = from. A warp takes a row. */
template <int width>
__device__ static inline void ask_matrix(float *to, int stride, const float *from, int64_t from_stride, int present,
                                         int cols)
{
    int warp = (int)threadIdx.x >> 5;
#pragma unroll 1
    for (int c = width * ((int)threadIdx.x & 31); c < cols; c += 32 * width) {
        const float *source = from + warp * from_stride + c;
        float *place = to + warp * stride + c;
#pragma unroll 4
        for (int r = warp; r < present; r += SUMS_WARPS) {
            tile_cp_async<width>(place, source);
            source += SUMS_WARPS * from_stride;
            place += SUMS_WARPS * stride;
        }
    }
}

/* The block's columns of rows [from, from + present), by all threads. Halves of a basis are two matrices, side by side. */
__device__ static inline void ask_columns(const sums_task &task, const sums_block &block, float *to, int from,
                                          int present)
{
    bool outer = task.type == SUMS_OUTER;
    int halves = task.type == SUMS_BASIS ? 2 : 1, matrices = task.q ? 2 * halves : 1;
#pragma unroll 1
    for (int m = 0; m < matrices; m++) {
        bool left = m < halves, a = outer && left;
        int half = left ? m : m - halves, width = left ? task.p_width : task.q_width;
        int cols = a ? task.a : task.b, first = a ? block.a : block.b, count = a ? block.a_count : block.b_count;
        int stride = left ? task.p_stride : task.q_stride;
        int64_t from_stride = (int64_t)task.heads * halves * cols;
        const float *source =
            (left ? task.p : task.q) + from * from_stride + (int64_t)block.head * cols + half * task.b + first;
        float *place = to + (left ? 0 : sums_slot_q(task)) + half * task.b_wide;
        if (width == 4)
            ask_matrix<4>(place, stride, source, from_stride, present, count);
        else if (width == 2)
            ask_matrix<2>(place, stride, source, from_stride, present, count);
        else
            ask_matrix<1>(place, stride, source, from_stride, present, count);
    }
    if (task.extra)
        for (int r = (int)threadIdx.x; r < present; r += SUMS_THREADS)
            tile_cp_async<2>(to + sums_slot_extra(task) + 2 * r, task.extra + 2 * ((int64_t)from + r));
}

/* Floats that do not fill 16 bytes at the end are copied at once, before the barrier hears of the rest. */
__device__ static inline uint32_t copy_end(float *to, const float *from, int count)
{
    int whole = count & ~3;
#pragma unroll 1
    for (int i = whole; i < count; i++)
        to[i] = from[i];
    return 4 * (uint32_t)whole;
}

/* Whole rows, by one thread. */
__device__ static inline void ask_bulk(const sums_task &task, float *to, int from, int present, sums_barrier *barrier)
{
    int p_stride = task.p_stride, q_stride = task.q_stride;
    float *q_to = to + sums_slot_q(task), *extra_to = to + sums_slot_extra(task);
    const float *p = task.p + (int64_t)from * p_stride, *q = task.q + (int64_t)from * q_stride;
    const float *extra = task.extra + 2 * (int64_t)from;
    uint32_t p_bytes = copy_end(to, p, present * p_stride), q_bytes = 0, extra_bytes = 0;
    if (task.q)
        q_bytes = copy_end(q_to, q, present * q_stride);
    if (task.extra)
        extra_bytes = copy_end(extra_to, extra, 2 * present);
    sums_expect(barrier, p_bytes + q_bytes + extra_bytes);
    if (p_bytes)
        sums_copy_bulk(to, p, p_bytes, barrier);
    if (q_bytes)
        sums_copy_bulk(q_to, q, q_bytes, barrier);
    if (extra_bytes)
        sums_copy_bulk(extra_to, extra, extra_bytes, barrier);
}

/* In bulk the slot's own warp asks, so that several do at once. */
template <bool bulk>
__device__ static inline void ask_rows(const sums_task &task, const sums_block &block, float *to, int from, int slot,
                                       sums_barrier *barriers)
{
    int present = min(block.end - from, (int)task.depth);
    if constexpr (bulk) {
        if ((int)threadIdx.x == 32 * slot)
            ask_bulk(task, to, from, present, &barriers[slot]);
    } else {
        ask_columns(task, block, to, from, present);
        sums_asked(&barriers[slot]);
    }
}

/* Makes the barriers, and asks for as many rows as there is room for. Returns the first that are not asked for. */
template <bool bulk>
__device__ static inline int begin_slots(const sums_task &task, const sums_block &block, float *memory,
                                         sums_barrier *barriers)
{
    int depth = task.depth, slots = task.slots, size = sums_slot(task);
    if constexpr (bulk) {
        int slot = (int)threadIdx.x >> 5, from = block.begin + slot * depth;
        if ((threadIdx.x & 31) == 0 && slot < slots) {
            sums_barrier_make(&barriers[slot], 1);
            sums_barriers_show();
            if (from < block.end)
                ask_rows<true>(task, block, memory + slot * size, from, slot, barriers);
        }
        __syncthreads();
    } else {
        if (threadIdx.x == 0)
            for (int slot = 0; slot < slots; slot++)
                sums_barrier_make(&barriers[slot], SUMS_THREADS);
        __syncthreads();
#pragma unroll 1
        for (int slot = 0, from = block.begin; slot < slots && from < block.end; slot++, from += depth)
            ask_rows<false>(task, block, memory + slot * size, from, slot, barriers);
    }
    return block.begin + slots * depth;
}

/* Products read 16 rows at a time: zeros where there are no more. */
__device__ static inline void clear_rows(float *rows, int stride, int present)
{
    int end = (present + 15) / 16 * 16 * stride;
#pragma unroll 1
    for (int i = present * stride + (int)threadIdx.x; i < end; i += SUMS_THREADS)
        rows[i] = 0;
}

/* Calls consume(rows, present) for all rows of the block in turn, from shared memory. Afterwards nobody reads them any more. */
template <bool bulk, bool outer, typename consumer>
__device__ static inline void for_each_slot(const sums_task &task, const sums_block &block, float *memory,
                                            sums_barrier *barriers, const consumer &consume)
{
    int depth = task.depth, slots = task.slots, size = sums_slot(task), end = block.end, slot = 0;
    int target_position = begin_slots<bulk>(task, block, memory, barriers);
    uint32_t turn = 0;
#pragma unroll 1
    for (int from = block.begin; from < end; from += depth) {
        float *rows = memory + slot * size;
        int present = min(end - from, depth);
        sums_wait(&barriers[slot], turn);
        if (outer && present % 16) {
            clear_rows(rows, task.p_stride, present);
            clear_rows(rows + sums_slot_q(task), task.q_stride, present);
            __syncthreads();
        }
        consume(rows, present);
        if (target_position < end) {
            __syncthreads();
            ask_rows<bulk>(task, block, rows, target_position, slot, barriers);
            target_position += depth;
        }
        if (++slot == slots) {
            slot = 0;
            turn ^= 1;
        }
    }
    lp_let_next_begin();
    __syncthreads();
}

/* ---- sums of columns ----------------------------------------------------------------------------------------- */

/* A thread's column, and which of the rows it takes: every `apart`-th from `first` on. */
typedef struct sums_column {
    int column, first, apart;
} sums_column;

/* What a thread sums of its column. */
typedef struct sums_mine {
    float one, other;
    double exact;
} sums_mine;

__device__ static inline void add_columns(const sums_task &task, const sums_column &mine, const float *rows,
                                          int present, sums_mine &sum)
{
    int stride = task.p_stride, first = mine.first * stride + mine.column, apart = mine.apart * stride;
    const float *p = rows + first, *q = p + sums_slot_q(task), *end = rows + present * stride;
    if (task.type == SUMS_COLUMN) {
#pragma unroll 4
        for (; p < end; p += apart)
            sum.one += *p;
    } else if (task.type == SUMS_DOT) {
#pragma unroll 4
        for (; p < end; p += apart, q += apart)
            sum.one += *p * *q;
    } else if (task.type == SUMS_NORM) {
        const float2 *moments = (const float2 *)(rows + sums_slot_extra(task)) + mine.first;
#pragma unroll 4
        for (; p < end; p += apart, q += apart, moments += mine.apart) {
            float2 now = *moments;
            sum.one += *q * ((*p - now.x) * now.y);
            sum.other += *q;
        }
    } else {
        const double *time = (const double *)(rows + sums_slot_extra(task)) + mine.first;
        int sine = task.b_wide;
#pragma unroll 4
        for (; p < end; p += apart, q += apart, time += mine.apart)
            sum.exact += *time * ((double)q[sine] * *p - (double)*q * p[sine]);
    }
}

/* Adds what the threads have of each column, and stores it. */
__device__ static inline void keep_columns(const sums_task &task, const sums_block &block, const sums_column &mine,
                                           float *memory, sums_mine sum)
{
    bool basis = task.type == SUMS_BASIS;
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
__device__ static inline void sum_columns(const sums_task &task, const sums_block &block, float *memory,
                                          sums_barrier *barriers)
{
    int width = max(block.b_count, 32), first = (int)threadIdx.x / width;
    sums_column column = {(int)threadIdx.x - first * width, first, task.sets};
    bool sums = column.column < block.b_count && first < column.apart;
    sums_mine mine = {};
    for_each_slot<bulk, false>(task, block, memory, barriers, [&](const float *rows, int present) {
        if (sums)
            add_columns(task, column, rows, present, mine);
    });
    keep_columns(task, block, column, memory, mine);
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* A warp's place in the product of a block: its first columns of p and q, and which set it belongs to; whether it also sums columns, of p
 * (1) or of q (2). */
typedef struct sums_warp {
    int number, set, p, q, side;
} sums_warp;

__device__ static inline sums_warp warp_now(const sums_task &task, const sums_block &block)
{
    int warp = (int)threadIdx.x >> 5, all = task.warps;
    sums_warp mine = {warp, 0, 0, 0, 0};
    for (; mine.number >= all; mine.number -= all)
        mine.set++;
    int down = mine.number;
    for (; down >= task.warps_down; down -= task.warps_down)
        mine.q += SUMS_WIDE;
    mine.p = SUMS_WIDE * down;
    if (task.out[1] && !task.q_summed && block.b == 0 && mine.q == 0)
        mine.side = 1;
    if (task.out[1] && task.q_summed && block.a == 0 && mine.p == 0)
        mine.side = 2;
    return mine;
}

/* What a lane of tiles (cuda_tile.h) has, where columns 2g and 2g + 1 of each 16 of p stand for rows g and g + 8: so they are read at
 * once. And what it has of the sums of columns: 2g and 2g + 1 of each 16 of p, or g of each 8 of q, of some of the rows. */
typedef struct sums_product {
    float sum[2][4][4], column[4];
} sums_product;

/* Adds 16 rows. Rows may come in any order: lane t takes those that p and q point to. */
__device__ static inline void add_tensor(sums_product &product, const float *(&p)[4], const float *(&q)[4], int side)
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

/* Adds one row by ordinary multiplications: p from the lane's columns on, q from its own on. */
__device__ static inline void add_row(sums_product &product, const float *p, const float *q)
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

/* The lane's place i among 32 columns that are summed, from its first one on. */
__device__ static inline int side_place(int side, int i)
{
    return side == 1 ? i / 2 * 16 + i % 2 : 8 * i;
}

template <bool tensor>
__device__ static inline void add_rows(const sums_task &task, const sums_warp &mine, const float *rows, int present,
                                       sums_product &product)
{
    tile_lane me = tile_lane_now();
    int p_stride = task.p_stride, q_stride = task.q_stride, apart = 16 * task.sets;
    const float *p = rows + mine.p + 2 * me.group, *q = rows + sums_slot_q(task) + mine.q + me.group;
    if constexpr (tensor) {
        int spread = task.spread, near = spread == 1 ? 4 : 1, far = spread == 4 ? 2 : 8;
        int row = 16 * mine.set + spread * me.member;
        const int place[4] = {row, row + near, row + far, row + near + far};
        const float *left[4], *right[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            left[k] = p + place[k] * p_stride;
            right[k] = q + place[k] * q_stride;
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
                            (mine.side == 1 ? p + k * p_stride : q + k * q_stride)[side_place(mine.side, i)];
            }
    }
}

/* The first set has the sums of all sets, added in their order. */
__device__ static inline void add_sets(const sums_task &task, const sums_warp &mine, float *memory,
                                       sums_product &product)
{
    float *place = memory + mine.number * (SUMS_LANE * 32) + ((int)threadIdx.x & 31);
    int apart = task.warps * (SUMS_LANE * 32);
    if (task.sets == 1)
        return;
    if (mine.set > 0 && mine.set < task.sets)
#pragma unroll
        for (int i = 0; i < SUMS_LANE; i++)
            place[(mine.set - 1) * apart + 32 * i] =
                i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4];
    __syncthreads();
    if (mine.set == 0)
#pragma unroll 1
        for (int set = 1; set < task.sets; set++, place += apart)
#pragma unroll
            for (int i = 0; i < SUMS_LANE; i++)
                (i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4]) += place[32 * i];
}

__device__ static inline void keep_product(const sums_task &task, const sums_block &block, const sums_warp &mine,
                                           const sums_product &product)
{
    tile_lane me = tile_lane_now();
    int row = mine.p + 2 * me.group, col = mine.q + 2 * me.member, cols = block.b_count - col;
    float *out = (float *)task.out[0] + (int64_t)block.chunk * task.step[0] +
                 ((int64_t)block.head * task.a + block.a + row) * task.b + block.b + col;
    bool pairs = task.pairs;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float *place = out + (i / 2 * 16 + i % 2) * task.b;
        if (row + i / 2 * 16 + i % 2 >= block.a_count)
            continue;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x = product.sum[i / 2][j][i % 2 * 2], y = product.sum[i / 2][j][i % 2 * 2 + 1];
            if (pairs && 8 * j < cols)
                *(float2 *)(place + 8 * j) = make_float2(x, y);
            if (!pairs && 8 * j < cols)
                place[8 * j] = x;
            if (!pairs && 8 * j + 1 < cols)
                place[8 * j + 1] = y;
        }
    }
}

/* The four lanes of a group have some of the rows each. */
__device__ static inline void keep_side(const sums_task &task, const sums_block &block, const sums_warp &mine,
                                        sums_product &product)
{
    tile_lane me = tile_lane_now();
    bool left = mine.side == 1;
    int column = left ? mine.p + 2 * me.group : mine.q + me.group, count = left ? block.a_count : block.b_count;
    float *out = (float *)task.out[1] + (int64_t)block.chunk * task.step[1] + column +
                 (left ? block.head * task.a + block.a : block.head * task.b + block.b);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float sum = product.column[i];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (me.member == 0 && column + side_place(mine.side, i) < count)
            out[side_place(mine.side, i)] = sum;
    }
}

template <bool bulk, bool tensor>
__device__ static inline void sum_outer(const sums_task &task, const sums_block &block, float *memory,
                                        sums_barrier *barriers)
{
    sums_warp warp = warp_now(task, block);
    sums_product product = {};
    for_each_slot<bulk, true>(task, block, memory, barriers, [&](const float *rows, int present) {
        if (warp.set < task.sets)
            add_rows<tensor>(task, warp, rows, present, product);
    });
    add_sets(task, warp, memory, product);
    if (warp.set > 0)
        return;
    keep_product(task, block, warp, product);
    if (warp.side)
        keep_side(task, block, warp, product);
}

/* ---- the launches -------------------------------------------------------------------------------------------- */

/* bulk: all tasks of the group come in bulk, so that there is less code to fetch. */
template <bool bulk, bool tensor>
__global__ void __launch_bounds__(SUMS_THREADS, 2) sums_kernel(const __grid_constant__ sums_group group)
{
    LP_SHARED(float, memory);
    __shared__ sums_barrier barriers[SUMS_SLOTS];
    int lane = (int)threadIdx.x & 31, known = lane < LP_ROWS_COUNT ? group.shard->rows[lane] : 0;
    int place = place_of_block(group.first);
    const sums_task &task = group.task[place];
    int there = __shfl_sync(0xFFFFFFFFu, known, task.rows.type);
    int rows = task.rows.type == LP_ROWS_FIXED ? task.rows.fixed : there;
    sums_block block = block_now(task, (int)blockIdx.x - group.first[place], rows);
    if (task.type == SUMS_OUTER)
        sum_outer<bulk, tensor>(task, block, memory, barriers);
    else
        sum_columns<bulk>(task, block, memory, barriers);
}

/* Every warp takes every so many slices, and sixteen of them at once. */
template <typename type> __device__ static inline void add_slices(const sums_output &output, int i, type *parts)
{
    enum { AT_ONCE = 16 };
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, slices = output.slices, step = output.step;
    bool there = i < output.size, mine = there && warp == 0;
    type *out = (type *)output.out, sum = 0, before = mine && output.adds ? out[i] : 0;
    const type *partial = (const type *)output.partial + i + (int64_t)warp * step;
    int64_t apart = (int64_t)SUMS_WARPS * step;
    lp_wait_for_last();
#pragma unroll 1
    for (int first = warp; there && first < slices; first += AT_ONCE * SUMS_WARPS) {
        type part[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++, partial += apart)
            part[k] = first + k * SUMS_WARPS < slices ? *partial : 0;
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

void lp_cuda_sums_launch(const lp_cuda_run *run, const sums_group &group, bool bulk, unsigned blocks, size_t shared)
{
    bool tensor = tile_tensor(run);
    if (bulk && tensor)
        LP_LAUNCH(run, (sums_kernel<true, true>), blocks, SUMS_THREADS, shared, group);
    else if (bulk)
        LP_LAUNCH(run, (sums_kernel<true, false>), blocks, SUMS_THREADS, shared, group);
    else if (tensor)
        LP_LAUNCH(run, (sums_kernel<false, true>), blocks, SUMS_THREADS, shared, group);
    else
        LP_LAUNCH(run, (sums_kernel<false, false>), blocks, SUMS_THREADS, shared, group);
}

void lp_cuda_sums_add_up(const lp_cuda_run *run, const sums_outputs &outputs, unsigned blocks)
{
    LP_LAUNCH_EARLY(run, add_up_kernel, blocks, SUMS_THREADS, 0, outputs);
}
