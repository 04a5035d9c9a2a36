/* cuda_pack.cu: lays weights out as the products of chains read them (chain_pack in cuda_chain.h), and rounds them. */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { PACK_THREADS = 128 };

/* A block for each pack and block of halves. */
__global__ void __launch_bounds__(PACK_THREADS) pack_kernel(const char *program)
{
    const chain_pack task = ((const chain_pack *)program)[blockIdx.x];
    int from = (int)blockIdx.y / task.out_parts, to = (int)blockIdx.y - from * task.out_parts;
    if (from >= task.in_parts)
        return;
    const float *weight = task.weight + (task.transpose ? to * task.out * task.stride + from * task.in
                                                        : from * task.in * task.stride + to * task.out);
    float2 *packed = (float2 *)(task.to + blockIdx.y * LP_PACK_BLOCK);
#pragma unroll 4
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += PACK_THREADS) {
        /* Of the pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31, j = pair / (LP_PACK_TILES / 2),
            i = 2 * (pair % (LP_PACK_TILES / 2)) + (k & 1);
        int term = 8 * j + 2 * (lane & 3), column = 8 * i + (lane >> 2);
        bool there = term < task.in && column < task.out;
        float2 two = {0, 0};
        if (there && task.transpose)
            two = *(const float2 *)(weight + column * task.stride + term);
        if (there && !task.transpose)
            two = make_float2(weight[term * task.stride + column], weight[(term + 1) * task.stride + column]);
        packed[k] = make_float2(tile_round(two.x), tile_round(two.y));
    }
}

} // namespace

void lp_cuda_pack_launch(const lp_cuda_chain *pack, const lp_cuda_run *run)
{
    const char *program = pack->program;
    LP_LAUNCH(run, pack_kernel, dim3((unsigned)pack->count, 4), PACK_THREADS, 0, program);
}
