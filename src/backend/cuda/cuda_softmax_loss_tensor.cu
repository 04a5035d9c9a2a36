/* cuda_softmax_loss_tensor.cu: softmax loss over a catalogue on tensor cores for up to 128 columns in tf32 and 64 in bf16 (equations and
 * splits: cuda_softmax_loss.cu).
 *
 * Layout: 256 threads; a warp owns 16 of the 128 resident rows and keeps them in registers as mma fragments next to
 * its accumulators. The other side is streamed through shared memory and processed 32 rows at a time; scores become
 * dscores in registers and feed the next mma. Widths are compile-time constants. tf32 double-buffers 64 streamed rows;
 * bf16 packs while it loads, so it has one buffer of 128 rows. Two blocks run on a multiprocessor up to 64 columns.
 */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

enum { WARPS = 8, ROWS = 16 * WARPS, TILES = 4, UNIT = 8 * TILES, FULL_DEVICE = 264 };
/* Columns up to which these kernels are faster than products, as measured. */
enum { MOST_TF32 = 128, MOST_BF16 = 64 };

/* Widths in 8-column tiles. bf16: a float of shared memory holds two numbers. */
template <int column_tiles, bool use_bf16> struct loss_shape {
    static constexpr bool bf16 = use_bf16;
    static constexpr int tiles = column_tiles;
    static constexpr int k_steps = bf16 ? tiles / 2 : tiles;
    static constexpr int stride = 8 * k_steps + 4;
    static constexpr int out_stride = 8 * tiles + 4; /* of the results, which overwrite all of shared memory */
    static constexpr int inner_rows = bf16 ? 128 : 64;
    static constexpr int buffers = bf16 ? 1 : 2;
    static_assert(!bf16 || tiles % 2 == 0, "a bf16 k-step is two 8-column tiles");
    /* Offsets in shared memory, in floats; size is the total. The resident rows come first. */
    static constexpr int streamed = ROWS * stride, terms = streamed + buffers * inner_rows * stride;
    static constexpr int targets = terms + buffers * inner_rows, size = targets + buffers * inner_rows;
    static_assert(size >= ROWS * out_stride, "results fit");
};

/* Adds the scores of the warp's 16 rows and 32 streamed rows. */
template <typename shape>
__device__ void compute_scores(const float (&resident)[shape::k_steps][4], const float *streamed,
                               float (&score)[TILES][4])
{
    tile_address right = tile_b_address(streamed, shape::stride);
#pragma unroll
    for (int k = 0; k < shape::k_steps; k++)
        tile_mma_nt<shape::bf16, shape::stride>(score, resident[k], right, k);
}

/* Range of the streamed side that this block takes. */
template <typename shape> __device__ void loss_split(int splits, int count, int *begin, int *end)
{
    int64_t tiles = (count + shape::inner_rows - 1) / shape::inner_rows, split = blockIdx.y;
    *begin = (int)(tiles * split / splits) * shape::inner_rows;
    *end = min((int)(tiles * (split + 1) / splits) * shape::inner_rows, count);
}

__device__ void loss_store_softmax(const loss_task *task, int row, loss_softmax state)
{
    task->partial[blockIdx.y * task->capacity + row] = state.row_max;
    task->partial_sums[blockIdx.y * task->capacity + row] = state.row_sum;
}

/* Stores the gradient of the resident rows from `first` on, or the split's part of it. */
__device__ void loss_store_rows(const loss_task *task, int first, int present, const float *from,
                                              int stride)
{
    int cols = task->cols;
    if (task->splits > 1)
        tile_store_global(task->partial + (blockIdx.y * task->capacity + first) * cols, cols, present, cols, from,
                          stride, 0);
    else if (task->out)
        tile_store_global(task->out + (int64_t)first * cols, cols, present, cols, from, stride, task->out_accumulate);
}

/* Stores an element of dbias, or the split's part of it. */
__device__ void loss_store_dbias(const loss_task *task, int item, float sum)
{
    if (task->splits > 1)
        task->partial_sums[blockIdx.y * task->capacity + item] = sum;
    else
        lp_store(task->dbias + item, sum, task->dbias_accumulate);
}

/* Term of one side of a pair. An item: bias + logQ correction; a row of z: its lse and target. */
typedef struct loss_operand {
    float term;
    int target;
} loss_operand;

template <bool item> __device__ loss_operand loss_operand_of(const loss_task *task, int i, int count)
{
    loss_operand mine = {item ? loss_item_term(task, i, count) : INFINITY, -1};
    if (!item && i < count) {
        mine.term = task->lse[i];
        mine.target = task->target[i];
    }
    return mine;
}

/* Stages rows of z or items from `first` on. */
template <typename shape, tile_phase phase>
__device__ void stage_rows(int cols, float *to, int rows, const float *from, int first, int count)
{
    const float *source = from + (int64_t)first * cols;
    if (!shape::bf16)
        tile_stage<phase>(to, shape::stride, rows, 8 * shape::tiles, source, cols, min(rows, count - first), cols);
    else if (phase == TILE_COPY)
        tile_stage_bf16(to, shape::stride, rows, 8 * shape::tiles, source, cols, min(rows, count - first), cols);
}

/* Loads the resident rows into fragments and starts to stage the first streamed tile. */
template <typename shape>
__device__ void load_tiles(int cols, float *memory, const float *x, int first, int rows, const float *y, int from,
                           int others, float (&resident)[shape::k_steps][4])
{
    stage_rows<shape, TILE_COPY>(cols, memory, ROWS, x, first, rows);
    if (from < others)
        stage_rows<shape, TILE_COPY>(cols, memory + shape::streamed, shape::inner_rows, y, from, others);
    tile_cp_async_wait();
    stage_rows<shape, TILE_ROUND>(cols, memory, ROWS, x, first, rows);
    __syncthreads();
    tile_address mine = tile_a_address(memory + 16 * tile_lane_now().warp * shape::stride, shape::stride);
#pragma unroll
    for (int k = 0; k < shape::k_steps; k++)
        tile_ldmatrix(resident[k], mine, 8 * k);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Online softmax of a lane's own columns, with scores times log2 e; lanes are merged at the end. */
__device__ void update_softmax(const float *term, const float (&score)[TILES][4], loss_softmax (&row)[2])
{
    float x[TILES][4];
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 pair = *(const float2 *)(term + 8 * j + 2 * tile_lane_now().member);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[j][i] = fmaf(score[j][i], TILE_LOG2_E, i & 1 ? pair.y : pair.x);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float new_max = row[half].row_max;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            new_max = fmaxf(new_max, fmaxf(x[j][2 * half], x[j][2 * half + 1]));
        float base = new_max == -INFINITY ? 0 : new_max;
        row[half].row_sum *= tile_exp2(row[half].row_max - base);
        row[half].row_max = new_max;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            row[half].row_sum += tile_exp2(x[j][2 * half] - base) + tile_exp2(x[j][2 * half + 1] - base);
    }
}

__device__ void store_softmax(const loss_task *task, int first, int targets, loss_softmax (&row)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].row_max /= TILE_LOG2_E;
        row[half] = loss_softmax_merge_lanes(row[half]);
        int t = first + 16 * me.warp + me.group + 8 * half;
        if (me.member == 0 && t < targets)
            loss_store_softmax(task, t, row[half]);
    }
}

template <typename shape>
__global__ void __launch_bounds__(32 * WARPS, shape::tiles <= 8 ? 2 : 1)
    tensor_loss_forward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    int cols = task.cols;
    int targets = lp_rows_now(task.targets, task.shard), items = lp_rows_now(task.items, task.shard);
    int first = (int)blockIdx.x * ROWS, from, end, buffer = 0;
    if (first >= targets)
        return;
    loss_split<shape>(task.splits, items, &from, &end);
    float resident[shape::k_steps][4];
    load_tiles<shape>(cols, memory, task.z, first, targets, task.table, from, end > from ? items : 0,
                      resident);
    loss_softmax row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int item = from, next; item < end; item = next, buffer = shape::buffers - 1 - buffer) {
        float *streamed = memory + shape::streamed + buffer * shape::inner_rows * shape::stride,
              *term = memory + shape::terms + buffer * shape::inner_rows;
        next = item + shape::inner_rows;
        tile_cp_async_wait();
        stage_rows<shape, TILE_ROUND>(cols, streamed, shape::inner_rows, task.table, item, items);
        for (int i = (int)threadIdx.x; i < shape::inner_rows; i += (int)blockDim.x)
            term[i] = loss_item_term(&task, item + i, items) * TILE_LOG2_E;
        __syncthreads();
        if (shape::buffers == 2 && next < end)
            stage_rows<shape, TILE_COPY>(cols,
                                         memory + shape::streamed + (1 - buffer) * shape::inner_rows * shape::stride,
                                         shape::inner_rows, task.table, next, items);
#pragma unroll 1
        for (int offset = 0; offset < shape::inner_rows; offset += UNIT) {
            float score[TILES][4] = {};
            compute_scores<shape>(resident, streamed + offset * shape::stride, score);
            update_softmax(term + offset, score, row);
        }
        if (shape::buffers == 1 && next < end) {
            __syncthreads();
            stage_rows<shape, TILE_COPY>(cols, streamed, shape::inner_rows, task.table, next, items);
        }
    }
    store_softmax(&task, first, targets, row);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Replaces scores by dscores and adds their row sums to row_total. Terms are multiplied by log2 e. */
template <bool by_items>
__device__ void compute_dscores(const float *term, const int *target, float scale, int first_row, int first_col,
                                const loss_operand (&row)[2], float (&score)[TILES][4], float (&row_total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        int col = 8 * j + 2 * me.member;
        float2 terms = *(const float2 *)(term + col);
        int2 targets = *(const int2 *)(target + col);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const loss_operand *mine = &row[i >> 1];
            float other = i & 1 ? terms.y : terms.x;
            float x = fmaf(score[j][i], TILE_LOG2_E, by_items ? mine->term - other : other - mine->term);
            bool is_target = by_items ? (i & 1 ? targets.y : targets.x) == first_row + me.group + 8 * (i >> 1)
                                      : mine->target == first_col + col + (i & 1);
            score[j][i] = scale * (tile_exp2(x) - (is_target ? 1.0f : 0.0f));
            if (by_items)
                row_total[i >> 1] += score[j][i];
        }
    }
}

/* Row sums of dscores: to dbias, or to the split's part of it. */
__device__ void store_row_sums(const loss_task *task, int first, int count, const float (&row_total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = tile_row_sum(row_total[half]);
        int r = first + 16 * me.warp + me.group + 8 * half;
        if (me.member == 0 && r < count)
            loss_store_dbias(task, r, sum);
    }
}

/* Resident rows are z, or items. out [rows x cols] is their gradient; dbias is written with items resident. */
template <bool by_items, typename shape>
__global__ void __launch_bounds__(32 * WARPS, shape::tiles <= 8 ? 2 : 1)
    tensor_loss_backward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    int cols = task.cols;
    constexpr int out_stride = shape::out_stride;
    int targets = lp_rows_now(task.targets, task.shard), items = lp_rows_now(task.items, task.shard);
    int rows = by_items ? items : targets, others = by_items ? targets : items, first = (int)blockIdx.x * ROWS, from,
        end;
    if (first >= rows)
        return;
    loss_split<shape>(task.splits, others, &from, &end);
    const float *x = by_items ? task.table : task.z, *y = by_items ? task.z : task.table;
    tile_lane me = tile_lane_now();
    float resident[shape::k_steps][4];
    load_tiles<shape>(cols, memory, x, first, rows, y, from, end > from ? others : 0, resident);
    loss_operand row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half] = loss_operand_of<by_items>(&task, first + 16 * me.warp + me.group + 8 * half, rows);
        row[half].term *= TILE_LOG2_E;
    }
    float sum[shape::tiles][4] = {}, row_total[2] = {0, 0}, scale = *task.dloss;
    int buffer = 0;
    for (int other = from, next; other < end; other = next, buffer = shape::buffers - 1 - buffer) {
        float *streamed = memory + shape::streamed + buffer * shape::inner_rows * shape::stride,
              *term = memory + shape::terms + buffer * shape::inner_rows;
        int *target = (int *)(memory + shape::targets + buffer * shape::inner_rows);
        next = other + shape::inner_rows;
        tile_cp_async_wait();
        stage_rows<shape, TILE_ROUND>(cols, streamed, shape::inner_rows, y, other, others);
        for (int i = (int)threadIdx.x; i < shape::inner_rows; i += (int)blockDim.x) {
            loss_operand operand = loss_operand_of<!by_items>(&task, other + i, others);
            term[i] = operand.term * TILE_LOG2_E;
            target[i] = operand.target;
        }
        __syncthreads();
        if (shape::buffers == 2 && next < end)
            stage_rows<shape, TILE_COPY>(cols,
                                         memory + shape::streamed + (1 - buffer) * shape::inner_rows * shape::stride,
                                         shape::inner_rows, y, next, others);
#pragma unroll 1
        for (int offset = 0; offset < shape::inner_rows; offset += UNIT) {
            float score[TILES][4] = {};
            compute_scores<shape>(resident, streamed + offset * shape::stride, score);
            compute_dscores<by_items>(term + offset, target + offset, scale, first + 16 * me.warp, other + offset, row,
                                      score, row_total);
            tile_mma_nn<shape::bf16, shape::stride, 0, shape::tiles>(sum, score, streamed + offset * shape::stride);
        }
        if (shape::buffers == 1 && next < end) {
            __syncthreads();
            stage_rows<shape, TILE_COPY>(cols, streamed, shape::inner_rows, y, next, others);
        }
    }
    __syncthreads();
    tile_store_shared(memory + 16 * me.warp * out_stride, out_stride, shape::tiles, sum);
    __syncthreads();
    loss_store_rows(&task, first, min((int)ROWS, rows - first), memory, out_stride);
    if (by_items && task.dbias)
        store_row_sums(&task, first, rows, row_total);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Calls act(shape) with the compile-time shape for these columns. */
template <typename action> void with_shape(const lp_cuda_run *run, int cols, const action &act)
{
    if (tile_bf16(run))
        act(loss_shape<8, true>());
    else if (cols <= 64)
        cols <= 56 ? act(loss_shape<7, false>()) : act(loss_shape<8, false>());
    else
        act(loss_shape<16, false>());
}

} // namespace

/* A split has at least four streamed tiles. */
bool lp_cuda_softmax_tensor(const lp_cuda_run *run, loss_task *task, int64_t rows, int64_t others)
{
    if (task->cols > (tile_bf16(run) ? MOST_BF16 : MOST_TF32) || !tile_tensor(run))
        return false;
    with_shape(run, task->cols, [=](auto shape) {
        int64_t blocks = lp_blocks(rows, ROWS), most = lp_blocks(others, 4 * decltype(shape)::inner_rows);
        int64_t splits = blocks > 0 ? lp_blocks(FULL_DEVICE, blocks) : 1;
        splits = splits > most ? most : splits;
        task->splits = (int)(splits < 1 ? 1 : splits);
    });
    return true;
}

void lp_cuda_softmax_tensor_forward(const lp_cuda_run *run, const loss_task *task, int64_t rows)
{
    loss_task with = *task;
    dim3 grid(lp_blocks(rows, ROWS), (unsigned)task->splits);
    with_shape(run, task->cols,
               [&](auto shape) { LP_LAUNCH(run, tensor_loss_forward<decltype(shape)>, grid, 32 * WARPS, decltype(shape)::size * sizeof(float), with); });
}

void lp_cuda_softmax_tensor_backward(const lp_cuda_run *run, const loss_task *task, bool by_items, int64_t rows)
{
    loss_task with = *task;
    dim3 grid(lp_blocks(rows, ROWS), (unsigned)task->splits);
    with_shape(run, task->cols, [&](auto shape) {
        if (by_items)
            LP_LAUNCH(run, (tensor_loss_backward<true, decltype(shape)>), grid, 32 * WARPS, decltype(shape)::size * sizeof(float), with);
        else
            LP_LAUNCH(run, (tensor_loss_backward<false, decltype(shape)>), grid, 32 * WARPS, decltype(shape)::size * sizeof(float), with);
    });
}
