/* emulate_reduction_copy.h: the barriers and copies of backend/cuda/cuda_reduction_copy.h, which includes it, on the CPU. Copies
 * complete at once. */
#ifndef LP_EMULATE_REDUCTION_COPY_H
#define LP_EMULATE_REDUCTION_COPY_H

enum { REDUCTION_ARRIVALS = 1 };

__device__ static inline void reduction_barrier_init(reduction_barrier *, int)
{
}

__device__ static inline void reduction_barriers_fence(void)
{
}

__device__ static inline void reduction_barrier_expect(reduction_barrier *, uint32_t)
{
}

__device__ static inline void reduction_copy_bulk(float *to, const float *from, uint32_t bytes, reduction_barrier *)
{
    lp_emulate_aligned(to, 16, "a bulk copy to an address that is not aligned");
    lp_emulate_aligned(from, 16, "a bulk copy from an address that is not aligned");
    lp_emulate_aligned((const void *)(uintptr_t)bytes, 16, "a bulk copy of a number of bytes that is not a multiple of 16");
    memcpy(to, from, bytes);
}

template <int parts>
__device__ static inline void reduction_copy(float *const (&to)[parts], const float *const (&from)[parts],
                                             const uint32_t (&bytes)[parts], reduction_barrier *barrier)
{
    for (int i = 0; i < parts && threadIdx.x % 32 == 0; i++)
        reduction_copy_bulk(to[i], from[i], bytes[i], barrier);
}

__device__ static inline void reduction_wait(reduction_barrier *, uint32_t)
{
    __syncthreads();
}

#endif
