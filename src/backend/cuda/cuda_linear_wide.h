/* cuda_linear_wide.h: linear layers in bf16 by warpgroups (wgmma, cuda_product_wide.h), from copies row by row as other launches write
 * them (cuda_packed.h).
 *
 * Grid: (column tiles, row tiles, heads). A tile has 128 rows; a warp has 16 of them and all columns, so what is done with a tile is
 * the same type `finish` as in cuda_product_packed.h. A slab is 64 deep. All threads copy it to shared memory, 16 bytes at a time, to
 * lines of 128 bytes as wide_at numbers them: 64 depths of a row where the operand is deep, otherwise 64 rows of a depth, in blocks
 * of 64 rows. Beyond the last column a copy has zeros up to whole vectors.
 */
#ifndef LP_CUDA_LINEAR_WIDE_H
#define LP_CUDA_LINEAR_WIDE_H

#include "backend/cuda/cuda_product_wide.h"

/* Stages: slabs in shared memory, at least 3. Blocks: that run on a multiprocessor. */
template <int cols, int slab_stages, int resident_blocks> struct linear_shape : product_shape<128, cols, 16, cols> {
    static constexpr int stages = slab_stages, blocks = resident_blocks;
};

/* from: the first row and depth; rows, depth: present from there on. */
template <bool deep, int count, int threads>
__device__ static inline void linear_copy(float *to, const uint16_t *from, int64_t stride, int rows, int depth)
{
    int v = (int)threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < count; i += threads / 8) {
        int l = i + (int)threadIdx.x / 8, row = deep ? l : l / 64 * 64 + 8 * v, k = deep ? 8 * v : l % 64;
        tile_cp_async<4>(to + WIDE_LINE * l + 4 * (v ^ (l & 7)),
                         (const float *)(from + (deep ? row * stride + k : k * stride + row)), row < rows && k < depth);
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Products whose sum a launch stores: of equal rows, columns and heads. */
template <int most> struct linear_task {
    product_task of[most];
    int count;
};

/* A block computes one tile. */
template <bool a_deep, bool b_deep, typename shape, int most, typename finish_type>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    linear_kernel(const __grid_constant__ linear_task<most> task, finish_type finish)
{
    constexpr int size_b = wide_size(shape::cols), size = size_b + wide_size(shape::rows), depth = WIDE_BLOCK;
    LP_SHARED(float, shared);
    /* Lines repeat after 1,024 bytes. */
    float *ring = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4;
    lp_pdl_wait();
    lp_pdl_trigger();
    const product_task *product = task.of;
    product_place place = {(int)blockIdx.y * shape::rows,
                           (int)blockIdx.x * shape::cols,
                           (int)blockIdx.z,
                           0,
                           product_count(product->rows, product->shard),
                           product_count(product->cols, product->shard)};
    if (place.row >= place.rows)
        return;
    product_sides<uint16_t> sides = product_sides_of<a_deep, b_deep, depth, uint16_t>(*product, place);
    int slabs = (sides.end - sides.begin + depth - 1) / depth;
    for (int i = 1; most > 1 && i < task.count; i++)
        slabs += (task.of[i].depth.most + depth - 1) / depth;

    /* Copies the slabs of all products in their order. */
    int next_k = sides.begin, next_stage = 0;
    auto copy_next = [&](bool free) {
        if (free && next_k < sides.end) {
            float *to = ring + next_stage * size;
            linear_copy<b_deep, shape::cols, shape::threads>(to, sides.b + next_k * sides.b_step, product->b.stride,
                                                             sides.cols, sides.end - next_k);
            linear_copy<a_deep, shape::rows, shape::threads>(to + size_b, sides.a + next_k * sides.a_step,
                                                             product->a.stride, sides.rows, sides.end - next_k);
            next_k += depth;
            if (most > 1 && next_k >= sides.end && product + 1 < task.of + task.count) {
                product++;
                sides = product_sides_of<a_deep, b_deep, depth, uint16_t>(*product, place);
                next_k = sides.begin;
            }
            next_stage = next_stage + 1 == shape::stages ? 0 : next_stage + 1;
        }
        product_copies_end();
    };
    product_sums<shape> sums = {};
    finish.template start<LP_PRECISION_BF16, a_deep, shape>(place, sums);
    int group = (int)threadIdx.x / 128 * wide_size(64), stage = 0;
    /* One loop, also for the first copies: instructions that run once are loaded from memory as often as they run. */
#pragma unroll 1
    for (int i = -shape::stages; i < slabs; i++) {
        if (i >= shape::stages)
            product_copies_wait<shape::stages - 3>();
        else if (i >= 0)
            product_copies_wait<shape::stages - 1>();
        if (i >= 0) {
            wide_fence();
            __syncthreads();
        }
        copy_next(i < 0 || i >= 2); /* to the stage of the slab before the last, whose product is finished */
        if (i < 0)
            continue;
        const float *right = ring + stage * size, *left = right + size_b;
        wide_begin();
        wide_multiply<a_deep, b_deep>((float(&)[shape::cols / 2]) sums, left + group, right);
        wide_end();
        if (slabs > shape::stages)
            wide_wait<1>();
        stage = stage + 1 == shape::stages ? 0 : stage + 1;
    }
    wide_wait<0>();
    finish.store_tile(place, sums, ring + min(slabs, shape::stages) * size);
}

/* rows: of the largest shard. */
template <bool a_deep, bool b_deep, typename shape, int most, typename finish_type>
static inline void linear_launch(const lp_cuda_run *run, const linear_task<most> &task, const finish_type &finish,
                                 int heads, int rows)
{
    int slabs = 0;
    for (int i = 0; i < task.count; i++)
        slabs += (int)lp_blocks(task.of[i].depth.most, WIDE_BLOCK);
    int stages = slabs < shape::stages ? slabs : shape::stages;
    size_t floats = (size_t)(finish_type::staging + stages * (wide_size(shape::cols) + wide_size(shape::rows)));
    dim3 grid(lp_blocks(task.of[0].cols.most, shape::cols), lp_blocks(rows, shape::rows), (unsigned)heads);
    LP_LAUNCH_PDL(run, (linear_kernel<a_deep, b_deep, shape, most, finish_type>), grid, shape::threads,
                  floats * sizeof(float) + 1024, task, finish);
}

#endif
