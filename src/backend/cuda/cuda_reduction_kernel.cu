/* cuda_reduction_kernel.cu: the two kernels of a group of reductions.
 *
 * The first is bound by memory bandwidth, so it keeps many loads in flight: each block starts to load all rows of its chunk that fit into shared
 * memory before it processes the first of them. Outer products use tensor cores, which ignore the lower bits of their factors; a thread adds
 * up columns in double. Column sums of rows that are not aligned, or of many columns, are read from global memory: few models have them.
 *
 * The second adds the partial sums. It uses programmatic dependent launch, so that its blocks are resident when the first kernel ends.
 *
 * The rows of a chunk depend only on the numbers of rows and chunks, the number of chunks only on the largest shard, and the chunks are added
 * in a fixed order: two runs give the same bits.
 */
#include "backend/cuda/cuda_product.h"
#include "backend/cuda/cuda_reduction_copy.h"
#include "backend/cuda/cuda_reduction_task.h"

namespace
{

/* ---- the rows and columns of a block ------------------------------------------------------------------------- */

typedef struct reduction_block {
    int chunk;
    int first, count; /* columns of the tile of a column sum */
    int begin, end;   /* rows */
} reduction_block;

__device__ static inline reduction_block block_now(const reduction_task &task, int number, int rows)
{
    int tiles = reduction_tiles(task), first = number % tiles * task.tile;
    reduction_block block = {number / tiles, first, min(reduction_cols(task) - first, task.tile), 0, 0};
    product_chunk<16>(rows, task.chunks, block.chunk, &block.begin, &block.end);
    return block;
}

/* ---- loading rows to shared memory --------------------------------------------------------------------------- */

/* By a warp: starts to copy the rows from `from` on that a slot holds. The first lane copies the floats after the last multiple of
 * 16 bytes synchronously, before it arrives at the barrier. */
__device__ static inline void load_rows(const reduction_task &task, float *to, int from, int present,
                                        reduction_barrier *barrier)
{
    float *const targets[3] = {to, to + task.depth * task.a, to + reduction_slot_extra(task)};
    const float *const sources[3] = {(const float *)task.p + (int64_t)from * task.a,
                                     (const float *)task.q + (int64_t)from * task.b, task.extra + 2 * (int64_t)from};
    const int counts[3] = {present * task.a, present * task.b, task.extra ? 2 * present : 0};
    uint32_t bytes[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        bytes[i] = 4 * (uint32_t)(counts[i] & ~3);
#pragma unroll 1
        for (int k = counts[i] & ~3; k < counts[i] && threadIdx.x % 32 == 0; k++)
            targets[i][k] = sources[i][k];
    }
    reduction_copy(targets, sources, bytes, barrier);
}

/* Zeroes the rows after the last one, up to a multiple of 16: products read 16 rows at a time. */
__device__ static inline void clear_rows(float *rows, int stride, int present)
{
    int end = (present + 15) / 16 * 16 * stride;
#pragma unroll 1
    for (int i = present * stride + (int)threadIdx.x; i < end; i += REDUCTION_THREADS)
        rows[i] = 0;
}

/* Calls consume(rows, present) for all rows of the block, slot by slot. On return all threads are done with the slots. Each slot has a
 * warp that starts its copies, so that several start at once. */
template <typename consumer>
__device__ static inline void for_each_slot(const reduction_task &task, const reduction_block &block, float *memory,
                                            reduction_barrier *barriers, const consumer &consume)
{
    int depth = task.depth, slots = task.slots, size = reduction_slot(task), end = block.end, slot = 0;
    int mine = (int)threadIdx.x >> 5, next = block.begin + slots * depth;
    auto load = [&](int to, int from) {
        load_rows(task, memory + to * size, from, min(end - from, depth), &barriers[to]);
    };
    if (mine < slots) {
        if (threadIdx.x % 32 == 0) {
            reduction_barrier_init(&barriers[mine], REDUCTION_ARRIVALS);
            reduction_barriers_fence();
        }
        __syncwarp();
        if (block.begin + mine * depth < end)
            load(mine, block.begin + mine * depth);
    }
    __syncthreads();
    uint32_t phase = 0;
#pragma unroll 1
    for (int from = block.begin; from < end; from += depth) {
        reduction_wait(&barriers[slot], phase);
        consume(memory + slot * size, min(end - from, depth));
        if (next < end) {
            __syncthreads();
            if (mine == slot)
                load(slot, next);
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

/* A thread's sums. */
typedef struct reduction_sums {
    double one, other;
} reduction_sums;

/* Every `apart`-th row from `row` on. p, q: the column of the first of `present` rows; extra: the first of these rows. */
__device__ static inline void add_columns(const reduction_task &task, const float *p, const float *q,
                                          const float *extra, int row, int apart, int present, reduction_sums &sum)
{
    int step = apart * task.a;
    const float *end = p + present * task.a;
    p += row * task.a;
    q += row * task.a;
    auto each_row = [&](const auto &add) {
#pragma unroll 4
        for (; p < end; p += step, q += step, row += apart)
            add();
    };
    if (task.type == LP_REDUCTION_COLUMN) {
        each_row([&]() { sum.one += *p; });
    } else if (task.type == LP_REDUCTION_DOT) {
        each_row([&]() { sum.one += *p * *q; });
    } else if (task.type == LP_REDUCTION_NORM) {
        each_row([&]() {
            float2 moments = ((const float2 *)extra)[row];
            sum.one += *q * ((*p - moments.x) * moments.y);
            sum.other += *q;
        });
    } else {
        int sine = reduction_cols(task);
        each_row([&]() { sum.one += ((const double *)extra)[row] * ((double)q[sine] * *p - (double)*q * p[sine]); });
    }
}

/* A thread has a column and some of the rows; the first row's threads add the sums of the others. */
__device__ static inline void sum_columns(const reduction_task &task, const reduction_block &block, float *memory,
                                          reduction_barrier *barriers)
{
    int width = max(block.count, 32), apart = REDUCTION_THREADS / width, row = (int)threadIdx.x / width;
    int column = (int)threadIdx.x - row * width;
    bool sums = column < block.count && row < apart;
    reduction_sums sum = {}, *all = (reduction_sums *)memory;
    if (task.slots) {
        for_each_slot(task, block, memory, barriers, [&](const float *rows, int present) {
            if (sums)
                add_columns(task, rows + column, rows + task.depth * task.a + column, rows + reduction_slot_extra(task),
                            row, apart, present, sum);
        });
    } else {
        int64_t at = (int64_t)block.begin * task.a + block.first + column;
        if (sums)
            add_columns(task, (const float *)task.p + at, (const float *)task.q + at,
                        task.extra + 2 * (int64_t)block.begin, row, apart, block.end - block.begin, sum);
        lp_pdl_trigger();
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    if (!sums || row > 0)
        return;
#pragma unroll 1
    for (int i = width + column; i < apart * width; i += width) {
        sum.one += all[i].one;
        sum.other += all[i].other;
    }
    int64_t to = block.first + column, chunk = block.chunk;
    if (task.type == LP_REDUCTION_BASIS)
        ((double *)task.out[0])[chunk * task.step[0] + to] = sum.one;
    else if (task.out[0])
        ((float *)task.out[0])[chunk * task.step[0] + to] = (float)sum.one;
    if (task.out[1])
        ((float *)task.out[1])[chunk * task.step[1] + to] = (float)sum.other;
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* The tile of a warp: its first columns of p and q, and its set. side: it also sums columns of p (1) or of q (2). */
typedef struct reduction_warp {
    int number, set, p, q, side;
} reduction_warp;

__device__ static inline reduction_warp warp_now(const reduction_task &task)
{
    int warp = (int)threadIdx.x >> 5, all = reduction_warps(task), down = reduction_warps_down(task);
    int number = warp % all, p = number % down, q = number / down;
    int side = task.out[1] && (task.q_summed ? p : q) == 0 ? 1 + task.q_summed : 0;
    return {number, warp / all, REDUCTION_WIDE * p, REDUCTION_WIDE * q, side};
}

/* The accumulators of a lane (cuda_tile.h). Columns 2g and 2g + 1 of each 16 of p take the part of rows g and g + 8, so that one load reads
 * both. column: partial column sums of 2g and 2g + 1 of each 16 of p, or of g of each 8 of q. */
typedef struct reduction_product {
    float sum[2][4][4], column[4];
} reduction_product;

/* Adds 16 rows at a time. Their order is free: lane t takes rows 4t to 4t + 3, which in rows of 50 or 100 columns has the fewest bank
 * conflicts. */
__device__ static inline void add_rows(const reduction_task &task, const reduction_warp &mine, const float *rows,
                                       int present, reduction_product &product)
{
    tile_lane me = tile_lane_now();
    int a = task.a, b = task.b, apart = 16 * reduction_sets(task), first = 16 * mine.set + 4 * me.member;
    const float *p = rows + first * a + mine.p + 2 * me.group,
                *q = rows + task.depth * a + first * b + mine.q + me.group;
#pragma unroll 1
    for (int from = 16 * mine.set; from < present; from += apart, p += apart * a, q += apart * b) {
        float2 left[4][2];
        float right[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int i = 0; i < 2; i++)
                left[k][i] = *(const float2 *)(p + k * a + 16 * i);
#pragma unroll
            for (int j = 0; j < 4; j++)
                right[k][j] = q[k * b + 8 * j];
        }
#pragma unroll
        for (int k = 0; k < 4; k += 2)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float both[4] = {left[k][i].x, left[k][i].y, left[k + 1][i].x, left[k + 1][i].y};
#pragma unroll
                for (int j = 0; j < 4; j++)
                    tile_mma_tf32(product.sum[i][j], both, right[k][j], right[k + 1][j]);
            }
        if (mine.side == 1)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                product.column[2 * i] += (left[0][i].x + left[1][i].x) + (left[2][i].x + left[3][i].x);
                product.column[2 * i + 1] += (left[0][i].y + left[1][i].y) + (left[2][i].y + left[3][i].y);
            }
        if (mine.side == 2)
#pragma unroll
            for (int j = 0; j < 4; j++)
                product.column[j] += (right[0][j] + right[1][j]) + (right[2][j] + right[3][j]);
    }
}

/* Adds the sums of all sets, in order, to those of the first. */
__device__ static inline void add_sets(const reduction_task &task, const reduction_warp &mine, float *memory,
                                       reduction_product &product)
{
    float *exchange = memory + mine.number * (REDUCTION_LANE * 32) + ((int)threadIdx.x & 31);
    int sets = reduction_sets(task), apart = reduction_warps(task) * (REDUCTION_LANE * 32);
    if (sets == 1)
        return;
    if (mine.set > 0 && mine.set < sets)
#pragma unroll
        for (int i = 0; i < REDUCTION_LANE; i++)
            exchange[(mine.set - 1) * apart + 32 * i] =
                i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4];
    __syncthreads();
    if (mine.set == 0)
#pragma unroll 1
        for (int set = 1; set < sets; set++, exchange += apart)
#pragma unroll
            for (int i = 0; i < REDUCTION_LANE; i++)
                (i < 32 ? product.sum[i / 16][i / 4 % 4][i % 4] : product.column[i % 4]) += exchange[32 * i];
}

/* Of column sums each of the four lanes of a group has some of the rows. */
__device__ static inline void store_outer(const reduction_task &task, int chunk, const reduction_warp &mine,
                                          const reduction_product &product)
{
    tile_lane me = tile_lane_now();
    int row = mine.p + 2 * me.group, col = mine.q + 2 * me.member, cols = task.b - col;
    float *out = (float *)task.out[0] + (int64_t)chunk * task.step[0] + row * task.b + col;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int at = i / 2 * 16 + i % 2;
#pragma unroll
        for (int j = 0; j < 4 && row + at < task.a; j++)
            if (8 * j < cols)
                *(float2 *)(out + at * task.b + 8 * j) =
                    make_float2(product.sum[i / 2][j][i % 2 * 2], product.sum[i / 2][j][i % 2 * 2 + 1]);
    }
    bool left = mine.side == 1;
    int column = left ? row : mine.q + me.group, count = left ? task.a : task.b;
    float *sums = (float *)task.out[1] + (int64_t)chunk * task.step[1] + column;
#pragma unroll
    for (int i = 0; i < 4 && mine.side; i++) {
        int at = left ? i / 2 * 16 + i % 2 : 8 * i;
        float sum = tile_row_sum(product.column[i]);
        if (me.member == 0 && column + at < count)
            sums[at] = sum;
    }
}

__device__ static inline void sum_outer(const reduction_task &task, const reduction_block &block, float *memory,
                                        reduction_barrier *barriers)
{
    reduction_warp warp = warp_now(task);
    reduction_product product = {};
    for_each_slot(task, block, memory, barriers, [&](float *rows, int present) {
        if (present % 16) {
            clear_rows(rows, task.a, present);
            clear_rows(rows + task.depth * task.a, task.b, present);
            __syncthreads();
        }
        if (warp.set < reduction_sets(task))
            add_rows(task, warp, rows, present, product);
    });
    add_sets(task, warp, memory, product);
    if (warp.set == 0)
        store_outer(task, block.chunk, warp, product);
}

/* ---- the kernels --------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(REDUCTION_THREADS, 2) partial_kernel(const __grid_constant__ reduction_group group)
{
    LP_SHARED(float, memory);
    __shared__ reduction_barrier barriers[REDUCTION_SLOTS];
    int lane = (int)threadIdx.x & 31, known = lane < LP_ROWS_COUNT ? group.shard->rows[lane] : 0;
    int index = reduction_index(group.first);
    const reduction_task &task = group.task[index];
    int count = __shfl_sync(0xFFFFFFFFu, known, task.rows.type);
    int rows = task.rows.type == LP_ROWS_FIXED ? task.rows.fixed : count;
    reduction_block block = block_now(task, (int)blockIdx.x - group.first[index], rows);
    if (task.type == LP_REDUCTION_OUTER)
        sum_outer(task, block, memory, barriers);
    else
        sum_columns(task, block, memory, barriers);
}

/* Neighbours of a slice, whose number of elements is a multiple of four. */
template <typename type> struct alignas(16) reduction_some {
    type at[16 / sizeof(type)];
};

/* A lane has 16 bytes of the output. Each warp adds every REDUCTION_WARPS-th slice, with several loads in flight. */
template <typename type>
__device__ static inline void add_slices(const reduction_output &output, int block, reduction_some<type> *sums)
{
    constexpr int n = 16 / sizeof(type), IN_FLIGHT = 8;
    int warp = (int)threadIdx.x >> 5, slices = output.slices, first = 32 * n * block;
    int i = first + n * ((int)threadIdx.x & 31), mine = first + (int)threadIdx.x;
    bool stores = threadIdx.x < 32 * n && mine < output.size;
    type *out = (type *)output.out, total = stores && output.adds ? out[mine] : 0;
    const type *partial = (const type *)output.partial + i + (int64_t)warp * output.step;
    int64_t apart = (int64_t)REDUCTION_WARPS * output.step;
    reduction_some<type> sum = {}, none = {};
    lp_pdl_wait();
#pragma unroll 1
    for (; i < output.size && warp < slices; warp += IN_FLIGHT * REDUCTION_WARPS) {
        reduction_some<type> part[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++, partial += apart)
            part[k] = warp + k * REDUCTION_WARPS < slices ? *(const reduction_some<type> *)partial : none;
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
    __shared__ reduction_some<float> sums[REDUCTION_THREADS];
    int index = reduction_index(outputs.first);
    const reduction_output &output = outputs.output[index];
    int block = (int)blockIdx.x - outputs.first[index];
    if (output.is_double)
        add_slices(output, block, (reduction_some<double> *)sums);
    else
        add_slices(output, block, sums);
}

} // namespace

void lp_cuda_reduction_launch(const lp_cuda_run *run, reduction_group *group, reduction_outputs *outputs)
{
    unsigned blocks = 0, final_blocks = 0;
    group->shard = run->shard;
    for (int i = 0; i < LP_CUDA_REDUCTION_MAX; i++) {
        const reduction_task &task = group->task[i];
        group->first[i] = (int)blocks;
        if (task.launch == REDUCTION_GROUP && (task.out[0] || task.out[1]))
            blocks += (unsigned)(task.chunks * reduction_tiles(task));
    }
    for (int i = 0; i < REDUCTION_OUTPUTS; i++) {
        const reduction_output &output = outputs->output[i];
        outputs->first[i] = (int)final_blocks;
        if (output.partial != output.out)
            final_blocks += lp_blocks(output.size, 32 * (output.is_double ? 2 : 4));
    }
    LP_LAUNCH(run, partial_kernel, blocks, REDUCTION_THREADS, (REDUCTION_SHARED + REDUCTION_PADDING) * sizeof(float),
              *group);
    LP_LAUNCH_PDL(run, final_kernel, final_blocks, REDUCTION_THREADS, 0, *outputs);
}
