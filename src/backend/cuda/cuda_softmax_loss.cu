/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue; the score matrix is never stored.
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * Grid: (tiles of the resident side, splits of the other side); 256 threads, 16 or 64 resident rows. A thread block
 * iterates over its split, `inner_rows` at a time, with an online softmax. The gradient recomputes the scores twice:
 * with z resident for dz, with items resident for ditems and dbias, so no two blocks add to the same element. Shared
 * memory (loss_layout): the resident tile, a double-buffered streamed tile and the dscores; choose_tiles picks the
 * streamed tile that lets two blocks run on a multiprocessor.
 *
 * If the tiles are too few to fill the device, the streamed side is split (split-K); partial results are added in a
 * fixed order. The number of splits depends on the largest shard only.
 */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

enum { WARPS = 8, FULL_DEVICE = 384 };

/* Adds the scores of a warp's rows and its columns of the streamed tile, without terms. */
template <bool tensor, int tiles>
__device__ void compute_scores(const loss_config *config, const float *resident, const float *streamed, int warp_col,
                               float (&score)[tiles][4])
{
    int count = max(config->inner_rows / 8 - warp_col + config->warp_cols - 1, 0) / config->warp_cols;
    tile_matmul_nt<tensor>(score, 0, min(count, tiles), resident, config->stride,
                           streamed + 8 * warp_col * config->stride, config->stride, 8 * config->warp_cols,
                           config->cols_padded);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Online softmax of a lane's own columns; lanes are merged at the end. */
template <int tiles>
__device__ void update_softmax(const loss_config *config, const float *term, int warp_col,
                               const float (&score)[tiles][4], loss_softmax (&row)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float x[tiles][2], new_max = row[half].row_max, sum = 0;
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int col = 8 * (j * config->warp_cols + warp_col) + 2 * me.member + i;
                x[j][i] = col < config->inner_rows ? score[j][2 * half + i] + term[col] : -INFINITY;
                new_max = fmaxf(new_max, x[j][i]);
            }
        if (new_max == -INFINITY)
            continue;
#pragma unroll
        for (int j = 0; j < tiles; j++)
            sum += __expf(x[j][0] - new_max) + __expf(x[j][1] - new_max);
        row[half].row_sum = row[half].row_sum * __expf(row[half].row_max - new_max) + sum;
        row[half].row_max = new_max;
    }
}

template <bool tensor, int tiles>
__global__ void __launch_bounds__(32 * WARPS, 2) loss_forward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_config *config = &task.config;
    loss_layout layout = loss_layout_of(config);
    int targets = lp_rows_now(task.targets, task.shard), items = lp_rows_now(task.items, task.shard);
    int first = (int)blockIdx.x * config->rows, begin, end;
    if (first >= targets)
        return;
    loss_split(config, items, &begin, &end);
    tile_lane me = tile_lane_now();
    int group_row = me.warp / config->warp_cols * 16, warp_col = me.warp % config->warp_cols;
    const float *resident = memory + layout.resident + group_row * config->stride;
    int buffer = 0, size = config->inner_rows * config->stride;
    loss_stage<tensor, TILE_COPY>(config, memory + layout.resident, config->rows, task.z, first, targets);
    if (begin < end)
        loss_stage<tensor, TILE_COPY>(config, memory + layout.streamed, config->inner_rows, task.table, begin, items);
    tile_cp_async_wait();
    loss_stage<tensor, TILE_ROUND>(config, memory + layout.resident, config->rows, task.z, first, targets);
    loss_softmax row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int item = begin, next; item < end; item = next, buffer = config->buffers - 1 - buffer) {
        float *streamed = memory + layout.streamed + buffer * size,
              *term = memory + layout.terms + buffer * config->inner_rows;
        next = item + config->inner_rows;
        tile_cp_async_wait();
        loss_stage<tensor, TILE_ROUND>(config, streamed, config->inner_rows, task.table, item, items);
        for (int i = (int)threadIdx.x; i < config->inner_rows; i += (int)blockDim.x)
            term[i] = loss_item_term(&task, item + i, items);
        __syncthreads();
        if (config->buffers == 2 && next < end)
            loss_stage<tensor, TILE_COPY>(config, memory + layout.streamed + (1 - buffer) * size, config->inner_rows,
                                          task.table, next, items);
        float score[tiles][4] = {};
        compute_scores<tensor>(config, resident, streamed, warp_col, score);
        update_softmax(config, term, warp_col, score, row);
        if (config->buffers == 1 && next < end) {
            __syncthreads();
            loss_stage<tensor, TILE_COPY>(config, streamed, config->inner_rows, task.table, next, items);
        }
    }
    float *row_max = memory + layout.reduction, *row_sum = row_max + config->rows * config->warp_cols;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half] = loss_softmax_merge_lanes(row[half]);
        int offset = warp_col * config->rows + group_row + me.group + 8 * half;
        if (me.member == 0) {
            row_max[offset] = row[half].row_max;
            row_sum[offset] = row[half].row_sum;
        }
    }
    __syncthreads();
    for (int r = (int)threadIdx.x; r < config->rows && first + r < targets; r += (int)blockDim.x) {
        loss_softmax all = {-INFINITY, 0};
        for (int i = 0; i < config->warp_cols; i++) {
            loss_softmax other = {row_max[i * config->rows + r], row_sum[i * config->rows + r]};
            all = loss_softmax_merge(all, other);
        }
        loss_store_softmax(&task, first + r, all);
    }
}

/* One warp for each row: merges its splits and computes the loss at its target. */
__global__ void __launch_bounds__(32 * WARPS) loss_merge_splits(const __grid_constant__ loss_task task)
{
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = (int)threadIdx.x & 31, cols = task.config.cols;
    if (t >= lp_rows_now(task.targets, task.shard))
        return;
    int target = task.target[t];
    float dot = 0;
    for (int c = lane; c < cols; c += 32)
        dot += task.z[t * cols + c] * task.table[(int64_t)target * cols + c];
    dot = lp_warp_sum(dot) + loss_item_term(&task, target, target + 1);
    loss_softmax all = {-INFINITY, 0};
    for (int i = 0; i < task.config.splits; i++) {
        loss_softmax other = {task.partial[i * task.capacity + t], task.partial_sums[i * task.capacity + t]};
        all = loss_softmax_merge(all, other);
    }
    if (lane == 0) {
        float lse = all.row_max + logf(all.row_sum);
        task.out[t] = lse;
        task.losses[t] = lse - dot;
    }
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Writes the dscores of the warp's pairs to shared memory and adds their row sums to row_total. */
template <bool tensor, bool by_items, int tiles>
__device__ void write_dscores(const loss_config *config, const float *term, const int *target, float scale,
                              int first_row, int first_col, int warp_col, const loss_operand (&row)[2],
                              const float (&score)[tiles][4], float *dscores, float (&row_total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        int col = 8 * (j * config->warp_cols + warp_col) + 2 * me.member;
        if (col >= config->inner_rows)
            continue;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float dscore[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float x = score[j][2 * half + i] +
                          (by_items ? row[half].term - term[col + i] : term[col + i] - row[half].term);
                bool is_target = by_items ? target[col + i] == first_row + me.group + 8 * half
                                          : row[half].target == first_col + col + i;
                dscore[i] = scale * (__expf(x) - (is_target ? 1.0f : 0.0f));
                row_total[half] += dscore[i];
            }
            *(float2 *)(dscores + (me.group + 8 * half) * config->score_stride + col) =
                make_float2(tile_operand<tensor>(dscore[0]), tile_operand<tensor>(dscore[1]));
        }
    }
}

/* Row sums of dscores over all warps of a group: to dbias, or to the split's part of it. */
__device__ void store_row_sums(const loss_task *task, float *reduction, int first, int count, int group_row,
                               int warp_col, const float (&row_total)[2])
{
    const loss_config *config = &task->config;
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = tile_row_sum(row_total[half]);
        if (me.member == 0)
            reduction[warp_col * config->rows + group_row + me.group + 8 * half] = sum;
    }
    __syncthreads();
    for (int r = (int)threadIdx.x; r < config->rows && first + r < count; r += (int)blockDim.x) {
        float sum = 0;
        for (int i = 0; i < config->warp_cols; i++)
            sum += reduction[i * config->rows + r];
        loss_store_dbias(task, first + r, sum);
    }
}

/* Resident rows are z, or items. out [rows x cols] is their gradient; dbias is written with items resident. */
template <bool tensor, bool by_items, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(32 * WARPS, out_tiles <= 8 ? 2 : 1)
    loss_backward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_config *config = &task.config;
    loss_layout layout = loss_layout_of(config);
    int targets = lp_rows_now(task.targets, task.shard), items = lp_rows_now(task.items, task.shard);
    int rows = by_items ? items : targets, others = by_items ? targets : items, first = (int)blockIdx.x * config->rows,
        begin, end;
    if (first >= rows)
        return;
    loss_split(config, others, &begin, &end);
    tile_lane me = tile_lane_now();
    int group_row = me.warp / config->warp_cols * 16, warp_col = me.warp % config->warp_cols;
    int first_tile = warp_col * out_tiles, count = max(min(config->cols_padded / 8 - first_tile, out_tiles), 0);
    const float *x = by_items ? task.table : task.z, *y = by_items ? task.z : task.table;
    int buffer = 0, size = config->inner_rows * config->stride;
    loss_stage<tensor, TILE_COPY>(config, memory + layout.resident, config->rows, x, first, rows);
    if (begin < end)
        loss_stage<tensor, TILE_COPY>(config, memory + layout.streamed, config->inner_rows, y, begin, others);
    tile_cp_async_wait();
    loss_stage<tensor, TILE_ROUND>(config, memory + layout.resident, config->rows, x, first, rows);
    loss_operand row[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        row[half] = loss_operand_of<by_items>(&task, first + group_row + me.group + 8 * half, rows);
    const float *resident = memory + layout.resident + group_row * config->stride;
    float *dscores = memory + layout.dscores + group_row * config->score_stride;
    float sum[out_tiles][4] = {}, row_total[2] = {0, 0}, scale = *task.dloss;
    for (int other = begin, next; other < end; other = next, buffer = config->buffers - 1 - buffer) {
        float *streamed = memory + layout.streamed + buffer * size,
              *term = memory + layout.terms + buffer * config->inner_rows;
        int *target = (int *)(memory + layout.targets + buffer * config->inner_rows);
        next = other + config->inner_rows;
        tile_cp_async_wait();
        loss_stage<tensor, TILE_ROUND>(config, streamed, config->inner_rows, y, other, others);
        for (int i = (int)threadIdx.x; i < config->inner_rows; i += (int)blockDim.x) {
            loss_operand operand = loss_operand_of<!by_items>(&task, other + i, others);
            term[i] = operand.term;
            target[i] = operand.target;
        }
        __syncthreads();
        if (config->buffers == 2 && next < end)
            loss_stage<tensor, TILE_COPY>(config, memory + layout.streamed + (1 - buffer) * size, config->inner_rows, y,
                                          next, others);
        float score[score_tiles][4] = {};
        compute_scores<tensor>(config, resident, streamed, warp_col, score);
        write_dscores<tensor, by_items>(config, term, target, scale, first + group_row, other, warp_col, row, score,
                                        dscores, row_total);
        __syncthreads();
        tile_matmul_nn<tensor>(sum, 0, count, dscores, config->score_stride, streamed + 8 * first_tile, config->stride,
                               config->inner_rows);
        if (config->buffers == 1 && next < end) {
            __syncthreads();
            loss_stage<tensor, TILE_COPY>(config, streamed, config->inner_rows, y, next, others);
        }
    }
    __syncthreads();
    tile_store_shared(memory + layout.resident + group_row * config->stride + 8 * first_tile, config->stride, count,
                      sum);
    __syncthreads();
    loss_store_rows(&task, first, min(config->rows, rows - first), memory + layout.resident, config->stride);
    if (by_items && task.dbias)
        store_row_sums(&task, memory + layout.reduction, first, rows, group_row, warp_col, row_total);
}

/* out [rows x cols] = sum over splits of [splits x capacity x cols], in their order. */
__global__ void __launch_bounds__(256) add_splits(const lp_cuda_shard *shard, lp_cuda_rows rows, const float *partial,
                                                  int64_t capacity, int cols, int splits, float *out, int accumulate)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)lp_rows_now(rows, shard) * cols)
        return;
    float sum = 0;
    for (int s = 0; s < splits; s++)
        sum += partial[s * capacity * cols + i];
    lp_store(out + i, sum, accumulate);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Chooses tiles for these widths, and splits for at most `rows` resident and `others` streamed rows. Returns the
 * 8-column output tiles of a warp; 0: use the tensor-core kernels. */
int choose_tiles(const lp_cuda_run *run, loss_config *config, int cols, int64_t rows, int64_t others)
{
    if (tile_tensor(run) && lp_cuda_softmax_tensor(run, config, cols, rows, others))
        return 0;
    config->cols = cols;
    config->cols_padded = tile_pad(cols);
    config->stride = tile_stride(cols);
    int tiles = config->cols_padded / 8, out_tiles = tiles <= 8 ? 4 : tiles <= 16 ? 8 : 16;
    config->warp_rows = tiles <= 32 ? 4 : 1;
    config->warp_cols = WARPS / config->warp_rows;
    config->rows = 16 * config->warp_rows;
    static const int choices[][2] = {{64, 2}, {32, 2}, {64, 1}, {32, 1}, {16, 1}, {8, 1}};
    tile_choose_inner(config, choices, 64, [=]() { return loss_layout_of(config).size; });
    config->splits = loss_splits_of(config, rows, others, FULL_DEVICE);
    return out_tiles;
}

template <bool tensor, bool by_items>
void launch_backward(const lp_cuda_run *run, const loss_task *task, int64_t rows, int out_tiles)
{
    const loss_config *config = &task->config;
    loss_task with = *task;
    dim3 grid(lp_blocks(rows, config->rows), (unsigned)config->splits);
    size_t size = (size_t)loss_layout_of(config).size * sizeof(float);
    if (out_tiles == 4)
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 4>), grid, 32 * WARPS, size, with);
    else if (out_tiles == 8)
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 8>), grid, 32 * WARPS, size, with);
    else
        LP_LAUNCH(run, (loss_backward<tensor, by_items, 4, 16>), grid, 32 * WARPS, size, with);
}

/* Gradient of one side: rows of z, or items. */
void launch_side(const lp_cuda_run *run, loss_task *task, bool by_items, int64_t rows, int out_tiles)
{
    const loss_config *config = &task->config;
    lp_cuda_rows rows_of = by_items ? task->items : task->targets;
    if (out_tiles == 0)
        lp_cuda_softmax_tensor_backward(run, task, by_items, rows);
    else if (tile_tensor(run))
        by_items ? launch_backward<true, true>(run, task, rows, out_tiles)
                 : launch_backward<true, false>(run, task, rows, out_tiles);
    else
        by_items ? launch_backward<false, true>(run, task, rows, out_tiles)
                 : launch_backward<false, false>(run, task, rows, out_tiles);
    if (config->splits == 1)
        return;
    if (task->out)
        LP_LAUNCH(run, add_splits, lp_blocks(rows * config->cols, 256), 256, 0, task->shard, rows_of, task->partial,
                  task->capacity, config->cols, config->splits, task->out, task->out_accumulate);
    if (task->dbias)
        LP_LAUNCH(run, add_splits, lp_blocks(rows, 256), 256, 0, task->shard, rows_of, task->partial_sums,
                  task->capacity, 1, config->splits, task->dbias, task->dbias_accumulate);
}

loss_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = {};
    task.shard = run->shard;
    task.targets = lp_cuda_rows_of(node->inputs[0]);
    task.items = lp_cuda_rows_of(node->inputs[1]);
    task.z = LP_INPUT(0);
    task.table = LP_INPUT(1);
    task.bias = LP_INPUT(2);
    task.logq = LP_INPUT(3);
    task.target = LP_INPUT_AS(int32_t, 4);
    return task;
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = task_of(node, run);
    int64_t rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int out_tiles = choose_tiles(run, &task.config, node->inputs[0]->cols, rows, items);
    task.capacity = rows;
    size_t part = (size_t)task.config.splits * (size_t)rows;
    task.partial = (float *)lp_cuda_scratch(run, (2 * part + (size_t)rows) * sizeof(float));
    if (!task.partial)
        return;
    task.partial_sums = task.partial + part;
    task.losses = task.partial_sums + part;
    task.out = LP_OUTPUT(1);
    loss_task with = task;
    dim3 grid(lp_blocks(rows, task.config.rows), (unsigned)task.config.splits);
    size_t size = (size_t)loss_layout_of(&task.config).size * sizeof(float);
    if (out_tiles == 0)
        lp_cuda_softmax_tensor_forward(run, &task, rows);
    else if (tile_tensor(run))
        LP_LAUNCH(run, (loss_forward<true, 4>), grid, 32 * WARPS, size, with);
    else
        LP_LAUNCH(run, (loss_forward<false, 4>), grid, 32 * WARPS, size, with);
    LP_LAUNCH(run, loss_merge_splits, lp_blocks(rows, WARPS), 32 * WARPS, 0, with);
    lp_cuda_loss_sum(run, node->inputs[0], task.losses, LP_OUTPUT(0));
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task by_rows = task_of(node, run);
    by_rows.lse = LP_INPUT(5);
    by_rows.dloss = LP_INPUT(6);
    loss_task by_items = by_rows;
    int64_t rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int cols = node->inputs[0]->cols, row_tiles = choose_tiles(run, &by_rows.config, cols, rows, items);
    int item_tiles = choose_tiles(run, &by_items.config, cols, items, rows);
    by_rows.capacity = rows;
    by_rows.out = LP_OUTPUT(0);
    by_rows.out_accumulate = LP_ADDS(0);
    by_items.capacity = items;
    by_items.out = LP_OUTPUT(1);
    by_items.out_accumulate = LP_ADDS(1);
    by_items.dbias = LP_OUTPUT(2);
    by_items.dbias_accumulate = LP_ADDS(2);
    /* The two passes run one after the other and share scratch. */
    size_t row_size = by_rows.config.splits > 1 ? (size_t)by_rows.config.splits * (size_t)rows * (size_t)cols : 0;
    size_t item_size =
        by_items.config.splits > 1 ? (size_t)by_items.config.splits * (size_t)items * ((size_t)cols + 1) : 0;
    size_t size = row_size > item_size ? row_size : item_size;
    float *scratch = size ? (float *)lp_cuda_scratch(run, size * sizeof(float)) : NULL;
    if (size && !scratch)
        return;
    by_rows.partial = by_items.partial = scratch;
    by_items.partial_sums = scratch ? scratch + (size_t)by_items.config.splits * (size_t)items * (size_t)cols : NULL;
    if (by_rows.out)
        launch_side(run, &by_rows, false, rows, row_tiles);
    if (by_items.out || by_items.dbias)
        launch_side(run, &by_items, true, items, item_tiles);
}
