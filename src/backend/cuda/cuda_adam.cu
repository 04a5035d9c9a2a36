/* cuda_adam.cu: lazy Adam on the device (of a table, only the rows that the batch uses), in two launches:
 * adam_norm_kernel sums squares for gradient clipping by global norm, adam_step_kernel updates (lp_adam_element).
 *
 * A batch is one shard here: row i of the optimizer's list has row i of the shard's gradients. Parameters form groups
 * (the dense ones, then each table), and groups are cut into chunks of THREADS vectors, one for each block of
 * adam_step_kernel. adam_norm_kernel has few blocks, so that every block of adam_step_kernel can add their results, in a
 * fixed order. Both start by programmatic dependent launch; adam_step_kernel loads its chunk before it waits for the norm.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

enum { DENSE = 4, THREADS = 256, WARPS = THREADS / 32, GROUPS = 1 + LP_TABLE_LIMIT, NORM_BLOCKS = 528 };
static_assert(LP_PARAMETER_ALIGN % DENSE == 0, "the vector of a thread has one learning rate");

/* The dense parameters (one long row), or the rows of a table that the batch uses. A thread owns `width` columns of a row. */
typedef struct group {
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* for each LP_PARAMETER_ALIGN parameters; NULL: `rate` */
    float rate;
    int width, vectors, chunks; /* vectors: of a row */
    bool table;
} group;

typedef struct adam_task {
    group groups[GROUPS];
    const lp_cuda_adam_args *args;
    double *norms; /* of the blocks of adam_norm_kernel */
    float l2;
    double clip;
    int chunks, norm_blocks; /* norm_blocks is 0 without clipping */
} adam_task;

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

/* The vector of this thread. Without `updates` it only returns the sum of squares of the gradients: with L2 regularization, and 0 for
 * parameters whose rate is 0. */
template <int n, bool updates>
__device__ static inline float vector_step(const adam_task &task, const group &p, int chunk)
{
    int index = chunk * THREADS + (int)threadIdx.x, row = index / p.vectors, c = n * (index - row * p.vectors);
    const int32_t *rows = (const int32_t *)(task.args + 1);
    bool valid = row < (p.table ? task.args->rows : 1);
    size_t at = 0;
    float own_rate = 0, squares = 0;
    lp_vector<n> gradient = {}, first = {}, second = {}, parameter = {};
    if (valid) {
        at = p.table ? (size_t)rows[row] * (size_t)(n * p.vectors) + c : c;
        own_rate = p.rates ? p.rates[c / LP_PARAMETER_ALIGN] : p.rate;
        gradient = lp_vector_load<n>(p.gradients + (size_t)index * n);
        if (updates || task.l2 != 0)
            parameter = lp_vector_load<n>(p.parameters + at);
    }
    if (updates && valid) {
        first = lp_vector_load<n>(p.moment1 + at);
        second = lp_vector_load<n>(p.moment2 + at);
    }
#pragma unroll
    for (int i = 0; i < n; i++) {
        gradient.at[i] = own_rate == 0 ? 0 : gradient.at[i] + task.l2 * parameter.at[i];
        squares += gradient.at[i] * gradient.at[i];
    }
    float scale = updates ? clip_scale(task) : 1;
    if (!updates || !valid)
        return squares;
    lp_adam_factors by = task.args->factors;
    by.scale = scale;
#pragma unroll
    for (int i = 0; i < n; i++)
        lp_adam_element(by, by.rate * own_rate, gradient.at[i], &parameter.at[i], &first.at[i], &second.at[i]);
    if (task.l2 != 0 || own_rate == 0) /* readers of gradients see the one that was applied */
        lp_vector_store<n>(p.gradients + (size_t)index * n, gradient, 0);
    lp_vector_store<n>(p.moment1 + at, first, 0);
    lp_vector_store<n>(p.moment2 + at, second, 0);
    lp_vector_store<n>(p.parameters + at, parameter, 0);
    return squares;
}

template <bool updates> __device__ static inline float chunk_step(const adam_task &task, int chunk)
{
    int index = 0;
    while (chunk >= task.groups[index].chunks)
        chunk -= task.groups[index++].chunks;
    const group &p = task.groups[index];
    return p.width == 4   ? vector_step<4, updates>(task, p, chunk)
           : p.width == 2 ? vector_step<2, updates>(task, p, chunk)
                          : vector_step<1, updates>(task, p, chunk);
}

__global__ void __launch_bounds__(THREADS) adam_norm_kernel(const __grid_constant__ adam_task task)
{
    double norm = 0;
    lp_pdl_wait();
    lp_pdl_trigger(); /* after the wait: adam_step_kernel reads gradients before its own */
#pragma unroll 1
    for (int chunk = (int)blockIdx.x; chunk < task.chunks; chunk += (int)gridDim.x)
        norm += (double)chunk_step<false>(task, chunk);
    norm = lp_block_sum<WARPS>(norm);
    if (threadIdx.x == 0)
        task.norms[blockIdx.x] = norm;
}

__global__ void __launch_bounds__(THREADS) adam_step_kernel(const __grid_constant__ adam_task task)
{
    chunk_step<true>(task, (int)blockIdx.x);
    if (blockIdx.x + threadIdx.x == 0 && task.args->loss_to)
        *task.args->loss_to = *task.args->loss;
}

/* Scales the rows of a table that the step has changed into the unit ball. A warp has a row. */
__global__ void __launch_bounds__(THREADS) unit_ball_kernel(const lp_cuda_adam_args *args, float *table, int cols)
{
    const int32_t *rows = (const int32_t *)(args + 1);
    int row = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)threadIdx.x % 32;
    if (row >= args->rows)
        return;
    float *mine = table + (size_t)rows[row] * cols, squares = 0;
    for (int c = lane; c < cols; c += 32)
        squares += mine[c] * mine[c];
    for (int mask = 16; mask > 0; mask >>= 1)
        squares += __shfl_xor_sync(0xFFFFFFFFu, squares, mask);
    float factor = lp_unit_ball_factor(squares);
    for (int c = lane; factor < 1 && c < cols; c += 32)
        mine[c] *= factor;
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* The parameters from `first` on: rows of `cols` columns. */
static group group_from(const lp_adam *adam, float *parameters, size_t first, float *gradients, int rows, int cols)
{
    group p = {};
    p.parameters = parameters + first;
    p.moment1 = adam->moment1 + first;
    p.moment2 = adam->moment2 + first;
    p.gradients = gradients;
    p.width = lp_vector_width(
        (uintptr_t)p.parameters | (uintptr_t)p.moment1 | (uintptr_t)p.moment2 | (uintptr_t)p.gradients, cols);
    p.vectors = cols / p.width;
    p.chunks = (int)lp_blocks((int64_t)rows * p.vectors, THREADS);
    return p;
}

void lp_cuda_adam_launch(const lp_cuda_run *run, const lp_train_step *train, const lp_cuda_adam_args *args)
{
    const lp_adam *adam = train->adam;
    adam_task task = {};
    if (adam->shards != 1)
        lp_device_problem_set(run->device, "the optimizer", "a batch must be one shard on a GPU");
    task.groups[0] =
        group_from(adam, train->parameters, adam->table_size, adam->gradients, 1, (int)(adam->size - adam->table_size));
    task.groups[0].rates = adam->rates;
    for (int t = 0; t < adam->table_count; t++) {
        const lp_table *table = &adam->tables[t];
        float *gradients = adam->row_gradients + (size_t)table->before * (size_t)adam->item_capacity;
        group *p = &task.groups[1 + t];
        *p = group_from(adam, train->parameters, table->offset, gradients, adam->item_capacity, table->cols);
        p->rate = table->rate;
        p->table = true;
    }
    for (int i = 0; i <= adam->table_count; i++)
        task.chunks += task.groups[i].chunks;
    task.args = args;
    task.norms = adam->norms;
    task.l2 = (float)adam->l2;
    task.clip = adam->clip;
    int64_t norms = (int64_t)(adam->size - adam->table_size) / LP_PARAMETER_ALIGN + adam->item_capacity;
    norms = norms < NORM_BLOCKS ? norms : (int)NORM_BLOCKS; /* there is memory for more */
    task.norm_blocks = adam->clip > 0 ? (int)(task.chunks < norms ? task.chunks : norms) : 0;
    LP_LAUNCH_PDL(run, adam_norm_kernel, (unsigned)task.norm_blocks, THREADS, 0, task);
    lp_cuda_launch(run, "adam_step_kernel", task.norm_blocks > 0, adam_step_kernel, (unsigned)task.chunks, THREADS, 0,
                   task);
    for (int t = 0; t < adam->table_count; t++)
        if (adam->tables[t].unit_ball)
            LP_LAUNCH(run, unit_ball_kernel, lp_blocks(adam->item_capacity, WARPS), THREADS, 0, args,
                      train->parameters + adam->tables[t].offset, adam->tables[t].cols);
}

void lp_cuda_adam_step(lp_cuda_device *device, const lp_adam *adam, uint64_t step, const lp_row_union *rows,
                       float *parameters)
{
    size_t size = lp_cuda_adam_size(adam->item_capacity);
    if (size > device->adam_size) {
        lp_device_free(device, device->adam_args);
        device->adam_args = (lp_cuda_adam_args *)lp_device_alloc(device, size);
        device->adam_size = size;
    }
    if (!device->adam_args)
        lp_device_problem_set(device, "the optimizer's rows");
    if (lp_device_problem(device))
        return;
    lp_train_step train_step = {adam, step, rows, parameters, NULL, NULL};
    lp_cuda_run run = {};
    run.device = device;
    lp_cuda_adam_args args = lp_cuda_adam_args_of(&train_step, NULL);
    lp_device_copy(device, device->adam_args, &args, sizeof args);
    if (rows)
        lp_device_copy(device, device->adam_args + 1, rows->row, (size_t)rows->count * sizeof *rows->row);
    lp_cuda_adam_launch(&run, &train_step, device->adam_args);
}

/* ---- per-step arguments -------------------------------------------------------------------------------------- */

size_t lp_cuda_adam_size(int64_t max_rows)
{
    return sizeof(lp_cuda_adam_args) + (size_t)max_rows * sizeof(int32_t);
}

lp_cuda_adam_args lp_cuda_adam_args_of(const lp_train_step *train, const float *loss)
{
    return {train->rows ? train->rows->count : 0, lp_adam_factors_of(train->adam, train->step), loss, train->loss_to};
}
