/* cuda_fused_products.h: products of a fused kernel. The left factor lies in the buffer `x`; the packed weight is loaded block by block into the
 * two buffers for weights.
 *
 *     y = x W + bias + addend + old value
 */
#ifndef LP_CUDA_FUSED_PRODUCTS_H
#define LP_CUDA_FUSED_PRODUCTS_H

#include "backend/cuda/cuda_fused_buffers.h"

namespace
{

/* Row stride of half an x, in floats: 4 modulo 8, so that tile_ldmatrix has no bank conflicts. */
__host__ __device__ inline int x_stride(int cols)
{
    return (cols + 3) / 8 * 8 + 4;
}

/* Tiles of 8 terms in a block of weights: only whether there is a last one is not a compile-time constant. */
__host__ __device__ inline int term_tiles(int cols)
{
    return cols > 8 * (LP_FUSED_TILES - 1) ? LP_FUSED_TILES : LP_FUSED_TILES - 1;
}

/* Starts to copy x half by half into rows of stride x_stride. */
__device__ inline void load_x(const fused_lane &me, const fused_rows &rows)
{
    int stride = x_stride(me.cols), column = 2 * ((int)threadIdx.x & 31);
    if (!has(me, LP_STEP_MAIN) || column >= me.cols)
        return;
    const float *from = global(rows.data) + column;
#pragma unroll 1
    for (int half = 0; half * me.cols < rows.stride; half++)
#pragma unroll 4
        for (int row = (int)threadIdx.x >> 5; row < me.rows; row += WARPS)
            tile_cp_async<2>(me.x + (half * ROWS + row) * stride + column, from + row * rows.stride + half * me.cols);
}

/* The same for a wide x that is the result of the previous step. */
__device__ inline void copy_wide_x(const fused_lane &me)
{
    int stride = x_stride(me.cols), column = 2 * ((int)threadIdx.x & 31);
    if (column >= me.cols)
        return;
#pragma unroll 1
    for (int half = 0; half < 2; half++)
#pragma unroll 4
        for (int row = (int)threadIdx.x >> 5; row < me.rows; row += WARPS)
            *(float2 *)(me.x + (half * ROWS + row) * stride + column) =
                *(const float2 *)(me.write + (2 * row + half) * me.cols + column);
}

__device__ inline void load_weights(const fused_lane &me, float *buffer, const float *block)
{
    if (!block)
        return;
    int count = term_tiles(me.cols) * LP_FUSED_TILES * 64;
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
        tile_cp_async<4>(buffer + i, global(block) + i);
}

/* sum += x W for the terms 8 j to 8 j + 7. The tensor core truncates x to tf32: rounding it would cost more instructions than the rest. */
__device__ inline void multiply_tile(strip &sum, tile_address x, const float4 *right, int j)
{
    float left[4];
    tile_ldmatrix(left, x, 8 * j);
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) {
        float4 two = right[(j * (LP_FUSED_TILES / 2) + i) * 32];
        tile_mma_tf32(sum.at[2 * i], left, two.x, two.y);
        tile_mma_tf32(sum.at[2 * i + 1], left, two.z, two.w);
    }
}

/* sum += x W for half an x and a block of weights. */
__device__ inline void multiply(const fused_lane &me, strip &sum, const float *x, const float *weights)
{
    const float4 *right = (const float4 *)weights + me.side * (TILES / 2) * 32 + ((int)threadIdx.x & 31);
    tile_address left = tile_a_address(x, x_stride(me.cols));
#pragma unroll
    for (int j = 0; j < LP_FUSED_TILES - 1; j++)
        multiply_tile(sum, left, right, j);
    if (term_tiles(me.cols) == LP_FUSED_TILES)
        multiply_tile(sum, left, right, LP_FUSED_TILES - 1);
}

__device__ inline void linear(fused_lane &me, const fused_step &step, strip &registers)
{
    int halves = me.now.halves, in_halves = me.now.in_halves, stride = x_stride(me.cols), last = halves * in_halves - 1;
    const float *weight = step.weight, *bias = (const float *)step.factors,
                *x = me.x + (int)threadIdx.x / (32 * SIDES) * 16 * stride;
    bool adds = has(me, LP_STEP_OTHER), accumulates = has(me, LP_STEP_OLD);
    if (has(me, LP_STEP_FOLLOWS) && in_halves == 1)
        write_rows(me, registers, me.x, stride);
    if (has(me, LP_STEP_FOLLOWS) && in_halves == 2)
        copy_wide_x(me);
    load_x(me, step.main);
#pragma unroll 1
    for (int to = 0; to < halves; to++) {
        strip sum = {};
        if (has(me, LP_STEP_ADDS_REGISTERS))
            sum = registers;
        if (has(me, LP_STEP_FACTORS))
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float2 more = read_factors(me, bias + to * me.cols, j);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum.at[j][i] += i % 2 ? more.y : more.x;
            }
#pragma unroll 1
        for (int from = 0; from < in_halves; from++) {
            int block = to * in_halves + from;
            float *weights = me.weights[0], *next = me.weights[1];
            wait_rows(); /* x and weights are loaded; no lane reads the previous weights any more */
            load_weights(me, next, block < last ? weight + (block + 1) * LP_PACK_BLOCK : step.next_weight);
            if (block == 0) {
                load_rows(me, me.read, step.other[0], LP_STEP_OTHER);
                load_rows(me, me.write, step.old[0], LP_STEP_OLD);
            }
            multiply(me, sum, x + from * ROWS * stride, weights);
            me.weights[0] = next;
            me.weights[1] = weights;
        }
        if (to == 0 && (adds || accumulates))
            wait_rows();
        if (adds)
            read_strip<true>(me, sum, me.read, to, halves);
        if (accumulates)
            read_strip<true>(me, sum, me.write, to, halves);
        if (has(me, LP_STEP_RESULT) || halves > 1)
            write_strip(me, sum, me.write, to, halves);
        if (halves == 1)
            registers = sum;
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

} // namespace

#endif
