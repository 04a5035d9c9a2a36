/* cuda_adam.cu: Adam's step on the device: all parameters, dense ones and the rows of tables that occurred, in two launches, one
 * that sums squares and one that steps.
 *
 * A batch is one shard here, so gradients are there as they are needed: row i of the optimizer's list has row i of the shard's
 * gradients. Blocks are dealt out to parts: the dense parameters first, then the tables one after another. A block's squared norm
 * has its own place, and the block that comes last adds all of them up in their order.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

enum { DENSE = 4, THREADS = 256, WARPS = THREADS / 32, PARTS = 1 + LP_TABLE_LIMIT };
static_assert(LP_PARAMETER_ALIGN % DENSE == 0, "what a thread takes has one rate");

/* The dense parameters (one long row), or the rows of a table that occurred. A row is taken by `lanes` threads side by side, each of
 * which takes `width` columns at a time. */
typedef struct part {
    const int32_t *row; /* on the device; NULL: dense */
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* of groups of LP_PARAMETER_ALIGN; NULL: `rate` */
    float rate;
    int rows, cols, width, lanes, blocks;
} part;

typedef struct adam_task {
    part parts[PARTS];
    double *norms; /* of blocks; then what the gradient is multiplied with */
    float beta1, beta2, epsilon, l2;
    double clip;
    float rate, correction2; /* of this step */
    lp_device_letter letter;
} adam_task;

/* A few elements of a part: where they lie among parameters and moments, and where their gradients do. */
typedef struct spot {
    size_t place, gradient;
    float rate;
} spot;

/* Calls act(part, spot) for all that this thread takes of a part. */
template <typename action_type> __device__ static inline void visit(const part &p, int block, const action_type &act)
{
    int row = 0, c = p.width * (block * THREADS + (int)threadIdx.x), step = p.cols;
    if (p.row) {
        row = block * (THREADS / p.lanes) + (int)threadIdx.x / p.lanes;
        c = p.width * ((int)threadIdx.x % p.lanes);
        step = p.width * p.lanes;
    }
    if (row >= p.rows)
        return;
    size_t there = p.row ? (size_t)p.row[row] * p.cols : 0;
#pragma unroll 1
    for (; c < p.cols; c += step)
        act(p, spot{there + c, (size_t)row * p.cols + c, p.rates ? p.rates[c / LP_PARAMETER_ALIGN] : p.rate});
}

/* The same for the part whose turn it is in this block. */
template <typename action_type> __device__ static inline void visit_all(const adam_task &task, const action_type &act)
{
    int block = (int)blockIdx.x, number = 0;
    while (block >= task.parts[number].blocks)
        block -= task.parts[number++].blocks;
    visit(task.parts[number], block, act);
}

/* Adds l2 and drops the gradient of what is fixed; returns the sum of squares. */
template <int n> __device__ static inline float finish(const part &p, const spot &at, float l2)
{
    lp_floats<n> gradient = lp_read<n>(p.gradients + at.gradient);
    float sum = 0;
    if (l2 != 0) {
        lp_floats<n> parameter = lp_read<n>(p.parameters + at.place);
#pragma unroll
        for (int i = 0; i < n; i++)
            gradient.at[i] += l2 * parameter.at[i];
    }
#pragma unroll
    for (int i = 0; i < n; i++) {
        gradient.at[i] = at.rate == 0 ? 0 : gradient.at[i];
        sum += gradient.at[i] * gradient.at[i];
    }
    if (l2 != 0 || at.rate == 0)
        lp_write<n>(p.gradients + at.gradient, gradient, 0);
    return sum;
}

__global__ void __launch_bounds__(THREADS) adam_sum_kernel(const __grid_constant__ adam_task task, int blocks)
{
    double norm = 0;
    if (blockIdx.x + threadIdx.x == 0 && task.letter.to)
        *task.letter.to = *task.letter.from;
    visit_all(task, [&](const part &p, const spot &at) {
        norm += (double)(p.width == 4   ? finish<4>(p, at, task.l2)
                         : p.width == 2 ? finish<2>(p, at, task.l2)
                                        : finish<1>(p, at, task.l2));
    });
    norm = lp_block_sum<WARPS>(norm);
    if (threadIdx.x == 0)
        task.norms[blockIdx.x] = norm;
    if (!lp_last_block(0))
        return;
    double sum = 0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < blocks; i += THREADS)
        sum += task.norms[i];
    sum = lp_block_sum<WARPS>(sum);
    if (threadIdx.x == 0) /* so that its norm is no longer than `clip` */
        task.norms[blocks] = task.clip > 0 && sqrt(sum) > task.clip ? task.clip / sqrt(sum) : 1;
}

template <int n>
__device__ static inline void take_step(const adam_task &task, const part &p, const spot &at, const double *scale)
{
    lp_floats<n> gradient = lp_read<n>(p.gradients + at.gradient), first = lp_read<n>(p.moment1 + at.place);
    lp_floats<n> second = lp_read<n>(p.moment2 + at.place), parameter = lp_read<n>(p.parameters + at.place);
    float factor = (float)*scale, rate = task.rate * at.rate;
#pragma unroll
    for (int i = 0; i < n; i++) {
        float g = gradient.at[i] * factor;
        first.at[i] = task.beta1 * first.at[i] + (1 - task.beta1) * g;
        second.at[i] = task.beta2 * second.at[i] + (1 - task.beta2) * g * g;
        parameter.at[i] -= rate * first.at[i] / (sqrtf(second.at[i]) * task.correction2 + task.epsilon);
    }
    lp_write<n>(p.moment1 + at.place, first, 0);
    lp_write<n>(p.moment2 + at.place, second, 0);
    lp_write<n>(p.parameters + at.place, parameter, 0);
}

__global__ void __launch_bounds__(THREADS) adam_step_kernel(const __grid_constant__ adam_task task, int blocks)
{
    const double *scale = task.norms + blocks;
    visit_all(task, [&](const part &p, const spot &at) {
        if (p.width == 4)
            take_step<4>(task, p, at, scale);
        else if (p.width == 2)
            take_step<2>(task, p, at, scale);
        else
            take_step<1>(task, p, at, scale);
    });
}

/* ---- the list of rows on its way to the device --------------------------------------------------------------- */

static char *staging[LP_DEVICE_MARKS], *arrival[LP_DEVICE_MARKS]; /* on the host, and on the device */
static size_t list_size;
static uint64_t uploads;

static bool make_room(size_t size)
{
    if (size <= list_size)
        return true;
    size += size / 2;
    lp_device_sync();
    bool good = true;
    for (int i = 0; i < LP_DEVICE_MARKS; i++) {
        lp_device_free(arrival[i]);
        lp_device_pinned_free(staging[i]);
        arrival[i] = (char *)lp_device_alloc(size);
        staging[i] = (char *)lp_device_pinned(size);
        good = good && arrival[i] && staging[i];
    }
    lp_device_sync(); /* what is delivered does not wait for the stream to have cleared it */
    list_size = good ? size : 0;
    return good;
}

/* Sends the list; it lies in place `mark` of those that are used in turn. NULL: there is no room for it. */
static const int32_t *send_rows(const lp_union *rows, int mark)
{
    size_t size = (size_t)rows->count * sizeof(int32_t);
    if (!make_room(size)) {
        lp_device_problem_set("the optimizer's rows", "there is not enough memory on the GPU");
        return NULL;
    }
    lp_device_wait(LP_DEVICE_ADAM, mark);
    memcpy(staging[mark], rows->row, size);
    lp_device_deliver(LP_DEVICE_ADAM, mark, arrival[mark], staging[mark], size);
    return (const int32_t *)arrival[mark];
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static part dense_part(const lp_adam *adam, float *parameters)
{
    size_t first = adam->table_size;
    int cols = (int)(adam->size - first);
    part p = {NULL,
              parameters + first,
              adam->moment1 + first,
              adam->moment2 + first,
              adam->gradients,
              adam->rates,
              1,
              1,
              cols,
              DENSE,
              THREADS,
              (int)lp_blocks(cols, DENSE * THREADS)};
    return p;
}

static part table_part(const lp_adam *adam, const lp_table *table, const int32_t *row, int rows, float *parameters)
{
    size_t first = table->offset;
    part p = {row,
              parameters + first,
              adam->moment1 + first,
              adam->moment2 + first,
              adam->row_gradients + (size_t)table->before * (size_t)adam->item_capacity,
              NULL,
              table->rate,
              rows,
              table->cols,
              1,
              1,
              0};
    p.width = lp_width((uintptr_t)p.parameters | (uintptr_t)p.moment1 | (uintptr_t)p.moment2 | (uintptr_t)p.gradients,
                       p.cols);
    while (p.lanes < 32 && p.lanes * p.width < p.cols)
        p.lanes *= 2;
    p.blocks = (int)lp_blocks(rows, THREADS / p.lanes);
    return p;
}

void lp_cuda_adam_step(const lp_adam *adam, uint64_t step, const lp_union *rows, float *parameters)
{
    adam_task task = {};
    int mark = (int)(uploads++ % LP_DEVICE_MARKS), count = rows ? rows->count : 0;
    const int32_t *row = NULL;
    if (adam->shards != 1)
        lp_device_problem_set("the optimizer", "a batch must be one shard on a GPU");
    if (lp_device_problem() || (count && !(row = send_rows(rows, mark))))
        return;
    int blocks = 0, parts = 0;
    task.parts[parts++] = dense_part(adam, parameters);
    for (int t = 0; count && t < adam->table_count; t++)
        task.parts[parts++] = table_part(adam, &adam->tables[t], row, count, parameters);
    for (int i = 0; i < parts; i++)
        blocks += task.parts[i].blocks;
    task.norms = adam->norms;
    task.beta1 = (float)adam->beta1;
    task.beta2 = (float)adam->beta2;
    task.epsilon = (float)adam->epsilon;
    task.l2 = (float)adam->l2;
    task.clip = adam->clip;
    task.rate = (float)(adam->learning_rate / (1 - pow(adam->beta1, (double)step)));
    task.correction2 = (float)(1 / sqrt(1 - pow(adam->beta2, (double)step)));
    if (blocks)
        task.letter = lp_device_letter_take();
    lp_cuda_run none = {};
    LP_LAUNCH(&none, adam_sum_kernel, (unsigned)blocks, THREADS, 0, task, blocks);
    LP_LAUNCH(&none, adam_step_kernel, (unsigned)blocks, THREADS, 0, task, blocks);
    if (count)
        lp_device_mark(LP_DEVICE_ADAM, mark);
}
