/* cuda_softmax_loss_tensor.cu: the loss over a catalogue on tensor cores, for common widths (cuda_softmax_loss.cu says what is made).
 *
 * A warp has 16 rows of one side to itself, and keeps them in registers in the form the tensor cores want, next to its sums. The other side
 * goes by in shared memory, 32 rows at a time; what comes out of a product of pairs is turned into slopes and multiplied again
 * where it is. Widths are known to the compiler, in tiles of 8 columns.
 *
 * In tf32 the next step is on its way while one is worked on. In bf16, where numbers are turned into others as they come, it is
 * not, and steps are longer.
 */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

enum { WARPS = 8, ROWS = 16 * WARPS, TILES = 4, UNIT = 8 * TILES, FULL_DEVICE = 264 };

/* e^x = 2^(x log2 e) */
#define LOG2_E 1.4426950408889634f

/* Tiles of 8 columns; two: bf16, a float of shared memory holding two numbers. */
template <int tiles, bool bf16> struct loss_shape {
    static constexpr bool two = bf16;
    static constexpr int wide = tiles;
    static constexpr int runs = two ? tiles / 2 : tiles;
    static constexpr int stride = 8 * runs + 4;
    static constexpr int room = 8 * tiles + 4; /* stride of sums on their way out, in the place of all rows */
    static constexpr int steps = two ? 128 : 64;
    static constexpr int buffers = two ? 1 : 2;
    static_assert(!two || tiles % 2 == 0, "a run is two tiles in bf16");
};

/* Products of the warp's 16 rows with 32 others. */
template <typename shape>
__device__ void make_scores(const float (&fixed)[shape::runs][4], const float *moving, float (&score)[TILES][4])
{
    tile_source right = tile_right(moving, shape::stride);
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = 0;
#pragma unroll
    for (int k = 0; k < shape::runs; k++)
        tile_pairs<shape::two, shape::stride>(score, fixed[k], right, k);
}

/* Rows of z or items from `first` on. */
template <typename shape, tile_moment moment>
__device__ void bring_rows(const loss_form *form, float *to, int rows, const float *from, int first, int count)
{
    if (!shape::two)
        loss_move<true, moment>(form, to, rows, from, first, count);
    else if (moment == TILE_ASK)
        tile_move_two(to, shape::stride, rows, 8 * shape::wide, from + (int64_t)first * form->cols, form->cols,
                      min(rows, count - first), form->cols);
}

/* The rows that stay, [ROWS x wide], and the first step of those that go by. */
template <typename shape>
__device__ void begin(const loss_form *form, float *memory, loss_layout at, const float *x, int first, int rows,
                      const float *y, int from, int others, float (&fixed)[shape::runs][4])
{
    bring_rows<shape, TILE_ASK>(form, memory + at.fixed, ROWS, x, first, rows);
    if (from < others)
        bring_rows<shape, TILE_ASK>(form, memory + at.moving, shape::steps, y, from, others);
    tile_wait();
    bring_rows<shape, TILE_SETTLE>(form, memory + at.fixed, ROWS, x, first, rows);
    __syncthreads();
    tile_source mine = tile_left(memory + at.fixed + 16 * tile_lane_now().warp * shape::stride, shape::stride);
#pragma unroll
    for (int k = 0; k < shape::runs; k++)
        tile_load(fixed[k], mine, 8 * k);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Every lane keeps the sum of its own columns, in powers of 2; they are joined at the end. */
__device__ void take_scores(const float *offset, const float (&score)[TILES][4], loss_peak (&row)[2])
{
    float x[TILES][4];
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 two = *(const float2 *)(offset + 8 * j + 2 * tile_lane_now().member);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[j][i] = fmaf(score[j][i], LOG2_E, i & 1 ? two.y : two.x);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float largest = row[half].peak;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            largest = fmaxf(largest, fmaxf(x[j][2 * half], x[j][2 * half + 1]));
        float base = largest == -INFINITY ? 0 : largest;
        row[half].sum *= tile_power(row[half].peak - base);
        row[half].peak = largest;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            row[half].sum += tile_power(x[j][2 * half] - base) + tile_power(x[j][2 * half + 1] - base);
    }
}

__device__ void store_peaks(const loss_task *task, int first, int target_position, loss_peak (&row)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].peak /= LOG2_E;
#pragma unroll
        for (int lanes = 1; lanes < 4; lanes *= 2) {
            loss_peak other = {__shfl_xor_sync(0xFFFFFFFFu, row[half].peak, lanes),
                               __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, lanes)};
            row[half] = loss_join(row[half], other);
        }
        int t = first + 16 * me.warp + me.group + 8 * half;
        if (me.member == 0 && t < target_position) {
            task->peaks[blockIdx.y * task->largest + t] = row[half].peak;
            task->sums[blockIdx.y * task->largest + t] = row[half].sum;
        }
    }
}

template <typename shape>
__global__ void __launch_bounds__(32 * WARPS, shape::wide <= 8 ? 2 : 1)
    tensor_loss_forward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_form *form = &task.form;
    loss_layout at = loss_layout_of(form);
    int target_position = lp_rows_now(task.target_position, task.shard), items = lp_rows_now(task.items, task.shard);
    int first = (int)blockIdx.x * ROWS, from, end, turn = 0;
    if (first >= target_position)
        return;
    loss_slice(form, items, &from, &end);
    float fixed[shape::runs][4];
    begin<shape>(form, memory, at, task.z, first, target_position, task.table, from, end > from ? items : 0, fixed);
    loss_peak row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int item = from, next; item < end; item = next, turn = shape::buffers - 1 - turn) {
        float *moving = memory + at.moving + turn * shape::steps * shape::stride,
              *offset = memory + at.first + turn * shape::steps;
        next = item + shape::steps;
        tile_wait();
        bring_rows<shape, TILE_SETTLE>(form, moving, shape::steps, task.table, item, items);
        for (int i = (int)threadIdx.x; i < shape::steps; i += (int)blockDim.x)
            offset[i] = loss_offset(&task, item + i, items) * LOG2_E;
        __syncthreads();
        if (shape::buffers == 2 && next < end)
            bring_rows<shape, TILE_ASK>(form, memory + at.moving + (1 - turn) * shape::steps * shape::stride,
                                        shape::steps, task.table, next, items);
#pragma unroll 1
        for (int place = 0; place < shape::steps; place += UNIT) {
            float score[TILES][4];
            make_scores<shape>(fixed, moving + place * shape::stride, score);
            take_scores(offset + place, score, row);
        }
        if (shape::buffers == 1 && next < end) {
            __syncthreads();
            bring_rows<shape, TILE_ASK>(form, moving, shape::steps, task.table, next, items);
        }
    }
    store_peaks(&task, first, target_position, row);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Slopes in place of scores; their sums by rows to total. Numbers are times log2 e. */
template <bool by_items>
__device__ void make_slopes(const float *number, const int *target, float scale, int first_row, int first_col,
                            const loss_side (&row)[2], float (&score)[TILES][4], float (&total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        int col = 8 * j + 2 * me.member;
        float2 brought = *(const float2 *)(number + col);
        int2 wanted = *(const int2 *)(target + col);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const loss_side *mine = &row[i >> 1];
            float other = i & 1 ? brought.y : brought.x;
            float x = fmaf(score[j][i], LOG2_E, by_items ? mine->number - other : other - mine->number);
            bool hit = by_items ? (i & 1 ? wanted.y : wanted.x) == first_row + me.group + 8 * (i >> 1)
                                : mine->target == first_col + col + (i & 1);
            score[j][i] = scale * (tile_power(x) - (hit ? 1.0f : 0.0f));
            if (by_items)
                total[i >> 1] += score[j][i];
        }
    }
}

/* Sums by rows: to the bias's gradient, or the slice's part of it. */
__device__ void store_totals(const loss_task *task, int first, int count, const float (&total)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = total[half];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        int r = first + 16 * me.warp + me.group + 8 * half;
        if (me.member != 0 || r >= count)
            continue;
        if (task->form.slices > 1)
            task->sums[blockIdx.y * task->largest + r] = sum;
        else
            lp_store(task->column + r, sum, task->column_adds);
    }
}

/* Rows are those of z, or items; out [rows x cols] is the gradient of the one, and column that of the bias. */
template <bool by_items, typename shape>
__global__ void __launch_bounds__(32 * WARPS, shape::wide <= 8 ? 2 : 1)
    tensor_loss_backward(const __grid_constant__ loss_task task)
{
    LP_SHARED(float, memory);
    const loss_form *form = &task.form;
    loss_layout at = loss_layout_of(form);
    constexpr int room = shape::room;
    int target_position = lp_rows_now(task.target_position, task.shard), items = lp_rows_now(task.items, task.shard);
    int rows = by_items ? items : target_position, others = by_items ? target_position : items,
        first = (int)blockIdx.x * ROWS, from, end;
    if (first >= rows)
        return;
    loss_slice(form, others, &from, &end);
    const float *x = by_items ? task.table : task.z, *y = by_items ? task.z : task.table;
    tile_lane me = tile_lane_now();
    float fixed[shape::runs][4];
    begin<shape>(form, memory, at, x, first, rows, y, from, end > from ? others : 0, fixed);
    loss_side row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half] = loss_side_of<by_items>(&task, first + 16 * me.warp + me.group + 8 * half, rows);
        row[half].number *= LOG2_E;
    }
    float sum[shape::wide][4] = {}, total[2] = {0, 0}, scale = *task.dloss;
    int turn = 0;
    for (int other = from, next; other < end; other = next, turn = shape::buffers - 1 - turn) {
        float *moving = memory + at.moving + turn * shape::steps * shape::stride,
              *number = memory + at.first + turn * shape::steps;
        int *target = (int *)(memory + at.second + turn * shape::steps);
        next = other + shape::steps;
        tile_wait();
        bring_rows<shape, TILE_SETTLE>(form, moving, shape::steps, y, other, others);
        for (int i = (int)threadIdx.x; i < shape::steps; i += (int)blockDim.x) {
            loss_side brought = loss_side_of<!by_items>(&task, other + i, others);
            number[i] = brought.number * LOG2_E;
            target[i] = brought.target;
        }
        __syncthreads();
        if (shape::buffers == 2 && next < end)
            bring_rows<shape, TILE_ASK>(form, memory + at.moving + (1 - turn) * shape::steps * shape::stride,
                                        shape::steps, y, next, others);
#pragma unroll 1
        for (int place = 0; place < shape::steps; place += UNIT) {
            float score[TILES][4];
            make_scores<shape>(fixed, moving + place * shape::stride, score);
            make_slopes<by_items>(number + place, target + place, scale, first + 16 * me.warp, other + place, row,
                                  score, total);
            tile_spread<shape::two, shape::stride, 0, shape::wide>(sum, score, moving + place * shape::stride);
        }
        if (shape::buffers == 1 && next < end) {
            __syncthreads();
            bring_rows<shape, TILE_ASK>(form, moving, shape::steps, y, next, others);
        }
    }
    __syncthreads();
    tile_put(memory + 16 * me.warp * room, room, shape::wide, sum);
    __syncthreads();
    int present = min((int)ROWS, rows - first);
    if (form->slices > 1)
        tile_store(task.peaks + (blockIdx.y * task.largest + first) * form->cols, form->cols, present, form->cols,
                   memory, room, 0);
    else if (task.out)
        tile_store(task.out + (int64_t)first * form->cols, form->cols, present, form->cols, memory, room,
                   task.out_adds);
    if (by_items && task.column)
        store_totals(&task, first, rows, total);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape> void launch_forward(const lp_cuda_run *run, loss_task task, dim3 grid, size_t size)
{
    LP_LAUNCH(run, tensor_loss_forward<shape>, grid, 32 * WARPS, size, task);
}

template <typename shape>
void launch_backward(const lp_cuda_run *run, loss_task task, bool by_items, dim3 grid, size_t size)
{
    if (by_items)
        LP_LAUNCH(run, (tensor_loss_backward<true, shape>), grid, 32 * WARPS, size, task);
    else
        LP_LAUNCH(run, (tensor_loss_backward<false, shape>), grid, 32 * WARPS, size, task);
}

template <typename shape> void fill_in(loss_form *form)
{
    form->wide = 8 * shape::wide;
    form->stride = shape::stride;
    form->steps = shape::steps;
    form->buffers = shape::buffers;
}

bool bf16(const lp_cuda_run *run)
{
    return run->run->precision == LP_PRECISION_BF16;
}

} // namespace

bool lp_cuda_softmax_tensor(const lp_cuda_run *run, loss_form *form, int cols, int64_t rows, int64_t others)
{
    if (cols > 128)
        return false;
    form->cols = cols;
    if (bf16(run))
        cols <= 64 ? fill_in<loss_shape<8, true>>(form) : fill_in<loss_shape<16, true>>(form);
    else if (cols <= 64)
        cols <= 56 ? fill_in<loss_shape<7, false>>(form) : fill_in<loss_shape<8, false>>(form);
    else
        fill_in<loss_shape<16, false>>(form);
    form->share_stride = 0;
    form->warp_rows = WARPS;
    form->warp_cols = 1;
    form->rows = ROWS;
    int64_t blocks = (rows + ROWS - 1) / ROWS, most = (others + 4 * form->steps - 1) / (4 * form->steps);
    int64_t slices = blocks > 0 ? (FULL_DEVICE + blocks - 1) / blocks : 1;
    slices = slices > most ? most : slices;
    form->slices = (int)(slices < 1 ? 1 : slices);
    return true;
}

void lp_cuda_softmax_tensor_forward(const lp_cuda_run *run, const loss_task *task, int64_t rows)
{
    dim3 grid(lp_blocks(rows, ROWS), (unsigned)task->form.slices);
    size_t size = (size_t)loss_layout_of(&task->form).size * sizeof(float);
    int wide = task->form.wide;
    if (bf16(run))
        wide == 64 ? launch_forward<loss_shape<8, true>>(run, *task, grid, size)
                   : launch_forward<loss_shape<16, true>>(run, *task, grid, size);
    else if (wide <= 64)
        wide == 56 ? launch_forward<loss_shape<7, false>>(run, *task, grid, size)
                   : launch_forward<loss_shape<8, false>>(run, *task, grid, size);
    else
        launch_forward<loss_shape<16, false>>(run, *task, grid, size);
}

void lp_cuda_softmax_tensor_backward(const lp_cuda_run *run, const loss_task *task, bool by_items, int64_t rows)
{
    dim3 grid(lp_blocks(rows, ROWS), (unsigned)task->form.slices);
    size_t size = (size_t)loss_layout_of(&task->form).size * sizeof(float);
    int wide = task->form.wide;
    if (bf16(run))
        wide == 64 ? launch_backward<loss_shape<8, true>>(run, *task, by_items, grid, size)
                   : launch_backward<loss_shape<16, true>>(run, *task, by_items, grid, size);
    else if (wide <= 64)
        wide == 56 ? launch_backward<loss_shape<7, false>>(run, *task, by_items, grid, size)
                   : launch_backward<loss_shape<8, false>>(run, *task, by_items, grid, size);
    else
        launch_backward<loss_shape<16, false>>(run, *task, by_items, grid, size);
}
