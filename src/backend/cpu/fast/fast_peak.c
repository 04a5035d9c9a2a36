/* fast_peak.c: peak FLOP/s of this CPU: multiply-adds on independent accumulators in registers. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_product.h"

/* Dependency chains: more than latency x throughput of a multiply-add (4 x 2), fewer than registers. */
enum { CHAINS = 12 };

typedef float vector __attribute__((vector_size(FAST_WIDTH * sizeof(float))));

double LP_FAST(fma_loop)(int turns, float *sink)
{
    vector sum[CHAINS], factor, amount;
    for (int l = 0; l < FAST_WIDTH; l++) {
        factor[l] = 0.999f;
        amount[l] = 1e-3f;
    }
    for (int i = 0; i < CHAINS; i++)
        sum[i] = amount * (float)i;
    for (int turn = 0; turn < turns; turn++) {
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++)
            sum[i] = sum[i] * factor + amount;
    }
    for (int i = 1; i < CHAINS; i++)
        sum[0] += sum[i];
    *sink = sum[0][0];
    return 2.0 * turns * CHAINS * FAST_WIDTH;
}
