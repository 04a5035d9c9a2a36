/* emulate.h: the CUDA language on a CPU, so that every kernel is tested where there is no GPU.
 *
 * The .cu files compile as C++ with this header instead of CUDA's. A launch runs its blocks one after another; the threads of a block
 * are fibers on one CPU thread, which switch at barriers and shuffles (emulate.cpp). The emulation exposes undefined behaviour: shared
 * memory starts as NaN, an access beyond its bytes, a misaligned vector or a barrier that some threads never reach aborts with a
 * message, and LAPSE_EMULATE_REVERSE reverses the order of blocks, so that results which depend on it differ. A launch that is larger than
 * a GPU allows fails as it does there. The compiler checks the alignment of loads and stores and the bounds of arrays (-fsanitize), this
 * layer that of copies and matrices of PTX instructions.
 *
 * Only what the kernels use is here; emulate_runtime.h has the runtime API. Timings of the emulation are meaningless.
 */
#ifndef LP_EMULATE_H
#define LP_EMULATE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <tuple>

#include "emulate_runtime.h"

#define LP_CUDA_EMULATED 1

#define __global__ static
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

struct __align__(8) float2
{
    float x, y;
};
struct __align__(16) float4
{
    float x, y, z, w;
};
struct __align__(16) double2
{
    double x, y;
};
struct __align__(8) int2
{
    int x, y;
};
struct __align__(16) int4
{
    int x, y, z, w;
};
struct __align__(8) uint2
{
    unsigned x, y;
};
struct __align__(16) uint4
{
    unsigned x, y, z, w;
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
static inline int4 make_int4(int x, int y, int z, int w)
{
    return {x, y, z, w};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* Of the running thread. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

/* ---- a launch ------------------------------------------------------------------------------------------------ */

typedef void (*lp_emulate_body)(const void *context);
void lp_emulate_run(dim3 grid, dim3 block, size_t shared_size, lp_emulate_body body, const void *context);
/* The block's dynamic shared memory. */
void *lp_emulate_shared(void);
/* Stops with a message if the address is not a multiple of `bytes`. */
void lp_emulate_aligned(const void *at, size_t bytes, const char *what);

template <typename body_type> void lp_emulate_call(const void *context)
{
    (*(const body_type *)context)();
}

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

template <typename... types, typename... given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(types...), const given &...arguments)
{
    dim3 grid = config->gridDim, block = config->blockDim;
    size_t threads = (size_t)block.x * block.y * block.z;
    if (threads < 1 || threads > 1024 || config->dynamicSmemBytes > lp_emulate_device().sharedMemPerBlockOptin || grid.x > INT32_MAX ||
        grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidValue;
    std::tuple<types...> values(arguments...);
    auto body = [=]() { std::apply(kernel, values); };
    cudaLaunchConfig_t mine = *config;
    lp_emulate_submit(config->stream, [=]() {
        lp_emulate_run(mine.gridDim, mine.blockDim, mine.dynamicSmemBytes, lp_emulate_call<decltype(body)>, &body);
    });
    return cudaSuccess;
}

#define LP_SHARED(type, name) type *name = (type *)lp_emulate_shared()

/* ---- barriers and shuffles ----------------------------------------------------------------------------------- */

void __syncthreads(void);
int __syncthreads_or(int predicate);
void __syncwarp(unsigned mask = 0xFFFFFFFFu);
/* Exchanges 8 bytes within the warp: returns those of lane `from`, or its own where that is not in the mask. */
uint64_t lp_emulate_exchange(unsigned mask, uint64_t mine, int from);
int lp_emulate_lane(void);
unsigned __ballot_sync(unsigned mask, int predicate);

static inline long long clock64(void)
{
    static long long now;
    return now += 1000000;
}
static inline void __threadfence(void)
{
}
static inline void __threadfence_block(void)
{
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

template <typename type> type __shfl_sync(unsigned mask, type value, int from, int width = 32)
{
    static_assert(sizeof(type) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    int base = lp_emulate_lane() / width * width;
    bits = lp_emulate_exchange(mask, bits, base + (from & (width - 1)));
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename type> type __shfl_xor_sync(unsigned mask, type value, int lanes, int width = 32)
{
    int lane = lp_emulate_lane() % width, from = lane ^ lanes;
    return __shfl_sync(mask, value, from < width ? from : lane, width);
}

template <typename type> type __shfl_down_sync(unsigned mask, type value, int delta, int width = 32)
{
    int lane = lp_emulate_lane() % width;
    return __shfl_sync(mask, value, lane + delta < width ? lane + delta : lane, width);
}

template <typename type> type __shfl_up_sync(unsigned mask, type value, int delta, int width = 32)
{
    int lane = lp_emulate_lane() % width;
    return __shfl_sync(mask, value, lane - delta >= 0 ? lane - delta : lane, width);
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

template <typename type> static inline type min(type a, type b)
{
    return b < a ? b : a;
}
template <typename type> static inline type max(type a, type b)
{
    return a < b ? b : a;
}
template <typename type> static inline type __ldg(const type *data)
{
    return *data;
}
/* The C library reserves these names. */
#define __expf expf
#define __logf logf
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
/* The sine and cosine of pi x. */
static inline void sincospif(float x, float *sine, float *cosine)
{
    *sine = (float)sin(3.14159265358979323846 * x);
    *cosine = (float)cos(3.14159265358979323846 * x);
}
static inline int __float_as_int(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline unsigned __float_as_uint(float x)
{
    return (unsigned)__float_as_int(x);
}
static inline float __int_as_float(int bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline float __uint_as_float(unsigned bits)
{
    return __int_as_float((int)bits);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
/* x86-64 rounds each sum of floats. */
static inline float __fadd_rn(float x, float y)
{
    return x + y;
}
/* Only one thread runs at a time, so this is atomic. */
template <typename type> static inline type atomicAdd(type *data, type amount)
{
    type before = *data;
    *data += amount;
    return before;
}

#endif
