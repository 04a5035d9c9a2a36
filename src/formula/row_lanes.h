/* row_lanes.h: for formulas of a row that kernels of all backends share. On a CPU one thread has all columns of a row. On a GPU
 * LP_ROW_LANES lanes of a warp have a row: lane l the columns l, l + LP_ROW_LANES, ...; all lanes of the warp call these functions.
 *
 * `real`, the type of the elements, and in C++ LP_ROW_LANES are defined where this is included. Numbers are double, on a GPU real: exp,
 * log and others are overloaded there.
 */
#ifndef LP_ROW_LANES_H
#define LP_ROW_LANES_H

#include <math.h>

#ifdef __cplusplus
typedef real lp_row_number;
#define LP_ROW_INLINE __device__ static inline
#define LP_ROW_OVER_LANES(x, other)                              \
    for (int mask = LP_ROW_LANES / 2; mask > 0; mask >>= 1) {    \
        lp_row_number y = __shfl_xor_sync(0xFFFFFFFFu, x, mask); \
        x = other;                                               \
    }
#else
enum { LP_ROW_LANES = 1 };
typedef double lp_row_number;
#define LP_ROW_INLINE static inline
#define LP_ROW_OVER_LANES(x, other)
#endif

/* Over the lanes of a row, in every lane. */
LP_ROW_INLINE lp_row_number lp_row_sum(lp_row_number x)
{
    LP_ROW_OVER_LANES(x, x + y)
    return x;
}

LP_ROW_INLINE lp_row_number lp_row_max(lp_row_number x)
{
    LP_ROW_OVER_LANES(x, fmax(x, y))
    return x;
}

#endif
