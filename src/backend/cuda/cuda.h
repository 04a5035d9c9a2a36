/* cuda.h: what every kernel of the CUDA backend uses: the data and sizes of a run, scratch memory, and launches.
 *
 * The launches of a step are captured into a CUDA graph and replayed for later shards (cuda_program.cu), so a launch must not depend
 * on the shard. It is sized for the largest shard (lp_cuda_largest); the kernel reads the actual row counts, the seed and the step from
 * lp_cuda_shard in device memory, which is written before each replay. Threads beyond the actual rows do nothing.
 *
 * The launcher of an op (lp_cuda_kernel) runs on the host. It is called for the first run, when scratch may still grow, and
 * once more for each captured graph. It must neither wait for the device nor read from it.
 *
 * g++ compiles the same files with tests/emulate in place of CUDA, which runs every thread on the CPU.
 */
#ifndef LP_CUDA_H
#define LP_CUDA_H

/* Before extern "C": the library's headers include these. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <emulate.h>
#endif

extern "C" {
#include "backend/backend.h"
}

/* ---- device data of a shard ---------------------------------------------------------------------------------- */

/* Sizes and random seed of the current shard, in device memory. */
typedef struct lp_cuda_shard {
    int32_t rows[LP_ROWS_COUNT]; /* by lp_rows; LP_ROWS_FIXED is not used */
    int32_t segments;
    uint32_t step;
    uint64_t seed, first_token;
} lp_cuda_shard;

/* Row count of a value: fixed, or the shard's count of this lp_rows. */
typedef struct lp_cuda_rows {
    int type, fixed;
} lp_cuda_rows;

__device__ static inline int lp_rows_now(lp_cuda_rows rows, const lp_cuda_shard *shard)
{
    return rows.type == LP_ROWS_FIXED ? rows.fixed : shard->rows[rows.type];
}

/* ---- arguments of a launcher -------------------------------------------------------------------------------- */

typedef struct lp_cuda_device lp_cuda_device; /* cuda_device.h */

typedef struct lp_cuda_run {
    lp_cuda_device *device;
    const lp_run *run;          /* all its pointers, but segment, point to device memory */
    const lp_cuda_shard *shard; /* on the device */
    const int32_t *segment;     /* on the device: shard->segments + 1 token numbers */
    int largest_segments;       /* capacity of `segment`; the order of cuda_attention_order.h follows it */
    int stream;                 /* selects the scratch memory of the current node */
    struct lp_cuda_program *program;
    const struct lp_cuda_upload *upload; /* its layout */
    const struct lp_cuda_copies *copies; /* cuda_packed.h; NULL: none */
    int stage;                           /* number of the current one */
} lp_cuda_run;

typedef void (*lp_cuda_kernel)(const lp_node *node, const lp_cuda_run *run);

/* Data of input or output i of `node`; NULL where it is absent. */
#define LP_INPUT(i) ((const float *)(node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL))
#define LP_INPUT_AS(type, i) ((const type *)(node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL))
#define LP_OUTPUT(i) ((float *)(node->outputs[i] ? lp_run_data(run->run, node->outputs[i]) : NULL))
#define LP_OUTPUT_AS(type, i) ((type *)(node->outputs[i] ? lp_run_data(run->run, node->outputs[i]) : NULL))
/* Whether the node accumulates into output i. */
#define LP_ADDS(i) ((int)(node->accumulate >> (i)&1))

static inline lp_cuda_rows lp_cuda_rows_of(const lp_value *value)
{
    lp_cuda_rows rows = {(int)value->rows_of, value->rows};
    return rows;
}

/* The largest row count of a value, which launches are sized for. */
static inline int lp_cuda_largest(const lp_cuda_run *run, const lp_value *value)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : (int)run->run->plan->largest.rows[value->rows_of];
}

/* Device memory for the kernels of the current node, 256-byte aligned, with undefined contents; the next node on the stream reuses it.
 * NULL when the device is out of memory: the launcher then launches nothing, and the run fails. At most one call per node. */
void *lp_cuda_scratch(const lp_cuda_run *run, size_t size);

/* Device memory attached to a value until the program is freed: results of the value's producer that are not outputs of it. NULL when the
 * device is out of memory, or when size is 0 and there is none yet. */
void *lp_cuda_side_buffer(const lp_cuda_run *run, const lp_value *beside, size_t size);

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Stores the error of a failed CUDA call in the device. */
void lp_cuda_check(lp_cuda_device *device, cudaError_t error, const char *what);

/* On the current stream. pdl: by programmatic dependent launch. */
cudaLaunchConfig_t lp_cuda_launch_config(const lp_cuda_run *run, const char *name, bool pdl, const void *kernel,
                                         dim3 grid, dim3 block, size_t shared_bytes);

template <typename... types, typename... given>
static inline void lp_cuda_launch(const lp_cuda_run *run, const char *name, bool pdl, void (*kernel)(types...),
                                  dim3 grid, dim3 block, size_t shared_bytes, const given &...arguments)
{
    if (!grid.x || !grid.y || !grid.z)
        return;
    cudaLaunchConfig_t config = lp_cuda_launch_config(run, name, pdl, (const void *)kernel, grid, block, shared_bytes);
    lp_cuda_check(run->device, cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

/* LP_LAUNCH(run, kernel, grid, block, shared_bytes, arguments...). A template kernel with several arguments needs parentheses. An
 * empty grid launches nothing. LP_SHARED declares the dynamic shared memory inside a kernel.
 *
 * LP_LAUNCH_PDL uses programmatic dependent launch: the kernel may start when all blocks of the launch before it on its stream have
 * called lp_pdl_trigger. Every block that reads or writes anything calls lp_pdl_wait first, which returns when that launch is complete.
 * Before compute capability 9.0 it is LP_LAUNCH. */
#define LP_LAUNCH(run, kernel, ...) lp_cuda_launch(run, #kernel, false, kernel, __VA_ARGS__)
#define LP_LAUNCH_PDL(run, kernel, ...) lp_cuda_launch(run, #kernel, true, kernel, __VA_ARGS__)
#ifdef __CUDACC__
#define LP_SHARED(type, name)                                         \
    extern __shared__ __align__(16) unsigned char lp_shared_memory[]; \
    type *name = (type *)lp_shared_memory
#endif

/* count / size, rounded up. */
static inline unsigned lp_blocks(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

/* lp_cuda_each<lanes>(run, like, width, [=] __device__(int64_t i, int lane) { ... }): the function for i = 0 .. rows * width - 1, with
 * the rows that the value `like` has in this shard, by as many lanes each. */
template <int lanes, typename function>
__global__ void lp_each_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int width, function each)
{
    int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread / lanes < (int64_t)lp_rows_now(rows, shard) * width)
        each(thread / lanes, (int)(thread % lanes));
}

template <int lanes = 1, typename function>
static inline void lp_cuda_each(const lp_cuda_run *run, const lp_value *like, int width, const function &each)
{
    LP_LAUNCH(run, (lp_each_kernel<lanes, function>),
              lp_blocks((int64_t)lp_cuda_largest(run, like) * width * lanes, 128), 128, 0, run->shard,
              lp_cuda_rows_of(like), width, each);
}

/* ---- for kernels --------------------------------------------------------------------------------------------- */

__device__ static inline void lp_pdl_trigger(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ static inline void lp_pdl_wait(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ static inline void lp_store(float *to, float amount, int adds)
{
    *to = adds ? *to + amount : amount;
}

/* The sum over the 32 lanes of a warp, in a fixed order, in every lane. */
template <typename type> __device__ static inline type lp_warp_sum(type value)
{
    for (int lanes = 16; lanes > 0; lanes >>= 1)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, lanes);
    return value;
}

__device__ static inline float lp_warp_max(float value)
{
    for (int lanes = 16; lanes > 0; lanes >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, lanes));
    return value;
}

/* *loss = the sum of the terms of all rows, in a fixed order (cuda_loss.cu). */
void lp_cuda_loss_sum(const lp_cuda_run *run, lp_cuda_rows rows, const double *terms, float *loss);
/* A sampled loss and the first output (dz) of its gradient, which reuses the scores, in one launch. gradient: may be NULL. */
void lp_cuda_sampled_loss_fused(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run);
/* The softmax loss or its gradient in fp32 or tf32 (cuda_softmax_floats.cu). */
void lp_cuda_softmax_floats(const lp_node *node, const lp_cuda_run *run);
/* out [p_cols x q_cols] = p^T q and sums [p_cols] = the column sums of p, over rows of device memory, as a linear_outer; either may be
 * NULL. It uses the scratch memory of the node (cuda_reduction.cu). */
void lp_cuda_outer(const lp_cuda_run *run, lp_cuda_rows rows, const float *p, int p_cols, const float *q, int q_cols,
                   float *out, int out_adds, float *sums, int sums_adds);

/* ---- launchers of the ops ------------------------------------------------------------------------------------------------- */

#define LP_CUDA_OP(name) void lp_cuda_##name(const lp_node *node, const lp_cuda_run *run)
/* A launcher that is another function. */
#define LP_CUDA_OP_BY(name, function) \
    LP_CUDA_OP(name)                  \
    {                                 \
        function(node, run);          \
    }

/* cuda_row_chain.cu: a chain of one node, for ops with a rule for fused kernels; and sums over rows that are among its outputs */
LP_CUDA_OP(row_node);

/* All others: lp_cuda_ and the name of the op, in a file that is named after the op or its family. The declarations are weak: the address
 * of a launcher that no file defines is NULL. */
#define LP_CUDA_DECLARE(id, name, cpu) __attribute__((weak)) LP_CUDA_OP(name);
LP_OPS(LP_CUDA_DECLARE)
#undef LP_CUDA_DECLARE

/* The launcher of the node's op, or the one that follows from its rule (cuda_program.cu); NULL where there is none. */
lp_cuda_kernel lp_cuda_kernel_of(const lp_node *node);

#endif
