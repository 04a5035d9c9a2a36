/* cuda_reduction_copy.h: bulk copies of contiguous memory to shared memory (cp.async.bulk), which one thread starts. An mbarrier in shared
 * memory signals completion; it is reused, and `phase` is the parity of its phase.
 */
#ifndef LP_CUDA_REDUCTION_COPY_H
#define LP_CUDA_REDUCTION_COPY_H

#include "backend/cuda/cuda_tile.h"

typedef uint64_t reduction_barrier;

#ifdef __CUDACC__

/* Completes when this many threads have arrived and all bytes that they expect are copied. */
__device__ static inline void reduction_barrier_init(reduction_barrier *barrier, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tile_address_of(barrier)), "r"(threads) : "memory");
}

/* Makes the barriers that this thread initialized visible to bulk copies. */
__device__ static inline void reduction_barriers_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Arrives, and adds the bytes of the bulk copies to come. */
__device__ static inline void reduction_barrier_expect(reduction_barrier *barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(tile_address_of(barrier)), "r"(bytes)
                 : "memory");
}

/* Addresses and size are multiples of 16 bytes. */
__device__ static inline void reduction_copy_bulk(float *to, const float *from, uint32_t bytes,
                                                  reduction_barrier *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     tile_address_of(to)),
                 "l"(from), "r"(bytes), "r"(tile_address_of(barrier))
                 : "memory");
}

/* Called by every thread of the block. */
__device__ static inline void reduction_wait(reduction_barrier *barrier, uint32_t phase)
{
    uint32_t open = 0;
    while (!open)
        asm volatile("{\n"
                     ".reg .pred open;\n"
                     "mbarrier.try_wait.parity.shared.b64 open, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, open;\n"
                     "}"
                     : "=r"(open)
                     : "r"(tile_address_of(barrier)), "r"(phase)
                     : "memory");
}

#else
#include <emulate_reduction_copy.h>
#endif

#endif
