/* cuda_pack.cu: lays weights out as the products of chains read them (chain_pack in cuda_chain.h), and rounds them. */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 512 };

/* A block for each pack and block of halves. All that a thread reads it asks for at once. */
__global__ void __launch_bounds__(THREADS) pack_kernel(const char *program)
{
    const chain_pack task = ((const chain_pack *)program)[blockIdx.x];
    int from = (int)blockIdx.y / task.out_parts, to = (int)blockIdx.y - from * task.out_parts;
    if (from >= task.in_parts)
        return;
    /* Columns of the weight are terms where it is transposed. */
    int first = task.transpose ? from * task.in : to * task.out, row = task.transpose ? to * task.out : from * task.in;
    const float *weight = task.weight + row * task.stride + first;
    const float *scale = task.scale ? task.scale + first : NULL;
    float2 *packed = (float2 *)(task.to + blockIdx.y * LP_PACK_BLOCK);
#pragma unroll
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += THREADS) {
        /* Of the pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31, j = pair / (LP_PACK_TILES / 2),
            i = 2 * (pair % (LP_PACK_TILES / 2)) + (k & 1);
        int term = 8 * j + 2 * (lane & 3), column = 8 * i + (lane >> 2);
        bool there = term < task.in && column < task.out;
        float2 two = {0, 0}, by = {1, 1};
        if (there && task.transpose) {
            two = *(const float2 *)(weight + column * task.stride + term);
            by = scale ? *(const float2 *)(scale + term) : by;
        }
        if (there && !task.transpose) {
            two = make_float2(weight[term * task.stride + column], weight[(term + 1) * task.stride + column]);
            by = scale ? make_float2(scale[column], scale[column]) : by;
        }
        packed[k] = make_float2(tile_round(two.x * by.x), tile_round(two.y * by.y));
    }
}

} // namespace

void lp_cuda_pack_launch(const lp_cuda_chain *pack, const lp_cuda_run *run)
{
    const char *program = pack->program;
    LP_LAUNCH(run, pack_kernel, dim3((unsigned)pack->count, 4), THREADS, 0, program);
}
