/* cuda_attention.cu: causal attention over packed segments with online softmax; no score matrix is stored.
 *
 *     s(q, i) = scale (query_q . key_i + time_query_q . basis_i)      p = softmax of s over i <= q in q's segment
 *     out_q = sum_i f p value_i    time_out_q = sum_i f p basis_i    lse_q = log sum_i exp s   (f: dropout factor)
 *
 * Grid: (query tiles, heads); 256 threads, 16 or 32 query rows. A thread block iterates over the keys of its query
 * tile and keeps for every query the row maximum, the row sum of exp(s - maximum) and the output accumulators; a
 * larger maximum rescales them. The warps of a row group divide the keys in the first product and the columns in the
 * second, so the probabilities of a step pass through shared memory. Shared memory (forward_layout): double-buffered
 * keys, queries, probabilities; choose_tiles picks the inner tile that lets two blocks run on a multiprocessor.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

typedef struct forward_task {
    attention_config config;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *lse, *time_out;
} forward_task;

/* Offsets in shared memory, in floats; size is the total. */
typedef struct forward_layout {
    int keys, queries, probabilities, start, row_max, bits, size;
} forward_layout;

__host__ __device__ forward_layout forward_layout_of(const attention_config *config)
{
    forward_layout at;
    at.keys = 0;
    at.queries = at.keys + config->buffers * config->inner_rows * config->key_stride;
    at.probabilities = at.queries + config->rows * config->query_stride;
    at.start = at.probabilities + config->rows * config->score_stride;
    at.row_max = at.start + config->rows;
    at.bits = at.row_max + config->rows * config->warp_cols;
    at.size = at.bits + (config->dropout_threshold ? (config->rows * (config->inner_rows / 8 + 1) + 3) / 4 : 0);
    return at;
}

/* State of one of a lane's two rows, g and g + 8 of the row group. */
typedef struct row_state {
    int query, start; /* query < start if there is no such token: all keys are masked */
    float row_max, row_sum;
} row_state;

/* Adds the scores of the warp's keys to `score`, scaled and masked with -infinity; row maxima go to `row_max` for the other warps of the
 * group. */
template <bool tensor, int tiles>
__device__ void compute_scores(const attention_config *config, attention_range range, const float *queries,
                               const float *keys, int first_key, int warp_col, const row_state (&row)[2],
                               float (&score)[tiles][4], float *row_max)
{
    tile_lane me = tile_lane_now();
    tile_matmul_nt<tensor>(score, range.from, range.count, queries, config->query_stride,
                           keys + 8 * warp_col * config->key_stride, config->key_stride, 8 * config->warp_cols,
                           config->head_padded + config->basis_padded);
    float new_max[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const row_state *mine = &row[i >> 1];
            int key = first_key + 8 * (j * config->warp_cols + warp_col) + 2 * me.member + (i & 1);
            bool visible = j >= range.from && j < range.count && key >= mine->start && key <= mine->query;
            score[j][i] = visible ? score[j][i] * config->scale : -INFINITY;
            new_max[i >> 1] = fmaxf(new_max[i >> 1], score[j][i]);
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        new_max[half] = tile_row_max(new_max[half]);
        if (me.member == 0)
            row_max[me.group + 8 * half] = new_max[half];
    }
}

/* Online softmax: updates the maximum with that of the step; returns the factor that rescales earlier sums. */
__device__ float update_row_max(row_state *row, const float *row_max, int stride, int warp_cols)
{
    float new_max = row->row_max;
    for (int i = 0; i < warp_cols; i++)
        new_max = fmaxf(new_max, row_max[i * stride]);
    float rescale = row->row_max == -INFINITY ? 0 : __expf(row->row_max - new_max);
    row->row_max = new_max;
    row->row_sum *= rescale;
    return rescale;
}

/* Probabilities of the warp's keys from scores. Tests for -infinity, so that NaN scores propagate. */
template <bool tensor, int tiles>
__device__ void write_probabilities(const attention_config *config, attention_range range, const attention_bits *bits,
                                    int first_query, int first_key, int warp_col, row_state (&row)[2],
                                    const float (&score)[tiles][4], float *probabilities)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        if (j < range.from || j >= range.count)
            continue;
        int col = 8 * (j * config->warp_cols + warp_col) + 2 * me.member;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            row_state *mine = &row[half];
            float probability[2] = {0, 0};
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float x = score[j][2 * half + i];
                if (x != -INFINITY) {
                    probability[i] = __expf(x - mine->row_max);
                    mine->row_sum += probability[i];
                    probability[i] *= attention_dropout_factor(bits, config, first_query, first_key, mine->query,
                                                               first_key + col + i);
                }
            }
            float2 pair = {tile_operand<tensor>(probability[0]), tile_operand<tensor>(probability[1])};
            *(float2 *)(probabilities + (me.group + 8 * half) * config->score_stride + col) = pair;
        }
    }
}

/* Row sums over all warps of the group: each stores its own in `parts` [warp_cols x rows]; all add them in the same
 * order. */
__device__ void reduce_row_sums(const attention_config *config, attention_warp at, row_state (&row)[2], float *parts)
{
    tile_lane me = tile_lane_now();
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = tile_row_sum(row[half].row_sum);
        if (me.member == 0)
            parts[at.warp_col * config->rows + at.group_row + me.group + 8 * half] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].row_sum = 0;
        for (int i = 0; i < config->warp_cols; i++)
            row[half].row_sum += parts[i * config->rows + at.group_row + me.group + 8 * half];
    }
}

/* Output columns: first the basis, then the values. They pass through the buffer of the queries, which has the same
 * width. */
template <int tiles>
__device__ void store_rows(const forward_task *task, attention_head head, attention_warp at, float *queries, int first,
                           int present, const row_state (&row)[2], float (&sum)[tiles][4])
{
    const attention_config *config = &task->config;
    tile_lane me = tile_lane_now();
    int stride = config->query_stride;
    float rescale[2] = {1 / row[0].row_sum, 1 / row[1].row_sum};
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[j][i] *= rescale[i >> 1];
    tile_store_shared(queries + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (at.warp_col == 0 && me.member == 0 && row[half].query >= row[half].start)
            task->lse[(int64_t)row[half].query * config->heads + head.index] =
                row[half].row_max + logf(row[half].row_sum);
    __syncthreads();
    if (config->basis_dim)
        tile_store_global(task->time_out + first * head.basis_stride + head.basis_first, head.basis_stride, present,
                          config->basis_dim, queries, stride, 0);
    tile_store_global(task->out + first * head.stride + head.first, head.stride, present, config->head_dim,
                      queries + config->basis_padded, stride, 0);
}

/* One step: the block's queries and the inner tile of keys from `first_key` on. */
template <bool tensor, int score_tiles, int out_tiles>
__device__ void process_keys(const attention_config *config, forward_layout parts, float *memory, attention_warp at,
                             const attention_bits *bits, int first, int first_key, const float *keys,
                             row_state (&row)[2], float (&sum)[out_tiles][4])
{
    tile_lane me = tile_lane_now();
    const float *queries = memory + parts.queries + at.group_row * config->query_stride;
    float *probabilities = memory + parts.probabilities + at.group_row * config->score_stride,
          *row_max = memory + parts.row_max + at.group_row;
    attention_range range = attention_range_of(config, first_key, at.low, at.high, at.warp_col);
    bool visible = range.low < range.high;
    float score[score_tiles][4] = {};
    if (visible)
        compute_scores<tensor>(config, range, queries, keys, first_key, at.warp_col, row, score,
                               row_max + at.warp_col * config->rows);
    __syncthreads();
    if (visible) {
        float rescale[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            rescale[half] = update_row_max(&row[half], row_max + me.group + 8 * half, config->rows, config->warp_cols);
#pragma unroll
        for (int j = 0; j < out_tiles; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[j][i] *= rescale[i >> 1];
        write_probabilities<tensor>(config, range, bits, first, first_key, at.warp_col, row, score, probabilities);
    }
    __syncthreads();
    if (visible)
        tile_matmul_nn<tensor>(sum, 0, at.count, probabilities + 8 * range.low, config->score_stride,
                               keys + 8 * range.low * config->key_stride + config->head_padded + 8 * at.first_tile,
                               config->key_stride, 8 * (range.high - range.low));
}

/* Stages keys from `first` to at most `last`. */
template <bool tensor, tile_phase phase>
__device__ void stage_keys(const forward_task *task, attention_head head, float *keys, int first, int last)
{
    attention_stage_keys<tensor, phase>(keys, &task->config, head, task->key, task->basis, task->value, first,
                                        min(task->config.inner_rows, last + 1 - first), task->config.inner_rows);
}

template <bool tensor, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(256, out_tiles <= 10 ? 2 : 1)
    attention_forward(const __grid_constant__ forward_task task)
{
    LP_SHARED(float, memory);
    const attention_config *config = &task.config;
    forward_layout parts = forward_layout_of(config);
    attention_head head = attention_head_of(config, (int)blockIdx.y);
    int tokens = task.shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * config->rows;
    if (first >= tokens)
        return;
    int last = min(first + config->rows, tokens) - 1;
    int present = last - first + 1, *start = (int *)(memory + parts.start);
    attention_stage_queries<tensor, TILE_COPY>(memory + parts.queries, config, head, task.query, task.time_query, first,
                                               present, config->rows);
    attention_segment_bounds(task.shard, task.segment, first, config->rows, start, NULL);
    __syncthreads();
    stage_keys<tensor, TILE_COPY>(&task, head, memory + parts.keys, start[0], last);
    tile_cp_async_wait();
    attention_stage_queries<tensor, TILE_ROUND>(memory + parts.queries, config, head, task.query, task.time_query,
                                                first, present, config->rows);

    tile_lane me = tile_lane_now();
    attention_warp at = attention_warp_of(config, (config->head_padded + config->basis_padded) / 8, out_tiles);
    at.low = start[at.group_row];
    at.high = min(first + at.group_row + 16, last + 1);
    attention_bits bits = {(unsigned char *)(memory + parts.bits), config->inner_rows / 8 + 1, start, first,
                           config->rows};
    row_state row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = at.group_row + me.group + 8 * half;
        row_state begun = {first + r < tokens ? first + r : start[r] - 1, start[r], -INFINITY, 0};
        row[half] = begun;
    }
    float sum[out_tiles][4] = {};
    int buffer = 0;
    for (int key = start[0], next; key <= last; key = next, buffer = config->buffers - 1 - buffer) {
        float *keys = memory + parts.keys + buffer * config->inner_rows * config->key_stride;
        next = key + config->inner_rows;
        tile_cp_async_wait();
        stage_keys<tensor, TILE_ROUND>(&task, head, keys, key, last);
        if (config->dropout_threshold)
            attention_bits_draw(&bits, config, task.shard, head.index, first, present, key);
        __syncthreads();
        if (config->buffers == 2 && next <= last)
            stage_keys<tensor, TILE_COPY>(
                &task, head, memory + parts.keys + (1 - buffer) * config->inner_rows * config->key_stride, next, last);
        process_keys<tensor, score_tiles>(config, parts, memory, at, &bits, first, key, keys, row, sum);
        if (config->buffers == 1 && next <= last) {
            __syncthreads();
            stage_keys<tensor, TILE_COPY>(&task, head, keys, next, last);
        }
    }
    reduce_row_sums(config, at, row, memory + parts.row_max);
    store_rows(&task, head, at, memory + parts.queries, first, present, row, sum);
}

/* Chooses warps and tiles for the node's widths. Returns the 8-column output tiles of a warp. */
int choose_tiles(attention_config *config)
{
    int tiles = (config->head_padded + config->basis_padded) / 8;
    int out_tiles = tiles <= 20 ? 5 : tiles <= 40 ? 10 : 16;
    config->warp_rows = tiles <= 40 ? 2 : 1;
    config->warp_cols = tiles <= 40 ? 4 : 8;
    config->rows = 16 * config->warp_rows;
    config->key_stride = tile_stride(2 * config->head_padded + config->basis_padded);
    config->query_stride = tile_stride(config->head_padded + config->basis_padded);
    static const int choices[][2] = {{64, 2}, {32, 2}, {64, 1}, {32, 1}, {16, 1}, {8, 1}};
    tile_choose_inner(config, choices, 32, [=]() { return forward_layout_of(config).size; });
    return out_tiles;
}

template <bool tensor> void launch(const lp_cuda_run *run, const forward_task *task, int64_t tokens, int out_tiles)
{
    const attention_config *config = &task->config;
    forward_task with = *task;
    dim3 grid(lp_blocks(tokens, config->rows), (unsigned)config->heads);
    unsigned threads = 32u * (unsigned)(config->warp_rows * config->warp_cols);
    size_t size = (size_t)forward_layout_of(config).size * sizeof(float);
    if (out_tiles == 5)
        LP_LAUNCH(run, (attention_forward<tensor, 2, 5>), grid, threads, size, with);
    else if (out_tiles == 10)
        LP_LAUNCH(run, (attention_forward<tensor, 2, 10>), grid, threads, size, with);
    else
        LP_LAUNCH(run, (attention_forward<tensor, 1, 16>), grid, threads, size, with);
}

forward_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    forward_task task = attention_task_of<forward_task>(node, run);
    task.out = LP_OUTPUT(0);
    task.lse = LP_OUTPUT(1);
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
    int out_tiles = choose_tiles(&task.config);
    if (tile_tensor(run))
        launch<true>(run, &task, tokens, out_tiles);
    else
        launch<false>(run, &task, tokens, out_tiles);
}
