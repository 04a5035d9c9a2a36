/* cuda_adam.cu: Adam's step on the device: all parameters, dense ones and the rows of tables that occurred, in two launches, one
 * that sums shards and squares and one that steps.
 *
 * Blocks 0 .. dense - 1 take DENSE parameters each, later ones WARPS rows of the tables. A block's squared norm has its own
 * place, and every block of the second launch adds all of them up in the same order.
 */
#include "backend/cuda/cuda_adam.h"

enum { DENSE = 1024, THREADS = 256, WARPS = THREADS / 32 };

/* The rows of tables, on the device. */
typedef struct row_lists {
    int count;
    const int32_t *row, *first, *place;
} row_lists;

typedef struct adam_task {
    lp_adam adam;
    row_lists rows;
    float *parameters;
    int dense_blocks, blocks;
    float rate, correction2; /* of this step */
} adam_task;

/* Elements that a thread handles one after another: begin, begin + stride, ... below end. */
typedef struct reach {
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* of groups of LP_PARAMETER_ALIGN; NULL: `rate` */
    float rate;
    int begin, end, stride;
} reach;

__device__ static inline reach dense_reach(const adam_task &task, int block)
{
    const lp_adam &adam = task.adam;
    size_t dense = adam.size - adam.table_size, begin = (size_t)block * DENSE, place = adam.table_size + begin;
    int count = (int)(dense - begin < DENSE ? dense - begin : (size_t)DENSE);
    reach r = {task.parameters + place,
               adam.moment1 + place,
               adam.moment2 + place,
               adam.gradients + begin,
               adam.rates + begin / LP_PARAMETER_ALIGN,
               0,
               (int)threadIdx.x,
               count,
               THREADS};
    return r;
}

/* The gradient of row `place` (shard * capacity + row of its list) of a table. */
__device__ static inline float *row_gradient(const lp_adam &adam, const lp_table &table, int32_t place)
{
    size_t capacity = (size_t)adam.item_capacity, shard = (size_t)place / capacity, row = (size_t)place % capacity;
    return adam.row_gradients + (shard * (size_t)adam.table_cols + (size_t)table.before) * capacity +
           row * (size_t)table.cols;
}

__device__ static inline reach row_reach(const adam_task &task, const lp_table &table, int row)
{
    const lp_adam &adam = task.adam;
    size_t place = table.offset + (size_t)task.rows.row[row] * (size_t)table.cols;
    reach r = {task.parameters + place,
               adam.moment1 + place,
               adam.moment2 + place,
               row_gradient(adam, table, task.rows.place[task.rows.first[row]]),
               NULL,
               table.rate,
               (int)(threadIdx.x % 32),
               table.cols,
               32};
    return r;
}

/* The row of tables that this warp takes, or -1. */
__device__ static inline int row_of(const adam_task &task)
{
    int row = ((int)blockIdx.x - task.dense_blocks) * WARPS + (int)threadIdx.x / 32;
    return (int)blockIdx.x >= task.dense_blocks && row < task.rows.count ? row : -1;
}

/* Adds l2, drops what is fixed, and returns the square. */
__device__ static inline double finish(const reach &r, int i, float gradient, float l2)
{
    gradient += l2 * r.parameters[i];
    if (r.rates && r.rates[i / LP_PARAMETER_ALIGN] == 0)
        gradient = 0;
    r.gradients[i] = gradient;
    return (double)gradient * (double)gradient;
}

/* The sum of all threads' numbers in a fixed order, in thread 0. */
__device__ static double block_sum(double mine)
{
    __shared__ double sums[WARPS];
    mine = lp_warp_sum(mine);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = mine;
    __syncthreads();
    double sum = 0;
    for (int i = 0; threadIdx.x == 0 && i < WARPS; i++)
        sum += sums[i];
    return sum;
}

__global__ void adam_sum_kernel(adam_task task)
{
    const lp_adam &adam = task.adam;
    float l2 = (float)adam.l2;
    double norm = 0;
    int row = row_of(task);
    if ((int)blockIdx.x < task.dense_blocks) {
        reach r = dense_reach(task, (int)blockIdx.x);
        for (int i = r.begin; i < r.end; i += r.stride) {
            float sum = r.gradients[i];
            for (int shard = 1; shard < adam.shards; shard++)
                sum += r.gradients[(size_t)shard * (adam.size - adam.table_size) + i];
            norm += finish(r, i, sum, l2);
        }
    }
    for (int t = 0; row >= 0 && t < adam.table_count; t++) {
        reach r = row_reach(task, adam.tables[t], row);
        for (int i = r.begin; i < r.end; i += r.stride) {
            float sum = r.gradients[i];
            for (int k = task.rows.first[row] + 1; k < task.rows.first[row + 1]; k++)
                sum += row_gradient(adam, adam.tables[t], task.rows.place[k])[i];
            norm += finish(r, i, sum, l2);
        }
    }
    norm = block_sum(norm);
    if (threadIdx.x == 0)
        adam.norms[blockIdx.x] = norm;
}

__device__ static void take_steps(const adam_task &task, const reach &r, float scale)
{
    const lp_adam &adam = task.adam;
    float beta1 = (float)adam.beta1, beta2 = (float)adam.beta2, epsilon = (float)adam.epsilon;
    for (int i = r.begin; i < r.end; i += r.stride) {
        float rate = task.rate * (r.rates ? r.rates[i / LP_PARAMETER_ALIGN] : r.rate);
        float gradient = r.gradients[i] * scale;
        float first = beta1 * r.moment1[i] + (1 - beta1) * gradient;
        float second = beta2 * r.moment2[i] + (1 - beta2) * gradient * gradient;
        r.moment1[i] = first;
        r.moment2[i] = second;
        r.parameters[i] -= rate * first / (sqrtf(second) * task.correction2 + epsilon);
    }
}

/* What the gradient is multiplied with so that its norm is no longer than `clip`. */
__device__ static float clip_scale(const adam_task &task)
{
    __shared__ float scale;
    double sum = 0;
    for (int i = (int)threadIdx.x; i < task.blocks; i += THREADS)
        sum += task.adam.norms[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        double norm = sqrt(sum);
        scale = task.adam.clip > 0 && norm > task.adam.clip ? (float)(task.adam.clip / norm) : 1;
    }
    __syncthreads();
    return scale;
}

__global__ void adam_step_kernel(adam_task task)
{
    float scale = clip_scale(task);
    int row = row_of(task);
    if ((int)blockIdx.x < task.dense_blocks)
        take_steps(task, dense_reach(task, (int)blockIdx.x), scale);
    for (int t = 0; row >= 0 && t < task.adam.table_count; t++)
        take_steps(task, row_reach(task, task.adam.tables[t], row), scale);
}

/* ---- the lists of rows on their way to the device ------------------------------------------------------------ */

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

/* Sends the lists; they lie in place `mark` of those that are used in turn. */
static bool send_rows(const lp_union *rows, int mark, row_lists *lists)
{
    size_t count = (size_t)rows->count, places = (size_t)rows->first[rows->count];
    size_t size = (2 * count + 1 + places) * sizeof(int32_t);
    if (!make_room(size)) {
        lp_device_problem_set("the optimizer's rows", "there is not enough memory on the GPU");
        return false;
    }
    lp_device_wait(LP_DEVICE_ADAM, mark);
    int32_t *host = (int32_t *)staging[mark], *there = (int32_t *)arrival[mark];
    memcpy(host, rows->row, count * sizeof *host);
    memcpy(host + count, rows->first, (count + 1) * sizeof *host);
    memcpy(host + 2 * count + 1, rows->place, places * sizeof *host);
    lp_device_deliver(LP_DEVICE_ADAM, mark, there, host, size);
    *lists = {rows->count, there, there + count, there + 2 * count + 1};
    return true;
}

void lp_cuda_adam_step(const lp_adam *adam, uint64_t step, const lp_union *rows, float *parameters)
{
    size_t dense = adam->size - adam->table_size;
    adam_task task = {*adam, {0, NULL, NULL, NULL}, parameters, 0, 0, 0, 0};
    int mark = (int)(uploads++ % LP_DEVICE_MARKS);
    if (lp_device_problem() || (rows && rows->count && !send_rows(rows, mark, &task.rows)))
        return;
    task.dense_blocks = (int)lp_blocks((int64_t)dense, DENSE);
    task.blocks = task.dense_blocks + (int)lp_blocks(task.rows.count, WARPS);
    task.rate = (float)(adam->learning_rate / (1 - pow(adam->beta1, (double)step)));
    task.correction2 = (float)(1 / sqrt(1 - pow(adam->beta2, (double)step)));
    lp_cuda_run none = {};
    LP_LAUNCH(&none, adam_sum_kernel, (unsigned)task.blocks, THREADS, 0, task);
    LP_LAUNCH(&none, adam_step_kernel, (unsigned)task.blocks, THREADS, 0, task);
    lp_device_mark(LP_DEVICE_ADAM, mark);
}
