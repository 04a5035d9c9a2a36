/* cuda_speed.cu: measures the peak arithmetic throughput and copy bandwidth of the GPU. The best of several rounds counts, because an idle
 * GPU raises its clock only after some time. */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_speed.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 256, ACCUMULATORS = 8 };
#ifdef LP_CUDA_EMULATED
enum { ROUNDS = 2, BLOCKS = 2, ITERATIONS = 4 };
#else
enum { ROUNDS = 10, BLOCKS = 4096, ITERATIONS = 1024 };
#endif

/* Each thread has ACCUMULATORS independent chains of multiply-adds, which hides their latency. */
__global__ void float_fma_loop(float factor, float *sink)
{
    float sum[ACCUMULATORS], all = 0;
    for (int i = 0; i < ACCUMULATORS; i++)
        sum[i] = (float)i;
    for (int k = 0; k < ITERATIONS; k++)
        for (int i = 0; i < ACCUMULATORS; i++)
            sum[i] = fmaf(sum[i], factor, 1.0f);
    for (int i = 0; i < ACCUMULATORS; i++)
        all += sum[i];
    sink[blockIdx.x * THREADS + threadIdx.x] = all;
}

/* Each warp accumulates ACCUMULATORS tiles of 16 x 8. two: bf16, two numbers to a word. */
template <bool two> __global__ void tensor_fma_loop(float factor, float *sink)
{
    float sum[ACCUMULATORS][4], left[4] = {factor, factor, factor, factor}, all = 0;
    for (int i = 0; i < ACCUMULATORS; i++) /* all different, or the compiler merges them */
        sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = (float)i;
    for (int k = 0; k < ITERATIONS; k++)
        for (int i = 0; i < ACCUMULATORS; i++) {
            if (two)
                tile_mma_bf16(sum[i], left, factor, factor);
            else
                tile_mma_tf32(sum[i], left, factor, factor);
        }
    for (int i = 0; i < ACCUMULATORS; i++)
        all += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
    sink[blockIdx.x * THREADS + threadIdx.x] = all;
}

/* Returns the operations of one launch. */
double launch_fma_loop(const lp_cuda_run *run, lp_precision precision, float *sink)
{
    double steps = (double)BLOCKS * ITERATIONS * ACCUMULATORS, warps = THREADS / 32;
    if (precision == LP_PRECISION_FP32) {
        LP_LAUNCH(run, float_fma_loop, (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
        return 2 * steps * THREADS;
    }
    if (precision == LP_PRECISION_TF32) {
        LP_LAUNCH(run, (tensor_fma_loop<false>), (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
        return 2 * steps * warps * 16 * 8 * 8;
    }
    LP_LAUNCH(run, (tensor_fma_loop<true>), (unsigned)BLOCKS, (unsigned)THREADS, 0, 0.5f, sink);
    return 2 * steps * warps * 16 * 8 * 16;
}

void update_best(double *best, double amount, double seconds)
{
    double rate = seconds > 0 ? amount / seconds : 0;
    *best = rate > *best ? rate : *best;
}

} // namespace

void lp_cuda_speed(lp_cuda_device *device, lp_precision precision, size_t size, double *operations, double *bytes)
{
    size_t half = size / 2 + 1;
    float *sink = (float *)lp_device_alloc(device, (size_t)BLOCKS * THREADS * sizeof *sink);
    char *from = (char *)lp_device_alloc(device, half), *to = (char *)lp_device_alloc(device, half);
    lp_cuda_run run = {};
    run.device = device;
    *operations = *bytes = 0;
    for (int round = 0; sink && round < ROUNDS; round++) {
        lp_device_timer_start(device);
        double amount = launch_fma_loop(&run, precision, sink);
        update_best(operations, amount, lp_device_timer_stop(device));
    }
    for (int round = 0; from && to && round < ROUNDS; round++) {
        lp_device_timer_start(device);
        lp_device_copy(device, to, from, half);
        update_best(bytes, 2 * (double)half, lp_device_timer_stop(device));
    }
    lp_device_free(device, sink);
    lp_device_free(device, from);
    lp_device_free(device, to);
}
