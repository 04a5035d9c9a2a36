/* cuda_basic.cu: elementwise ops, masks of autoregressive layers, noise, and harmonics. */
#include "backend/cuda/cuda_rows.h"

/* ---- elementwise --------------------------------------------------------------------------------------------- */

/* f(a, b) of each op; b is 0 for an op with one input. with: attributes of the node; scale, in float: its scale, the bound of tanh, or
 * the least value of log_abs. */
#define ELEMENTWISE(OP)                                                 \
    OP(ADD, add, a + b)                                                 \
    OP(RELU, relu, a > 0 ? a : 0)                                       \
    OP(RELU_GRADIENT, relu_gradient, a > 0 ? b : 0)                     \
    OP(MULTIPLY, multiply, (a * b))                                     \
    OP(AFFINE, affine, (float)with.shift + scale * a)                   \
    OP(EXP, exp, (float)exp((double)a))                                 \
    OP(TANH, tanh, (float)(with.scale * tanh((double)a / with.scale)))  \
    OP(TANH_GRADIENT, tanh_gradient, (1 - a / scale * (a / scale)) * b) \
    OP(LOG_ABS, log_abs, (float)log(hypot((double)a, with.scale)))      \
    OP(LOG_ABS_GRADIENT, log_abs_gradient, (b * a) / (a * a + scale * scale))

template <lp_op_id op> __device__ static inline float element(const lp_attributes &with, float a, float b)
{
    float scale = (float)with.scale;
#define ELEMENT(id, name, f) \
    if (op == LP_OP_##id)    \
        return f;
    ELEMENTWISE(ELEMENT)
}

/* y = f(a, b), four elements a thread: as vectors if `aligned` (all pointers 16-byte aligned). b can be NULL. */
template <lp_op_id op>
__global__ void elementwise_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *a,
                                   const float *b, float *y, int accumulate, bool aligned, lp_attributes with)
{
    int64_t size = (int64_t)lp_rows_now(rows, shard) * cols;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (aligned && i + 4 <= size) {
        lp_vector<4> p = lp_vector_load<4>(a + i), q = {};
        if (b)
            q = lp_vector_load<4>(b + i);
#pragma unroll
        for (int j = 0; j < 4; j++)
            p.at[j] = element<op>(with, p.at[j], q.at[j]);
        lp_vector_store<4>(y + i, p, accumulate);
        return;
    }
    int64_t end = i + 4 < size ? i + 4 : size;
#pragma unroll 1
    for (; i < end; i++)
        lp_store(&y[i], element<op>(with, a[i], b ? b[i] : 0), accumulate);
}

template <lp_op_id op> static void elementwise(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    const float *a = LP_INPUT(0), *b = LP_INPUT(1);
    float *y = LP_OUTPUT(0);
    bool aligned = ((uintptr_t)a | (uintptr_t)b | (uintptr_t)y) % 16 == 0;
    LP_LAUNCH(run, elementwise_kernel<op>, lp_blocks((int64_t)lp_cuda_largest(run, out) * out->cols, 1024), 256, 0,
              run->shard, lp_cuda_rows_of(out), out->cols, a, b, y, LP_ADDS(0), aligned, node->attributes);
}

#define LAUNCHER(id, name, f) LP_CUDA_OP_BY(name, elementwise<LP_OP_##id>)
ELEMENTWISE(LAUNCHER)

/* ---- a thread for each element ------------------------------------------------------------------------------- */

void lp_cuda_mask(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int cols = out->cols, adds = LP_ADDS(0);
    lp_attributes mask = node->attributes;
    const float *x = LP_INPUT(0);
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, lp_cuda_largest(run, out) * cols,
                 [=] __device__(int i) { lp_store(&y[i], lp_mask_keeps(&mask, i / cols, i % cols) ? x[i] : 0, adds); });
}

/* Element i uses the words of the i-th uniform number of the sequence in random.h: two of Philox block i / 2. */
void lp_cuda_noise(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->rows * node->outputs[0]->cols;
    lp_attributes with = node->attributes;
    const lp_cuda_shard *shard = run->shard;
    float *y = LP_OUTPUT(0);
    lp_cuda_each(run, size, [=] __device__(int i) {
        lp_random random = lp_random_start(shard->seed, (uint32_t)LP_PURPOSE_NOISE | with.stream << 8, shard->step);
        random.element = (uint64_t)i / 2;
        if (i % 2)
            lp_random_uniform(&random);
        double u = lp_random_uniform(&random), p = with.independent ? u : ((double)i + u) / (double)size;
        y[i] = (float)(with.uniform ? p : lp_normal_quantile(p));
    });
}

/* Log periods to angular frequencies, in double. */
void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics;
    const float *log_period = LP_INPUT(0);
    double *frequency = LP_OUTPUT_AS(double, 0);
    lp_cuda_each(run, node->outputs[0]->cols,
                 [=] __device__(int i) { frequency[i] = lp_harmonic(log_period, i, count); });
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int count = node->attributes.harmonics, adds = LP_ADDS(0);
    const double *frequency = LP_INPUT_AS(double, 0), *dfrequency = LP_INPUT_AS(double, 1);
    float *dlog_period = LP_OUTPUT(0);
    lp_cuda_each(run, node->outputs[0]->cols, [=] __device__(int i) {
        double sum = 0;
        for (int j = i * count; j < (i + 1) * count; j++)
            sum -= frequency[j] * dfrequency[j];
        lp_store(&dlog_period[i], (float)sum, adds);
    });
}
