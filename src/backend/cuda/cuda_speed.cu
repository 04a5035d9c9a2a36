/* cuda_speed.cu: multiply-adds that wait for nothing but themselves, and copies. The best of some rounds counts, since a device
 * that has idled raises its clock only after a while. */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_speed.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 256, CHAINS = 8 };
#ifdef LP_CUDA_EMULATED
enum { ROUNDS = 2, BLOCKS = 2, TURNS = 4 };
#else
enum { ROUNDS = 10, BLOCKS = 4096, TURNS = 1024 };
#endif

/* Each thread keeps CHAINS sums, none of which waits for another. */
__global__ void float_chains(float factor, float *sink)
{
    float sum[CHAINS], all = 0;
    for (int i = 0; i < CHAINS; i++)
        sum[i] = (float)i;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < CHAINS; i++)
            sum[i] = fmaf(sum[i], factor, 1.0f);
    for (int i = 0; i < CHAINS; i++)
        all += sum[i];
    sink[blockIdx.x * THREADS + threadIdx.x] = all;
}

/* Each warp keeps CHAINS tiles of 16 x 8 sums. two: in bf16, of which a word has two. */
template <bool two> __global__ void tensor_chains(float factor, float *sink)
{
    float sum[CHAINS][4], left[4] = {factor, factor, factor, factor}, all = 0;
    for (int i = 0; i < CHAINS; i++) /* no two alike, or the compiler makes one of them */
        sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = (float)i;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < CHAINS; i++) {
            if (two)
                tile_mma_bf16(sum[i], left, factor, factor);
            else
                tile_mma_tf32(sum[i], left, factor, factor);
        }
    for (int i = 0; i < CHAINS; i++)
        all += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
    sink[blockIdx.x * THREADS + threadIdx.x] = all;
}

/* Operations of one launch. */
double launch_chains(lp_precision precision, float *sink)
{
    lp_cuda_run none = {};
    double steps = (double)BLOCKS * TURNS * CHAINS, warps = THREADS / 32;
    if (precision == LP_PRECISION_FP32) {
        LP_LAUNCH(&none, float_chains, (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
        return 2 * steps * THREADS;
    }
    if (precision == LP_PRECISION_TF32) {
        LP_LAUNCH(&none, (tensor_chains<false>), (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
        return 2 * steps * warps * 16 * 8 * 8;
    }
    LP_LAUNCH(&none, (tensor_chains<true>), (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
    return 2 * steps * warps * 16 * 8 * 16;
}

void keep_best(double *best, double amount, double seconds)
{
    double rate = seconds > 0 ? amount / seconds : 0;
    *best = rate > *best ? rate : *best;
}

} // namespace

void lp_cuda_speed(lp_precision precision, size_t size, double *operations, double *bytes)
{
    size_t half = size / 2 + 1;
    float *sink = (float *)lp_device_alloc((size_t)BLOCKS * THREADS * sizeof *sink);
    char *from = (char *)lp_device_alloc(half), *to = (char *)lp_device_alloc(half);
    *operations = *bytes = 0;
    for (int round = 0; sink && round < ROUNDS; round++) {
        lp_device_watch_start();
        double amount = launch_chains(precision, sink);
        keep_best(operations, amount, lp_device_watch_stop());
    }
    for (int round = 0; from && to && round < ROUNDS; round++) {
        lp_device_watch_start();
        lp_device_move(to, from, half);
        keep_best(bytes, 2 * (double)half, lp_device_watch_stop());
    }
    lp_device_free(sink);
    lp_device_free(from);
    lp_device_free(to);
}
