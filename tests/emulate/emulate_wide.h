/* emulate_wide.h: wgmma of backend/cuda/cuda_product_wide.h, which includes it, on the CPU. */
#ifndef LP_EMULATE_WIDE_H
#define LP_EMULATE_WIDE_H

/* Element of a slab. */
static inline float emulate_wide_at(const float *slab, bool deep, int row, int k)
{
    int line = deep ? row : row / 64 * 64 + k, at = deep ? k : row % 64;
    uint16_t bits = ((const uint16_t *)slab)[wide_at(WIDE_BLOCK, line, at)];
    return __uint_as_float((uint32_t)bits << 16);
}

template <bool a_deep, bool b_deep, int count>
__device__ static inline void wide_multiply(float (&sums)[count], const float *a, const float *b)
{
    lp_emulate_aligned(a, 1024, "a slab of a product that is not aligned to 1,024 bytes");
    lp_emulate_aligned(b, 1024, "a slab of a product that is not aligned to 1,024 bytes");
    tile_lane me = tile_lane_now();
    for (int i = 0; i < count; i++) {
        int row = me.warp % 4 * 16 + i / 2 % 2 * 8 + me.group, col = i / 4 * 8 + 2 * me.member + i % 2;
        for (int k = 0; k < WIDE_BLOCK; k++)
            sums[i] += emulate_wide_at(a, a_deep, row, k) * emulate_wide_at(b, b_deep, col, k);
    }
}

template <bool a_deep>
__device__ static inline void wide_weigh(float (&sums)[4], const float *a, const uint16_t *weights)
{
    tile_lane me = tile_lane_now();
    for (int i = 0; i < 4; i += 2)
        for (int k = 0; k < WIDE_BLOCK; k++)
            sums[i] += emulate_wide_at(a, a_deep, me.warp % 4 * 16 + i / 2 * 8 + me.group, k) *
                       __uint_as_float((uint32_t)weights[k] << 16);
}

template <int later> __device__ static inline void wide_wait(void)
{
}

__device__ static inline void wide_begin(void)
{
}

__device__ static inline void wide_end(void)
{
}

__device__ static inline void wide_fence(void)
{
}

#endif
