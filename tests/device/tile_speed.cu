/* tile_speed.cu: how long the kernels of the softmax loss and of layer norm take on this GPU.
 *
 *     nvcc -O3 -std=c++17 -arch=sm_90 -Iinclude -Isrc tests/device/tile_speed.cu -o tile_speed && ./tile_speed
 *
 * needs nothing but the CUDA runtime. Sizes are those of a step on MovieLens. Times are means of 50 launches, shared among what a
 * launch does; correctness is the matter of tests/unit/test_cuda_tiles.c. op_speed.c times attention. */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_product_packed.h"
#include "backend/cuda/cuda_reduction_copy.h"

#include <stdio.h>
#include <stdlib.h>

namespace loss
{
#include "backend/cuda/cuda_softmax_loss.cu"
}
namespace norms_of_rows
{
#include "backend/cuda/cuda_norm.cu"
}

static cudaStream_t stream;
static void *scratch;

cudaStream_t lp_cuda_stream(const lp_cuda_run *run)
{
    (void)run;
    return stream;
}

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

void lp_cuda_check(lp_cuda_device *, cudaError_t error, const char *what)
{
    check(error, what);
}

void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    (void)run;
    static size_t have;
    if (size > have) {
        cudaFree(scratch);
        check(cudaMalloc(&scratch, have = size), "scratch");
    }
    return scratch;
}

void *lp_cuda_side_buffer(const lp_cuda_run *run, const lp_value *beside, size_t size)
{
    (void)run;
    (void)beside;
    (void)size;
    return NULL;
}

int lp_device_capability(const lp_cuda_device *)
{
    return 90;
}

void lp_cuda_loss_sum(const lp_cuda_run *run, const lp_value *like, const float *losses, float *sum)
{
    (void)run;
    (void)like;
    (void)losses;
    (void)sum;
}

/* ---- a node with matrices of its own ------------------------------------------------------------------------- */

enum { SLOTS = 32 };
static lp_value values[SLOTS];
static void *slots[SLOTS];
static int slot_count;

/* Numbers between -1 and 1; ids below `limit`. */
static lp_value *matrix(lp_rows rows_of, int rows, int cols, int limit)
{
    lp_value *value = &values[slot_count];
    size_t size = (size_t)rows * (size_t)cols;
    float *host = (float *)malloc(size * sizeof *host);
    for (size_t i = 0; i < size; i++) {
        uint32_t word = lp_philox(1, LP_PURPOSE_TEST, (uint32_t)slot_count, i).word[0];
        if (limit)
            ((int32_t *)host)[i] = (int32_t)(word % (uint32_t)limit);
        else
            host[i] = (float)word / 2147483648.0f - 1;
    }
    *value = {};
    value->rows_of = rows_of;
    value->rows = rows;
    value->cols = cols;
    value->storage = LP_STORAGE_INPUT;
    value->slot = slot_count;
    check(cudaMalloc(&slots[slot_count], size * sizeof *host), "matrix");
    cudaMemcpy(slots[slot_count++], host, size * sizeof *host, cudaMemcpyHostToDevice);
    free(host);
    return value;
}

typedef struct bench {
    lp_plan plan;
    lp_run run;
    lp_cuda_run device;
    lp_cuda_shard shard;
    int tokens;
} bench;

static void bench_start(bench *b, int segments, int shortest, int longest, int targets)
{
    int32_t *segment = (int32_t *)calloc((size_t)segments + 1, sizeof *segment);
    *b = {};
    for (int s = 0; s < segments; s++) {
        /* Longer ones are cut off, as histories are: exponential, a quarter of them at the limit. */
        double u = (lp_philox(2, LP_PURPOSE_TEST, 0, (uint64_t)s).word[0] + 0.5) / 4294967296.0;
        int length = (int)fmin(longest, shortest - 0.74 * (longest - shortest) * log(u));
        segment[s + 1] = segment[s] + length;
    }
    b->tokens = segment[segments];
    b->plan.largest.rows[LP_ROWS_TOKENS] = b->tokens;
    b->plan.largest.rows[LP_ROWS_TARGETS] = targets;
    b->plan.largest.longest = longest;
    b->plan.real_size = sizeof(float);
    b->run.plan = &b->plan;
    b->run.inputs = slots;
    b->shard.rows[LP_ROWS_TOKENS] = b->tokens;
    b->shard.rows[LP_ROWS_TARGETS] = targets;
    b->shard.segments = segments;
    b->shard.seed = 3;
    int32_t *table;
    lp_cuda_shard *shard;
    size_t numbers = (size_t)segments + 1;
    check(cudaMalloc(&table, numbers * sizeof *table), "segments");
    check(cudaMalloc(&shard, sizeof *shard), "shard");
    cudaMemcpy(table, segment, numbers * sizeof *table, cudaMemcpyHostToDevice);
    cudaMemcpy(shard, &b->shard, sizeof *shard, cudaMemcpyHostToDevice);
    b->device.run = &b->run;
    b->device.shard = shard;
    b->device.segment = table;
    b->device.largest_segments = segments;
    free(segment);
}

/* Microseconds of one call. */
template <typename work> static double timed(const work &call)
{
    cudaEvent_t start, end;
    float ms;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    for (int i = 0; i < 5; i++)
        call();
    cudaEventRecord(start, stream);
    for (int i = 0; i < 50; i++)
        call();
    cudaEventRecord(end, stream);
    check(cudaEventSynchronize(end), "a timed kernel");
    cudaEventElapsedTime(&ms, start, end);
    return ms * 1000 / 50;
}

static void say(const char *what, const char *tiles, double us, double flop)
{
    printf("%-26s %-46s %8.1f us %7.2f TFLOP/s\n", what, tiles, us, flop / us * 1e-6);
    fflush(stdout);
}

/* ---- the loss and layer norm --------------------------------------------------------------------------------- */

static void losses(int targets, int items, int cols)
{
    bench b;
    lp_node ahead = {}, back = {};
    slot_count = 0;
    bench_start(&b, 1, targets, targets, targets);
    back.inputs[0] = ahead.inputs[0] = matrix(LP_ROWS_TARGETS, targets, cols, 0);
    back.inputs[1] = ahead.inputs[1] = matrix(LP_ROWS_FIXED, items, cols, 0);
    back.inputs[2] = ahead.inputs[2] = matrix(LP_ROWS_FIXED, items, 1, 0);
    back.inputs[4] = ahead.inputs[4] = matrix(LP_ROWS_TARGETS, targets, 1, items);
    ahead.outputs[0] = matrix(LP_ROWS_FIXED, 1, 1, 0);
    back.inputs[6] = matrix(LP_ROWS_FIXED, 1, 1, 0);
    ahead.outputs[1] = back.inputs[5] = matrix(LP_ROWS_TARGETS, targets, 1, 0);
    back.outputs[0] = matrix(LP_ROWS_TARGETS, targets, cols, 0);
    back.outputs[1] = matrix(LP_ROWS_FIXED, items, cols, 0);
    back.outputs[2] = matrix(LP_ROWS_FIXED, items, 1, 0);
    double flop = 2.0 * targets * items * cols;
    printf("\n%d targets, %d items, %d columns\n", targets, items, cols);
    static const lp_precision types[] = {LP_PRECISION_FP32, LP_PRECISION_TF32, LP_PRECISION_BF16};
    static const char *const names[][2] = {{"softmax_loss, fp32", "softmax_loss_gradient, fp32"},
                                           {"softmax_loss, tf32", "softmax_loss_gradient, tf32"},
                                           {"softmax_loss, bf16", "softmax_loss_gradient, bf16"}};
    for (int precision = 0; precision < 3; precision++) {
        b.run.precision = types[precision];
        say(names[precision][0], "as chosen", timed([&]() { loss::lp_cuda_softmax_loss(&ahead, &b.device); }), flop);
        say(names[precision][1], "as chosen", timed([&]() { loss::lp_cuda_softmax_loss_gradient(&back, &b.device); }),
            3 * flop);
    }
}

static void norms(int tokens, int cols)
{
    bench b;
    lp_node ahead = {}, back = {};
    slot_count = 0;
    bench_start(&b, 1, tokens, tokens, 0);
    back.inputs[0] = ahead.inputs[0] = matrix(LP_ROWS_TOKENS, tokens, cols, 0);
    back.inputs[1] = ahead.inputs[1] = matrix(LP_ROWS_FIXED, 1, cols, 0);
    ahead.inputs[2] = matrix(LP_ROWS_FIXED, 1, cols, 0);
    ahead.outputs[0] = back.inputs[3] = matrix(LP_ROWS_TOKENS, tokens, cols, 0);
    ahead.outputs[1] = back.inputs[2] = matrix(LP_ROWS_TOKENS, tokens, 2, 0);
    back.outputs[0] = matrix(LP_ROWS_TOKENS, tokens, cols, 0);
    back.outputs[1] = matrix(LP_ROWS_FIXED, 1, cols, 0);
    back.outputs[2] = matrix(LP_ROWS_FIXED, 1, cols, 0);
    ahead.attributes.epsilon = 1e-5;
    printf("\n%d tokens, %d columns (GB/s where it says TFLOP/s)\n", tokens, cols);
    double bytes = 1e3 * tokens * cols * 4.0;
    say("layer_norm", "", timed([&]() { norms_of_rows::lp_cuda_layer_norm(&ahead, &b.device); }), 2 * bytes);
    say("layer_norm_gradient", "", timed([&]() { norms_of_rows::lp_cuda_layer_norm_gradient(&back, &b.device); }),
        3 * bytes);
}

int main(void)
{
    check(cudaStreamCreate(&stream), "a stream");
    losses(13000, 3416, 50);
    losses(21000, 3416, 128);
    norms(13000, 50);
    norms(25600, 50);
    return 0;
}
