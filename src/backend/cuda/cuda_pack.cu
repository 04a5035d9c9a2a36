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
    int to = (int)blockIdx.y / task.in_parts, from = (int)blockIdx.y - to * task.in_parts;
    if (to >= task.out_parts)
        return;
    /* Columns of the weight are terms where it is transposed. */
    int first = task.transpose ? from * task.in : to * task.out, row = task.transpose ? to * task.out : from * task.in;
    const float *weight = task.weight + row * task.stride + first;
    const float *scale = task.scale ? task.scale + first : NULL;
    float2 *packed = (float2 *)(task.to + blockIdx.y * LP_PACK_BLOCK);
#pragma unroll
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += THREADS) {
        /* Of the pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31, j = pair / (LP_CHAIN_TILES / 2),
            i = 2 * (pair % (LP_CHAIN_TILES / 2)) + (k & 1);
        int term = 8 * j + (lane & 3), column = 8 * i + (lane >> 2);
        int row_step = task.transpose ? 1 : task.stride, column_step = task.transpose ? task.stride : 1;
        float two[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++, term += 4)
            if (term < task.in && column < task.out)
                two[h] = weight[term * row_step + column * column_step] *
                         (scale ? scale[task.transpose ? term : column] : 1);
        packed[k] = make_float2(tile_round(two[0]), tile_round(two[1]));
    }
}

} // namespace

void lp_cuda_pack_launch(const lp_cuda_chain *pack, const lp_cuda_run *run)
{
    const char *program = pack->program;
    LP_LAUNCH(run, pack_kernel, dim3((unsigned)pack->count, 4), THREADS, 0, program);
}
