/* cuda_linear_wide.h: linear layers in bf16 by warpgroups (wgmma, cuda_product_wide.h), from copies row
 * by row as other launches write them (cuda_packed.h).
 *
 * Grid and order of tiles are those of packed_kernel. A tile has 128 rows; a warp has 16 of them and all columns, so what is done
 * with a tile is the same type `finish`. A slab is 64 deep. All threads copy it to shared memory, 16 bytes at a time, to lines of
 * 128 bytes as wide_at numbers them: 64 depths of a row where the operand is deep, otherwise 64 rows of a depth, in blocks of 64
 * rows. Beyond the last column a copy has zeros up to whole vectors.
 */
#ifndef LP_CUDA_LINEAR_WIDE_H
#define LP_CUDA_LINEAR_WIDE_H

#include "backend/cuda/cuda_product_wide.h"

/* Stages: slabs in shared memory, at least 3. Blocks: that run on a multiprocessor. */
template <int cols, int slab_stages, int resident_blocks> struct linear_shape : product_shape<128, cols, 16, cols> {
    static constexpr int stages = slab_stages, blocks = resident_blocks;
};

template <typename shape> constexpr bool is_linear = false;
template <int cols, int stages, int blocks> constexpr bool is_linear<linear_shape<cols, stages, blocks>> = true;

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

/* sums += a b for a slab, asynchronously. a: of the warpgroup. More than `most` sums are two halves. */
template <bool a_deep, bool b_deep, int most = 128, int count>
__device__ static inline void linear_multiply(float (&sums)[count], const float *a, const float *b)
{
    constexpr int first = count > most ? 64 : count;
    wide_begin();
    wide_multiply<a_deep, b_deep>((float(&)[first])sums, a, b);
    if constexpr (count > first)
        wide_multiply<a_deep, b_deep>((float(&)[count - first]) sums[first], a, b + wide_size(2 * first));
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Columns of a tile that are stored while the others are multiplied, if all its slabs have a stage. */
__host__ __device__ constexpr int linear_first(int cols)
{
    return cols > 128 ? 128 : cols;
}

/* Multiplies the tile in one or two groups of products. wait_next: until the next slab is there. Stages have `size` floats, B and
 * then A; a: of the warpgroup. */
template <bool a_deep, bool b_deep, typename shape, typename waiting>
__device__ static inline void linear_multiply_halves(product_sums<shape> &sums, const float *a, const float *b,
                                                     int size, int slabs, const waiting &wait_next)
{
    constexpr int first = linear_first(shape::cols), rest = shape::cols - first;
    wide_pin((float(&)[shape::cols / 2]) sums);
#pragma unroll 1
    for (int i = 0; i < slabs; i++) {
        wait_next();
        product_copies_end(); /* counted by wait_next */
        linear_multiply<a_deep, b_deep>((float(&)[first / 2]) sums, a + i * size, b + i * size);
    }
    wide_end();
    if constexpr (rest > 0)
#pragma unroll 1
        for (int i = 0; i < slabs; i++)
            linear_multiply<a_deep, b_deep>((float(&)[rest / 2]) sums.at[0][first / 8], a + i * size,
                                            b + i * size + wide_size(first));
    wide_end();
}

template <bool a_deep, bool b_deep, typename shape, typename finish_type>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    linear_kernel(const __grid_constant__ product_task task, int resident, finish_type finish)
{
    constexpr int size_a = wide_size(shape::rows), size_b = wide_size(shape::cols), depth = WIDE_BLOCK;
    LP_SHARED(float, shared);
    /* Lines repeat after 1,024 bytes. */
    float *memory = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4;
    lp_pdl_wait();
    lp_pdl_trigger();
    product_place place = {(int)blockIdx.y * shape::rows,        0,
                           (int)blockIdx.z / task.chunks,        (int)blockIdx.z % task.chunks,
                           product_count(task.rows, task.shard), product_count(task.cols, task.shard)};
    if (place.row >= place.rows)
        return;
    int64_t tiles = (place.cols + shape::cols - 1) / shape::cols;
    int tile = (int)(tiles * blockIdx.x / gridDim.x), last = (int)(tiles * (blockIdx.x + 1) / gridDim.x);
    product_sides<uint16_t> sides = product_sides_of<a_deep, b_deep, depth, uint16_t>(task, place);
    int begin = sides.begin, end = sides.end, size = size_b + (resident ? 0 : size_a);
    float *ring = memory + resident * size_a;

    /* Copies the slabs of all tiles in their order. */
    int next_tile = tile, next_k = begin, next_stage = 0;
    auto copy_a = [&](float *to, int k) {
        linear_copy<a_deep, shape::rows, shape::threads>(to, sides.a + k * sides.a_step, task.a.stride, sides.rows,
                                                         end - k);
    };
    auto copy_next = [&]() {
        if (next_tile < last && next_k < end) {
            float *to = ring + next_stage * size;
            int col = next_tile * shape::cols;
            linear_copy<b_deep, shape::cols, shape::threads>(
                to, sides.b + col * (b_deep ? task.b.stride : 1) + next_k * sides.b_step, task.b.stride,
                place.cols - col, end - next_k);
            if (!resident)
                copy_a(to + size_b, next_k);
            next_k += depth;
            if (next_k >= end) {
                next_k = begin;
                next_tile++;
            }
            next_stage = next_stage + 1 == shape::stages ? 0 : next_stage + 1;
        }
        product_copies_end();
    };
    bool whole = last - tile == 1 && end - begin <= shape::stages * depth; /* all slabs have a stage */
    for (int i = 0; i < resident; i++)
        copy_a(memory + i * size_a, begin + i * depth);
#pragma unroll 1
    for (int i = whole ? 0 : 2; i < shape::stages; i++)
        copy_next();
    int stage = 0, slabs = (end - begin + depth - 1) / depth, group = (int)threadIdx.x / 128 * wide_size(64);
    auto wait_next = [&]() {
        if (whole)
            product_copies_wait<shape::stages - 1>();
        else
            product_copies_wait<shape::stages - 3>();
        wide_fence();
        __syncthreads();
    };
#pragma unroll 1
    for (; tile < last; tile++) {
        product_sums<shape> sums = {};
        const float *a = memory;
        place.col = tile * shape::cols;
        finish.template start<LP_PRECISION_BF16, a_deep, shape>(place, sums);
        if (finish_type::staging > 0 && whole) {
            linear_multiply_halves<a_deep, b_deep>(sums, ring + size_b + group, ring, size, slabs, wait_next);
        } else {
#pragma unroll 1
            for (int k = begin; k < end; k += depth, a += size_a) {
                wait_next();
                copy_next(); /* to the stage of the slab before the last, whose product is finished */
                const float *right = ring + stage * size, *left = resident ? a : right + size_b;
                linear_multiply<a_deep, b_deep, finish_type::staging ? 64 : 128>((float(&)[shape::cols / 2]) sums,
                                                                                 left + group, right);
                wide_end();
                wide_wait<1>();
                stage = stage + 1 == shape::stages ? 0 : stage + 1;
            }
            wide_wait<0>();
        }
        if constexpr (finish_type::staging > 0) {
            constexpr int first =
                linear_first(shape::cols) < shape::cols ? linear_first(shape::cols) / finish_type::cols : 0;
            float *staging = ring + (whole ? slabs : shape::stages) * size;
            finish.load(place, 0);
            wide_wait<1>();
            finish.template store_parts<0, first>(place, sums, staging);
            wide_wait<0>();
            finish.template store_parts<first, finish_type::parts>(place, sums, staging);
        } else {
            finish.template run<LP_PRECISION_BF16, a_deep, shape>(task, place, sums, memory);
        }
    }
    __syncthreads();
    finish.template done<LP_PRECISION_BF16, a_deep, shape>(place, memory);
}

/* rows: of the largest shard; ranges: of the column tiles. */
template <bool a_deep, bool b_deep, typename shape, typename finish_type>
static inline void linear_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish, int heads,
                                 int rows, int ranges)
{
    int depth = (int)lp_blocks(task.depth.most, WIDE_BLOCK);
    bool several = ranges < (int)lp_blocks(task.cols.most, shape::cols);
    int resident = several && task.chunks == 1 && depth <= 4 ? depth : 0;
    int stages = finish_type::staging > 0 && !several && depth < shape::stages ? depth : shape::stages;
    size_t floats = (size_t)(resident * wide_size(shape::rows) + finish_type::staging +
                             stages * (wide_size(shape::cols) + (resident ? 0 : wide_size(shape::rows))));
    dim3 grid((unsigned)ranges, lp_blocks(rows, shape::rows), (unsigned)(heads * task.chunks));
    LP_LAUNCH_PDL(run, (linear_kernel<a_deep, b_deep, shape, finish_type>), grid, shape::threads,
                  floats * sizeof(float) + 1024, task, resident, finish);
}

#endif
