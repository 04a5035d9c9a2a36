/* cuda_rows.h: elementwise kernels over rows of few columns.
 *
 * Layout: threadIdx.x along the columns, threadIdx.y along the rows, so that no thread divides to find its element: a
 * 64-bit division costs more than the rest of an elementwise kernel. Columns are loaded by 1, 2 or 4 floats, as
 * alignment allows; rows of 50 floats are 8-byte aligned.
 */
#ifndef LP_CUDA_ROWS_H
#define LP_CUDA_ROWS_H

#include "backend/cuda/cuda.h"

#include <type_traits>

/* n floats that are loaded and stored in one instruction. */
template <int n> struct __align__(4 * n) lp_vector
{
    float at[n];
};

template <int n> __device__ static inline lp_vector<n> lp_vector_load(const float *from)
{
    return *(const lp_vector<n> *)from;
}

/* The same in bf16. */
template <int n> __device__ static inline lp_vector<n> lp_vector_load_bf16(const uint16_t *from)
{
    lp_vector<n> x;
    if constexpr (n == 1) {
        x.at[0] = __uint_as_float((uint32_t)*from << 16);
    } else {
        lp_vector<n / 2> both = lp_vector_load<n / 2>((const float *)from);
#pragma unroll
        for (int i = 0; i < n; i++)
            x.at[i] = __uint_as_float(i % 2 ? __float_as_uint(both.at[i / 2]) & 0xFFFF0000u
                                            : __float_as_uint(both.at[i / 2]) << 16);
    }
    return x;
}

/* to = amount, or to += amount. */
template <int n> __device__ static inline void lp_vector_store(float *to, lp_vector<n> amount, int accumulate)
{
    if (accumulate) {
        lp_vector<n> old = lp_vector_load<n>(to);
#pragma unroll
        for (int i = 0; i < n; i++)
            amount.at[i] = old.at[i] + amount.at[i];
    }
    *(lp_vector<n> *)to = amount;
}

/* Sine and cosine of time * frequency, which may be many turns. */
__device__ static inline void lp_time_sincos(double time, double frequency, float *sine, float *cosine)
{
    double turns = time * (frequency * (1 / 6.283185307179586476925));
    sincospif((float)(2 * (turns - rint(turns))), sine, cosine);
}

/* Floats of a vector load: 4, 2 or 1. pointers: all addresses combined by |. cols: the row strides combined by |. */
static inline int lp_vector_width(uintptr_t pointers, int cols)
{
    uintptr_t all = pointers | (uintptr_t)(4 * (unsigned)cols);
    return all % 16 == 0 ? 4 : all % 8 == 0 ? 2 : 1;
}

/* Calls launch with the width as a compile-time constant: launch(std::integral_constant<int, 2>()). */
template <typename launcher> static inline void lp_with_vector_width(int width, const launcher &launch)
{
    if (width == 4)
        launch(std::integral_constant<int, 4>());
    else if (width == 2)
        launch(std::integral_constant<int, 2>());
    else
        launch(std::integral_constant<int, 1>());
}

#endif
