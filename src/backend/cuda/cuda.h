/* cuda.h: what every kernel of the CUDA backend needs: where its data lies, how large the shard is, and how it is launched.
 *
 * One step is recorded once and replayed for every later shard (cuda_program.cu), so a launch must not depend on the shard:
 * it is made for the largest one (lp_cuda_largest), and the kernel reads the actual numbers of rows, the seed and the step from
 * lp_cuda_shard, which lies on the device and is written before each replay. Threads beyond them return or do nothing.
 *
 * The function of an op (lp_cuda_kernel) runs on the host and launches. It is called for the first run, when scratch may
 * still grow, and once more while the recording is made; never after that. It must not wait for the device nor read from it.
 *
 * The same files are compiled by g++ over tests/emulate, which runs every thread on the CPU.
 */
#ifndef LP_CUDA_H
#define LP_CUDA_H

/* The standard headers first: the library's own are C, and include them. */
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

/* ---- what a kernel reads on the device ----------------------------------------------------------------------- */

/* The shard at hand. */
typedef struct lp_cuda_shard {
    int32_t rows[LP_ROWS_COUNT]; /* by lp_rows; that of LP_ROWS_FIXED is not used */
    int32_t segments;
    uint32_t step;
    uint64_t seed, first_token;
} lp_cuda_shard;

/* How many rows a value has: a fixed number, or that of its event type in this shard. */
typedef struct lp_cuda_rows {
    int type, fixed;
} lp_cuda_rows;

__device__ static inline int lp_rows_now(lp_cuda_rows rows, const lp_cuda_shard *shard)
{
    return rows.type == LP_ROWS_FIXED ? rows.fixed : shard->rows[rows.type];
}

/* ---- what the function of an op gets ------------------------------------------------------------------------- */

typedef struct lp_cuda_run {
    const lp_run *run;          /* all its pointers, but segment, lie on the device */
    const lp_cuda_shard *shard; /* on the device */
    const int32_t *segment;     /* on the device: shard->segments + 1 token numbers */
    int largest_segments;       /* room for so many, then cuda_attention_order.h */
    int lane;                   /* whose scratch the node at hand has */
    struct lp_cuda_program *program;
    const struct lp_cuda_chain *chains; /* by stage */
} lp_cuda_run;

typedef void (*lp_cuda_kernel)(const lp_node *node, const lp_cuda_run *run);

/* Data of input or output i of the node at hand; NULL where it is absent or not wanted. */
#define LP_INPUT(i) ((const float *)(node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL))
#define LP_INPUT_AS(type, i) ((const type *)(node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL))
#define LP_OUTPUT(i) ((float *)(node->outputs[i] ? lp_run_data(run->run, node->outputs[i]) : NULL))
#define LP_OUTPUT_AS(type, i) ((type *)(node->outputs[i] ? lp_run_data(run->run, node->outputs[i]) : NULL))
/* Whether output i is added to instead of written. */
#define LP_ADDS(i) ((int)(node->accumulate >> (i)&1))

static inline lp_cuda_rows lp_cuda_rows_of(const lp_value *value)
{
    lp_cuda_rows rows = {(int)value->rows_of, value->rows};
    return rows;
}

/* The most rows a value may have: what to launch for. */
static inline int lp_cuda_largest(const lp_cuda_run *run, const lp_value *value)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : (int)run->run->plan->largest.rows[value->rows_of];
}

/* Device memory that the node at hand may use while its kernels run, 256-byte aligned; the next node gets the same bytes. It
 * holds anything. NULL when there is none left: then launch nothing, the run is lost and says so. Ask once per node. */
void *lp_cuda_scratch(const lp_cuda_run *run, size_t size);

/* Device memory that goes with a value for as long as the program is there: what its maker leaves for those who read it, or for other pieces
 * of itself. NULL where there is none left, as with scratch, or none yet and size is 0. */
void *lp_cuda_kept(const lp_cuda_run *run, const lp_value *beside, size_t size);

/* For a stage of several launches: what is lazy at the same moment (cuda_stage.h) may begin when those made so far are over. Before, it would be
 * in the way of those to come. */
void lp_cuda_under_way(const lp_cuda_run *run);

/* Sets size bytes (a multiple of 4) to 0, in the order of the launches. */
void lp_cuda_clear(const lp_cuda_run *run, void *data, size_t size);

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* LP_LAUNCH(run, kernel, grid, block, shared_bytes, arguments...). A kernel that is a template with several arguments stands
 * in parentheses. An empty grid launches nothing. LP_SHARED declares the dynamic shared memory inside a kernel.
 *
 * LP_LAUNCH_EARLY: the same, for a kernel that may begin when all blocks of the launch before it in its lane have said
 * lp_let_next_begin, and waits for the end of that one by lp_wait_for_last: every block that has anything to do.
 * So the end of a launch is the end of all before it in its lane. */
#ifdef __CUDACC__

cudaStream_t lp_cuda_stream(const lp_cuda_run *run);
/* Takes note of a CUDA call that failed. */
void lp_cuda_check(cudaError_t error, const char *what);
cudaLaunchConfig_t lp_cuda_early(const lp_cuda_run *run, dim3 grid, dim3 block, size_t shared_bytes,
                                 cudaLaunchAttribute *attribute);

#define LP_ALLOW_SHARED(kernel, size)                                                                             \
    do {                                                                                                          \
        if ((size) > 48 * 1024) {                                                                                 \
            lp_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(size)), \
                          #kernel);                                                                               \
            lp_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,            \
                                               cudaSharedmemCarveoutMaxShared),                                   \
                          #kernel);                                                                               \
        }                                                                                                         \
    } while (0)
#define LP_LAUNCH(run, kernel, grid, block, shared_bytes, ...)                         \
    do {                                                                               \
        dim3 lp_grid = (grid);                                                         \
        size_t lp_shared = (shared_bytes);                                             \
        LP_ALLOW_SHARED(kernel, lp_shared);                                            \
        if (lp_grid.x && lp_grid.y && lp_grid.z) {                                     \
            kernel<<<lp_grid, (block), lp_shared, lp_cuda_stream(run)>>>(__VA_ARGS__); \
            lp_cuda_check(cudaGetLastError(), #kernel);                                \
        }                                                                              \
    } while (0)
#define LP_LAUNCH_EARLY(run, kernel, grid, block, shared_bytes, ...)                                       \
    do {                                                                                                   \
        cudaLaunchAttribute lp_attribute;                                                                  \
        cudaLaunchConfig_t lp_config = lp_cuda_early(run, (grid), (block), (shared_bytes), &lp_attribute); \
        LP_ALLOW_SHARED(kernel, lp_config.dynamicSmemBytes);                                               \
        if (lp_config.gridDim.x && lp_config.gridDim.y && lp_config.gridDim.z)                             \
            lp_cuda_check(cudaLaunchKernelEx(&lp_config, kernel, __VA_ARGS__), #kernel);                   \
    } while (0)
#define LP_SHARED(type, name)                                         \
    extern __shared__ __align__(16) unsigned char lp_shared_memory[]; \
    type *name = (type *)lp_shared_memory

#else

#define LP_LAUNCH(run, kernel, grid, block, shared_bytes, ...)                                   \
    do {                                                                                         \
        dim3 lp_grid = (grid);                                                                   \
        (void)(run);                                                                             \
        if (lp_grid.x && lp_grid.y && lp_grid.z)                                                 \
            lp_emulate_launch(lp_grid, (block), (shared_bytes), [=]() { kernel(__VA_ARGS__); }); \
    } while (0)
#define LP_LAUNCH_EARLY LP_LAUNCH
#define LP_SHARED(type, name) type *name = (type *)lp_emulate_shared()

#endif

/* Blocks of `size` that hold `count`. */
static inline unsigned lp_blocks(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

/* ---- for kernels --------------------------------------------------------------------------------------------- */

__device__ static inline void lp_let_next_begin(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ static inline void lp_wait_for_last(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Writes, or adds. */
__device__ static inline void lp_store(float *place, float amount, int adds)
{
    *place = adds ? *place + amount : amount;
}

/* Sums over the 32 lanes of a warp, always in the same order; every lane gets it. */
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

/* *loss = the sum of a number for each row of `like`, in double and in a fixed order (cuda_loss.cu). */
void lp_cuda_loss_sum(const lp_cuda_run *run, const lp_value *like, const float *losses, float *loss);

/* ---- the ops ------------------------------------------------------------------------------------------------- */

#define LP_CUDA_OP(name) void lp_cuda_##name(const lp_node *node, const lp_cuda_run *run)

/* cuda_basic.cu */
LP_CUDA_OP(add);
LP_CUDA_OP(relu);
LP_CUDA_OP(relu_gradient);
LP_CUDA_OP(dropout);
LP_CUDA_OP(multiply);
LP_CUDA_OP(affine);
LP_CUDA_OP(exp);
LP_CUDA_OP(tanh);
LP_CUDA_OP(tanh_gradient);
LP_CUDA_OP(mask);
LP_CUDA_OP(noise);
/* cuda_columns.cu */
LP_CUDA_OP(scale_columns);
/* cuda_linear.cu */
LP_CUDA_OP(linear);
/* cuda_sums.cu */
LP_CUDA_OP(linear_outer);
LP_CUDA_OP(column_sum);
LP_CUDA_OP(column_dot);
LP_CUDA_OP(basis_gradient);
/* cuda_embed.cu */
LP_CUDA_OP(embed);
LP_CUDA_OP(embed_gradient);
LP_CUDA_OP(gather);
/* cuda_time.cu */
LP_CUDA_OP(harmonics);
LP_CUDA_OP(harmonics_gradient);
LP_CUDA_OP(basis);
LP_CUDA_OP(reflect);
LP_CUDA_OP(reflect_gradient);
/* cuda_loss.cu */
LP_CUDA_OP(cross_entropy);
LP_CUDA_OP(cross_entropy_gradient);
LP_CUDA_OP(bce_loss);
LP_CUDA_OP(bce_loss_gradient);
/* cuda_norm.cu */
LP_CUDA_OP(layer_norm);
LP_CUDA_OP(layer_norm_gradient);
/* cuda_attention.cu, cuda_attention_gradient.cu */
LP_CUDA_OP(attention);
LP_CUDA_OP(attention_gradient);
/* cuda_softmax_loss.cu */
LP_CUDA_OP(softmax_loss);
LP_CUDA_OP(softmax_loss_gradient);

/* NULL: the device cannot (cuda_table.cu). */
lp_cuda_kernel lp_cuda_kernel_of(lp_op_id id);

#endif
