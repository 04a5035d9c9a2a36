/* cuda_softmax_loss.h: what the two implementations of the softmax loss over a catalogue share: cuda_softmax_loss.cu
 * for any width and fp32, cuda_softmax_loss_tensor.cu for narrow states on tensor cores. Equations are in
 * cuda_softmax_loss.cu. */
#ifndef LP_CUDA_SOFTMAX_LOSS_H
#define LP_CUDA_SOFTMAX_LOSS_H

#include "backend/cuda/cuda_tile.h"

/* Constants of one pass over all pairs. The resident side stays on chip, the other is streamed. */
typedef struct loss_config {
    int cols, cols_padded;    /* of z and items; padded to a multiple of 8 */
    int rows, inner_rows;     /* of the resident and the streamed tile */
    int warp_rows, warp_cols; /* rows == 16 * warp_rows */
    int stride, score_stride; /* of rows and of dscores in shared memory, in floats */
    int buffers;              /* 2: double buffering of the streamed tile */
    int splits;
} loss_config;

typedef struct loss_task {
    loss_config config;
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items; /* rows of z, rows of the catalogue */
    const float *z, *table, *bias, *logq, *lse, *dloss;
    const int32_t *target;
    int64_t capacity; /* rows of a split's partial results */
    int tile_cols;    /* forward by products: items of a tile, which is a split; otherwise 0 */
    /* forward: row maxima and row sums [splits x capacity]; backward: out [splits x capacity x cols] and dbias
     * [splits x capacity] */
    float *partial, *partial_sums;
    float *out, *dbias;
    int out_accumulate, dbias_accumulate;
    float *losses;
} loss_task;

/* Offsets in shared memory, in floats; size is the total. */
typedef struct loss_layout {
    int resident, streamed, dscores, terms, targets, reduction, size;
} loss_layout;

__host__ __device__ static inline loss_layout loss_layout_of(const loss_config *config)
{
    loss_layout layout;
    layout.resident = 0;
    layout.streamed = layout.resident + config->rows * config->stride;
    layout.dscores = layout.streamed + config->buffers * config->inner_rows * config->stride;
    layout.terms = layout.dscores + config->rows * config->score_stride;
    layout.targets = layout.terms + config->buffers * config->inner_rows;
    layout.reduction = layout.targets + config->buffers * config->inner_rows;
    layout.size = layout.reduction + 2 * config->rows * config->warp_cols;
    return layout;
}

/* bias + logQ correction of an item; -infinity beyond the last. */
__device__ static inline float loss_item_term(const loss_task *task, int item, int items)
{
    if (item >= items)
        return -INFINITY;
    return task->bias[item] + (task->logq ? task->logq[item] : 0);
}

/* Range of the streamed side that this block takes. */
__device__ static inline void loss_split(const loss_config *config, int count, int *begin, int *end)
{
    int64_t tiles = (count + config->inner_rows - 1) / config->inner_rows, split = blockIdx.y;
    *begin = (int)(tiles * split / config->splits) * config->inner_rows;
    *end = min((int)(tiles * (split + 1) / config->splits) * config->inner_rows, count);
}

/* Stages `rows` rows of z or items from `first` on. */
template <bool tensor, tile_phase phase>
__device__ static inline void loss_stage(const loss_config *config, float *to, int rows, const float *from, int first,
                                         int count)
{
    tile_stage<tensor, phase>(to, config->stride, rows, config->cols_padded, from + (int64_t)first * config->cols,
                              config->cols, min(rows, count - first), config->cols);
}

/* Online softmax state over some items of a row: maximum, and sum of exp(score - maximum). */
typedef struct loss_softmax {
    float row_max, row_sum;
} loss_softmax;

__device__ static inline loss_softmax loss_softmax_merge(loss_softmax a, loss_softmax b)
{
    loss_softmax both = {fmaxf(a.row_max, b.row_max), 0};
    both.row_sum += a.row_max == -INFINITY ? 0 : a.row_sum * __expf(a.row_max - both.row_max);
    both.row_sum += b.row_max == -INFINITY ? 0 : b.row_sum * __expf(b.row_max - both.row_max);
    return both;
}

/* Merges the states of the four lanes that share a row. */
__device__ static inline loss_softmax loss_softmax_merge_lanes(loss_softmax row)
{
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
        loss_softmax other = {__shfl_xor_sync(0xFFFFFFFFu, row.row_max, mask),
                              __shfl_xor_sync(0xFFFFFFFFu, row.row_sum, mask)};
        row = loss_softmax_merge(row, other);
    }
    return row;
}

__device__ static inline void loss_store_softmax(const loss_task *task, int row, loss_softmax state)
{
    task->partial[blockIdx.y * task->capacity + row] = state.row_max;
    task->partial_sums[blockIdx.y * task->capacity + row] = state.row_sum;
}

/* Stores the gradient of the resident rows from `first` on, or the split's part of it. */
__device__ static inline void loss_store_rows(const loss_task *task, int first, int present, const float *from,
                                              int stride)
{
    int cols = task->config.cols;
    if (task->config.splits > 1)
        tile_store_global(task->partial + (blockIdx.y * task->capacity + first) * cols, cols, present, cols, from,
                          stride, 0);
    else if (task->out)
        tile_store_global(task->out + (int64_t)first * cols, cols, present, cols, from, stride, task->out_accumulate);
}

/* Stores an element of dbias, or the split's part of it. */
__device__ static inline void loss_store_dbias(const loss_task *task, int item, float sum)
{
    if (task->config.splits > 1)
        task->partial_sums[blockIdx.y * task->capacity + item] = sum;
    else
        lp_store(task->dbias + item, sum, task->dbias_accumulate);
}

/* Term of one side of a pair. An item: bias + logQ correction; a row of z: its lse and target. */
typedef struct loss_operand {
    float term;
    int target;
} loss_operand;

template <bool item> __device__ static inline loss_operand loss_operand_of(const loss_task *task, int i, int count)
{
    loss_operand mine = {item ? loss_item_term(task, i, count) : INFINITY, -1};
    if (!item && i < count) {
        mine.term = task->lse[i];
        mine.target = task->target[i];
    }
    return mine;
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* Splits of the streamed side that give `full_device` thread blocks; a split has at least four streamed tiles. */
static inline int loss_splits_of(const loss_config *config, int64_t rows, int64_t others, int full_device)
{
    int64_t blocks = lp_blocks(rows, config->rows), most = lp_blocks(others, 4 * config->inner_rows);
    int64_t splits = blocks > 0 ? lp_blocks(full_device, blocks) : 1;
    splits = splits > most ? most : splits;
    return (int)(splits < 1 ? 1 : splits);
}

/* ---- tensor-core kernels ------------------------------------------------------------------------------------- */

/* Returns whether a kernel covers `cols` columns, and sets the config for at most `rows` resident and `others`
 * streamed rows. */
bool lp_cuda_softmax_tensor(const lp_cuda_run *run, loss_config *config, int cols, int64_t rows, int64_t others);
/* Forward: row maxima and row sums of every split. Backward: the gradient of one side. */
void lp_cuda_softmax_tensor_forward(const lp_cuda_run *run, const loss_task *task, int64_t rows);
void lp_cuda_softmax_tensor_backward(const lp_cuda_run *run, const loss_task *task, bool by_items, int64_t rows);

#endif
