/* cuda_reduction_copy.h: copies of contiguous memory to shared memory. An mbarrier in shared memory signals completion; it is reused,
 * and `phase` is the parity of its phase. From compute capability 9.0 on one thread starts a bulk copy (cp.async.bulk), which adds its
 * bytes to those that the barrier expects. Before, each lane of a warp starts copies of 16 bytes (cp.async).
 */
#ifndef LP_CUDA_REDUCTION_COPY_H
#define LP_CUDA_REDUCTION_COPY_H

#include "backend/cuda/cuda_tile.h"

typedef uint64_t reduction_barrier;

#ifdef __CUDACC__

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define BULK_ASM(bulk, older, ...) asm volatile(bulk __VA_ARGS__)
enum { REDUCTION_ARRIVALS = 1 }; /* of a warp at its barrier */
#else
#define BULK_ASM(bulk, older, ...) asm volatile(older __VA_ARGS__)
enum { REDUCTION_ARRIVALS = 32 };
#endif

/* Completes when this many threads have arrived and all bytes that they expect are copied. */
__device__ static inline void reduction_barrier_init(reduction_barrier *barrier, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tile_address_of(barrier)), "r"(threads) : "memory");
}

/* Makes the barriers that this thread initialized visible to bulk copies. */
__device__ static inline void reduction_barriers_fence(void)
{
    BULK_ASM("fence.proxy.async.shared::cta;", "", ::: "memory");
}

/* Arrives, and adds the bytes of the bulk copies to come. */
__device__ static inline void reduction_barrier_expect(reduction_barrier *barrier, uint32_t bytes)
{
    BULK_ASM("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;", "", ::"r"(tile_address_of(barrier)), "r"(bytes)
             : "memory");
}

/* Addresses and size are multiples of 16 bytes. */
__device__ static inline void reduction_copy_bulk(float *to, const float *from, uint32_t bytes,
                                                  reduction_barrier *barrier)
{
    BULK_ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
             "", ::"r"(tile_address_of(to)), "l"(from), "r"(bytes), "r"(tile_address_of(barrier))
             : "memory");
}

/* By every lane of a warp: arrives, and copies parts of `bytes` in all. The barrier was made for REDUCTION_ARRIVALS. */
template <int parts>
__device__ static inline void reduction_copy(float *const (&to)[parts], const float *const (&from)[parts],
                                             const uint32_t (&bytes)[parts], reduction_barrier *barrier)
{
    uint32_t lane = threadIdx.x % 32, all = 0;
#pragma unroll
    for (int i = 0; i < parts; i++)
        all += bytes[i];
    if (REDUCTION_ARRIVALS == 1 && lane == 0)
        reduction_barrier_expect(barrier, all);
#pragma unroll
    for (int i = 0; i < parts; i++) {
        if (REDUCTION_ARRIVALS == 1 && lane == 0 && bytes[i])
            reduction_copy_bulk(to[i], from[i], bytes[i], barrier);
        for (uint32_t k = 4 * lane; REDUCTION_ARRIVALS > 1 && k < bytes[i] / 4; k += 128)
            tile_cp_async<4>(to[i] + k, from[i] + k);
    }
    if (REDUCTION_ARRIVALS > 1) { /* the first waits for the lane's copies, and does not count */
        asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(tile_address_of(barrier)) : "memory");
        asm volatile("{\n"
                     ".reg .b64 state;\n"
                     "mbarrier.arrive.shared.b64 state, [%0];\n"
                     "}" ::"r"(tile_address_of(barrier))
                     : "memory");
    }
}

/* Called by every thread of the block. */
__device__ static inline void reduction_wait(reduction_barrier *barrier, uint32_t phase)
{
    uint32_t open = 0;
    while (!open)
        BULK_ASM("{\n"
                 ".reg .pred open;\n"
                 "mbarrier.try_wait.parity.shared.b64 open, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, open;\n"
                 "}",
                 "{\n"
                 ".reg .pred open;\n"
                 "mbarrier.test_wait.parity.shared.b64 open, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, open;\n"
                 "}",
                 : "=r"(open)
                 : "r"(tile_address_of(barrier)), "r"(phase)
                 : "memory");
}

#else
#include <emulate_reduction_copy.h>
#endif

#endif
