/* cuda_reduce.h: sums in a fixed order: over a block, and by the last block of a launch over what all of them have summed. Which block that
 * is depends on chance, what it does not.
 */
#ifndef LP_CUDA_REDUCE_H
#define LP_CUDA_REDUCE_H

#include "backend/cuda/cuda_schedule.h"

/* Whether all other blocks of the launch have been here before this one, which then sees what they wrote. Every thread of a block
 * must come, once in a launch. The count is back at 0 for the next launch in this lane. */
__device__ static inline bool lp_last_block(int lane)
{
    static unsigned arrived[LP_CUDA_STREAMS];
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) {
        last = atomicAdd(&arrived[lane], 1u) + 1 == gridDim.x * gridDim.y;
        if (last)
            arrived[lane] = 0;
    }
    __syncthreads();
    if (last)
        __threadfence();
    return last;
}

/* The sum of all threads' numbers in a fixed order, in thread 0 of a block of so many warps. */
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
