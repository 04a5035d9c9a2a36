/* cuda_chain_products.h: products of a chain: the left side comes to the room `x`, the right side block by block to the modules of weights.
 *
 *     y = x W + bias + addend + what was there
 */
#ifndef LP_CUDA_CHAIN_PRODUCTS_H
#define LP_CUDA_CHAIN_PRODUCTS_H

#include "backend/cuda/cuda_chain_rooms.h"

namespace
{

/* Floats from row to row of half an x: 4 modulo 8, so that tile_ldmatrix meets every bank once. */
__host__ __device__ inline int x_stride(int cols)
{
    return (cols + 3) / 8 * 8 + 4;
}

/* Tiles of 8 terms in a block of weights that are worked on: known to the compiler but for the last one. */
__host__ __device__ inline int term_tiles(int cols)
{
    return cols > 8 * (LP_CHAIN_TILES - 1) ? LP_CHAIN_TILES : LP_CHAIN_TILES - 1;
}

/* x comes half by half, in rows of its own stride. */
__device__ inline void ask_x(const chain_lane &me, const chain_rows &rows)
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

/* The same of a wide x that was just made. */
__device__ inline void move_x(const chain_lane &me)
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

__device__ inline void ask_weights(const chain_lane &me, float *room, const float *block)
{
    if (!block)
        return;
    int count = term_tiles(me.cols) * LP_CHAIN_TILES * 64;
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
        tile_cp_async<4>(room + i, global(block) + i);
}

/* sum += x W of the terms 8 j to 8 j + 7. x is cut to tf32 by the tensor core: rounding it takes more instructions than all else here. */
__device__ inline void multiply_tile(strip &sum, tile_address x, const float4 *right, int j)
{
    float left[4];
    tile_ldmatrix(left, x, 8 * j);
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) {
        float4 two = right[(j * (LP_CHAIN_TILES / 2) + i) * 32];
        tile_mma_tf32(sum.at[2 * i], left, two.x, two.y);
        tile_mma_tf32(sum.at[2 * i + 1], left, two.z, two.w);
    }
}

/* sum += x W, of half an x and a block of weights. */
__device__ inline void multiply(const chain_lane &me, strip &sum, const float *x, const float *weights)
{
    const float4 *right = (const float4 *)weights + me.side * (TILES / 2) * 32 + ((int)threadIdx.x & 31);
    tile_address left = tile_a_address(x, x_stride(me.cols));
#pragma unroll
    for (int j = 0; j < LP_CHAIN_TILES - 1; j++)
        multiply_tile(sum, left, right, j);
    if (term_tiles(me.cols) == LP_CHAIN_TILES)
        multiply_tile(sum, left, right, LP_CHAIN_TILES - 1);
}

__device__ inline void linear(chain_lane &me, const chain_step &step, strip &here)
{
    int parts = me.now.parts, in_parts = me.now.in_parts, stride = x_stride(me.cols), last = parts * in_parts - 1;
    const float *weight = step.weight, *bias = (const float *)step.factors,
                *x = me.x + (int)threadIdx.x / (32 * SIDES) * 16 * stride;
    bool adds = has(me, LP_STEP_OTHER), accumulates = has(me, LP_STEP_OLD);
    if (has(me, LP_STEP_FOLLOWS) && in_parts == 1)
        put_rows(me, here, me.x, stride);
    if (has(me, LP_STEP_FOLLOWS) && in_parts == 2)
        move_x(me);
    ask_x(me, step.main);
#pragma unroll 1
    for (int to = 0; to < parts; to++) {
        strip sum = {};
        if (has(me, LP_STEP_ON_TOP))
            sum = here;
        if (has(me, LP_STEP_FACTORS))
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float2 more = read_factors(me, bias + to * me.cols, j);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum.at[j][i] += i % 2 ? more.y : more.x;
            }
#pragma unroll 1
        for (int from = 0; from < in_parts; from++) {
            int block = to * in_parts + from;
            float *weights = me.weights[0], *next = me.weights[1];
            wait_rows(); /* x is there, and weights; nobody reads those before any more */
            ask_weights(me, next, block < last ? weight + (block + 1) * LP_PACK_BLOCK : step.next_weight);
            if (block == 0) {
                ask_rows(me, me.read, step.other[0], LP_STEP_OTHER);
                ask_rows(me, me.write, step.old[0], LP_STEP_OLD);
            }
            multiply(me, sum, x + from * ROWS * stride, weights);
            me.weights[0] = next;
            me.weights[1] = weights;
        }
        if (to == 0 && (adds || accumulates))
            wait_rows();
        if (adds)
            take_strip<true>(me, sum, me.read, to, parts);
        if (accumulates)
            take_strip<true>(me, sum, me.write, to, parts);
        if (has(me, LP_STEP_RESULT) || parts > 1)
            put_strip(me, sum, me.write, to, parts);
        if (parts == 1)
            here = sum;
    }
    store_rows(me, me.write, step.result[0], LP_STEP_RESULT);
}

} // namespace

#endif
