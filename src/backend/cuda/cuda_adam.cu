/* cuda_adam.cu: lazy Adam on the device (of a table, only the rows that the batch uses), in two launches:
 * adam_norm_kernel sums squares for gradient clipping by global norm, adam_step_kernel updates.
 *
 *     m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) g^2     p -= rate m / (sqrt(v) correction2 + epsilon)
 *
 * A batch is one shard here: row i of the optimizer's list has row i of the shard's gradients. Parameters form groups
 * (the dense ones, then each table), and groups are cut into chunks, one for each block of adam_step_kernel.
 * adam_norm_kernel has few blocks, so that every block of adam_step_kernel can add their results, in a fixed order.
 * adam_step_kernel starts by programmatic dependent launch: it loads its first chunk before it waits for the norm.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

enum { DENSE = 4, THREADS = 256, WARPS = THREADS / 32, GROUPS = 1 + LP_TABLE_LIMIT, NORM_BLOCKS = 528 };
static_assert(LP_PARAMETER_ALIGN % DENSE == 0, "the vector of a thread has one learning rate");

/* The dense parameters (one long row), or the rows of a table that the batch uses. `lanes` threads own a row, `width`
 * columns each at a time. */
typedef struct group {
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* for each LP_PARAMETER_ALIGN parameters; NULL: `rate` */
    float rate;
    int cols, width, lanes, chunks;
    bool table;
} group;

typedef struct adam_task {
    group groups[GROUPS];
    const lp_cuda_adam_args *args;
    double *norms; /* of the blocks of adam_norm_kernel */
    float beta1, beta2, epsilon, l2;
    double clip;
    int chunks, norm_blocks; /* norm_blocks is 0 without clipping */
} adam_task;

/* Elements of a chunk that a thread owns: columns c, c + step, .. of a row at `parameter_offset` of parameters and
 * moments, and at `gradient_offset` of gradients. */
typedef struct span {
    size_t parameter_offset, gradient_offset;
    int c, step, end;
} span;

/* The group of a chunk; *chunk becomes its index within the group. */
__device__ static inline const group &group_of(const adam_task &task, int *chunk)
{
    int index = 0;
    while (*chunk >= task.groups[index].chunks)
        *chunk -= task.groups[index++].chunks;
    return task.groups[index];
}

__device__ static inline span span_of(const adam_task &task, const group &p, int chunk)
{
    if (!p.table)
        return span{0, 0, p.width * (chunk * THREADS + (int)threadIdx.x), p.cols, p.cols};
    int row = chunk * (THREADS / p.lanes) + (int)threadIdx.x / p.lanes;
    if (row >= task.args->rows)
        return span{0, 0, 0, 1, 0};
    const int32_t *rows = (const int32_t *)(task.args + 1);
    return span{(size_t)rows[row] * p.cols, (size_t)row * p.cols, p.width * ((int)threadIdx.x % p.lanes),
                p.width * p.lanes, p.cols};
}

__device__ static inline float rate_at(const group &p, int c)
{
    return p.rates ? p.rates[c / LP_PARAMETER_ALIGN] : p.rate;
}

/* Gradient with L2 regularization; 0 for parameters whose rate is 0. */
template <int n>
__device__ static inline lp_vector<n> gradient_at(const adam_task &task, const group &p, const span &at)
{
    lp_vector<n> gradient = lp_vector_load<n>(p.gradients + at.gradient_offset + at.c);
    bool fixed = rate_at(p, at.c) == 0;
    if (task.l2 != 0) {
        lp_vector<n> parameter = lp_vector_load<n>(p.parameters + at.parameter_offset + at.c);
#pragma unroll
        for (int i = 0; i < n; i++)
            gradient.at[i] += task.l2 * parameter.at[i];
    }
#pragma unroll
    for (int i = 0; i < n; i++)
        gradient.at[i] = fixed ? 0 : gradient.at[i];
    return gradient;
}

template <int n> __device__ static inline double sum_squares(const adam_task &task, const group &p, span at)
{
    double norm = 0;
#pragma unroll 1
    for (; at.c < at.end; at.c += at.step) {
        lp_vector<n> gradient = gradient_at<n>(task, p, at);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < n; i++)
            sum += gradient.at[i] * gradient.at[i];
        norm += (double)sum;
    }
    return norm;
}

__global__ void __launch_bounds__(THREADS) adam_norm_kernel(const __grid_constant__ adam_task task)
{
    double norm = 0;
    lp_pdl_trigger();
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < task.chunks; i += (int)gridDim.x) {
        int chunk = i;
        const group &p = group_of(task, &chunk);
        span at = span_of(task, p, chunk);
        norm += p.width == 4   ? sum_squares<4>(task, p, at)
                : p.width == 2 ? sum_squares<2>(task, p, at)
                               : sum_squares<1>(task, p, at);
    }
    norm = lp_block_sum<WARPS>(norm);
    if (threadIdx.x == 0)
        task.norms[blockIdx.x] = norm;
}

/* Factor that clips the global norm to `clip`. Every thread of the block must call it. */
__device__ static inline float clip_scale(const adam_task &task)
{
    __shared__ float scale;
    double sum = 0;
    if (!task.norm_blocks)
        return 1;
    lp_pdl_wait();
#pragma unroll
    for (int i = 0; i < NORM_BLOCKS; i += THREADS)
        if (i + (int)threadIdx.x < task.norm_blocks)
            sum += task.norms[i + threadIdx.x];
    sum = lp_block_sum<WARPS>(sum);
    if (threadIdx.x == 0)
        scale = sqrt(sum) > task.clip ? (float)(task.clip / sqrt(sum)) : 1;
    __syncthreads();
    return scale;
}

template <int n> struct chunk_values {
    lp_vector<n> gradient, first, second, parameter;
    float rate;
};

template <int n>
__device__ static inline chunk_values<n> load_values(const adam_task &task, const group &p, const span &at)
{
    return chunk_values<n>{gradient_at<n>(task, p, at), lp_vector_load<n>(p.moment1 + at.parameter_offset + at.c),
                           lp_vector_load<n>(p.moment2 + at.parameter_offset + at.c),
                           lp_vector_load<n>(p.parameters + at.parameter_offset + at.c), rate_at(p, at.c)};
}

template <int n>
__device__ static inline void update(const adam_task &task, const group &p, const span &at, chunk_values<n> &x,
                                     float scale)
{
    float rate = task.args->rate * x.rate, correction = task.args->correction2;
#pragma unroll
    for (int i = 0; i < n; i++) {
        float g = x.gradient.at[i] * scale;
        x.first.at[i] = task.beta1 * x.first.at[i] + (1 - task.beta1) * g;
        x.second.at[i] = task.beta2 * x.second.at[i] + (1 - task.beta2) * g * g;
        x.parameter.at[i] -= rate * x.first.at[i] / (sqrtf(x.second.at[i]) * correction + task.epsilon);
    }
    if (task.l2 != 0 || x.rate == 0) /* readers of gradients see the one that was applied */
        lp_vector_store<n>(p.gradients + at.gradient_offset + at.c, x.gradient, 0);
    lp_vector_store<n>(p.moment1 + at.parameter_offset + at.c, x.first, 0);
    lp_vector_store<n>(p.moment2 + at.parameter_offset + at.c, x.second, 0);
    lp_vector_store<n>(p.parameters + at.parameter_offset + at.c, x.parameter, 0);
}

/* The first values are loaded before the wait for the norm. */
template <int n> __device__ static inline void step_chunk(const adam_task &task, const group &p, int chunk)
{
    span at = span_of(task, p, chunk);
    chunk_values<n> x;
    if (at.c < at.end)
        x = load_values<n>(task, p, at);
    float scale = clip_scale(task);
#pragma unroll 1
    while (at.c < at.end) {
        update<n>(task, p, at, x, scale);
        at.c += at.step;
        if (at.c < at.end)
            x = load_values<n>(task, p, at);
    }
}

__global__ void __launch_bounds__(THREADS) adam_step_kernel(const __grid_constant__ adam_task task)
{
    int chunk = (int)blockIdx.x;
    const group &p = group_of(task, &chunk);
    if (p.width == 4)
        step_chunk<4>(task, p, chunk);
    else if (p.width == 2)
        step_chunk<2>(task, p, chunk);
    else
        step_chunk<1>(task, p, chunk);
    if (blockIdx.x + threadIdx.x == 0 && task.args->loss_to)
        *task.args->loss_to = *task.args->loss;
}

/* ---- parameter groups ---------------------------------------------------------------------------------------- */

/* The parameters from `first` on. */
static group group_from(const lp_adam *adam, float *parameters, size_t first)
{
    group p = {};
    p.parameters = parameters + first;
    p.moment1 = adam->moment1 + first;
    p.moment2 = adam->moment2 + first;
    return p;
}

static group dense_group(const lp_adam *adam, float *parameters)
{
    group p = group_from(adam, parameters, adam->table_size);
    p.gradients = adam->gradients;
    p.rates = adam->rates;
    p.cols = (int)(adam->size - adam->table_size);
    p.width = DENSE;
    p.chunks = (int)lp_blocks(p.cols, DENSE * THREADS);
    return p;
}

static group table_group(const lp_adam *adam, const lp_table *table, float *parameters)
{
    group p = group_from(adam, parameters, table->offset);
    p.table = true;
    p.gradients = adam->row_gradients + (size_t)table->before * (size_t)adam->item_capacity;
    p.rate = table->rate;
    p.cols = table->cols;
    p.width = lp_vector_width(
        (uintptr_t)p.parameters | (uintptr_t)p.moment1 | (uintptr_t)p.moment2 | (uintptr_t)p.gradients, p.cols);
    p.lanes = lp_row_lanes(p.cols, p.width);
    p.chunks = (int)lp_blocks(adam->item_capacity, THREADS / p.lanes);
    return p;
}

void lp_cuda_adam_launch(const lp_cuda_run *run, const lp_train_step *train, const lp_cuda_adam_args *args)
{
    const lp_adam *adam = train->adam;
    adam_task task = {};
    task.groups[0] = dense_group(adam, train->parameters);
    for (int t = 0; t < adam->table_count; t++)
        task.groups[1 + t] = table_group(adam, &adam->tables[t], train->parameters);
    for (int i = 0; i <= adam->table_count; i++)
        task.chunks += task.groups[i].chunks;
    task.args = args;
    task.norms = adam->norms;
    task.beta1 = (float)adam->beta1;
    task.beta2 = (float)adam->beta2;
    task.epsilon = (float)adam->epsilon;
    task.l2 = (float)adam->l2;
    task.clip = adam->clip;
    task.norm_blocks = adam->clip > 0 ? (task.chunks < NORM_BLOCKS ? task.chunks : (int)NORM_BLOCKS) : 0;
    unsigned norm_blocks = (unsigned)task.norm_blocks, chunks = (unsigned)task.chunks;
    if (!norm_blocks) {
        LP_LAUNCH(run, adam_step_kernel, chunks, THREADS, 0, task);
        return;
    }
    LP_LAUNCH(run, adam_norm_kernel, norm_blocks, THREADS, 0, task);
    LP_LAUNCH_PDL(run, adam_step_kernel, chunks, THREADS, 0, task);
}

/* ---- per-step arguments -------------------------------------------------------------------------------------- */

size_t lp_cuda_adam_size(int64_t max_rows)
{
    return sizeof(lp_cuda_adam_args) + (size_t)max_rows * sizeof(int32_t);
}

void lp_cuda_adam_fill(const lp_train_step *train, const float *loss, lp_cuda_adam_args *args)
{
    const lp_adam *adam = train->adam;
    double step = (double)train->step;
    *args = lp_cuda_adam_args();
    args->rows = train->rows ? train->rows->count : 0;
    args->rate = (float)(adam->learning_rate / (1 - pow(adam->beta1, step)));
    args->correction2 = (float)(1 / sqrt(1 - pow(adam->beta2, step)));
    args->loss = loss;
    args->loss_to = loss ? train->loss_to : NULL;
    if (args->rows)
        memcpy(args + 1, train->rows->row, (size_t)args->rows * sizeof(int32_t));
}
