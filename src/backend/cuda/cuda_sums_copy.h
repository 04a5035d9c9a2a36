/* cuda_sums_copy.h: rows on their way to shared memory, many of them at once.
 *
 * Where a block wants whole rows, as many of them as it has room for are one stretch of memory: one thread asks for it, and the device
 * copies it without any instruction of the others (bulk). Otherwise every thread copies some numbers. A barrier in shared memory says
 * in both cases when all of it has come; it is used again and again, and `turn` counts modulo 2 how often.
 */
#ifndef LP_CUDA_SUMS_COPY_H
#define LP_CUDA_SUMS_COPY_H

#include "backend/cuda/cuda_tile.h"

/* Compute capability from which a device copies in bulk (lp_device_level): what is below is never told to. */
enum { SUMS_BULK_LEVEL = 90 };

typedef uint64_t sums_barrier;

#ifdef __CUDACC__

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SUMS_NEW(...)
#define SUMS_TRY_WAIT "mbarrier.test_wait.parity"
#else
#define SUMS_NEW(...) asm volatile(__VA_ARGS__)
#define SUMS_TRY_WAIT "mbarrier.try_wait.parity"
#endif

__device__ static inline uint32_t sums_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}

/* Opens when so many threads have said what they copy, and all of that is there. */
__device__ static inline void sums_barrier_make(sums_barrier *barrier, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(sums_address(barrier)), "r"(threads) : "memory");
}

/* Lets bulk copies see the barriers that this thread has made. */
__device__ static inline void sums_barriers_show(void)
{
    SUMS_NEW("fence.proxy.async.shared::cta;" ::: "memory");
}

/* This thread says that so many bytes will come in bulk. */
__device__ static inline void sums_expect(sums_barrier *barrier, uint32_t bytes)
{
    SUMS_NEW("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(sums_address(barrier)), "r"(bytes) : "memory");
    (void)barrier, (void)bytes;
}

/* Addresses and size are multiples of 16 bytes. */
__device__ static inline void sums_copy_bulk(float *to, const float *from, uint32_t bytes, sums_barrier *barrier)
{
    SUMS_NEW("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                 sums_address(to)),
             "l"(from), "r"(bytes), "r"(sums_address(barrier))
             : "memory");
    (void)to, (void)from, (void)bytes, (void)barrier;
}

/* This thread has begun all of its own copies (tile_cp_async). */
__device__ static inline void sums_asked(sums_barrier *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(sums_address(barrier)) : "memory");
}

/* Every thread of the block. */
__device__ static inline void sums_wait(sums_barrier *barrier, uint32_t turn)
{
    uint32_t open = 0;
    while (!open)
        asm volatile("{\n"
                     ".reg .pred open;\n" SUMS_TRY_WAIT ".shared.b64 open, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, open;\n"
                     "}"
                     : "=r"(open)
                     : "r"(sums_address(barrier)), "r"(turn)
                     : "memory");
}

#else

__device__ static inline void sums_barrier_make(sums_barrier *, int)
{
}

__device__ static inline void sums_barriers_show(void)
{
}

__device__ static inline void sums_expect(sums_barrier *, uint32_t)
{
}

__device__ static inline void sums_copy_bulk(float *to, const float *from, uint32_t bytes, sums_barrier *)
{
    memcpy(to, from, bytes);
}

__device__ static inline void sums_asked(sums_barrier *)
{
}

__device__ static inline void sums_wait(sums_barrier *, uint32_t)
{
    __syncthreads();
}

#endif

#endif
