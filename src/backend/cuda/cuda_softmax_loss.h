/* cuda_softmax_loss.h: what the two implementations of the softmax loss over a catalogue share: cuda_softmax_loss.cu
 * for any width and fp32, cuda_softmax_loss_tensor.cu for narrow states on tensor cores. Equations are in
 * cuda_softmax_loss.cu. */
#ifndef LP_CUDA_SOFTMAX_LOSS_H
#define LP_CUDA_SOFTMAX_LOSS_H

#include "backend/cuda/cuda_tile.h"

typedef struct loss_task {
    int cols;   /* of z and items */
    int splits; /* on chip: of the streamed side */
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

/* bias + logQ correction of an item; -infinity beyond the last. */
__device__ static inline float loss_item_term(const loss_task *task, int item, int items)
{
    if (item >= items)
        return -INFINITY;
    return task->bias[item] + (task->logq ? task->logq[item] : 0);
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

/* ---- tensor-core kernels ------------------------------------------------------------------------------------- */

/* Returns whether a kernel covers the task's columns, and sets its splits for at most `rows` resident and `others`
 * streamed rows. */
bool lp_cuda_softmax_tensor(const lp_cuda_run *run, loss_task *task, int64_t rows, int64_t others);
/* Forward: row maxima and row sums of every split. Backward: the gradient of one side. */
void lp_cuda_softmax_tensor_forward(const lp_cuda_run *run, const loss_task *task, int64_t rows);
void lp_cuda_softmax_tensor_backward(const lp_cuda_run *run, const loss_task *task, bool by_items, int64_t rows);

#endif
