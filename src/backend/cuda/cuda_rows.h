/* cuda_rows.h: kernels that go over rows of a few columns.
 *
 * The threads of a block lie side by side along the columns and below one another along the rows, so that none has to divide to know
 * where it is: a division of 64 bits costs more than all else that an elementwise kernel does. Columns are taken one, two or four at a
 * time, as the addresses allow; rows of 50 floats begin at multiples of 8 bytes.
 */
#ifndef LP_CUDA_ROWS_H
#define LP_CUDA_ROWS_H

#include "backend/cuda/cuda.h"

enum { LP_ROW_THREADS = 256 };

/* Floats that are read and written as one. */
template <int n> struct __align__(4 * n) lp_vector
{
    float at[n];
};

template <int n> __device__ static inline lp_vector<n> lp_vector_load(const float *from)
{
    return *(const lp_vector<n> *)from;
}

/* Writes, or adds. */
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

/* Frequency i of periods that have `count` harmonics each. */
__device__ static inline double lp_harmonic(const float *log_period, int i, int count)
{
    return 6.283185307179586476925 * (i % count + 1) * exp(-(double)log_period[i / count]);
}

/* Threads for rows of so many vectors. */
static inline dim3 lp_row_block(int vectors)
{
    unsigned across = 4;
    while (across < 32 && (int)across < vectors)
        across *= 2;
    return dim3(across, LP_ROW_THREADS / across);
}

/* The row of this thread. */
__device__ static inline int lp_row_index(void)
{
    return (int)(blockIdx.x * blockDim.y + threadIdx.y);
}

/* How many floats may be taken at a time: 4, 2 or 1. All pointers, combined by |, and all numbers of columns they are moved by. */
static inline int lp_vector_width(uintptr_t pointers, int cols)
{
    uintptr_t all = pointers | (uintptr_t)(4 * (unsigned)cols);
    return all % 16 == 0 ? 4 : all % 8 == 0 ? 2 : 1;
}

/* Calls launch with the width as a constant: launch(lp_width_is<2>()). */
template <int n> struct lp_constant {
    static constexpr int value = n;
};

template <typename launcher> static inline void lp_with_vector_width(int width, const launcher &launch)
{
    if (width == 4)
        launch(lp_constant<4>());
    else if (width == 2)
        launch(lp_constant<2>());
    else
        launch(lp_constant<1>());
}

#endif
