/* cuda_softmax_loss.h: what the two ways of making the loss over a catalogue share on the device: cuda_softmax_loss.cu for any widths
 * and for float, cuda_softmax_loss_tensor.cu for common widths on tensor cores. */
#ifndef LP_CUDA_SOFTMAX_LOSS_H
#define LP_CUDA_SOFTMAX_LOSS_H

#include "backend/cuda/cuda_tile.h"

/* One pass over all pairs. */
typedef struct loss_form {
    int cols, wide;           /* of z and items; the same, padded */
    int rows, steps;          /* of a tile */
    int warp_rows, warp_cols; /* rows == 16 * warp_rows */
    int stride, share_stride; /* in shared memory */
    int buffers;              /* as in attention: 2 to have the next step on its way */
    int slices;
} loss_form;

typedef struct loss_task {
    loss_form form;
    const lp_cuda_shard *shard;
    lp_cuda_rows target_position, items; /* how many rows z and the catalogue have */
    const float *z, *table, *bias, *shift, *log_sum, *dloss;
    const int32_t *target;
    int64_t largest;     /* rows that sums of a slice have room for */
    float *peaks, *sums; /* [slices x largest]: forward; or [slices x largest x cols] and [slices x largest] */
    float *out, *column;
    int out_adds, column_adds;
    float *losses;
} loss_task;

/* The parts of shared memory, in floats from its beginning; the last is its size. */
typedef struct loss_layout {
    int fixed, moving, shares, first, second, parts, size;
} loss_layout;

__host__ __device__ static inline loss_layout loss_layout_of(const loss_form *form)
{
    loss_layout at;
    at.fixed = 0;
    at.moving = at.fixed + form->rows * form->stride;
    at.shares = at.moving + form->buffers * form->steps * form->stride;
    at.first = at.shares + form->rows * form->share_stride;
    at.second = at.first + form->buffers * form->steps;
    at.parts = at.second + form->buffers * form->steps;
    at.size = at.parts + 2 * form->rows * form->warp_cols;
    return at;
}

/* What is added to the score of an item; no item has one of -infinity. */
__device__ static inline float loss_offset(const loss_task *task, int item, int items)
{
    if (item >= items)
        return -INFINITY;
    return task->bias[item] + (task->shift ? task->shift[item] : 0);
}

/* The part of the other side that a block takes. */
__device__ static inline void loss_slice(const loss_form *form, int count, int *begin, int *end)
{
    int64_t tiles = (count + form->steps - 1) / form->steps, slice = blockIdx.y;
    *begin = (int)(tiles * slice / form->slices) * form->steps;
    *end = min((int)(tiles * (slice + 1) / form->slices) * form->steps, count);
}

/* Rows of z or items from `first` on, `rows` of them in shared memory. */
template <bool tensor, tile_moment moment>
__device__ static inline void loss_move(const loss_form *form, float *to, int rows, const float *from, int first,
                                        int count)
{
    tile_move<tensor, moment>(to, form->stride, rows, form->wide, from + (int64_t)first * form->cols, form->cols,
                              min(rows, count - first), form->cols);
}

/* The largest score and the sum of exp less that, of some of a row's items. */
typedef struct loss_peak {
    float peak, sum;
} loss_peak;

__device__ static inline loss_peak loss_join(loss_peak a, loss_peak b)
{
    loss_peak both = {fmaxf(a.peak, b.peak), 0};
    both.sum += a.peak == -INFINITY ? 0 : a.sum * __expf(a.peak - both.peak);
    both.sum += b.peak == -INFINITY ? 0 : b.sum * __expf(b.peak - both.peak);
    return both;
}

/* What a side brings to a pair: an item its offset, a row of z its log sum and target. */
typedef struct loss_side {
    float number;
    int target;
} loss_side;

template <bool item> __device__ static inline loss_side loss_side_of(const loss_task *task, int i, int count)
{
    loss_side mine = {item ? loss_offset(task, i, count) : INFINITY, -1};
    if (!item && i < count) {
        mine.number = task->log_sum[i];
        mine.target = task->target[i];
    }
    return mine;
}

/* ---- for common widths --------------------------------------------------------------------------------------- */

/* Whether there are kernels for so many columns. If so, what is left to fill in of a form, for at most so many rows and others. */
bool lp_cuda_softmax_tensor(const lp_cuda_run *run, loss_form *form, int cols, int64_t rows, int64_t others);
/* Largest scores and sums of every slice; and one side of the gradient. */
void lp_cuda_softmax_tensor_forward(const lp_cuda_run *run, const loss_task *task, int64_t rows);
void lp_cuda_softmax_tensor_backward(const lp_cuda_run *run, const loss_task *task, bool by_items, int64_t rows);

#endif
