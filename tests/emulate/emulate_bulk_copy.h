/* emulate_bulk_copy.h: the barriers and copies of backend/cuda/cuda_bulk_copy.h, which includes it, on the CPU. Copies
 * complete at once. */
#ifndef LP_EMULATE_BULK_COPY_H
#define LP_EMULATE_BULK_COPY_H

__device__ static inline void bulk_barrier_init(bulk_barrier *, int)
{
}

__device__ static inline void bulk_fence(void)
{
}

__device__ static inline void bulk_barrier_expect(bulk_barrier *, uint32_t)
{
}

__device__ static inline void bulk_copy(float *to, const float *from, uint32_t bytes, bulk_barrier *)
{
    memcpy(to, from, bytes);
}

__device__ static inline void bulk_wait(bulk_barrier *, uint32_t)
{
    __syncthreads();
}

#endif
