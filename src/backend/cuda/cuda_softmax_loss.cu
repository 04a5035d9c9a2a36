/* cuda_softmax_loss.cu: the loss over a catalogue, whose scores are never stored.
 *
 * With s(t, c) = z_t . item_c + bias_c + shift_c, a block of threads holds a tile of rows on one side and goes over the other, `steps` at
 * a time. The gradient makes the scores again, twice: once by rows of z for dz, once by items for ditems and dbias, so that nothing is
 * added to from two blocks.
 *
 *     ds(t, c) = dloss (exp(s - log_sum_t) - one at target)      dz = ds items      ditems = ds^T z      dbias = sum of ds
 *
 * Where the tiles are too few to fill the device, the other side is cut into slices, each with a block and sums of its own, which are
 * then added in their order. How many slices there are depends on the largest shard alone.
 */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

enum { WARPS = 8, FULL_DEVICE = 384, MOST_SHARED = 227 * 1024, HALF_SHARED = 113 * 1024 };

/* Products of a warp's rows with its columns of a step. */
template <bool tensor, int tiles>
__device__ void make_scores(const loss_form *form, const float *fixed, const float *moving, int warp_col,
                            float (&score)[tiles][4])
{
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = 0;
    int count = max(form->steps / 8 - warp_col + form->warp_cols - 1, 0) / form->warp_cols;
    tile_rows<tensor>(score, 0, min(count, tiles), fixed, form->stride, moving + 8 * warp_col * form->stride,
                      form->stride, 8 * form->warp_cols, form->wide);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Every lane keeps the sum of its own columns, and they are joined at the end. */
template <int tiles>
__device__ void take_scores(const loss_form *form, const float *offset, int warp_col, const float (&score)[tiles][4],
                            loss_peak (&row)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float x[tiles][2], largest = row[half].peak, sum = 0;
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int col = 8 * (j * form->warp_cols + warp_col) + 2 * me.member + i;
                x[j][i] = col < form->steps ? score[j][2 * half + i] + offset[col] : -INFINITY;
                largest = fmaxf(largest, x[j][i]);
            }
        if (largest == -INFINITY)
            continue;
#pragma unroll
        for (int j = 0; j < tiles; j++)
            sum += __expf(x[j][0] - largest) + __expf(x[j][1] - largest);
        row[half].sum = row[half].sum * __expf(row[half].peak - largest) + sum;
        row[half].peak = largest;
    }
}

template <bool tensor, int tiles>
__global__ void __launch_bounds__(32 * WARPS, 2) loss_forward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_form *form = &task.form;
    loss_layout parts = loss_layout_of(form);
    int target_position = lp_rows_now(task.target_position, task.shard), items = lp_rows_now(task.items, task.shard);
    int first = (int)blockIdx.x * form->rows, begin, end;
    if (first >= target_position)
        return;
    loss_slice(form, items, &begin, &end);
    tile_lane me = tile_lane_now();
    int group_row = me.warp / form->warp_cols * 16, warp_col = me.warp % form->warp_cols;
    const float *fixed = memory + parts.fixed + group_row * form->stride;
    int turn = 0, size = form->steps * form->stride;
    loss_move<tensor, TILE_ASK>(form, memory + parts.fixed, form->rows, task.z, first, target_position);
    if (begin < end)
        loss_move<tensor, TILE_ASK>(form, memory + parts.moving, form->steps, task.table, begin, items);
    tile_wait();
    loss_move<tensor, TILE_SETTLE>(form, memory + parts.fixed, form->rows, task.z, first, target_position);
    loss_peak row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int item = begin, next; item < end; item = next, turn = form->buffers - 1 - turn) {
        float *moving = memory + parts.moving + turn * size, *offset = memory + parts.first + turn * form->steps;
        next = item + form->steps;
        tile_wait();
        loss_move<tensor, TILE_SETTLE>(form, moving, form->steps, task.table, item, items);
        for (int i = (int)threadIdx.x; i < form->steps; i += (int)blockDim.x)
            offset[i] = loss_offset(&task, item + i, items);
        __syncthreads();
        if (form->buffers == 2 && next < end)
            loss_move<tensor, TILE_ASK>(form, memory + parts.moving + (1 - turn) * size, form->steps, task.table, next,
                                        items);
        float score[tiles][4];
        make_scores<tensor>(form, fixed, moving, warp_col, score);
        take_scores(form, offset, warp_col, score, row);
        if (form->buffers == 1 && next < end) {
            __syncthreads();
            loss_move<tensor, TILE_ASK>(form, moving, form->steps, task.table, next, items);
        }
    }
    float *peak = memory + parts.parts, *sum = peak + form->rows * form->warp_cols;
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int lanes = 1; lanes < 4; lanes *= 2) {
            loss_peak other = {__shfl_xor_sync(0xFFFFFFFFu, row[half].peak, lanes),
                               __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, lanes)};
            row[half] = loss_join(row[half], other);
        }
        int place = warp_col * form->rows + group_row + me.group + 8 * half;
        if (me.member == 0) {
            peak[place] = row[half].peak;
            sum[place] = row[half].sum;
        }
    }
    __syncthreads();
    for (int r = (int)threadIdx.x; r < form->rows && first + r < target_position; r += (int)blockDim.x) {
        loss_peak all = {-INFINITY, 0};
        for (int i = 0; i < form->warp_cols; i++) {
            loss_peak other = {peak[i * form->rows + r], sum[i * form->rows + r]};
            all = loss_join(all, other);
        }
        task.peaks[blockIdx.y * task.largest + first + r] = all.peak;
        task.sums[blockIdx.y * task.largest + first + r] = all.sum;
    }
}

/* A warp for each row: its slices joined, and the loss at its target. */
__global__ void __launch_bounds__(32 * WARPS) loss_finish(const __grid_constant__ loss_task task)
{
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = (int)threadIdx.x & 31, cols = task.form.cols;
    if (t >= lp_rows_now(task.target_position, task.shard))
        return;
    int target = task.target[t];
    float dot = 0;
    for (int c = lane; c < cols; c += 32)
        dot += task.z[t * cols + c] * task.table[(int64_t)target * cols + c];
    dot = lp_warp_sum(dot) + loss_offset(&task, target, target + 1);
    loss_peak all = {-INFINITY, 0};
    for (int i = 0; i < task.form.slices; i++) {
        loss_peak other = {task.peaks[i * task.largest + t], task.sums[i * task.largest + t]};
        all = loss_join(all, other);
    }
    if (lane == 0) {
        float log_sum = all.peak + logf(all.sum);
        task.out[t] = log_sum;
        task.losses[t] = log_sum - dot;
    }
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Slopes of the warp's pairs to shared memory; their sums by rows to total. */
template <bool tensor, bool by_items, int tiles>
__device__ void write_slopes(const loss_form *form, const float *number, const int *target, float scale, int first_row,
                             int first_col, int warp_col, const loss_side (&row)[2], const float (&score)[tiles][4],
                             float *shares, float (&total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        int col = 8 * (j * form->warp_cols + warp_col) + 2 * me.member;
        if (col >= form->steps)
            continue;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float slope[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float x = score[j][2 * half + i] +
                          (by_items ? row[half].number - number[col + i] : number[col + i] - row[half].number);
                bool hit = by_items ? target[col + i] == first_row + me.group + 8 * half
                                    : row[half].target == first_col + col + i;
                slope[i] = scale * (__expf(x) - (hit ? 1.0f : 0.0f));
                total[half] += slope[i];
            }
            *(float2 *)(shares + (me.group + 8 * half) * form->share_stride + col) =
                make_float2(tile_number<tensor>(slope[0]), tile_number<tensor>(slope[1]));
        }
    }
}

/* Sums by rows over all warps of a group: to the bias's gradient, or the slice's part of it. */
__device__ void store_totals(const loss_task *task, float *parts, int first, int count, int group_row, int warp_col,
                             const float (&total)[2])
{
    const loss_form *form = &task->form;
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = total[half];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (me.member == 0)
            parts[warp_col * form->rows + group_row + me.group + 8 * half] = sum;
    }
    __syncthreads();
    for (int r = (int)threadIdx.x; r < form->rows && first + r < count; r += (int)blockDim.x) {
        float sum = 0;
        for (int i = 0; i < form->warp_cols; i++)
            sum += parts[i * form->rows + r];
        if (form->slices > 1)
            task->sums[blockIdx.y * task->largest + first + r] = sum;
        else
            lp_store(task->column + first + r, sum, task->column_adds);
    }
}

/* Rows are those of z, or items; out [rows x cols] is the gradient of the one, and column that of the bias. */
template <bool tensor, bool by_items, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(32 * WARPS, out_tiles <= 8 ? 2 : 1)
    loss_backward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_form *form = &task.form;
    loss_layout parts = loss_layout_of(form);
    int target_position = lp_rows_now(task.target_position, task.shard), items = lp_rows_now(task.items, task.shard);
    int rows = by_items ? items : target_position, others = by_items ? target_position : items,
        first = (int)blockIdx.x * form->rows, begin, end;
    if (first >= rows)
        return;
    loss_slice(form, others, &begin, &end);
    tile_lane me = tile_lane_now();
    int group_row = me.warp / form->warp_cols * 16, warp_col = me.warp % form->warp_cols,
        present = min(form->rows, rows - first);
    int first_tile = warp_col * out_tiles, count = max(min(form->wide / 8 - first_tile, out_tiles), 0);
    const float *x = by_items ? task.table : task.z, *y = by_items ? task.z : task.table;
    int turn = 0, size = form->steps * form->stride;
    loss_move<tensor, TILE_ASK>(form, memory + parts.fixed, form->rows, x, first, rows);
    if (begin < end)
        loss_move<tensor, TILE_ASK>(form, memory + parts.moving, form->steps, y, begin, others);
    tile_wait();
    loss_move<tensor, TILE_SETTLE>(form, memory + parts.fixed, form->rows, x, first, rows);
    loss_side row[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        row[half] = loss_side_of<by_items>(&task, first + group_row + me.group + 8 * half, rows);
    const float *fixed = memory + parts.fixed + group_row * form->stride;
    float *shares = memory + parts.shares + group_row * form->share_stride;
    float sum[out_tiles][4] = {}, total[2] = {0, 0}, scale = *task.dloss;
    for (int other = begin, next; other < end; other = next, turn = form->buffers - 1 - turn) {
        float *moving = memory + parts.moving + turn * size, *number = memory + parts.first + turn * form->steps;
        int *target = (int *)(memory + parts.second + turn * form->steps);
        next = other + form->steps;
        tile_wait();
        loss_move<tensor, TILE_SETTLE>(form, moving, form->steps, y, other, others);
        for (int i = (int)threadIdx.x; i < form->steps; i += (int)blockDim.x) {
            loss_side brought = loss_side_of<!by_items>(&task, other + i, others);
            number[i] = brought.number;
            target[i] = brought.target;
        }
        __syncthreads();
        if (form->buffers == 2 && next < end)
            loss_move<tensor, TILE_ASK>(form, memory + parts.moving + (1 - turn) * size, form->steps, y, next, others);
        float score[score_tiles][4];
        make_scores<tensor>(form, fixed, moving, warp_col, score);
        write_slopes<tensor, by_items>(form, number, target, scale, first + group_row, other, warp_col, row, score,
                                       shares, total);
        __syncthreads();
        tile_columns<tensor>(sum, 0, count, shares, form->share_stride, moving + 8 * first_tile, form->stride,
                             form->steps);
        if (form->buffers == 1 && next < end) {
            __syncthreads();
            loss_move<tensor, TILE_ASK>(form, moving, form->steps, y, next, others);
        }
    }
    __syncthreads();
    tile_put(memory + parts.fixed + group_row * form->stride + 8 * first_tile, form->stride, count, sum);
    __syncthreads();
    if (form->slices > 1)
        tile_store(task.peaks + (blockIdx.y * task.largest + first) * form->cols, form->cols, present, form->cols,
                   memory + parts.fixed, form->stride, 0);
    else if (task.out)
        tile_store(task.out + (int64_t)first * form->cols, form->cols, present, form->cols, memory + parts.fixed,
                   form->stride, task.out_adds);
    if (by_items && task.column)
        store_totals(&task, memory + parts.parts, first, rows, group_row, warp_col, total);
}

/* out [rows x cols] = the sum of [slices x largest x cols], in their order. */
__global__ void __launch_bounds__(256) add_slices(const lp_cuda_shard *shard, lp_cuda_rows rows, const float *parts,
                                                  int64_t largest, int cols, int slices, float *out, int adds)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)lp_rows_now(rows, shard) * cols)
        return;
    float sum = 0;
    for (int s = 0; s < slices; s++)
        sum += parts[s * largest * cols + i];
    lp_store(out + i, sum, adds);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Tiles for these widths; slices for at most so many rows, and so many on the other side. Returns the tiles of 8 columns of the
 * output that a warp takes; 0 where there are kernels for just these. */
int choose_tiles(const lp_cuda_run *run, loss_form *form, int cols, int64_t rows, int64_t others)
{
    if (tile_tensor(run) && lp_cuda_softmax_tensor(run, form, cols, rows, others))
        return 0;
    form->cols = cols;
    form->wide = tile_pad(cols);
    form->stride = tile_stride(cols);
    int tiles = form->wide / 8, out_tiles = tiles <= 8 ? 4 : tiles <= 16 ? 8 : 16;
    form->warp_rows = tiles <= 32 ? 4 : 1;
    form->warp_cols = WARPS / form->warp_rows;
    form->rows = 16 * form->warp_rows;
    static const int choices[][2] = {{64, 2}, {32, 2}, {64, 1}, {32, 1}, {16, 1}, {8, 1}};
    for (int i = 0; i < 6; i++) {
        form->steps = choices[i][0];
        form->buffers = choices[i][1];
        form->share_stride = tile_share_stride(form->steps);
        size_t size = loss_layout_of(form).size * sizeof(float);
        if (size <= HALF_SHARED || (form->buffers == 1 && size <= MOST_SHARED))
            break;
    }
    int64_t blocks = (rows + form->rows - 1) / form->rows, most = (others + 4 * form->steps - 1) / (4 * form->steps);
    int64_t slices = blocks > 0 ? (FULL_DEVICE + blocks - 1) / blocks : 1;
    slices = slices > most ? most : slices;
    form->slices = (int)(slices < 1 ? 1 : slices);
    return out_tiles;
}

template <bool tensor, bool by_items>
void launch_backward(const lp_cuda_run *run, const loss_task *task, int64_t rows, int out_tiles)
{
    const loss_form *form = &task->form;
    loss_task with = *task;
    dim3 grid(lp_blocks(rows, form->rows), (unsigned)form->slices);
    size_t size = (size_t)loss_layout_of(form).size * sizeof(float);
    if (out_tiles == 4)
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 4>), grid, 32 * WARPS, size, with);
    else if (out_tiles == 8)
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 8>), grid, 32 * WARPS, size, with);
    else
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 16>), grid, 32 * WARPS, size, with);
}

/* One side of the gradient: by rows of z, or by items. */
void launch_side(const lp_cuda_run *run, loss_task *task, bool by_items, int64_t rows, int out_tiles)
{
    const loss_form *form = &task->form;
    lp_cuda_rows type = by_items ? task->items : task->target_position;
    if (out_tiles == 0)
        lp_cuda_softmax_tensor_backward(run, task, by_items, rows);
    else if (tile_tensor(run))
        by_items ? launch_backward<true, true>(run, task, rows, out_tiles)
                 : launch_backward<true, false>(run, task, rows, out_tiles);
    else
        by_items ? launch_backward<false, true>(run, task, rows, out_tiles)
                 : launch_backward<false, false>(run, task, rows, out_tiles);
    if (form->slices == 1)
        return;
    if (task->out)
        LP_LAUNCH(run, add_slices, lp_blocks(rows * form->cols, 256), 256, 0, task->shard, type, task->peaks,
                  task->largest, form->cols, form->slices, task->out, task->out_adds);
    if (task->column)
        LP_LAUNCH(run, add_slices, lp_blocks(rows, 256), 256, 0, task->shard, type, task->sums, task->largest, 1,
                  form->slices, task->column, task->column_adds);
}

loss_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = {};
    task.shard = run->shard;
    task.target_position = lp_cuda_rows_of(node->inputs[0]);
    task.items = lp_cuda_rows_of(node->inputs[1]);
    task.z = LP_INPUT(0);
    task.table = LP_INPUT(1);
    task.bias = LP_INPUT(2);
    task.shift = LP_INPUT(3);
    task.target = LP_INPUT_AS(int32_t, 4);
    return task;
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = task_of(node, run);
    int64_t rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int out_tiles = choose_tiles(run, &task.form, node->inputs[0]->cols, rows, items);
    task.largest = rows;
    size_t part = (size_t)task.form.slices * (size_t)rows;
    task.peaks = (float *)lp_cuda_scratch(run, (2 * part + (size_t)rows) * sizeof(float));
    if (!task.peaks)
        return;
    task.sums = task.peaks + part;
    task.losses = task.sums + part;
    task.out = LP_OUTPUT(1);
    loss_task with = task;
    dim3 grid(lp_blocks(rows, task.form.rows), (unsigned)task.form.slices);
    size_t size = (size_t)loss_layout_of(&task.form).size * sizeof(float);
    if (out_tiles == 0)
        lp_cuda_softmax_tensor_forward(run, &task, rows);
    else if (tile_tensor(run))
        LP_LAUNCH(run, (loss_forward<true, 4>), grid, 32 * WARPS, size, with);
    else
        LP_LAUNCH(run, (loss_forward<false, 4>), grid, 32 * WARPS, size, with);
    LP_LAUNCH(run, loss_finish, lp_blocks(rows, WARPS), 32 * WARPS, 0, with);
    lp_cuda_loss_sum(run, node->inputs[0], task.losses, LP_OUTPUT(0));
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task by_rows = task_of(node, run);
    by_rows.log_sum = LP_INPUT(5);
    by_rows.dloss = LP_INPUT(6);
    loss_task by_items = by_rows;
    int64_t rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int cols = node->inputs[0]->cols, row_tiles = choose_tiles(run, &by_rows.form, cols, rows, items);
    int item_tiles = choose_tiles(run, &by_items.form, cols, items, rows);
    by_rows.largest = rows;
    by_rows.out = LP_OUTPUT(0);
    by_rows.out_adds = LP_ADDS(0);
    by_items.largest = items;
    by_items.out = LP_OUTPUT(1);
    by_items.out_adds = LP_ADDS(1);
    by_items.column = LP_OUTPUT(2);
    by_items.column_adds = LP_ADDS(2);
    /* The two come one after the other, and may use the same bytes. */
    size_t row_size = by_rows.form.slices > 1 ? (size_t)by_rows.form.slices * (size_t)rows * (size_t)cols : 0;
    size_t item_size = by_items.form.slices > 1 ? (size_t)by_items.form.slices * (size_t)items * ((size_t)cols + 1) : 0;
    size_t size = row_size > item_size ? row_size : item_size;
    float *scratch = size ? (float *)lp_cuda_scratch(run, size * sizeof(float)) : NULL;
    if (size && !scratch)
        return;
    by_rows.peaks = by_items.peaks = scratch;
    by_items.sums = scratch ? scratch + (size_t)by_items.form.slices * (size_t)items * (size_t)cols : NULL;
    if (by_rows.out)
        launch_side(run, &by_rows, false, rows, row_tiles);
    if (by_items.out || by_items.column)
        launch_side(run, &by_items, true, items, item_tiles);
}
