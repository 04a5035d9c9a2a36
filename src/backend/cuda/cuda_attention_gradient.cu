/* cuda_attention_gradient.cu: gradient of causal attention; no score matrix and no atomics, so results are
 * deterministic.
 *
 * With p the probabilities, f the dropout factor, and delta_q = dout_q . out_q + dtime_out_q . time_out_q - dlse_q:
 *
 *     dp(q, i) = dout_q . value_i + dtime_out_q . basis_i
 *     ds(q, i) = p (f dp - delta_q)
 *
 *     dquery_q = scale sum_i ds key_i        dtime_query_q = scale sum_i ds basis_i
 *     dkey_i = scale sum_q ds query_q        dvalue_i = sum_q f p dout_q
 *     dbasis_i = scale sum_q ds time_query_q + sum_q f p dtime_out_q, over all heads
 *
 * compute_delta runs first. In attention_backward, row 0 of the grid owns key tiles and iterates over their queries;
 * rows 1 to heads own query tiles and iterate over their keys. Both recompute p = exp(s - lse). That costs two more
 * products than atomic adds to dquery, but no block waits for another. 256 threads; 16 or 32 rows a tile; at most 113
 * KiB of shared memory where it fits, so that two blocks run on a multiprocessor (backward_layout).
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

typedef struct backward_task {
    attention_config config;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *query, *key, *value, *time_query, *basis, *lse, *out, *dout, *time_out, *dtime_out;
    const float *dlse; /* [T x H]; NULL: the log-sum-exp has no gradient */
    float *delta;      /* [T x H] */
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int accumulate; /* bit i: output i accumulates */
} backward_task;

/* ---- delta --------------------------------------------------------------------------------------------------- */

__device__ float lane_dot(const float *a, const float *b, int count)
{
    float sum = 0;
    for (int c = (int)threadIdx.x & 31; c < count; c += 32)
        sum += a[c] * b[c];
    return sum;
}

/* One warp for each token and head. */
__global__ void __launch_bounds__(256) compute_delta(backward_task task)
{
    const attention_config *config = &task.config;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5, token = i / config->heads;
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    attention_head head = attention_head_of(config, (int)(i % config->heads));
    int64_t mine = token * head.stride + head.first, basis_at = token * head.basis_stride + head.basis_first;
    float sum = lane_dot(task.dout + mine, task.out + mine, config->head_dim);
    if (config->basis_dim)
        sum += lane_dot(task.dtime_out + basis_at, task.time_out + basis_at, config->basis_dim);
    sum = lp_warp_sum(sum);
    if ((threadIdx.x & 31) == 0)
        task.delta[i] = sum - (task.dlse ? task.dlse[i] : 0);
}

/* ---- key and query tiles ------------------------------------------------------------------------------------- */

/* Offsets in shared memory, in floats; size is the total. lse and delta belong to the queries, which are the outer or
 * the inner tile. */
typedef struct backward_layout {
    int keys, queries, probabilities, dscores, start, end, lse, delta, bits, size;
} backward_layout;

__host__ __device__ backward_layout backward_layout_of(const attention_config *config, bool key_tile)
{
    backward_layout at;
    int keys = key_tile ? config->rows : config->inner_rows, queries = key_tile ? config->inner_rows : config->rows;
    int key_buffers = key_tile ? 1 : config->buffers, query_buffers = key_tile ? config->buffers : 1;
    at.keys = 0;
    at.queries = at.keys + key_buffers * keys * config->key_stride;
    at.dscores = at.queries + query_buffers * queries * config->query_stride;
    at.probabilities = at.dscores + config->rows * config->score_stride;
    at.start = at.probabilities + (key_tile ? config->rows * config->score_stride : 0);
    at.end = at.start + config->rows;
    at.lse = at.end + config->rows;
    at.delta = at.lse + query_buffers * queries;
    at.bits = at.delta + query_buffers * queries;
    at.size = at.bits + (config->dropout_threshold ? (queries * (keys / 8 + 1) + 3) / 4 : 0);
    return at;
}

/* Stages at most `rows` tokens from `first` to before `end` as queries with dout, dtime_out, lse and delta. */
template <bool tensor, tile_phase phase>
__device__ void stage_queries(const backward_task *task, attention_head head, float *memory, backward_layout parts,
                              int buffer, int first, int end, int rows)
{
    const attention_config *config = &task->config;
    int present = min(rows, end - first), stride = config->query_stride,
        qk_dim = config->head_padded + config->basis_padded;
    float *to = memory + parts.queries + buffer * rows * stride;
    attention_stage_queries<tensor, phase>(to, config, head, task->query, task->time_query, first, present, rows);
    if (config->basis_dim)
        tile_stage<tensor, phase>(to + qk_dim, stride, rows, config->basis_padded,
                                  task->dtime_out + first * head.basis_stride + head.basis_first, head.basis_stride,
                                  present, config->basis_dim);
    tile_stage<tensor, phase>(to + qk_dim + config->basis_padded, stride, rows, config->head_padded,
                              task->dout + first * head.stride + head.first, head.stride, present, config->head_dim);
    for (int r = (int)threadIdx.x; phase == TILE_COPY && r < rows; r += (int)blockDim.x) {
        int64_t i = (int64_t)(first + min(r, present - 1)) * config->heads + head.index;
        tile_cp_async<1>(memory + parts.lse + buffer * rows + r, task->lse + i);
        tile_cp_async<1>(memory + parts.delta + buffer * rows + r, task->delta + i);
    }
}

/* The same as keys. */
template <bool tensor, tile_phase phase>
__device__ void stage_keys(const backward_task *task, attention_head head, float *keys, int first, int end, int rows)
{
    attention_stage_keys<tensor, phase>(keys, &task->config, head, task->key, task->basis, task->value, first,
                                        min(rows, end - first), rows);
}

/* Adds scores and dp of the warp's tiles, outer rows by inner rows. */
template <bool tensor, int tiles>
__device__ void compute_pairs(const attention_config *config, attention_range range, const float *rows, int row_stride,
                              const float *cols, int col_stride, int row_second, int col_second, int warp_col,
                              float (&score)[tiles][4], float (&dp)[tiles][4])
{
    int depth = config->head_padded + config->basis_padded;
    const float *mine = cols + 8 * warp_col * col_stride;
    tile_matmul_nt<tensor>(score, range.from, range.count, rows, row_stride, mine, col_stride, 8 * config->warp_cols,
                           depth);
    tile_matmul_nt<tensor>(dp, range.from, range.count, rows + row_second, row_stride, mine + col_second, col_stride,
                           8 * config->warp_cols, depth);
}

/* From score and dp of a pair: f p, and scale * ds. */
__device__ float2 pair_of(float scale, float score, float dp, float lse, float delta, float factor)
{
    float p = __expf(score * scale - lse);
    float2 both = {factor * p, scale * p * (factor * dp - delta)};
    return both;
}

/* dscores of the warp's tiles, and with keys as rows (key_tile) probabilities times f. bound: segment ends of key
 * rows, or segment starts of query rows. */
template <bool tensor, bool key_tile, int tiles>
__device__ void write_pairs(const attention_config *config, attention_range range, const attention_bits *bits,
                            int first_row, int present, int first_col, attention_warp at, const int *bound,
                            const float *lse, const float *delta, const float (&score)[tiles][4],
                            const float (&dp)[tiles][4], float *probabilities, float *dscores)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        if (j < range.from || j >= range.count)
            continue;
        int col = 8 * (j * config->warp_cols + at.warp_col) + 2 * me.member;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = at.group_row + me.group + 8 * half;
            float probability[2], ds[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int query = key_tile ? first_col + col + i : first_row + row;
                int key = key_tile ? first_row + row : first_col + col + i, stats = key_tile ? col + i : row;
                bool visible =
                    key_tile ? query >= key && query < bound[row] : row < present && key >= bound[row] && key <= query;
                float2 pair = {0, 0};
                if (visible)
                    pair = pair_of(config->scale, score[j][2 * half + i], dp[j][2 * half + i], lse[stats], delta[stats],
                                   attention_dropout_factor(bits, config, key_tile ? first_col : first_row,
                                                            key_tile ? first_row : first_col, query, key));
                probability[i] = tile_operand<tensor>(pair.x);
                ds[i] = tile_operand<tensor>(pair.y);
            }
            int to = (me.group + 8 * half) * config->score_stride + col;
            if (key_tile)
                *(float2 *)(probabilities + to) = make_float2(probability[0], probability[1]);
            *(float2 *)(dscores + to) = make_float2(ds[0], ds[1]);
        }
    }
}

/* One step: the block's keys (key_tile) or queries, and the inner tile from `first_inner` on, in buffer `buffer`. */
template <bool tensor, bool key_tile, int score_tiles, int out_tiles>
__device__ void process_inner(const attention_config *config, backward_layout parts, float *memory, attention_warp at,
                              const attention_bits *bits, int first, int present, int first_inner, int buffer,
                              const int *bound, float (&sum)[out_tiles][4])
{
    int head_padded = config->head_padded, qk_dim = head_padded + config->basis_padded;
    int inner_row = buffer * config->inner_rows, key_stride = config->key_stride, query_stride = config->query_stride;
    const float *keys = memory + parts.keys + (key_tile ? at.group_row : inner_row) * key_stride;
    const float *queries = memory + parts.queries + (key_tile ? inner_row : at.group_row) * query_stride;
    const float *inner = key_tile ? queries : keys;
    int inner_stride = key_tile ? query_stride : key_stride, stats = key_tile ? inner_row : 0;
    float *probabilities = memory + parts.probabilities + at.group_row * config->score_stride;
    float *dscores = memory + parts.dscores + at.group_row * config->score_stride;
    attention_range range = attention_range_of(config, first_inner, at.low, at.high, at.warp_col);
    bool visible = range.low < range.high;
    if (visible) {
        float score[score_tiles][4] = {}, dp[score_tiles][4] = {};
        compute_pairs<tensor>(config, range, key_tile ? keys : queries, key_tile ? key_stride : query_stride, inner,
                              inner_stride, key_tile ? head_padded : qk_dim, key_tile ? qk_dim : head_padded,
                              at.warp_col, score, dp);
        write_pairs<tensor, key_tile>(config, range, bits, first, present, first_inner, at, bound,
                                      memory + parts.lse + stats, memory + parts.delta + stats, score, dp,
                                      probabilities, dscores);
    }
    __syncthreads();
    if (!visible)
        return;
    const float *from = inner + 8 * range.low * inner_stride + 8 * at.first_tile;
    int depth = 8 * (range.high - range.low), low = 8 * range.low;
    tile_matmul_nn<tensor>(sum, 0, key_tile ? min(at.count, qk_dim / 8 - at.first_tile) : at.count, dscores + low,
                           config->score_stride, from, inner_stride, depth);
    if (key_tile)
        tile_matmul_nn<tensor>(sum, head_padded / 8 - at.first_tile, at.count, probabilities + low,
                               config->score_stride, from + config->basis_padded, inner_stride, depth);
}

/* ---- key tiles ----------------------------------------------------------------------------------------------- */

/* dkey and dvalue belong to one head, so their accumulators restart with the next; dbasis sums over heads. Results
 * pass through the buffer of the keys, which has the same column order. */
template <int tiles>
__device__ void store_keys(const backward_task *task, attention_head head, float *keys, int first, int present,
                           attention_warp at, float (&sum)[tiles][4])
{
    const attention_config *config = &task->config;
    int stride = config->key_stride, head_padded = config->head_padded, qk_dim = head_padded + config->basis_padded;
    __syncthreads();
    tile_store_shared(keys + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
    __syncthreads();
    if (task->dkey)
        tile_store_global(task->dkey + first * head.stride + head.first, head.stride, present, config->head_dim, keys,
                          stride, task->accumulate & 2);
    if (task->dvalue)
        tile_store_global(task->dvalue + first * head.stride + head.first, head.stride, present, config->head_dim,
                          keys + qk_dim, stride, task->accumulate & 4);
    if (task->dbasis && head.index == config->heads - 1)
        tile_store_global(task->dbasis + (int64_t)first * config->basis_dim, config->basis_dim, present,
                          config->basis_dim, keys + head_padded, stride, task->accumulate & 16);
#pragma unroll
    for (int j = 0; j < tiles; j++)
        if (8 * (at.first_tile + j) < head_padded || 8 * (at.first_tile + j) >= qk_dim)
            sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
}

template <bool tensor, int score_tiles, int out_tiles>
__device__ void key_tile(const backward_task *task, float *memory)
{
    const attention_config *config = &task->config;
    backward_layout parts = backward_layout_of(config, true);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * config->rows;
    if (first >= tokens)
        return;
    int present = min(config->rows, tokens - first), head_padded = config->head_padded,
        qk_dim = head_padded + config->basis_padded;
    int *start = (int *)(memory + parts.start), *end = (int *)(memory + parts.end);
    attention_segment_bounds(task->shard, task->segment, first, config->rows, start, end);
    __syncthreads();

    attention_warp at = attention_warp_of(config, (head_padded + qk_dim) / 8, out_tiles);
    at.low = first + at.group_row;
    at.high = end[at.group_row + 15];
    int query_end = end[config->rows - 1];
    attention_bits bits = {(unsigned char *)(memory + parts.bits), config->rows / 8 + 1, start, first, config->rows};
    float sum[out_tiles][4] = {};
    for (int head_index = 0; head_index < config->heads; head_index++) {
        attention_head head = attention_head_of(config, head_index);
        int buffer = 0;
        __syncthreads(); /* all warps have finished the previous head */
        stage_keys<tensor, TILE_COPY>(task, head, memory + parts.keys, first, tokens, config->rows);
        stage_queries<tensor, TILE_COPY>(task, head, memory, parts, 0, first, query_end, config->inner_rows);
        tile_cp_async_wait();
        stage_keys<tensor, TILE_ROUND>(task, head, memory + parts.keys, first, tokens, config->rows);
        for (int query = first, next; query < query_end; query = next, buffer = config->buffers - 1 - buffer) {
            next = query + config->inner_rows;
            tile_cp_async_wait();
            stage_queries<tensor, TILE_ROUND>(task, head, memory, parts, buffer, query, query_end, config->inner_rows);
            if (config->dropout_threshold)
                attention_bits_draw(&bits, config, task->shard, head_index, query,
                                    min(config->inner_rows, query_end - query), first);
            __syncthreads();
            if (config->buffers == 2 && next < query_end)
                stage_queries<tensor, TILE_COPY>(task, head, memory, parts, 1 - buffer, next, query_end,
                                                 config->inner_rows);
            process_inner<tensor, true, score_tiles>(config, parts, memory, at, &bits, first, present, query, buffer,
                                                     end, sum);
            if (config->buffers == 1 && next < query_end) {
                __syncthreads();
                stage_queries<tensor, TILE_COPY>(task, head, memory, parts, 0, next, query_end, config->inner_rows);
            }
        }
        store_keys(task, head, memory + parts.keys, first, present, at, sum);
    }
}

/* ---- query tiles --------------------------------------------------------------------------------------------- */

/* Results pass through the buffer of the queries. */
template <int tiles>
__device__ void store_queries(const backward_task *task, attention_head head, float *queries, int first, int present,
                              attention_warp at, const float (&sum)[tiles][4])
{
    const attention_config *config = &task->config;
    int stride = config->query_stride;
    __syncthreads();
    tile_store_shared(queries + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
    __syncthreads();
    if (task->dquery)
        tile_store_global(task->dquery + first * head.stride + head.first, head.stride, present, config->head_dim,
                          queries, stride, task->accumulate & 1);
    if (task->dtime_query)
        tile_store_global(task->dtime_query + first * head.basis_stride + head.basis_first, head.basis_stride, present,
                          config->basis_dim, queries + config->head_padded, stride, task->accumulate & 8);
}

template <bool tensor, int score_tiles, int out_tiles>
__device__ void query_tile(const backward_task *task, float *memory, int head_index)
{
    const attention_config *config = &task->config;
    backward_layout parts = backward_layout_of(config, false);
    attention_head head = attention_head_of(config, head_index);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * config->rows;
    if (first >= tokens)
        return;
    int present = min(config->rows, tokens - first), end = first + present;
    int *start = (int *)(memory + parts.start), size = config->inner_rows * config->key_stride, buffer = 0;
    stage_queries<tensor, TILE_COPY>(task, head, memory, parts, 0, first, tokens, config->rows);
    attention_segment_bounds(task->shard, task->segment, first, config->rows, start, NULL);
    __syncthreads();
    stage_keys<tensor, TILE_COPY>(task, head, memory + parts.keys, start[0], end, config->inner_rows);
    tile_cp_async_wait();
    stage_queries<tensor, TILE_ROUND>(task, head, memory, parts, 0, first, tokens, config->rows);

    attention_warp at = attention_warp_of(config, (config->head_padded + config->basis_padded) / 8, out_tiles);
    at.low = start[at.group_row];
    at.high = min(first + at.group_row + 16, end);
    attention_bits bits = {(unsigned char *)(memory + parts.bits), config->inner_rows / 8 + 1, start, first,
                           config->rows};
    float sum[out_tiles][4] = {};
    for (int key = start[0], next; key < end; key = next, buffer = config->buffers - 1 - buffer) {
        float *keys = memory + parts.keys + buffer * size;
        next = key + config->inner_rows;
        tile_cp_async_wait();
        stage_keys<tensor, TILE_ROUND>(task, head, keys, key, end, config->inner_rows);
        if (config->dropout_threshold)
            attention_bits_draw(&bits, config, task->shard, head_index, first, present, key);
        __syncthreads();
        if (config->buffers == 2 && next < end)
            stage_keys<tensor, TILE_COPY>(task, head, memory + parts.keys + (1 - buffer) * size, next, end,
                                          config->inner_rows);
        process_inner<tensor, false, score_tiles>(config, parts, memory, at, &bits, first, present, key, buffer, start,
                                                  sum);
        if (config->buffers == 1 && next < end) {
            __syncthreads();
            stage_keys<tensor, TILE_COPY>(task, head, keys, next, end, config->inner_rows);
        }
    }
    store_queries(task, head, memory + parts.queries, first, present, at, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Row 0 of the grid: key tiles; row 1 + h: query tiles of head h. */
template <bool tensor, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(256, out_tiles <= 7 ? 2 : 1)
    attention_backward(const __grid_constant__ backward_task task)
{
    LP_SHARED(float, memory);
    if (blockIdx.y == 0)
        key_tile<tensor, score_tiles, out_tiles>(&task, memory);
    else
        query_tile<tensor, score_tiles, out_tiles>(&task, memory, (int)blockIdx.y - 1);
}

int backward_size(const attention_config *config)
{
    int keys = backward_layout_of(config, true).size, queries = backward_layout_of(config, false).size;
    return keys > queries ? keys : queries;
}

/* Chooses warps and tiles for the node's widths. Returns the 8-column output tiles of a warp. */
int choose_tiles(attention_config *config)
{
    int tiles = (2 * config->head_padded + config->basis_padded) / 8;
    int out_tiles = tiles <= 28 ? 7 : tiles <= 56 ? 14 : 16;
    config->warp_rows = tiles <= 56 ? 2 : 1;
    config->warp_cols = tiles <= 56 ? 4 : 8;
    config->rows = 16 * config->warp_rows;
    config->key_stride = tile_stride(2 * config->head_padded + config->basis_padded);
    config->query_stride = tile_stride(2 * config->head_padded + 2 * config->basis_padded);
    static const int choices[][2] = {{32, 2}, {32, 1}, {16, 1}, {8, 1}};
    tile_choose_inner(config, choices, 32, [=]() { return backward_size(config); });
    return out_tiles;
}

template <bool tensor> void launch(const lp_cuda_run *run, const backward_task *task, int64_t tokens, int out_tiles)
{
    const attention_config *config = &task->config;
    backward_task with = *task;
    dim3 grid(lp_blocks(tokens, config->rows), 1 + (unsigned)config->heads);
    unsigned threads = 32u * (unsigned)(config->warp_rows * config->warp_cols);
    size_t size = (size_t)backward_size(config) * sizeof(float);
    if (out_tiles == 7)
        LP_LAUNCH(run, (attention_backward<tensor, 2, 7>), grid, threads, size, with);
    else if (out_tiles == 14)
        LP_LAUNCH(run, (attention_backward<tensor, 2, 14>), grid, threads, size, with);
    else
        LP_LAUNCH(run, (attention_backward<tensor, 1, 16>), grid, threads, size, with);
}

/* Whether two outputs are the same matrix, for example if the query is also the key. */
bool outputs_alias(float *const (&outputs)[5])
{
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            if (outputs[i] && outputs[i] == outputs[k])
                return true;
    return false;
}

void select_outputs(backward_task *task, float *const (&outputs)[5], int mask)
{
    float **fields[] = {&task->dquery, &task->dkey, &task->dvalue, &task->dtime_query, &task->dbasis};
    for (int i = 0; i < 5; i++)
        *fields[i] = mask >> i & 1 ? outputs[i] : NULL;
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    float *const outputs[5] = {LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2), LP_OUTPUT(3), LP_OUTPUT(4)};
    if (tile_tensor(run) && !outputs_alias(outputs) && lp_cuda_attention_gradient_tensor(node, run))
        return;
    backward_task task = attention_gradient_task_of<backward_task>(node, run);
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    int out_tiles = choose_tiles(&task.config);
    task.delta = (float *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.config.heads * sizeof(float));
    if (!task.delta)
        return;
    LP_LAUNCH(run, compute_delta, lp_blocks(tokens * task.config.heads, 8), 256, 0, task);
    /* Gradients into the same matrix run one after another. */
    int rounds = outputs_alias(outputs) ? 5 : 1;
    for (int i = 0; i < rounds; i++) {
        select_outputs(&task, outputs, rounds == 1 ? 31 : 1 << i);
        if (tile_tensor(run))
            launch<true>(run, &task, tokens, out_tiles);
        else
            launch<false>(run, &task, tokens, out_tiles);
    }
}
