/* cuda_outer.cu: outer products over rows, gradients of weights, of copies in bf16 by warpgroups (wgmma, cuda_product_wide.h). Their
 * depth, the rows, is divided into chunks; the group of reductions adds them (cuda_reduction.cu). All products with the same tile are
 * one launch. A tile has 128 rows of C = p^T q in one head, or all rows of two heads where they have up to 64: 64 for each of the
 * two warpgroups. */
#include "backend/cuda/cuda_product_wide.h"
#include "backend/cuda/cuda_reduction_task.h"

namespace
{

enum { OUTER_THREADS = 256, OUTER_ROWS = 2 * WIDE_BLOCK };
enum { OUTER_ONES = 256 };                   /* floats of shared memory before the slabs; the first numbers are ones */
enum { OUTER_SLAB = wide_size(WIDE_BLOCK) }; /* floats of a block of 64 rows by 64 columns */

/* What a warpgroup computes: rows of C in a head, and their number. */
typedef struct outer_part {
    int head, row, rows;
} outer_part;

__device__ inline outer_part part_of(const reduction_task &task, const reduction_place &place, int warpgroup)
{
    bool by_head = task.heads_each == 2;
    outer_part part = {place.head + warpgroup, 0, 0};
    if (!by_head)
        part = {place.head, place.row * OUTER_ROWS + warpgroup * WIDE_BLOCK, 0};
    part.rows = part.head < task.heads ? task.a - part.row : 0;
    return part;
}

/* Starts to copy 64 rows from k on, up to `end`, of a block of columns of which `present` exist. */
__device__ inline void copy_block(float *to, const uint16_t *from, int stride, int k, int end, int present)
{
    int line = (int)threadIdx.x / 8, v = (int)threadIdx.x % 8;
    from += (int64_t)(k + line) * stride + 8 * v;
    to += WIDE_LINE * line + 4 * (v ^ (line & 7));
#pragma unroll
    for (int i = 0; i < WIDE_BLOCK; i += OUTER_THREADS / 8)
        tile_cp_async<4>(to + WIDE_LINE * i, (const float *)(from + (int64_t)i * stride),
                         8 * v < present && k + line + i < end);
}

/* Floats of a slab: blocks of p for both warpgroups, then of q. */
template <int cols> __host__ __device__ constexpr int outer_slab(bool by_head)
{
    return (2 + (by_head ? 2 : 1) * (cols / WIDE_BLOCK)) * OUTER_SLAB;
}

template <int cols> constexpr int outer_stages = cols == 192 ? 3 : 4;

template <bool two, int cols>
__device__ inline void store_part(const reduction_task &task, const outer_part &part, const float (&sums)[cols / 2],
                                  float *out, int present)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = me.warp % 4 * 16 + 8 * i + me.group;
        float *to = out + (int64_t)(part.row + row) * task.b + 2 * me.member;
        if (row < part.rows)
#pragma unroll
            for (int j = 0; j < cols / 8; j++)
                if (8 * j + 2 * me.member < present)
                    tile_store_two<two>(to + 8 * j, sums[4 * j + 2 * i], sums[4 * j + 2 * i + 1],
                                        8 * j + 2 * me.member + 1 < present);
    }
}

/* Column sums of p or q are products with ones. */
template <int cols, bool q_summed>
__global__ void __launch_bounds__(OUTER_THREADS, 1) outer_kernel(const __grid_constant__ reduction_group group)
{
    constexpr int blocks = cols / WIDE_BLOCK, summed = q_summed ? blocks : 1, stages = outer_stages<cols>;
    LP_SHARED(float, shared);
    float *memory = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4, *ring = memory + OUTER_ONES;
    uint16_t *ones = (uint16_t *)memory;
    int index = reduction_index(group.first), warpgroup = (int)threadIdx.x / 128;
    const reduction_task &task = group.task[index];
    reduction_place place = reduction_place_of(task, (int)blockIdx.x - group.first[index]);
    bool by_head = task.heads_each == 2;
    int chunk = place.chunk, col = place.col * cols, present = task.b - col, size = outer_slab<cols>(by_head), begin,
        end;
    outer_part parts[2] = {part_of(task, place, 0), part_of(task, place, 1)};
    ones[threadIdx.x] = 0x3F80;
    lp_pdl_wait();
    product_chunk<WIDE_BLOCK>(lp_rows_now(task.rows, group.shard), task.chunks, chunk, &begin, &end);

    auto copy = [&](int k, int stage) {
        float *to = ring + stage * size;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            if (k < end && parts[w].rows > 0)
                copy_block(to + w * OUTER_SLAB, (const uint16_t *)task.p + parts[w].head * task.p_head + parts[w].row,
                           task.p_stride, k, end, parts[w].rows);
            if (k < end && (w == 0 || (by_head && parts[1].rows > 0)))
#pragma unroll
                for (int j = 0; j < blocks; j++)
                    if (WIDE_BLOCK * j < present)
                        copy_block(to + (2 + w * blocks + j) * OUTER_SLAB,
                                   (const uint16_t *)task.q + parts[w].head * task.q_head + col + WIDE_BLOCK * j,
                                   task.q_stride, k, end, present - WIDE_BLOCK * j);
        }
        product_copies_end();
    };
#pragma unroll 1
    for (int i = 0; i < stages - 1; i++)
        copy(begin + i * WIDE_BLOCK, i);
    float sums[cols / 2] = {}, column[summed][4] = {};
    int stage = 0;
#pragma unroll 1
    for (int k = begin; k < end; k += WIDE_BLOCK) {
        const float *left = ring + stage * size + warpgroup * OUTER_SLAB;
        const float *right = ring + stage * size + (2 + (by_head ? warpgroup * blocks : 0)) * OUTER_SLAB;
        product_copies_wait<stages - 2>();
        wide_fence();
        __syncthreads();
        wide_begin();
        wide_multiply<false, false>(sums, left, right);
#pragma unroll
        for (int j = 0; j < summed; j++)
            wide_weigh<false>(column[j], q_summed ? right + j * OUTER_SLAB : left, ones);
        wide_end();
        copy(k + (stages - 1) * WIDE_BLOCK, stage == 0 ? stages - 1 : stage - 1); /* that of the slab before */
        wide_wait<0>();
        stage = stage + 1 == stages ? 0 : stage + 1;
    }
    lp_pdl_trigger();

    outer_part part = warpgroup ? parts[1] : parts[0];
    if (part.rows <= 0)
        return;
    float *out = (float *)task.out[0] + (int64_t)chunk * task.step[0] + (int64_t)part.head * task.a * task.b + col;
    if (task.out[0] && task.pairs)
        store_part<true, cols>(task, part, sums, out, present);
    else if (task.out[0])
        store_part<false, cols>(task, part, sums, out, present);
    tile_lane me = tile_lane_now();
    float *to = (float *)task.out[1] + (int64_t)chunk * task.step[1] + part.head * (q_summed ? task.b : task.a);
    int row = me.warp % 4 * 16 + me.group;
#pragma unroll
    for (int i = 0; i < 2; i++, row += 8) {
        if (!task.out[1] || me.member)
            continue;
        if (!q_summed && col == 0 && row < part.rows)
            to[part.row + row] = column[0][2 * i];
#pragma unroll
        for (int j = 0; q_summed && j < blocks; j++)
            if (part.row == 0 && WIDE_BLOCK * j + row < present)
                to[col + WIDE_BLOCK * j + row] = column[j][2 * i];
    }
}

template <int cols, bool q_summed> void launch(const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    reduction_group group;
    size_t size = 0;
    unsigned blocks = reduction_gather(&group, tasks, count, run, [&](const reduction_task &task) {
        bool wanted = task.tiling >= REDUCTION_WIDE && task.tile_cols == cols && task.q_summed == q_summed;
        size_t slab = (size_t)outer_slab<cols>(task.heads_each == 2);
        size = wanted && slab > size ? slab : size;
        return wanted;
    });
    LP_LAUNCH_PDL(run, (outer_kernel<cols, q_summed>), blocks, OUTER_THREADS,
                  1024 + sizeof(float) * (OUTER_ONES + outer_stages<cols> * size), group);
}

} // namespace

int lp_cuda_outer_cols(const reduction_task &task)
{
    int most = task.q_summed ? 128 : task.heads_each == 2 ? 192 : 256;
    return (int)lp_blocks(lp_blocks(task.b, lp_blocks(task.b, most)), WIDE_BLOCK) * WIDE_BLOCK;
}

void lp_cuda_outer_launch(const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    launch<64, false>(tasks, count, run);
    launch<128, false>(tasks, count, run);
    launch<192, false>(tasks, count, run);
    launch<256, false>(tasks, count, run);
    launch<64, true>(tasks, count, run);
    launch<128, true>(tasks, count, run);
}
