/* cuda_bulk_copy.h: bulk copies of contiguous data to shared memory (cp.async.bulk), which one thread starts. An mbarrier in shared memory
 * signals completion; it is reused, and `phase` is the parity of its phase.
 */
#ifndef LP_CUDA_BULK_COPY_H
#define LP_CUDA_BULK_COPY_H

#include "backend/cuda/cuda_tile.h"

typedef uint64_t bulk_barrier;

#ifdef __CUDACC__

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define BULK_SM90(...)
#define BULK_TRY_WAIT "mbarrier.test_wait.parity"
#else
#define BULK_SM90(...) asm volatile(__VA_ARGS__)
#define BULK_TRY_WAIT "mbarrier.try_wait.parity"
#endif

__device__ static inline uint32_t bulk_address(const void *data)
{
    return (uint32_t)__cvta_generic_to_shared(data);
}

/* Completes when this many threads have arrived and all their copies are done. */
__device__ static inline void bulk_barrier_init(bulk_barrier *barrier, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bulk_address(barrier)), "r"(threads) : "memory");
}

/* Makes the barriers that this thread initialized visible to bulk copies. */
__device__ static inline void bulk_fence(void)
{
    BULK_SM90("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Arrives, and adds the bytes of the bulk copies to come. */
__device__ static inline void bulk_barrier_expect(bulk_barrier *barrier, uint32_t bytes)
{
    BULK_SM90("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bulk_address(barrier)), "r"(bytes) : "memory");
    (void)barrier, (void)bytes;
}

/* Addresses and size are multiples of 16 bytes. */
__device__ static inline void bulk_copy(float *to, const float *from, uint32_t bytes, bulk_barrier *barrier)
{
    BULK_SM90("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                  bulk_address(to)),
              "l"(from), "r"(bytes), "r"(bulk_address(barrier))
              : "memory");
    (void)to, (void)from, (void)bytes, (void)barrier;
}

/* Called by every thread of the block. */
__device__ static inline void bulk_wait(bulk_barrier *barrier, uint32_t phase)
{
    uint32_t open = 0;
    while (!open)
        asm volatile("{\n"
                     ".reg .pred open;\n" BULK_TRY_WAIT ".shared.b64 open, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, open;\n"
                     "}"
                     : "=r"(open)
                     : "r"(bulk_address(barrier)), "r"(phase)
                     : "memory");
}

#else
#include <emulate_bulk_copy.h>
#endif

#endif
