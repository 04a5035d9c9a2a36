/* cuda_reduce.h: the last block of a launch, which adds up in a fixed order what all of them have summed. Which block that is depends on
 * chance, what it does not.
 */
#ifndef LP_CUDA_REDUCE_H
#define LP_CUDA_REDUCE_H

#include "backend/cuda/cuda_schedule.h"

/* Whether all other blocks of the launch have been here before this one, which then sees what they wrote. Every thread of a block
 * must come, once in a launch. The count is back at 0 for the next launch in this lane. */
__device__ static inline bool lp_last_block(int lane)
{
    static unsigned arrived[LP_CUDA_LANES];
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

#endif
