/* emulate_wide.h: wgmma of backend/cuda/cuda_product_wide.h, which includes it, on the CPU. */
#ifndef LP_EMULATE_WIDE_H
#define LP_EMULATE_WIDE_H

/* Element of a slab. */
static inline float emulate_wide_at(const float *slab, bool deep, int row, int k)
{
    int line = deep ? row : row / 64 * 64 + k, at = deep ? k : row % 64;
    uint16_t bits = ((const uint16_t *)(slab + wide_slab::at(line, at / 8)))[at % 8];
    return __uint_as_float((uint32_t)bits << 16);
}

template <bool a_deep, bool b_deep, int most = 128, int count>
__device__ static inline void wide_multiply(float (&sums)[count], const float *a, const float *b)
{
    tile_lane me = tile_lane_now();
    for (int i = 0; i < count; i++) {
        int row = me.warp % 4 * 16 + i / 2 % 2 * 8 + me.group, col = i / 4 * 8 + 2 * me.member + i % 2;
        for (int k = 0; k < wide_slab::depth; k++)
            sums[i] += emulate_wide_at(a, a_deep, row, k) * emulate_wide_at(b, b_deep, col, k);
    }
}

template <int count> __device__ static inline void wide_pin(float (&)[count])
{
}

__device__ static inline void wide_commit(void)
{
}

template <int later> __device__ static inline void wide_wait(void)
{
}

__device__ static inline void wide_fence(void)
{
}

#endif
