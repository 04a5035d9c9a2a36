/* cuda_adam.cu: Adam's step on the device: all parameters, dense ones and the rows of tables that occurred, in two launches: one
 * sums squares for the norm of the gradient, one steps.
 *
 * A batch is one shard here, so gradients are there as they are needed: row i of the optimizer's list has row i of the shard's
 * gradients. What there is to do is cut into pieces, one for a block that steps: the dense parameters first, then the tables one after
 * another. The blocks that sum are few, so that every block that steps can add up what they found, always in the same order.
 * That one has asked for all it needs before: it begins while the other still runs.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

enum { DENSE = 4, THREADS = 256, WARPS = THREADS / 32, PARTS = 1 + LP_TABLE_LIMIT, SUM_BLOCKS = 528 };
static_assert(LP_PARAMETER_ALIGN % DENSE == 0, "what a thread takes has one rate");

/* The dense parameters (one long row), or the rows of a table that occurred. A row is taken by `lanes` threads side by side, each of
 * which takes `width` columns at a time. */
typedef struct part {
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* of groups of LP_PARAMETER_ALIGN; NULL: `rate` */
    float rate;
    int cols, width, lanes, pieces;
    bool table;
} part;

typedef struct adam_task {
    part parts[PARTS];
    const lp_cuda_adam_now *now;
    double *norms; /* of the blocks that sum */
    float beta1, beta2, epsilon, l2;
    double clip;
    int pieces, sums; /* sums: blocks that sum; 0: any norm will do */
} adam_task;

/* What a thread takes of a piece: columns c, c + step, .. of a row that begins at `place` among parameters and moments, and at `gradient`
 * among gradients. */
typedef struct span {
    size_t place, gradient;
    int c, step, end;
} span;

/* The part that the piece belongs to, whose own number it then is. */
__device__ static inline const part &part_of(const adam_task &task, int *piece)
{
    int number = 0;
    while (*piece >= task.parts[number].pieces)
        *piece -= task.parts[number++].pieces;
    return task.parts[number];
}

__device__ static inline span span_of(const adam_task &task, const part &p, int piece)
{
    if (!p.table)
        return span{0, 0, p.width * (piece * THREADS + (int)threadIdx.x), p.cols, p.cols};
    int row = piece * (THREADS / p.lanes) + (int)threadIdx.x / p.lanes;
    if (row >= task.now->rows)
        return span{0, 0, 0, 1, 0};
    const int32_t *rows = (const int32_t *)(task.now + 1);
    return span{(size_t)rows[row] * p.cols, (size_t)row * p.cols, p.width * ((int)threadIdx.x % p.lanes),
                p.width * p.lanes, p.cols};
}

__device__ static inline float rate_at(const part &p, int c)
{
    return p.rates ? p.rates[c / LP_PARAMETER_ALIGN] : p.rate;
}

/* More by l2 of the parameter, and 0 of what is fixed. */
template <int n> __device__ static inline lp_floats<n> gradient_at(const adam_task &task, const part &p, const span &at)
{
    lp_floats<n> gradient = lp_read<n>(p.gradients + at.gradient + at.c);
    bool fixed = rate_at(p, at.c) == 0;
    if (task.l2 != 0) {
        lp_floats<n> parameter = lp_read<n>(p.parameters + at.place + at.c);
#pragma unroll
        for (int i = 0; i < n; i++)
            gradient.at[i] += task.l2 * parameter.at[i];
    }
#pragma unroll
    for (int i = 0; i < n; i++)
        gradient.at[i] = fixed ? 0 : gradient.at[i];
    return gradient;
}

template <int n> __device__ static inline double squares(const adam_task &task, const part &p, span at)
{
    double norm = 0;
#pragma unroll 1
    for (; at.c < at.end; at.c += at.step) {
        lp_floats<n> gradient = gradient_at<n>(task, p, at);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < n; i++)
            sum += gradient.at[i] * gradient.at[i];
        norm += (double)sum;
    }
    return norm;
}

__global__ void __launch_bounds__(THREADS) adam_sum_kernel(const __grid_constant__ adam_task task)
{
    double norm = 0;
    lp_let_next_begin();
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < task.pieces; i += (int)gridDim.x) {
        int piece = i;
        const part &p = part_of(task, &piece);
        span at = span_of(task, p, piece);
        norm += p.width == 4   ? squares<4>(task, p, at)
                : p.width == 2 ? squares<2>(task, p, at)
                               : squares<1>(task, p, at);
    }
    norm = lp_block_sum<WARPS>(norm);
    if (threadIdx.x == 0)
        task.norms[blockIdx.x] = norm;
}

/* What the gradient is multiplied with so that its norm is no longer than `clip`. Every thread must come. */
__device__ static inline float scale_now(const adam_task &task)
{
    __shared__ float scale;
    double sum = 0;
    if (!task.sums)
        return 1;
    lp_wait_for_last();
#pragma unroll
    for (int i = 0; i < SUM_BLOCKS; i += THREADS)
        if (i + (int)threadIdx.x < task.sums)
            sum += task.norms[i + threadIdx.x];
    sum = lp_block_sum<WARPS>(sum);
    if (threadIdx.x == 0)
        scale = sqrt(sum) > task.clip ? (float)(task.clip / sqrt(sum)) : 1;
    __syncthreads();
    return scale;
}

template <int n> struct step_values {
    lp_floats<n> gradient, first, second, parameter;
    float rate;
};

template <int n>
__device__ static inline step_values<n> read_values(const adam_task &task, const part &p, const span &at)
{
    return step_values<n>{gradient_at<n>(task, p, at), lp_read<n>(p.moment1 + at.place + at.c),
                          lp_read<n>(p.moment2 + at.place + at.c), lp_read<n>(p.parameters + at.place + at.c),
                          rate_at(p, at.c)};
}

template <int n>
__device__ static inline void step_values_on(const adam_task &task, const part &p, const span &at, step_values<n> &x,
                                             float scale)
{
    float rate = task.now->rate * x.rate, correction = task.now->correction2;
#pragma unroll
    for (int i = 0; i < n; i++) {
        float g = x.gradient.at[i] * scale;
        x.first.at[i] = task.beta1 * x.first.at[i] + (1 - task.beta1) * g;
        x.second.at[i] = task.beta2 * x.second.at[i] + (1 - task.beta2) * g * g;
        x.parameter.at[i] -= rate * x.first.at[i] / (sqrtf(x.second.at[i]) * correction + task.epsilon);
    }
    if (task.l2 != 0 || x.rate == 0) /* others find it as it was stepped by */
        lp_write<n>(p.gradients + at.gradient + at.c, x.gradient, 0);
    lp_write<n>(p.moment1 + at.place + at.c, x.first, 0);
    lp_write<n>(p.moment2 + at.place + at.c, x.second, 0);
    lp_write<n>(p.parameters + at.place + at.c, x.parameter, 0);
}

/* What is read first comes while the norm is still being summed. */
template <int n> __device__ static inline void step_piece(const adam_task &task, const part &p, int piece)
{
    span at = span_of(task, p, piece);
    step_values<n> x;
    if (at.c < at.end)
        x = read_values<n>(task, p, at);
    float scale = scale_now(task);
#pragma unroll 1
    while (at.c < at.end) {
        step_values_on<n>(task, p, at, x, scale);
        at.c += at.step;
        if (at.c < at.end)
            x = read_values<n>(task, p, at);
    }
}

__global__ void __launch_bounds__(THREADS) adam_step_kernel(const __grid_constant__ adam_task task)
{
    int piece = (int)blockIdx.x;
    const part &p = part_of(task, &piece);
    if (p.width == 4)
        step_piece<4>(task, p, piece);
    else if (p.width == 2)
        step_piece<2>(task, p, piece);
    else
        step_piece<1>(task, p, piece);
    if (blockIdx.x + threadIdx.x == 0 && task.now->loss_to)
        *task.now->loss_to = *task.now->loss;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static part dense_part(const lp_adam *adam, float *parameters)
{
    size_t first = adam->table_size;
    int cols = (int)(adam->size - first);
    part p = {};
    p.parameters = parameters + first;
    p.moment1 = adam->moment1 + first;
    p.moment2 = adam->moment2 + first;
    p.gradients = adam->gradients;
    p.rates = adam->rates;
    p.cols = cols;
    p.width = DENSE;
    p.pieces = (int)lp_blocks(cols, DENSE * THREADS);
    return p;
}

static part table_part(const lp_adam *adam, const lp_table *table, float *parameters)
{
    size_t first = table->offset;
    part p = {};
    p.table = true;
    p.parameters = parameters + first;
    p.moment1 = adam->moment1 + first;
    p.moment2 = adam->moment2 + first;
    p.gradients = adam->row_gradients + (size_t)table->before * (size_t)adam->item_capacity;
    p.rate = table->rate;
    p.cols = table->cols;
    p.width = lp_width((uintptr_t)p.parameters | (uintptr_t)p.moment1 | (uintptr_t)p.moment2 | (uintptr_t)p.gradients,
                       p.cols);
    p.lanes = 1;
    while (p.lanes < 32 && p.lanes * p.width < p.cols)
        p.lanes *= 2;
    p.pieces = (int)lp_blocks(adam->item_capacity, THREADS / p.lanes);
    return p;
}

void lp_cuda_adam_launch(const lp_train_step *learning, const lp_cuda_adam_now *now)
{
    const lp_adam *adam = learning->adam;
    adam_task task = {};
    task.parts[0] = dense_part(adam, learning->parameters);
    for (int t = 0; t < adam->table_count; t++)
        task.parts[1 + t] = table_part(adam, &adam->tables[t], learning->parameters);
    for (int i = 0; i <= adam->table_count; i++)
        task.pieces += task.parts[i].pieces;
    task.now = now;
    task.norms = adam->norms;
    task.beta1 = (float)adam->beta1;
    task.beta2 = (float)adam->beta2;
    task.epsilon = (float)adam->epsilon;
    task.l2 = (float)adam->l2;
    task.clip = adam->clip;
    task.sums = adam->clip > 0 ? (task.pieces < SUM_BLOCKS ? task.pieces : (int)SUM_BLOCKS) : 0;
    lp_cuda_run none = {};
    unsigned sums = (unsigned)task.sums, pieces = (unsigned)task.pieces;
    if (!sums) {
        LP_LAUNCH(&none, adam_step_kernel, pieces, THREADS, 0, task);
        return;
    }
    LP_LAUNCH(&none, adam_sum_kernel, sums, THREADS, 0, task);
    LP_LAUNCH_EARLY(&none, adam_step_kernel, pieces, THREADS, 0, task);
}

/* ---- what changes from step to step -------------------------------------------------------------------------- */

size_t lp_cuda_adam_size(int64_t most_rows)
{
    return sizeof(lp_cuda_adam_now) + (size_t)most_rows * sizeof(int32_t);
}

void lp_cuda_adam_fill(const lp_train_step *learning, const float *loss, lp_cuda_adam_now *now)
{
    const lp_adam *adam = learning->adam;
    double step = (double)learning->step;
    *now = lp_cuda_adam_now();
    now->rows = learning->rows ? learning->rows->count : 0;
    now->rate = (float)(adam->learning_rate / (1 - pow(adam->beta1, step)));
    now->correction2 = (float)(1 / sqrt(1 - pow(adam->beta2, step)));
    now->loss = loss;
    now->loss_to = loss ? learning->loss_to : NULL;
    if (now->rows)
        memcpy(now + 1, learning->rows->row, (size_t)now->rows * sizeof(int32_t));
}

static char *staging[LP_DEVICE_MARKS], *arrival[LP_DEVICE_MARKS]; /* on the host, and on the device */
static size_t room;
static uint64_t steps;

static bool make_room(size_t size)
{
    if (size <= room)
        return true;
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
    room = good ? size : 0;
    return good;
}

void lp_cuda_adam_step(const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    lp_train_step learning = {adam, step, rows, parameters, NULL, NULL};
    int mark = (int)(steps++ % LP_DEVICE_MARKS);
    size_t size = lp_cuda_adam_size(adam->item_capacity);
    if (adam->shards != 1)
        lp_device_problem_set("the optimizer", "a batch must be one shard on a GPU");
    if (!lp_device_problem() && !make_room(size))
        lp_device_problem_set("the optimizer's rows", "there is not enough memory on the GPU");
    if (lp_device_problem())
        return;
    lp_device_wait(LP_DEVICE_ADAM, mark);
    lp_cuda_adam_fill(&learning, NULL, (lp_cuda_adam_now *)staging[mark]);
    lp_device_deliver(LP_DEVICE_ADAM, mark, arrival[mark], staging[mark], size);
    lp_cuda_adam_launch(&learning, (const lp_cuda_adam_now *)arrival[mark]);
    lp_device_mark(LP_DEVICE_ADAM, mark);
}
