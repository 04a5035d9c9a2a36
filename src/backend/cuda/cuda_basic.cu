/* cuda_basic.cu: elementwise ops, masks of autoregressive layers, and noise. */
#include "backend/cuda/cuda.h"

/* ---- elementwise --------------------------------------------------------------------------------------------- */

/* Attributes of the node. */
typedef struct element_constants {
    float scale, shift;
    double bound; /* of tanh; least of log_abs */
} element_constants;

/* f(a, b) of an op; b is 0 for an op with one input. */
template <lp_op_id op> __device__ static inline float element(element_constants with, float a, float b)
{
    switch (op) {
    case LP_OP_ADD:
        return a + b;
    case LP_OP_RELU:
        return a > 0 ? a : 0;
    case LP_OP_RELU_GRADIENT:
        return a > 0 ? b : 0;
    case LP_OP_MULTIPLY:
        return a * b;
    case LP_OP_AFFINE:
        return with.scale * a + with.shift;
    case LP_OP_EXP:
        return (float)exp((double)a);
    case LP_OP_TANH:
        return (float)(with.bound * tanh((double)a / with.bound));
    case LP_OP_LOG_ABS:
        return (float)log(hypot((double)a, with.bound));
    case LP_OP_LOG_ABS_GRADIENT:
        return b * a / (a * a + with.scale * with.scale);
    default: /* LP_OP_TANH_GRADIENT */
        return b * (1 - a / with.scale * (a / with.scale));
    }
}

/* y = f(a, b), four elements a thread: as float4 if `aligned` (all pointers 16-byte aligned). b can be NULL. */
template <lp_op_id op>
__global__ void elementwise_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const float *a,
                                   const float *b, float *y, int accumulate, bool aligned, element_constants with)
{
    int64_t size = (int64_t)lp_rows_now(rows, shard) * cols;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (aligned && i + 4 <= size) {
        float4 p = *(const float4 *)(a + i), q = b ? *(const float4 *)(b + i) : make_float4(0, 0, 0, 0);
        float4 z = make_float4(element<op>(with, p.x, q.x), element<op>(with, p.y, q.y), element<op>(with, p.z, q.z),
                               element<op>(with, p.w, q.w));
        if (accumulate) {
            float4 old = *(const float4 *)(y + i);
            z = make_float4(old.x + z.x, old.y + z.y, old.z + z.z, old.w + z.w);
        }
        *(float4 *)(y + i) = z;
        return;
    }
    int64_t end = i + 4 < size ? i + 4 : size;
#pragma unroll 1
    for (; i < end; i++)
        lp_store(&y[i], element<op>(with, a[i], b ? b[i] : 0), accumulate);
}

template <lp_op_id op> void lp_cuda_elementwise(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    const float *a = LP_INPUT(0), *b = node->op->input_count > 1 ? LP_INPUT(1) : NULL;
    float *y = LP_OUTPUT(0);
    int accumulate = LP_ADDS(0), cols = out->cols;
    bool aligned = ((uintptr_t)a | (uintptr_t)b | (uintptr_t)y) % 16 == 0;
    lp_cuda_rows rows = lp_cuda_rows_of(out);
    const lp_cuda_shard *shard = run->shard;
    element_constants with = {(float)node->attributes.scale, (float)node->attributes.shift, node->attributes.scale};
    LP_LAUNCH(run, elementwise_kernel<op>, lp_blocks((int64_t)lp_cuda_largest(run, out) * cols, 1024), 256, 0, shard,
              rows, cols, a, b, y, accumulate, aligned, with);
}

template LP_CUDA_OP(elementwise<LP_OP_ADD>);
template LP_CUDA_OP(elementwise<LP_OP_RELU>);
template LP_CUDA_OP(elementwise<LP_OP_RELU_GRADIENT>);
template LP_CUDA_OP(elementwise<LP_OP_MULTIPLY>);
template LP_CUDA_OP(elementwise<LP_OP_AFFINE>);
template LP_CUDA_OP(elementwise<LP_OP_EXP>);
template LP_CUDA_OP(elementwise<LP_OP_TANH>);
template LP_CUDA_OP(elementwise<LP_OP_TANH_GRADIENT>);
template LP_CUDA_OP(elementwise<LP_OP_LOG_ABS>);
template LP_CUDA_OP(elementwise<LP_OP_LOG_ABS_GRADIENT>);

/* ---- mask: degrees are defined in op.h ----------------------------------------------------------------------- */

typedef struct mask_rule {
    int units, order, layer;
} mask_rule;

__device__ static int input_degree(mask_rule rule, int i)
{
    if (rule.order == LP_ORDER_AUTOREGRESSIVE)
        return i + 1;
    return (i < rule.units / 2) == (rule.order == LP_ORDER_COUPLING_UPPER) ? 1 : 2;
}

__device__ static int hidden_degree(mask_rule rule, int k)
{
    return rule.order == LP_ORDER_AUTOREGRESSIVE && rule.units > 2 ? 1 + k % (rule.units - 1) : 1;
}

__device__ static bool mask_keeps(mask_rule rule, int row, int col)
{
    if (rule.layer == LP_LAYER_FIRST)
        return hidden_degree(rule, row) >= input_degree(rule, col);
    if (rule.layer == LP_LAYER_MIDDLE)
        return hidden_degree(rule, row) >= hidden_degree(rule, col);
    if (rule.layer == LP_LAYER_LAST)
        return input_degree(rule, row) - 1 >= hidden_degree(rule, col);
    return input_degree(rule, col) - 1 >= 1;
}

__global__ void mask_kernel(int size, int cols, mask_rule rule, const float *x, float *y, int accumulate)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < size)
        lp_store(&y[i], mask_keeps(rule, i / cols, i % cols) ? x[i] : 0, accumulate);
}

void lp_cuda_mask(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    mask_rule rule = {node->attributes.units, (int)node->attributes.order, (int)node->attributes.layer};
    int size = lp_cuda_largest(run, out) * out->cols;
    LP_LAUNCH(run, mask_kernel, lp_blocks(size, 256), 256, 0, size, out->cols, rule, LP_INPUT(0), LP_OUTPUT(0),
              LP_ADDS(0));
}

/* ---- noise --------------------------------------------------------------------------------------------------- */

/* Element i uses the words of the i-th uniform number of the sequence in random.h: two of Philox block i / 2. */
__global__ void noise_kernel(const lp_cuda_shard *shard, int size, uint32_t purpose, bool uniform, bool independent,
                             float *y)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= size)
        return;
    lp_random random = lp_random_start(shard->seed, purpose, shard->step);
    random.element = (uint64_t)i / 2;
    if (i % 2)
        lp_random_uniform(&random);
    double u = lp_random_uniform(&random), p = independent ? u : ((double)i + u) / (double)size;
    y[i] = (float)(uniform ? p : lp_normal_quantile(p));
}

void lp_cuda_noise(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int size = out->rows * out->cols;
    LP_LAUNCH(run, noise_kernel, lp_blocks(size, 128), 128, 0, run->shard, size,
              (uint32_t)LP_PURPOSE_NOISE | node->attributes.stream << 8, node->attributes.uniform,
              node->attributes.independent, LP_OUTPUT(0));
}
