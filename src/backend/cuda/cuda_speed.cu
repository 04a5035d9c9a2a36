/* cuda_speed.cu: measures the peak arithmetic throughput and copy bandwidth of the GPU. The best of several rounds counts, because an idle
 * GPU raises its clock only after some time. */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 256, ACCUMULATORS = 8 };
#ifdef LP_CUDA_EMULATED
enum { ROUNDS = 2, BLOCKS = 2, ITERATIONS = 4 };
#else
enum { ROUNDS = 10, BLOCKS = 4096, ITERATIONS = 1024 };
#endif

/* A thread has ACCUMULATORS independent chains of four multiply-adds, or a warp of products into tiles of 16 x 8, which hides their
 * latency. */
template <lp_precision precision> __global__ void fma_loop(float factor, float *sink)
{
    float sum[ACCUMULATORS][4], left[4] = {factor, factor, factor, factor}, all = 0;
    for (int i = 0; i < 4 * ACCUMULATORS; i++) /* all different, or the compiler merges them */
        sum[i / 4][i % 4] = (float)i;
    for (int k = 0; k < ITERATIONS; k++)
        for (int i = 0; i < ACCUMULATORS; i++) {
            for (int c = 0; precision == LP_PRECISION_FP32 && c < 4; c++)
                sum[i][c] = fmaf(sum[i][c], factor, 1.0f);
            if (precision == LP_PRECISION_TF32)
                tile_mma_tf32(sum[i], left, factor, factor);
            if (precision == LP_PRECISION_BF16)
                tile_mma_bf16(sum[i], left, factor, factor);
        }
    for (int i = 0; i < 4 * ACCUMULATORS; i++)
        all += sum[i / 4][i % 4];
    sink[blockIdx.x * THREADS + threadIdx.x] = all;
}

} // namespace

void lp_cuda_speed(lp_cuda_device *device, lp_precision precision, size_t size, double *operations, double *bytes)
{
    /* By precision: the loop, and the multiply-adds of a warp for each accumulator. */
    static void (*const loops[])(float, float *) = {fma_loop<LP_PRECISION_FP32>, fma_loop<LP_PRECISION_TF32>,
                                                    fma_loop<LP_PRECISION_BF16>};
    static const double fmas[] = {4 * 32, 16 * 8 * 8, 16 * 8 * 16};
    double amount = 2 * fmas[precision] * BLOCKS * (THREADS / 32) * ITERATIONS * ACCUMULATORS;
    size_t half = size / 2 + 1;
    float *sink = (float *)lp_device_alloc(device, (size_t)BLOCKS * THREADS * sizeof *sink);
    char *from = (char *)lp_device_alloc(device, half), *to = (char *)lp_device_alloc(device, half);
    lp_cuda_run run = {};
    run.device = device;
    *operations = *bytes = 0;
    for (int round = 0; sink && from && to && round < ROUNDS; round++) {
        lp_device_timer_start(device);
        LP_LAUNCH(&run, loops[precision], BLOCKS, THREADS, 0, 0.5f, sink);
        *operations = fmax(*operations, amount / lp_device_timer_stop(device));
        lp_device_timer_start(device);
        lp_device_copy(device, to, from, half);
        *bytes = fmax(*bytes, 2 * (double)half / lp_device_timer_stop(device));
    }
    lp_device_free(device, sink);
    lp_device_free(device, from);
    lp_device_free(device, to);
}
