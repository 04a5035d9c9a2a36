/* cuda_reduce.h: reductions in a fixed order: over a thread block, and over all blocks of a launch by the block that
 * finishes last. Which block that is varies; the result does not. */
#ifndef LP_CUDA_REDUCE_H
#define LP_CUDA_REDUCE_H

#include "backend/cuda/cuda_schedule.h"

/* Whether all other blocks of the launch have called this before; the caller then sees their writes. Every thread of a
 * block must call it, once in a launch. The count returns to 0 for the next launch in the same stream. */
__device__ static inline bool lp_last_block(int stream)
{
    static unsigned arrived[LP_CUDA_STREAMS];
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) {
        last = atomicAdd(&arrived[stream], 1u) + 1 == gridDim.x * gridDim.y;
        if (last)
            arrived[stream] = 0;
    }
    __syncthreads();
    if (last)
        __threadfence();
    return last;
}

/* Sum over all threads of a block of `warps` warps, in thread 0. */
template <int warps> __device__ static inline double lp_block_sum(double mine)
{
    __shared__ double sums[warps];
    mine = lp_warp_sum(mine);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = mine;
    __syncthreads();
    double sum = 0;
    for (int i = 0; threadIdx.x == 0 && i < warps; i++)
        sum += sums[i];
    return sum;
}

#endif
