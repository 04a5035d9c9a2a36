/* cuda_tile.h: warp-level matrix multiply (mma) on operands in shared memory, for products and attention.
 *
 * A warp owns 16 x 8 tiles of a result in the accumulator fragment layout of mma.m16n8. With PTX's groupID g = lane /
 * 4 and threadID_in_group t = lane % 4 a lane holds
 *
 *     sum[0], sum[1]: row g, columns 2t and 2t + 1       sum[2], sum[3]: row g + 8, the same columns
 *
 * Operands of tensor cores are rounded when they are written to shared memory, except attention's tokens
 * (cuda_attention.h) and the rows of fused kernels and small outer products. Accumulators are always fp32.
 *
 * Strides of shared memory are 4 modulo 8 floats, so that ldmatrix has no bank conflicts.
 *
 * tests/emulate/emulate_tile.h emulates the PTX instructions on the CPU.
 */
#ifndef LP_CUDA_TILE_H
#define LP_CUDA_TILE_H

#include "backend/cuda/cuda.h"

/* Whether products may use tensor cores. */
static inline bool tile_tensor(const lp_cuda_run *run)
{
    return run->run->precision != LP_PRECISION_FP32;
}

static inline bool tile_bf16(const lp_cuda_run *run)
{
    return run->run->precision == LP_PRECISION_BF16;
}

/* exp(x) = 2^(x log2 e): ex2 is one instruction. */
#define TILE_LOG2_E 1.4426950408889634f
#define TILE_LN_2 0.6931471805599453f

/* Width of the tiles if `count` columns are divided evenly among as few tiles of at most `most` as possible, in
 * multiples of `unit`. */
static inline int tile_width(int count, int most, int unit)
{
    int tiles = (int)lp_blocks(count, most), each = (count + tiles - 1) / tiles;
    return (each + unit - 1) / unit * unit;
}

/* Bytes of shared memory on devices of compute capability 9.0: the limit of a thread block, and the limit at which two blocks run on
 * a multiprocessor. Other devices have less: lp_cuda_device has theirs. */
enum { TILE_MAX_SHARED = 227 * 1024, TILE_HALF_SHARED = 113 * 1024 };

/* Position of a lane in the fragments of its warp. */
typedef struct tile_lane {
    int warp, lane, group, member; /* group: PTX's groupID (row); member: threadID_in_group (pair of columns) */
} tile_lane;

__device__ static inline tile_lane tile_lane_now(void)
{
    int thread = (int)threadIdx.x, lane = thread & 31;
    tile_lane now = {thread >> 5, lane, lane >> 2, lane & 3};
    return now;
}

/* Truncates to tf32, as tensor cores do: they ignore the 13 low bits of the mantissa. */
__device__ static inline float tile_truncate_tf32(float x)
{
    return x == x ? __uint_as_float(__float_as_uint(x) & ~0x1FFFu) : x;
}

/* ---- PTX instructions ---------------------------------------------------------------------------------------- */

#ifdef __CUDACC__

/* Rounds to the nearest tf32 (10 bits of mantissa). */
__device__ static inline float tile_round_tf32(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* sum [16 x 8] += a [16 x 8] b [8 x 8]. Fragment a: rows g, g + 8, g, g + 8 at k = t, t, t + 4, t + 4. Fragment b:
 * column g at k = t, t + 4. In bf16 the depth is 16, two numbers in a float: k = 2t and 2t + 1 replace t, 2t + 8 and
 * 2t + 9 replace t + 4. */
#define TILE_MMA(name, shape)                                                                            \
    __device__ static inline void name(float(&sum)[4], const float(&a)[4], float b0, float b1)           \
    {                                                                                                    \
        asm("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                     \
            : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),        \
              "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));           \
    }
TILE_MMA(tile_mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
TILE_MMA(tile_mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")

/* Shared-memory address from which a lane reads. */
typedef uint32_t tile_address;

__device__ static inline tile_address tile_address_of(const void *shared)
{
    return (tile_address)__cvta_generic_to_shared(shared);
}

/* Loads four 8 x 4 float matrices: lane 8 i + r gives the address of row r of matrix i, plus `offset` floats; lane 4 g
 * + t receives element (g, t) of each. tile_ldmatrix_trans: four 8 x 8 matrices of bf16, transposed: lane 4 g + t
 * receives elements (2t, g) and (2t + 1, g), packed in a float. */
#define TILE_LDMATRIX(name, type)                                                         \
    __device__ static inline void name(float(&parts)[4], tile_address mine, int offset)   \
    {                                                                                     \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4." type ".b16 {%0, %1, %2, %3}, [%4];" \
                     : "=f"(parts[0]), "=f"(parts[1]), "=f"(parts[2]), "=f"(parts[3])     \
                     : "r"(mine + 4 * (uint32_t)offset));                                 \
    }
TILE_LDMATRIX(tile_ldmatrix, "shared")
TILE_LDMATRIX(tile_ldmatrix_trans, "trans.shared")

/* Stores four 8 x 8 matrices of bf16 that tile_ldmatrix_trans would load. */
__device__ static inline void tile_stmatrix_trans(tile_address mine, int offset, const float (&parts)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    int lane = (int)threadIdx.x & 31, row = 2 * (lane & 3), column = lane >> 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t bits = __float_as_uint(parts[i]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            tile_address to = __shfl_sync(0xFFFFFFFFu, mine, 8 * i + row + k) + 4 * (uint32_t)offset + 2 * (uint32_t)column;
            asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"((uint16_t)(k ? bits >> 16 : bits)) : "memory");
        }
    }
#else
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(mine + 4 * (uint32_t)offset),
        "r"(__float_as_uint(parts[0])), "r"(__float_as_uint(parts[1])), "r"(__float_as_uint(parts[2])),
        "r"(__float_as_uint(parts[3]))
        : "memory");
#endif
}

/* Rounds two numbers to bf16 and packs them into one float. */
__device__ static inline float tile_pack_bf16(float low, float high)
{
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return __uint_as_float(bits);
}

/* tile_mma_tf32 with fp32 operands: each is a sum of two tf32 numbers, of which the product of the low parts is left
 * out. The error of a product is about 2^-21 of it. */
__device__ static inline void tile_mma_fp32(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    float high[4], low[4], b_high[2] = {tile_round_tf32(b0), tile_round_tf32(b1)};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        high[i] = tile_round_tf32(a[i]);
        low[i] = a[i] - high[i];
    }
    tile_mma_tf32(sum, low, b_high[0], b_high[1]);
    tile_mma_tf32(sum, high, b0 - b_high[0], b1 - b_high[1]);
    tile_mma_tf32(sum, high, b_high[0], b_high[1]);
}

/* 32 bits of the 64-bit high:low, from bit `shift` modulo 32 on. Volatile: the compiler must not move it up to the
 * loads of its operands, which would wait for them. */
__device__ static inline uint32_t tile_funnel_shift(uint32_t low, uint32_t high, int shift)
{
    uint32_t bits;
    asm volatile("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(bits) : "r"(low), "r"(high), "r"(shift));
    return bits;
}

/* 2^x, with about 22 correct bits. */
__device__ static inline float tile_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Starts an asynchronous copy of `count` floats (1, 2 or 4) to shared memory; zeros if they are not valid. */
template <int count> __device__ static inline void tile_cp_async(float *to, const float *from, bool valid = true)
{
    if constexpr (count == 4) /* past the L1 cache, which only copies of 16 bytes can do */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tile_address_of(to)), "l"(from),
                     "r"(valid ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(tile_address_of(to)), "l"(from),
                     "n"(4 * count), "r"(valid ? 4 * count : 0)
                     : "memory");
}

/* Waits for the copies that this thread has started. */
__device__ static inline void tile_cp_async_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

#else
#include <emulate_tile.h>
#endif

/* Rounds to the nearest bf16. */
__device__ static inline float tile_round_bf16(float x)
{
    return __uint_as_float(__float_as_uint(tile_pack_bf16(0, x)) & 0xFFFF0000u);
}

/* Stores two neighbours, the second if it exists. two: both do, and are aligned. */
template <bool two> __device__ static inline void tile_store_two(float *to, float x, float y, bool second)
{
    if constexpr (two) {
        *(float2 *)to = make_float2(x, y);
    } else {
        to[0] = x;
        if (second)
            to[1] = y;
    }
}

/* The same in bf16. */
template <bool two> __device__ static inline void tile_store_two(uint16_t *to, float x, float y, bool second)
{
    float both = tile_pack_bf16(x, y);
    if constexpr (two) {
        *(float *)to = both;
    } else {
        to[0] = (uint16_t)__float_as_uint(both);
        if (second)
            to[1] = (uint16_t)(__float_as_uint(both) >> 16);
    }
}

/* Sum, or maximum, over the four lanes that share a row of a fragment. */
__device__ static inline float tile_row_sum(float x)
{
    x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
    return x + __shfl_xor_sync(0xFFFFFFFFu, x, 2);
}

__device__ static inline float tile_row_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}

/* ---- products of tiles --------------------------------------------------------------------------------------- */

/* ldmatrix addresses of this lane for 16 rows as operand A, and as operand B. */
__device__ static inline tile_address tile_a_address(const float *rows, int stride)
{
    int lane = tile_lane_now().lane;
    return tile_address_of(rows + (lane & 15) * stride + 4 * (lane >> 4));
}

__device__ static inline tile_address tile_b_address(const float *rows, int stride)
{
    int lane = tile_lane_now().lane;
    return tile_address_of(rows + ((lane & 7) + 8 * (lane >> 4)) * stride + 4 * (lane >> 3 & 1));
}

#endif
