/* emulate_tile.h: the PTX instructions of backend/cuda/cuda_tile.h, which includes it, on the CPU. */
#ifndef LP_EMULATE_TILE_H
#define LP_EMULATE_TILE_H

typedef const float *tile_address;

__device__ static inline tile_address tile_address_of(const void *shared)
{
    return (tile_address)shared;
}

__device__ static inline void tile_row_aligned(tile_address mine, int offset)
{
    lp_emulate_aligned(mine + offset, 16, "a row of a matrix that is not aligned to 16 bytes");
}

__device__ static inline void tile_ldmatrix(float (&parts)[4], tile_address mine, int offset)
{
    tile_row_aligned(mine, offset);
    tile_lane me = tile_lane_now();
    for (int i = 0; i < 4; i++)
        parts[i] = __shfl_sync(0xFFFFFFFFu, mine, 8 * i + me.group)[offset + me.member];
}

__device__ static inline void tile_ldmatrix_trans(float (&parts)[4], tile_address mine, int offset)
{
    tile_row_aligned(mine, offset);
    tile_lane me = tile_lane_now();
    for (int i = 0; i < 4; i++) {
        const uint16_t *low = (const uint16_t *)(__shfl_sync(0xFFFFFFFFu, mine, 8 * i + 2 * me.member) + offset);
        const uint16_t *high = (const uint16_t *)(__shfl_sync(0xFFFFFFFFu, mine, 8 * i + 2 * me.member + 1) + offset);
        parts[i] = __uint_as_float(low[me.group] | (uint32_t)high[me.group] << 16);
    }
}

__device__ static inline void tile_stmatrix_trans(tile_address mine, int offset, const float (&parts)[4])
{
    tile_row_aligned(mine, offset);
    tile_lane me = tile_lane_now();
    for (int i = 0; i < 4; i++) {
        uint16_t *low = (uint16_t *)(__shfl_sync(0xFFFFFFFFu, mine, 8 * i + 2 * me.member) + offset);
        uint16_t *high = (uint16_t *)(__shfl_sync(0xFFFFFFFFu, mine, 8 * i + 2 * me.member + 1) + offset);
        low[me.group] = (uint16_t)__float_as_uint(parts[i]);
        high[me.group] = (uint16_t)(__float_as_uint(parts[i]) >> 16);
    }
}

__device__ static inline uint32_t tile_bf16_bits(float x)
{
    uint32_t bits = __float_as_uint(x);
    return x != x ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

__device__ static inline float tile_pack_bf16(float low, float high)
{
    return __uint_as_float(tile_bf16_bits(low) | tile_bf16_bits(high) << 16);
}

__device__ static inline uint32_t tile_funnel_shift(uint32_t low, uint32_t high, int shift)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}

__device__ static inline float tile_exp2(float x)
{
    return exp2f(x);
}

template <int count> __device__ static inline void tile_cp_async(float *to, const float *from, bool valid = true)
{
    lp_emulate_aligned(to, 4 * count, "an asynchronous copy to an address that is not aligned");
    lp_emulate_aligned(from, 4 * count, "an asynchronous copy from an address that is not aligned");
    for (int i = 0; i < count; i++)
        to[i] = valid ? from[i] : 0;
}

__device__ static inline void tile_cp_async_wait(void)
{
}

__device__ static inline float tile_round_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7F800000u) != 0x7F800000u)
        bits = (bits + 0x1000u) & ~0x1FFFu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The lanes exchange their fragments through thread-local memory; each sums its own four elements. exact: operands are
 * not truncated. */
template <bool exact = true>
__device__ static inline void tile_mma_fp32(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    static thread_local float parts[32][32][6];
    tile_lane me = tile_lane_now();
    float *mine = parts[me.warp][me.lane];
    const float(*all)[6] = parts[me.warp];
    for (int i = 0; i < 6; i++) {
        float x = i < 4 ? a[i] : i == 4 ? b0 : b1;
        mine[i] = exact ? x : tile_truncate_tf32(x);
    }
    __syncwarp();
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 4; i++)
            sum[i] +=
                all[4 * me.group + k % 4][k / 4 * 2 + i / 2] * all[4 * (2 * me.member + i % 2) + k % 4][4 + k / 4];
    __syncwarp();
}

__device__ static inline void tile_mma_tf32(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    tile_mma_fp32<false>(sum, a, b0, b1);
}

/* The high halves are one tf32 product, the low halves another. */
__device__ static inline void tile_mma_bf16(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    for (int high = 0; high < 2; high++) {
        float part[6] = {a[0], a[1], a[2], a[3], b0, b1};
        for (int i = 0; i < 6; i++) {
            uint32_t bits = __float_as_uint(part[i]);
            part[i] = __uint_as_float(high ? bits & 0xFFFF0000u : bits << 16);
        }
        const float left[4] = {part[0], part[1], part[2], part[3]};
        tile_mma_tf32(sum, left, part[4], part[5]);
    }
}

#endif
