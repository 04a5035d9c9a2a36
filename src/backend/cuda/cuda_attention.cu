/* cuda_attention.cu: causal attention over packed segments, without a matrix of pairs.
 *
 * A block goes over the keys of its tile of queries from the first to the last, and keeps for every query the largest score so far, the
 * sum of exp of all scores less that, and the weighted sums of values and basis, which are scaled down whenever a larger score
 * appears. The shares of a step lie in shared memory between the two products: warps that share a group of rows split the keys in
 * the first and the columns in the second.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

typedef struct forward_task {
    attention_form form;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *log_sum, *time_out;
} forward_task;

/* The parts of shared memory, in floats from its beginning; the last is its size. */
typedef struct forward_layout {
    int keys, queries, shares, start, peak, bits, size;
} forward_layout;

__host__ __device__ forward_layout forward_layout_of(const attention_form *form)
{
    forward_layout at;
    at.keys = 0;
    at.queries = at.keys + form->buffers * form->steps * form->key_stride;
    at.shares = at.queries + form->rows * form->query_stride;
    at.start = at.shares + form->rows * form->share_stride;
    at.peak = at.start + form->rows;
    at.bits = at.peak + form->rows * form->warp_cols;
    at.size = at.bits + (form->threshold ? (form->rows * (form->steps / 8 + 1) + 3) / 4 : 0);
    return at;
}

/* What a lane keeps of one of its two rows, g and g + 8 of the warp's group. */
typedef struct row_state {
    int query, start; /* query < start where there is no such token: it sees no key */
    float peak, sum;
} row_state;

/* Where a warp stands. */
typedef struct place {
    int group_row, warp_col;     /* first row of its group in the tile; which of the group's warps */
    int first_tile, count;       /* its tiles of 8 columns of the output */
    int group_first, group_last; /* the keys that the group sees */
} place;

/* Scores of the warp's keys, masked; the largest of each row goes to `peak` for the other warps of the group. */
template <bool tensor, int tiles>
__device__ void make_scores(const attention_form *form, attention_range range, const float *queries, const float *keys,
                            int first_key, int warp_col, const row_state (&row)[2], float (&score)[tiles][4],
                            float *peak)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++)
        for (int i = 0; i < 4; i++)
            score[j][i] = 0;
    tile_rows<tensor>(score, range.from, range.count, queries, form->query_stride,
                      keys + 8 * warp_col * form->key_stride, form->key_stride, 8 * form->warp_cols,
                      form->cols_wide + form->extra_wide);
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const row_state *mine = &row[i >> 1];
            int key = first_key + 8 * (j * form->warp_cols + warp_col) + 2 * me.member + (i & 1);
            bool seen = j >= range.from && j < range.count && key >= mine->start && key <= mine->query;
            score[j][i] = seen ? score[j][i] * form->scale : -INFINITY;
            largest[i >> 1] = fmaxf(largest[i >> 1], score[j][i]);
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xFFFFFFFFu, largest[half], 1));
        largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xFFFFFFFFu, largest[half], 2));
        if (me.member == 0)
            peak[me.group + 8 * half] = largest[half];
    }
}

/* Takes the largest score of the step into account; returns what earlier sums are worth now. */
__device__ float raise_peak(row_state *row, const float *peak, int stride, int warp_cols)
{
    float largest = row->peak;
    for (int i = 0; i < warp_cols; i++)
        largest = fmaxf(largest, peak[i * stride]);
    float worth = row->peak == -INFINITY ? 0 : __expf(row->peak - largest);
    row->peak = largest;
    row->sum *= worth;
    return worth;
}

/* Shares of the warp's keys, from scores. What is masked is known by its -infinity; what is not a number stays so. */
template <bool tensor, int tiles>
__device__ void write_shares(const attention_form *form, attention_range range, const attention_bits *bits,
                             int first_query, int first_key, int warp_col, row_state (&row)[2],
                             const float (&score)[tiles][4], float *shares)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        if (j < range.from || j >= range.count)
            continue;
        int col = 8 * (j * form->warp_cols + warp_col) + 2 * me.member;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row_state *mine = &row[half];
            float share[2] = {0, 0};
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float x = score[j][2 * half + i];
                if (x != -INFINITY) {
                    share[i] = __expf(x - mine->peak);
                    mine->sum += share[i];
                    share[i] *= attention_factor(bits, form, first_query, first_key, mine->query, first_key + col + i);
                }
            }
            float2 both = {tile_number<tensor>(share[0]), tile_number<tensor>(share[1])};
            *(float2 *)(shares + (me.group + 8 * half) * form->share_stride + col) = both;
        }
    }
}

/* The sum of exp over all warps of the group: each lays its own in `parts` [warp_cols x rows], and all add them in the same order. */
__device__ void finish_sums(const attention_form *form, place at, row_state (&row)[2], float *parts)
{
    tile_lane me = tile_lane_now();
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = row[half].sum;
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (me.member == 0)
            parts[at.warp_col * form->rows + at.group_row + me.group + 8 * half] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].sum = 0;
        for (int i = 0; i < form->warp_cols; i++)
            row[half].sum += parts[i * form->rows + at.group_row + me.group + 8 * half];
    }
}

/* Columns of the basis come first, then those of the values; they go through the shared memory of the queries, which is as wide. */
template <int tiles>
__device__ void store_rows(const forward_task *task, attention_head head, place at, float *queries, int first,
                           int present, const row_state (&row)[2], float (&sum)[tiles][4])
{
    const attention_form *form = &task->form;
    tile_lane me = tile_lane_now();
    int stride = form->query_stride;
    float worth[2] = {1 / row[0].sum, 1 / row[1].sum};
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[j][i] *= worth[i >> 1];
    tile_put(queries + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (at.warp_col == 0 && me.member == 0 && row[half].query >= row[half].start)
            task->log_sum[(int64_t)row[half].query * form->heads + head.number] = row[half].peak + logf(row[half].sum);
    __syncthreads();
    if (form->extra)
        tile_store(task->time_out + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                   form->extra, queries, stride, 0);
    tile_store(task->out + first * head.stride + head.first, head.stride, present, form->cols,
               queries + form->extra_wide, stride, 0);
}

__device__ place place_of(const attention_form *form, const int *start, int first, int last, int tiles)
{
    place at;
    int warp = tile_lane_now().warp, all = (form->extra_wide + form->cols_wide) / 8;
    at.group_row = warp / form->warp_cols * 16;
    at.warp_col = warp % form->warp_cols;
    at.first_tile = at.warp_col * tiles;
    at.count = max(min(all - at.first_tile, tiles), 0);
    at.group_first = start[at.group_row];
    at.group_last = min(first + at.group_row + 15, last);
    return at;
}

/* One step: the block's rows and the keys from `first_key` on. */
template <bool tensor, int score_tiles, int out_tiles>
__device__ void take_keys(const attention_form *form, forward_layout parts, float *memory, place at,
                          const attention_bits *bits, int first, int first_key, const float *keys, row_state (&row)[2],
                          float (&sum)[out_tiles][4])
{
    tile_lane me = tile_lane_now();
    const float *queries = memory + parts.queries + at.group_row * form->query_stride;
    float *shares = memory + parts.shares + at.group_row * form->share_stride,
          *peak = memory + parts.peak + at.group_row;
    attention_range range = attention_range_of(form, first_key, at.group_first, at.group_last + 1, at.warp_col);
    bool seen = range.low < range.high;
    float score[score_tiles][4];
    if (seen)
        make_scores<tensor>(form, range, queries, keys, first_key, at.warp_col, row, score,
                            peak + at.warp_col * form->rows);
    __syncthreads();
    if (seen) {
        float worth[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            worth[half] = raise_peak(&row[half], peak + me.group + 8 * half, form->rows, form->warp_cols);
#pragma unroll
        for (int j = 0; j < out_tiles; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[j][i] *= worth[i >> 1];
        write_shares<tensor>(form, range, bits, first, first_key, at.warp_col, row, score, shares);
    }
    __syncthreads();
    if (seen)
        tile_columns<tensor>(sum, 0, at.count, shares + 8 * range.low, form->share_stride,
                             keys + 8 * range.low * form->key_stride + form->cols_wide + 8 * at.first_tile,
                             form->key_stride, 8 * (range.high - range.low));
}

/* Keys from `first` on, up to `last`. */
template <bool tensor, tile_moment moment>
__device__ void move_keys(const forward_task *task, attention_head head, float *keys, int first, int last)
{
    attention_move_keys<tensor, moment>(keys, &task->form, head, task->key, task->basis, task->value, first,
                                        min(task->form.steps, last + 1 - first), task->form.steps);
}

template <bool tensor, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(256, out_tiles <= 10 ? 2 : 1)
    attention_forward(const __grid_constant__ forward_task task)
{
    LP_SHARED(float, memory);
    const attention_form *form = &task.form;
    forward_layout parts = forward_layout_of(form);
    attention_head head = attention_head_of(form, (int)blockIdx.y);
    int tokens = task.shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows;
    if (first >= tokens)
        return;
    int last = min(first + form->rows, tokens) - 1;
    int present = last - first + 1, *start = (int *)(memory + parts.start);
    attention_move_queries<tensor, TILE_ASK>(memory + parts.queries, form, head, task.query, task.time_query, first,
                                             present, form->rows);
    attention_spans(task.shard, task.segment, first, form->rows, start, NULL);
    __syncthreads();
    move_keys<tensor, TILE_ASK>(&task, head, memory + parts.keys, start[0], last);
    tile_wait();
    attention_move_queries<tensor, TILE_SETTLE>(memory + parts.queries, form, head, task.query, task.time_query, first,
                                                present, form->rows);

    tile_lane me = tile_lane_now();
    place at = place_of(form, start, first, last, out_tiles);
    attention_bits bits = {(unsigned char *)(memory + parts.bits), form->steps / 8 + 1, start, first, form->rows};
    row_state row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = at.group_row + me.group + 8 * half;
        row_state begun = {first + r < tokens ? first + r : start[r] - 1, start[r], -INFINITY, 0};
        row[half] = begun;
    }
    float sum[out_tiles][4] = {};
    int turn = 0;
    for (int key = start[0], next; key <= last; key = next, turn = form->buffers - 1 - turn) {
        float *keys = memory + parts.keys + turn * form->steps * form->key_stride;
        next = key + form->steps;
        tile_wait();
        move_keys<tensor, TILE_SETTLE>(&task, head, keys, key, last);
        if (form->threshold)
            attention_bits_draw(&bits, form, task.shard, head.number, first, present, key);
        __syncthreads();
        if (form->buffers == 2 && next <= last)
            move_keys<tensor, TILE_ASK>(&task, head, memory + parts.keys + (1 - turn) * form->steps * form->key_stride,
                                        next, last);
        take_keys<tensor, score_tiles>(form, parts, memory, at, &bits, first, key, keys, row, sum);
        if (form->buffers == 1 && next <= last) {
            __syncthreads();
            move_keys<tensor, TILE_ASK>(&task, head, keys, next, last);
        }
    }
    finish_sums(form, at, row, memory + parts.peak);
    store_rows(&task, head, at, memory + parts.queries, first, present, row, sum);
}

/* Tiles for the widths at hand: few columns leave room for more warps with less each. Returns how many tiles of 8 columns of the output
 * a warp takes. */
int choose_tiles(attention_form *form)
{
    int tiles = (form->cols_wide + form->extra_wide) / 8;
    int out_tiles = tiles <= 20 ? 5 : tiles <= 40 ? 10 : 16;
    form->warp_rows = tiles <= 40 ? 2 : 1;
    form->warp_cols = tiles <= 40 ? 4 : 8;
    form->rows = 16 * form->warp_rows;
    form->key_stride = tile_stride(2 * form->cols_wide + form->extra_wide);
    form->query_stride = tile_stride(form->cols_wide + form->extra_wide);
    static const int choices[][2] = {{64, 2}, {32, 2}, {64, 1}, {32, 1}, {16, 1}, {8, 1}};
    for (int i = 0; i < 6; i++) {
        form->steps = choices[i][0];
        form->buffers = choices[i][1];
        form->share_stride = tile_share_stride(form->steps);
        size_t size = (size_t)forward_layout_of(form).size * sizeof(float);
        if (size <= ATTENTION_HALF_SHARED || (form->buffers == 1 && form->steps <= 32 && size <= ATTENTION_MOST_SHARED))
            break;
    }
    return out_tiles;
}

template <bool tensor> void launch(const lp_cuda_run *run, const forward_task *task, int64_t tokens, int out_tiles)
{
    const attention_form *form = &task->form;
    forward_task with = *task;
    dim3 grid(lp_blocks(tokens, form->rows), (unsigned)form->heads);
    unsigned threads = 32u * (unsigned)(form->warp_rows * form->warp_cols);
    size_t size = (size_t)forward_layout_of(form).size * sizeof(float);
    if (out_tiles == 5)
        LP_LAUNCH(run, (attention_forward<tensor, 2, 5>), grid, threads, size, with);
    else if (out_tiles == 10)
        LP_LAUNCH(run, (attention_forward<tensor, 2, 10>), grid, threads, size, with);
    else
        LP_LAUNCH(run, (attention_forward<tensor, 1, 16>), grid, threads, size, with);
}

forward_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    forward_task task = {};
    task.form = attention_form_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    task.out = LP_OUTPUT(0);
    task.log_sum = LP_OUTPUT(1);
    task.time_out = LP_OUTPUT(2);
    return task;
}

} // namespace

void lp_cuda_attention(const lp_node *node, const lp_cuda_run *run)
{
    if (tile_tensor(run) && lp_cuda_attention_tensor(node, run))
        return;
    forward_task task = task_of(node, run);
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    int out_tiles = choose_tiles(&task.form);
    if (tile_tensor(run))
        launch<true>(run, &task, tokens, out_tiles);
    else
        launch<false>(run, &task, tokens, out_tiles);
}
