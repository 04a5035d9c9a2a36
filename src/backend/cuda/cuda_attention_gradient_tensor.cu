/* cuda_attention_gradient_tensor.cu: gradient of attention on tensor cores (cuda_attention_tensor.h); equations in
 * cuda_attention_gradient.cu.
 *
 * `prepare` computes delta, and draws the dropout mask if attention did not save it. tensor_backward starts meanwhile
 * by programmatic dependent launch and waits only before it reads them. Grid: (2 * token tiles, heads); a block owns
 * 64 keys and iterates over queries, or 64 queries and iterates over keys, in the order of cuda_attention_order.h
 * (longest first). 128 threads; a warp computes score and dp of its 16 rows and 16 inner rows in one loop over the
 * columns, and feeds probabilities and dscores to the next mma from registers. Shared memory: the outer tile and a
 * double-buffered inner tile of 16 or 32 rows, at most 109 KiB: two blocks run on a multiprocessor.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

enum { UNIT = 16, TILES = UNIT / 8, ROWS = ATTENTION_ROWS, THREADS = 256 /* of prepare */ };

/* ---- delta and dropout mask ---------------------------------------------------------------------------------- */

/* Row operand of the dot product of out and dout. dout is rounded as in dp, so that the dscores of a row, which sum to
 * 0, leave less error. 8 threads own a row and load `count` numbers at a time. */
template <int count, int tiles> struct row_part {
    float x[tiles][count];

    __device__ __forceinline__ void load(const float *row, int cols)
    {
#pragma unroll
        for (int n = 0; n < tiles; n++) {
            int c = count * (8 * n + ((int)threadIdx.x & 7));
            if constexpr (count == 4) {
                float4 all = c < cols ? *(const float4 *)(row + c) : make_float4(0, 0, 0, 0);
                x[n][0] = all.x;
                x[n][1] = all.y;
                x[n][2] = all.z;
                x[n][3] = all.w;
            } else if constexpr (count == 2) {
                float2 both = c < cols ? *(const float2 *)(row + c) : make_float2(0, 0);
                x[n][0] = both.x;
                x[n][1] = both.y;
            } else {
                x[n][0] = c < cols ? row[c] : 0;
            }
        }
    }
};

template <bool bf16, int count, int tiles>
__device__ __forceinline__ float dot(const row_part<count, tiles> &dout, const row_part<count, tiles> &out)
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < tiles; n++)
#pragma unroll
        for (int i = 0; i < count; i++)
            sum += (bf16 ? tile_round_bf16(dout.x[n][i]) : tile_truncate_tf32(dout.x[n][i])) * out.x[n][i];
    return sum;
}

/* 8 threads for each token and head. vectorized: head rows can be read by float2, basis rows by float4. */
template <bool bf16, bool vectorized>
__global__ void __launch_bounds__(THREADS, 4) prepare(const __grid_constant__ attention_task task)
{
    const attention_config *config = &task.config;
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3, all = i & ~(int64_t)3;
    int tokens = task.shard->rows[LP_ROWS_TOKENS], segments = task.shard->segments;
    int token = (int)(i / config->heads), warp_token = (int)(all / config->heads);
    if (warp_token >= tokens)
        return;
    attention_head head = attention_head_of(config, (int)(i % config->heads));
    bool valid = token < tokens;
    int64_t mine = token * head.stride + head.first, basis_at = token * head.basis_stride + head.basis_first;
    row_part<vectorized ? 2 : 1, vectorized ? 4 : 8> x[2];
    row_part<vectorized ? 4 : 1, vectorized ? 4 : 13> y[2];
    x[0].load(task.dout + mine, valid ? config->head_dim : 0);
    x[1].load(task.out + mine, valid ? config->head_dim : 0);
    y[0].load(task.dtime_out + basis_at, valid ? config->basis_dim : 0);
    y[1].load(task.time_out + basis_at, valid ? config->basis_dim : 0);
    if (config->dropout_threshold && !task.saved_mask) {
        attention_probe probe = attention_probe_of(&task);
        attention_cursor cursor = attention_cursor_of(task.segment, segments, tokens, probe, warp_token);
        int token_of[] = {min(token, tokens - 1)}, start[1], end[1];
        attention_find_bounds(task.segment, segments, cursor, min(warp_token + 3, tokens - 1), token_of, start, end);
        if (valid)
            attention_mask_draw<8, 1>(&task, attention_mask_row(&task, token, head.index), head.index, token, start[0],
                                      (int)threadIdx.x & 7);
    }
    float sum = dot<bf16>(x[0], x[1]) + dot<bf16>(y[0], y[1]);
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] =
            make_float2(task.lse[i] * TILE_LOG2_E, (sum - (task.dlse ? task.dlse[i] : 0)) * config->scale);
}

/* ---- key and query tiles ------------------------------------------------------------------------------------- */

/* Tiles of one kernel: `inner_rows` tokens in an inner tile. With the default, two blocks run on a multiprocessor. */
template <typename a_shape, int a_inner_rows = a_shape::basis_dim && !a_shape::bf16 ? 16 : 32> struct backward_tiles {
    typedef a_shape shape;
    static constexpr int rows = ROWS, inner_rows = a_inner_rows, threads = 2 * rows;
    /* offsets in shared memory, in floats, of a block that owns keys */
    static constexpr int key_queries = rows * shape::key_stride;
    static constexpr int key_raw = key_queries + 2 * inner_rows * shape::gradient_stride;
    static constexpr int key_start = key_raw + (shape::bf16 ? inner_rows * shape::gradient_raw : 0);
    static constexpr int key_end = key_start + rows;
    static constexpr int key_row_stats = key_end + rows;
    static constexpr int key_size = key_row_stats + 4 * inner_rows;
    /* and of one that owns queries */
    static constexpr int query_keys = rows * shape::gradient_stride;
    static constexpr int query_raw = query_keys + 2 * inner_rows * shape::key_stride;
    static constexpr int query_size = query_raw + (shape::bf16 ? inner_rows * shape::key_raw : 0);
    static constexpr int size = key_size > query_size ? key_size : query_size;
    static_assert(rows % 32 == 0 && inner_rows % UNIT == 0, "rows fill warps and inner rows fill units");
};

/* Adds scores and dp of 16 outer and 16 inner rows; `second`: first column of dp's operand. */
template <typename shape, int right_stride, int left_second, int right_second>
__device__ __forceinline__ void compute_pairs(tile_address left, tile_address right, float (&score)[TILES][4],
                                              float (&dscore)[TILES][4])
{
#pragma unroll
    for (int k = 0; k < shape::k_steps; k++) {
        float first[4], second[4];
        tile_ldmatrix(first, left, 8 * k);
        tile_ldmatrix(second, left, shape::at(left_second) + 8 * k);
        tile_mma_nt<shape::bf16, right_stride>(score, first, right, k);
        tile_mma_nt<shape::bf16, right_stride>(dscore, second, right, k, shape::at(right_second));
    }
}

/* Factors that all pairs share. */
typedef struct pair_scale {
    float score, dropout, dscore; /* scale * log2 e; dropout scale; dropout scale * scale */
} pair_scale;

__device__ static inline pair_scale pair_scale_of(const attention_config *config)
{
    pair_scale scale = {config->scale * TILE_LOG2_E, config->dropout_scale, config->dropout_scale * config->scale};
    return scale;
}

/* In: score and dp of a pair. Out: score = f p, dscore = scale * ds. */
__device__ __forceinline__ void finish_pair(pair_scale scale, bool visible, bool keep, float2 stats, float *score,
                                            float *dscore)
{
    float p = tile_exp2(*score * scale.score - stats.x);
    float ds = p * ((keep ? *dscore * scale.dscore : 0) - stats.y);
    *score = visible && keep ? p * scale.dropout : 0;
    *dscore = visible ? ds : 0;
}

/* ---- key tiles ----------------------------------------------------------------------------------------------- */

/* Rows and visible queries of a warp. */
typedef struct key_warp {
    int group_row;   /* first row in the tile */
    int key, end[2]; /* the lane's first key; segment ends of its two rows, 0 if there is no row */
    int high;        /* end of the queries visible to some row */
    int all_end;     /* end of the queries visible to all rows */
} key_warp;

template <bool unmasked>
__device__ __forceinline__ void finish_queries(pair_scale scale, key_warp mine, int first_query, uint32_t word,
                                               const float2 *row_stats, float (&score)[TILES][4],
                                               float (&dscore)[TILES][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float4 both = *(const float4 *)(row_stats + 8 * j + 2 * me.member);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int col = 8 * j + 2 * me.member + i, query = first_query + col;
            uint32_t keep = __shfl_sync(0xFFFFFFFFu, word, col) >> me.group;
            float2 stats = i ? make_float2(both.z, both.w) : make_float2(both.x, both.y);
#pragma unroll
            for (int half = 0; half < 2; half++)
                finish_pair(scale, unmasked || (query >= mine.key + 8 * half && query < mine.end[half]),
                            keep >> (8 * half) & 1, stats, &score[j][2 * half + i], &dscore[j][2 * half + i]);
        }
    }
}

/* Processes the warp's keys and 16 queries with their row_stats. */
template <typename tiles>
__device__ __forceinline__ void process_queries(const attention_task *task, key_warp mine, tile_address keys,
                                                const float *queries, const float2 *row_stats, const int *start,
                                                int origin, int first_query, int head,
                                                float (&sum)[tiles::shape::key_sums][2][4])
{
    typedef typename tiles::shape shape;
    tile_lane me = tile_lane_now();
    uint2 loaded = {};
    int from = 0;
    if (task->mask_stride) {
        /* Lane i of 16 loads the mask of query i for the warp's keys. */
        int query = min(first_query + (me.lane & 15), mine.high - 1);
        from = origin + mine.group_row - start[min(query - origin, tiles::rows - 1)];
        loaded = attention_mask_load(task, attention_mask_row(task, query, head), from);
    }
    float score[TILES][4] = {}, dscore[TILES][4] = {};
    compute_pairs<shape, shape::gradient_stride, shape::head_dim, shape::qk_dim>(
        keys, tile_b_address(queries, shape::gradient_stride), score, dscore);
    uint32_t word = task->mask_stride ? attention_mask_extract(loaded, from) : 0xFFFFFFFFu;
    pair_scale scale = pair_scale_of(&task->config);
    if (first_query >= origin + mine.group_row + 15 && first_query + UNIT <= mine.all_end)
        finish_queries<true>(scale, mine, first_query, word, row_stats, score, dscore);
    else
        finish_queries<false>(scale, mine, first_query, word, row_stats, score, dscore);
    constexpr int head_sums = shape::head_sums, basis_sums = (shape::basis_dim + 15) / 16,
                  stride = shape::gradient_stride;
    constexpr bool full = shape::basis_dim % 16 == 0;
    tile_mma_nn_transposed<shape::bf16, stride, 0, head_sums>(sum, dscore, queries);
    tile_mma_nn_transposed<shape::bf16, stride, head_sums, basis_sums, full>(sum, dscore,
                                                                             queries + shape::at(shape::head_dim));
    tile_mma_nn_transposed<shape::bf16, stride, head_sums, shape::query_sums>(sum, score,
                                                                              queries + shape::at(shape::qk_dim));
}

/* Starts the copy of row_stats and of queries from `first` on. */
template <typename tiles>
__device__ __forceinline__ void copy_row_stats(const attention_task *task, int head, float *memory, int buffer,
                                               int first, int end)
{
    int r = (int)threadIdx.x;
    if (r < tiles::inner_rows)
        tile_cp_async<2>(
            memory + tiles::key_row_stats + 2 * (buffer * tiles::inner_rows + r),
            (const float *)(task->row_stats + (int64_t)min(first + r, end - 1) * task->config.heads + head));
}

template <typename tiles>
__device__ __forceinline__ void copy_queries(const attention_task *task, int head, float *memory, int buffer, int first,
                                             int end)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::bf16 ? shape::gradient_raw : shape::gradient_stride;
    float *to = memory + (shape::bf16 ? tiles::key_raw : tiles::key_queries + buffer * tiles::inner_rows * stride);
    attention_stage_tokens<shape, ATTENTION_COPY, stride, tiles::inner_rows, tiles::threads>(
        task->queries, ATTENTION_GRADIENTS, task->aligned, head, to, first, end - first);
}

/* dkey and dvalue belong to one head, so their accumulators restart with the next; dbasis sums over heads. `key`: the
 * warp's first. */
template <typename shape>
__device__ __forceinline__ void store_keys(const attention_task *task, attention_head head, int64_t key, int tokens,
                                           float (&sum)[shape::key_sums][2][4])
{
    const attention_config *config = &task->config;
    constexpr int rest = shape::head_sums;
    int present = tokens - (int)key;
    if (task->dkey)
        attention_store_tiles<shape::bf16, 0, 0, shape::head_dim>(task->dkey + key * head.stride + head.first,
                                                                  head.stride, present, config->head_dim,
                                                                  task->vectorized & 2, task->accumulate & 2, sum);
    if (task->dvalue)
        attention_store_tiles<shape::bf16, rest, shape::basis_dim, shape::head_dim>(
            task->dvalue + key * head.stride + head.first, head.stride, present, config->head_dim, task->vectorized & 4,
            task->accumulate & 4, sum);
    if constexpr (shape::basis_dim > 0)
        if (task->dbasis && head.index == config->heads - 1)
            attention_store_tiles<shape::bf16, rest, 0, shape::basis_dim>(
                task->dbasis + key * config->basis_dim, config->basis_dim, present, config->basis_dim,
                task->vectorized & 16, task->accumulate & 16, sum);
    /* A tile can hold columns of both the basis and the values. */
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int m = 0; m < shape::key_sums; m++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int col = 16 * (m - rest) + (shape::bf16 ? me.group + 8 * (i >> 1 & 1) : 2 * me.group);
            if (m < rest || col >= shape::basis_dim)
                sum[m][i >> 2][i & 3] = 0;
        }
}

template <typename tiles>
__device__ __forceinline__ void key_tile(const attention_task *task, float *memory, int tile, int first_head, int heads)
{
    typedef typename tiles::shape shape;
    constexpr attention_phase phase = shape::bf16 ? ATTENTION_PACK : ATTENTION_COPY;
    const attention_config *config = &task->config;
    attention_probe probe = attention_probe_of(task);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = tile * tiles::rows;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    int *start = (int *)(memory + tiles::key_start), *end = (int *)(memory + tiles::key_end);
    float *queries = memory + tiles::key_queries;
    const float2 *row_stats = (const float2 *)(memory + tiles::key_row_stats);
    int segments = task->shard->segments, last = min(first + tiles::rows, tokens) - 1;
    key_warp mine = {16 * me.warp, first + 16 * me.warp + me.group, {0, 0}, 0, 0};
    tile_address keys = tile_a_address(memory + mine.group_row * shape::key_stride, shape::key_stride);
    float sum[shape::key_sums][2][4] = {};
#pragma unroll 1
    for (int head_index = first_head; head_index < first_head + heads; head_index++) {
        attention_stage_tokens<shape, phase, shape::key_stride, tiles::rows, tiles::threads>(
            task->keys, ATTENTION_KEYS, task->aligned, head_index, memory, first, tokens - first);
        copy_queries<tiles>(task, head_index, memory, 0, first, tokens);
        if (head_index == first_head) {
            attention_cursor cursor = attention_cursor_of(task->segment, segments, tokens, probe, first);
            int r = (int)threadIdx.x & (tiles::rows - 1), token[] = {min(first + r, last)}, from[1], to[1];
            attention_find_bounds(task->segment, segments, cursor, last, token, from, to);
            start[r] = from[0];
            end[r] = to[0];
            __syncthreads();
            mine.high = end[mine.group_row + 15];
            mine.all_end = first + mine.group_row + 15 < tokens ? end[mine.group_row] : 0;
            for (int half = 0; half < 2; half++)
                mine.end[half] = mine.key + 8 * half < tokens ? end[mine.key - first + 8 * half] : 0;
            lp_pdl_wait();
        }
        copy_row_stats<tiles>(task, head_index, memory, 0, first, tokens);
        int query_end = end[tiles::rows - 1], buffer = 0;
#pragma unroll 1
        for (int query = first, next; query < query_end; query = next, buffer = 1 - buffer) {
            float *now = queries + buffer * tiles::inner_rows * shape::gradient_stride;
            next = query + tiles::inner_rows;
            tile_cp_async_wait();
            if (shape::bf16)
                attention_pack_tokens<shape, shape::gradient_stride, shape::gradient_raw, tiles::inner_rows,
                                      tiles::threads>(task->queries, task->aligned, now, memory + tiles::key_raw);
            __syncthreads();
            if (next < query_end) {
                copy_queries<tiles>(task, head_index, memory, 1 - buffer, next, query_end);
                copy_row_stats<tiles>(task, head_index, memory, 1 - buffer, next, query_end);
            }
#pragma unroll 1
            for (int offset = 0; offset < tiles::inner_rows; offset += UNIT)
                if (query + offset + UNIT > first + mine.group_row && query + offset < mine.high)
                    process_queries<tiles>(task, mine, keys, now + offset * shape::gradient_stride,
                                           row_stats + buffer * tiles::inner_rows + offset, start, first,
                                           query + offset, head_index, sum);
        }
        store_keys<shape>(task, attention_head_of(config, head_index), first + mine.group_row, tokens, sum);
        __syncthreads(); /* before the next head overwrites the keys */
    }
}

/* ---- query tiles --------------------------------------------------------------------------------------------- */

/* State of one of the lane's two rows. */
typedef struct query_row {
    int query, start; /* query < start if there is no such token */
    float2 stats;
    const uint32_t *mask;
} query_row;

template <bool unmasked>
__device__ __forceinline__ void finish_keys(pair_scale scale, const query_row (&row)[2], int first_key,
                                            const uint32_t (&keep)[2], float (&score)[TILES][4],
                                            float (&dscore)[TILES][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const query_row *mine = &row[i >> 1];
            int key = first_key + 8 * j + 2 * me.member + (i & 1);
            finish_pair(scale, unmasked || (key >= mine->start && key <= mine->query),
                        keep[i >> 1] >> (8 * j + (i & 1)) & 1, mine->stats, &score[j][i], &dscore[j][i]);
        }
    }
}

/* Processes the warp's queries and 16 keys; unmasked: every query sees every key. */
template <typename shape>
__device__ __forceinline__ void process_keys(const attention_task *task, tile_address queries, const float *keys,
                                             int first_key, bool unmasked, const query_row (&row)[2],
                                             float (&sum)[shape::query_sums][2][4])
{
    uint2 loaded[2] = {};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            loaded[half] = attention_mask_load(task, row[half].mask, first_key - row[half].start);
    float score[TILES][4] = {}, dscore[TILES][4] = {};
    compute_pairs<shape, shape::key_stride, shape::qk_dim, shape::head_dim>(
        queries, tile_b_address(keys, shape::key_stride), score, dscore);
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] =
                attention_mask_extract(loaded[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    pair_scale scale = pair_scale_of(&task->config);
    if (unmasked)
        finish_keys<true>(scale, row, first_key, keep, score, dscore);
    else
        finish_keys<false>(scale, row, first_key, keep, score, dscore);
    tile_mma_nn_transposed<shape::bf16, shape::key_stride, 0, shape::query_sums>(sum, dscore, keys);
}

/* Starts the copy of keys from `first` on. */
template <typename tiles>
__device__ __forceinline__ void copy_keys(const attention_task *task, int head, float *memory, int buffer, int first,
                                          int end)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::bf16 ? shape::key_raw : shape::key_stride;
    float *to = memory + (shape::bf16 ? tiles::query_raw : tiles::query_keys + buffer * tiles::inner_rows * stride);
    attention_stage_tokens<shape, ATTENTION_COPY, stride, tiles::inner_rows, tiles::threads>(
        task->keys, ATTENTION_KEYS, task->aligned, head, to, first, end - first);
}

/* `query`: the warp's first. */
template <typename shape>
__device__ __forceinline__ void store_queries(const attention_task *task, attention_head head, int64_t query, int end,
                                              float (&sum)[shape::query_sums][2][4])
{
    const attention_config *config = &task->config;
    int present = end - (int)query;
    if (task->dquery)
        attention_store_tiles<shape::bf16, 0, 0, shape::head_dim>(task->dquery + query * head.stride + head.first,
                                                                  head.stride, present, config->head_dim,
                                                                  task->vectorized & 1, task->accumulate & 1, sum);
    if constexpr (shape::basis_dim > 0)
        if (task->dtime_query)
            attention_store_tiles<shape::bf16, 0, shape::head_dim, shape::basis_dim>(
                task->dtime_query + query * head.basis_stride + head.basis_first, head.basis_stride, present,
                config->basis_dim, task->vectorized & 8, task->accumulate & 8, sum);
}

template <typename tiles>
__device__ __forceinline__ void query_tile(const attention_task *task, float *memory, int tile, int head_index)
{
    typedef typename tiles::shape shape;
    constexpr attention_phase phase = shape::bf16 ? ATTENTION_PACK : ATTENTION_COPY;
    attention_probe probe = attention_probe_of(task);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = tile * tiles::rows;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    int segments = task->shard->segments, end = min(first + tiles::rows, tokens), buffer = 0;
    attention_stage_tokens<shape, phase, shape::gradient_stride, tiles::rows, tiles::threads>(
        task->queries, ATTENTION_GRADIENTS, task->aligned, head_index, memory, first, end - first);
    attention_cursor cursor = attention_cursor_of(task->segment, segments, tokens, probe, first);
    copy_keys<tiles>(task, head_index, memory, 0, cursor.begin, end);
    /* Tokens whose segment this lane needs: its two rows, and the warp's first and last row. */
    int group_row = 16 * me.warp, from = first + group_row + me.group;
    int tokens_of[] = {min(from, end - 1), min(from + 8, end - 1), min(first + group_row, end - 1),
                       min(first + group_row + 15, end - 1)};
    int start[4], ends[4];
    attention_find_bounds(task->segment, segments, cursor, end - 1, tokens_of, start, ends);
    int low = start[2], high = min(first + group_row + 16, end);
    int all_low = start[3], all_high = first + group_row + 16 <= end ? first + group_row : -1;
    lp_pdl_wait();
    query_row row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = tokens_of[half];
        query_row begun = {from + 8 * half < end ? query : start[half] - 1, start[half],
                           task->row_stats[(int64_t)query * task->config.heads + head_index],
                           attention_mask_row(task, query, head_index)};
        row[half] = begun;
    }
    tile_address queries = tile_a_address(memory + group_row * shape::gradient_stride, shape::gradient_stride);
    float sum[shape::query_sums][2][4] = {};
#pragma unroll 1
    for (int key = cursor.begin, next; key < end; key = next, buffer = 1 - buffer) {
        float *keys = memory + tiles::query_keys + buffer * tiles::inner_rows * shape::key_stride;
        next = key + tiles::inner_rows;
        tile_cp_async_wait();
        if (shape::bf16)
            attention_pack_tokens<shape, shape::key_stride, shape::key_raw, tiles::inner_rows, tiles::threads>(
                task->keys, task->aligned, keys, memory + tiles::query_raw);
        __syncthreads();
        if (next < end)
            copy_keys<tiles>(task, head_index, memory, 1 - buffer, next, end);
#pragma unroll 1
        for (int offset = 0; offset < tiles::inner_rows; offset += UNIT)
            if (key + offset + UNIT > low && key + offset < high)
                process_keys<shape>(task, queries, keys + offset * shape::key_stride, key + offset,
                                    key + offset >= all_low && key + offset + UNIT - 1 <= all_high, row, sum);
    }
    store_queries<shape>(task, attention_head_of(&task->config, head_index), first + group_row, end, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* dbasis sums over heads: with a basis, a key tile's block iterates over all heads. */
template <typename tiles, int blocks>
__global__ void __launch_bounds__(tiles::threads, blocks) tensor_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    int work = task.order[blockIdx.x], tile = work >> 1, head = (int)blockIdx.y;
    if (work & 1)
        query_tile<tiles>(&task, memory, tile, head);
    else if (!tiles::shape::basis_dim)
        key_tile<tiles>(&task, memory, tile, head, 1);
    else if (head == 0)
        key_tile<tiles>(&task, memory, tile, 0, task.config.heads);
}

template <typename tiles, int blocks = 2> void launch(const lp_cuda_run *run, attention_task task)
{
    attention_parts<typename tiles::shape>(&task);
    dim3 grid((unsigned)(2 * task.tiles), (unsigned)task.config.heads);
    LP_LAUNCH_PDL(run, (tensor_backward<tiles, blocks>), grid, (unsigned)tiles::threads,
                  (size_t)tiles::size * sizeof(float), task);
}

void launch_prepare(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    attention_task with = *task;
    int head_dim = task->config.head_dim, basis_dim = task->config.basis_dim;
    bool vectorized = attention_aligned(task->dout, head_dim, 2) && attention_aligned(task->out, head_dim, 2) &&
                      attention_aligned(task->dtime_out, basis_dim, 4) &&
                      attention_aligned(task->time_out, basis_dim, 4);
    unsigned blocks = lp_blocks(tokens * task->config.heads, THREADS / 8);
    if (tile_bf16(run) && vectorized)
        LP_LAUNCH(run, (prepare<true, true>), blocks, THREADS, 0, with);
    else if (tile_bf16(run))
        LP_LAUNCH(run, (prepare<true, false>), blocks, THREADS, 0, with);
    else if (vectorized)
        LP_LAUNCH(run, (prepare<false, true>), blocks, THREADS, 0, with);
    else
        LP_LAUNCH(run, (prepare<false, false>), blocks, THREADS, 0, with);
}

attention_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_gradient_task_of<attention_task>(node, run);
    task.max_segments = run->largest_segments;
    task.order = lp_cuda_attention_order_of(run);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.dtime_query = LP_OUTPUT(3);
    task.dbasis = LP_OUTPUT(4);
    const float *const results[] = {task.dquery, task.dkey, task.dvalue, task.dtime_query, task.dbasis};
    for (int i = 0; i < 5; i++)
        task.vectorized |= attention_aligned(results[i], i < 3 ? task.config.head_dim : task.config.basis_dim, 2) << i;
    return task;
}

/* Allocates row_stats, and `mask_size` bytes for the mask if attention did not save it. */
bool allocate_scratch(attention_task *task, const lp_cuda_run *run, int64_t tokens, size_t mask_size)
{
    size_t row_stats = (size_t)tokens * (size_t)task->config.heads;
    task->tiles = (int)lp_blocks(tokens, ROWS);
    task->row_stats = (float2 *)lp_cuda_scratch(run, row_stats * sizeof(float2) + (task->saved_mask ? 0 : mask_size));
    task->mask = task->saved_mask ? task->saved_mask : (uint32_t *)(task->row_stats + row_stats);
    return task->row_stats != NULL;
}

} // namespace

bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_config *config = &task.config;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    if (!attention_fits(config))
        return false;
    size_t mask_size = attention_mask_size(&task, run, tokens);
    task.saved_mask = mask_size ? (uint32_t *)lp_cuda_side_buffer(run, node->inputs[5], 0) : NULL;
    if (mask_size > ATTENTION_MASK_LIMIT || !allocate_scratch(&task, run, tokens, mask_size))
        return mask_size <= ATTENTION_MASK_LIMIT;
    launch_prepare(run, &task, tokens);
    lp_cuda_release_low_priority(run);
    attention_with_shape(run, config, [&](auto shape) { launch<backward_tiles<decltype(shape)>>(run, task); });
    return true;
}
