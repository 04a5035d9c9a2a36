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
 * attention_delta computes delta; attention_backward starts meanwhile by programmatic dependent launch and waits only
 * before it reads it. Grid: (2 * token tiles, heads, divisions of the columns); a block owns keys and iterates over
 * queries, or owns queries and iterates over keys, in the order of
 * cuda_attention_order.h (longest first). Both recompute p = exp(s - lse). That costs two more products than atomic
 * adds to dquery, but no block waits for another. A warp computes score and dp of its 16 rows and a unit of inner rows
 * in one loop over the columns, and feeds probabilities and dscores to the next mma from registers.
 *
 * With several heads, a block of keys takes them one after another and keeps the sums of dbasis, or where that would
 * leave too few blocks, dbasis is stored for each head, and sum_heads adds them.
 */
#include "backend/cuda/cuda_attention.h"

namespace
{

enum { THREADS = 256 /* of sum_heads */, BALANCE = 16 };

/* Inner rows that a warp processes at once, and `tiles` times 8 of them. An inner tile is a multiple of them, with fixed
 * widths of `inner` rows. */
template <typename shape> struct inner_unit {
    static constexpr int tiles = shape::bf16 ? 4 : 2, rows = 8 * tiles;
    static constexpr int inner = shape::fixed && shape::basis(NULL) == 0 ? 32 : rows;
};

/* ---- key and query tiles ------------------------------------------------------------------------------------- */

/* Offsets in shared memory, in floats, of a block that owns keys: the inner tile, the bounds of the keys' segments, and
 * row_stats; and of one that owns queries. */
typedef struct backward_layout {
    int inner, start, end, row_stats, size;
} backward_layout;

template <typename shape> __host__ __device__ int inner_rows_of(const attention_task *task)
{
    return shape::fixed ? inner_unit<shape>::inner : task->inner_rows;
}

/* With fixed widths: two if two blocks then run on a multiprocessor. */
template <typename shape> __host__ __device__ int buffers_of(const attention_task *task)
{
    constexpr int outer = ATTENTION_ROWS, inner = 2 * inner_unit<shape>::inner;
    if constexpr (shape::fixed)
        return 4 * (outer * (shape::key_stride(NULL) + 2) + inner * (shape::gradient_stride(NULL) + 2) + 64) <=
                           TILE_HALF_SHARED &&
                       4 * (outer * shape::gradient_stride(NULL) + inner * shape::key_stride(NULL) + 64) <=
                           TILE_HALF_SHARED
                   ? 2
                   : 1;
    else
        return task->buffers;
}

template <typename shape> __host__ __device__ backward_layout layout_of(const attention_task *task, bool keys)
{
    backward_layout at;
    int rows = shape::rows(task), inner = buffers_of<shape>(task) * inner_rows_of<shape>(task);
    at.inner = rows * (keys ? shape::key_stride(task) : shape::gradient_stride(task));
    at.start = at.inner + inner * (keys ? shape::gradient_stride(task) : shape::key_stride(task)) + 64;
    at.end = at.start + (keys ? rows : 0);
    at.row_stats = at.end + (keys ? rows : 0);
    at.size = at.row_stats + (keys ? 2 * inner : 0);
    return at;
}

template <typename shape> int size_of(const attention_task *task)
{
    int keys = layout_of<shape>(task, true).size, queries = layout_of<shape>(task, false).size;
    return keys > queries ? keys : queries;
}

/* Adds scores and dp of 16 outer rows and a unit of inner rows. keys: the outer rows are keys. The keys' basis is an
 * operand of both, and loaded once. */
template <typename shape, bool keys, int tiles>
__device__ __forceinline__ void compute_pairs(const attention_task *task, tile_address outer, tile_address inner,
                                              int stride, float (&score)[tiles][4], float (&dscore)[tiles][4])
{
    constexpr lp_precision precision = shape::precision;
    int basis = shape::first(task, 1), time_gradient = shape::first(task, 2), gradient = shape::first(task, 3);
    float left[4], second[4];
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < shape::head(task); k++) {
        tile_ldmatrix(left, outer, 8 * k);
        attention_multiply<precision>(score, left, inner, stride, 8 * k);
        tile_ldmatrix(second, outer, (keys ? time_gradient : gradient) + 8 * k);
        attention_multiply<precision>(dscore, second, inner, stride, (keys ? gradient : time_gradient) + 8 * k);
    }
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < shape::basis(task); k++) {
        tile_ldmatrix(left, outer, basis + 8 * k);
        if constexpr (keys) {
            attention_multiply<precision>(score, left, inner, stride, basis + 8 * k);
            attention_multiply<precision>(dscore, left, inner, stride, time_gradient + 8 * k);
        } else {
            tile_ldmatrix(second, outer, time_gradient + 8 * k);
#pragma unroll
            for (int j = 0; j < tiles; j += 2) {
                float right[4];
                tile_ldmatrix(right, inner, basis + 8 * k + 8 * j * stride);
                attention_mma<precision>(score[j], left, right[0], right[1]);
                attention_mma<precision>(score[j + 1], left, right[2], right[3]);
                attention_mma<precision>(dscore[j], second, right[0], right[1]);
                attention_mma<precision>(dscore[j + 1], second, right[2], right[3]);
            }
        }
    }
}

/* Factors that all pairs share. */
typedef struct pair_scale {
    float score, dropout, dscore; /* scale * log2 e; dropout scale; scale */
} pair_scale;

__device__ static inline pair_scale pair_scale_of(const attention_task *task)
{
    pair_scale scale = {task->scale * TILE_LOG2_E, task->dropout_scale, task->scale};
    return scale;
}

/* In: score and dp of a pair. Out: score = f p, dscore = scale * ds. */
__device__ __forceinline__ void finish_pair(pair_scale scale, bool visible, bool keep, float2 stats, float *score,
                                            float *dscore)
{
    float p = tile_exp2(*score * scale.score - stats.x), factor = keep ? scale.dropout : 0;
    float ds = p * scale.dscore * (*dscore * factor - stats.y);
    *score = visible ? p * factor : 0;
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

template <bool unmasked, int tiles>
__device__ __forceinline__ void finish_queries(pair_scale scale, key_warp mine, int first_query, uint32_t word,
                                               const float2 *row_stats, float (&score)[tiles][4],
                                               float (&dscore)[tiles][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
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

/* The accumulators of a key tile: tiles of dkey, then of dbasis and dvalue together. */
template <typename shape> __host__ __device__ int key_tiles_of(const attention_task *task)
{
    return shape::sums(shape::head(task)) + shape::sums(shape::head(task) + shape::basis(task));
}

/* Processes the warp's keys and a unit of queries with their row_stats. start: of the segments of the tile's rows, from token
 * `origin` on. */
template <typename shape>
__device__ __forceinline__ void process_queries(const attention_task *task, key_warp mine, tile_address keys,
                                                const float *queries, const float2 *row_stats, const int *start,
                                                int origin, int first_query, int head,
                                                float (&sum)[shape::key_sums][2][4])
{
    tile_lane me = tile_lane_now();
    int stride = shape::gradient_stride(task);
    uint2 loaded = {};
    int from = 0;
    if (task->mask_stride) {
        /* Lane i loads the mask of query i of the unit for the warp's keys. */
        int query = min(first_query + (me.lane & (inner_unit<shape>::rows - 1)), mine.high - 1);
        from = origin + mine.group_row - start[min(query - origin, shape::rows(task) - 1)];
        loaded = attention_mask_load(task, attention_mask_row(task, query, head), from);
    }
    float score[inner_unit<shape>::tiles][4] = {}, dscore[inner_unit<shape>::tiles][4] = {};
    compute_pairs<shape, true>(task, keys, tile_b_address(queries, stride), stride, score, dscore);
    uint32_t word = task->mask_stride ? attention_mask_extract(loaded, from) : 0xFFFFFFFFu;
    pair_scale scale = pair_scale_of(task);
    if (first_query >= origin + mine.group_row + 15 && first_query + inner_unit<shape>::rows <= mine.all_end)
        finish_queries<true>(scale, mine, first_query, word, row_stats, score, dscore);
    else
        finish_queries<false>(scale, mine, first_query, word, row_stats, score, dscore);

    /* Accumulator m is tile tile + m: of dkey before `rest`, of dbasis and dvalue from there on. */
    int tile = shape::first_tile(task->key_tiles), tiles = shape::tiles(key_tiles_of<shape>(task), task->key_tiles);
    int rest = shape::sums(shape::head(task)) - tile, basis = rest + shape::sums(shape::basis(task));
    attention_accumulate<shape>(sum, dscore, queries + shape::wide * tile, stride, 0, min(rest, tiles));
    attention_accumulate<shape>(sum, dscore, queries + shape::first(task, 1) - shape::wide * rest, stride, rest,
                                min(basis, tiles), shape::basis(task) % 2 ? basis - 1 : -1);
    attention_accumulate<shape>(sum, score, queries + shape::first(task, 2) - shape::wide * rest, stride, rest, tiles);
}

/* `key`: the warp's first. */
template <typename shape>
__device__ __forceinline__ void store_keys(const attention_task *task, int head, bool last, int64_t key, int present,
                                           float *stage, float (&sum)[shape::key_sums][2][4])
{
    int64_t stride = (int64_t)task->heads * task->head_dim, at = key * stride + head * task->head_dim;
    int tile = shape::first_tile(task->key_tiles), tiles = shape::tiles(key_tiles_of<shape>(task), task->key_tiles);
    int head_sums = shape::sums(shape::head(task)), rest = max(head_sums - tile, 0), cols = task->head_dim;
    int begin = 16 * head_sums, padded = shape::columns(shape::head(task)), basis = shape::columns(shape::basis(task));
    lp_cuda_copy dkey = attention_copy_at(task, task->copies[1], key, head, cols);
    lp_cuda_copy dvalue = attention_copy_at(task, task->copies[2], key, head, cols);
    if (task->dkey || dkey.data)
        attention_store<shape>(task->dkey ? task->dkey + at : NULL, stride, dkey, present, cols, padded, tile, 0,
                               min(rest, tiles), 0, task->vectorized & 2, task->accumulate & 2, stage,
                               shape::key_stride(task), sum);
    if (task->dbasis && last)
        attention_store<shape>(task->dbasis + head * task->dbasis_step + key * task->basis_dim, task->basis_dim, {},
                               present, task->basis_dim, basis, tile, rest, tiles, begin, task->vectorized & 16,
                               task->dbasis_step ? 0 : task->accumulate & 16, NULL, 0, sum);
    if (task->dvalue || dvalue.data)
        attention_store<shape>(task->dvalue ? task->dvalue + at : NULL, stride, dvalue, present, cols, padded, tile,
                               rest, tiles, begin + basis, task->vectorized & 4, task->accumulate & 4, stage,
                               shape::key_stride(task), sum);
}

/* Clears the sums of a head, and keeps those of the basis. */
template <typename shape>
__device__ __forceinline__ void clear_head(const attention_task *task, float (&sum)[shape::key_sums][2][4])
{
    int begin = shape::sums(shape::head(task)) - shape::first_tile(task->key_tiles),
        basis = shape::columns(shape::basis(task));
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int m = 0; m < shape::key_sums; m++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int col = 16 * (m - begin) + (shape::bf16 ? me.group + 8 * (i % 4 / 2) : 2 * me.group);
            sum[m][i / 4][i % 4] = col >= 0 && col < basis ? sum[m][i / 4][i % 4] : 0;
        }
}

template <typename shape>
__device__ __forceinline__ void key_tile(const attention_task *task, attention_probe probe, int tokens, int segments,
                                         float *memory, int first, int head, int heads)
{
    backward_layout parts = layout_of<shape>(task, true);
    constexpr int unit = inner_unit<shape>::rows;
    if (first >= tokens || shape::tiles(key_tiles_of<shape>(task), task->key_tiles) <= 0)
        return;
    tile_lane me = tile_lane_now();
    int rows = shape::rows(task), inner_rows = inner_rows_of<shape>(task), buffers = buffers_of<shape>(task);
    int key_stride = shape::key_stride(task), stride = shape::gradient_stride(task);
    int *start = (int *)(memory + parts.start), *end = (int *)(memory + parts.end);
    int last = min(first + rows, tokens) - 1, query_end = tokens;
    auto copy_queries = [&](int buffer, int from) {
        attention_copy<shape>(task, task->queries, ATTENTION_GRADIENTS, head,
                              memory + parts.inner + buffer * inner_rows * stride, stride, inner_rows, from,
                              query_end - from);
    };
    auto copy_row_stats = [&](int buffer, int from) {
        int r = (int)threadIdx.x;
        if (r < inner_rows)
            tile_cp_async<2>(
                memory + parts.row_stats + 2 * (buffer * inner_rows + r),
                (const float *)(task->row_stats + (int64_t)min(from + r, query_end - 1) * task->heads + head));
    };
    auto copy_first = [&] {
        attention_copy<shape>(task, task->keys, ATTENTION_KEYS, head, memory, key_stride, rows, first, tokens - first);
        copy_queries(0, first);
    };
    copy_first();
    attention_cursor cursor = attention_cursor_of(task->segment, segments, tokens, probe, first);
    int r = (int)threadIdx.x & (rows - 1), token[] = {min(first + r, last)}, from[1], to[1];
    attention_find_bounds(task->segment, segments, cursor, last, token, from, to);
    start[r] = from[0];
    end[r] = to[0];
    __syncthreads();
    key_warp mine = {16 * me.warp, first + 16 * me.warp + me.group, {0, 0}, 0, 0};
    mine.high = end[mine.group_row + 15];
    mine.all_end = first + mine.group_row + 15 < tokens ? end[mine.group_row] : 0;
    for (int half = 0; half < 2; half++)
        mine.end[half] = mine.key + 8 * half < tokens ? end[mine.key - first + 8 * half] : 0;
    lp_pdl_wait();
    copy_row_stats(0, first);
    query_end = end[rows - 1];
    tile_address keys = tile_a_address(memory + mine.group_row * key_stride, key_stride);
    float sum[shape::key_sums][2][4] = {};
#pragma unroll 1
    for (;;) {
        int buffer = 0;
#pragma unroll 1
        for (int query = first, next; query < query_end; query = next, buffer = buffers - 1 - buffer) {
            const float *queries = memory + parts.inner + buffer * inner_rows * stride;
            const float2 *row_stats = (const float2 *)(memory + parts.row_stats) + buffer * inner_rows;
            next = query + inner_rows;
            tile_cp_async_wait();
            __syncthreads();
            if (buffers == 2 && next < query_end) {
                copy_queries(1 - buffer, next);
                copy_row_stats(1 - buffer, next);
            }
#pragma unroll 1
            for (int offset = 0; offset < inner_rows; offset += unit)
                if (query + offset + unit > first + mine.group_row && query + offset < mine.high)
                    process_queries<shape>(task, mine, keys, queries + offset * stride, row_stats + offset, start,
                                           first, query + offset, head, sum);
            if (buffers == 1 && next < query_end) {
                __syncthreads();
                copy_queries(0, next);
                copy_row_stats(0, next);
            }
        }
        store_keys<shape>(task, head, head + 1 == heads, first + mine.group_row, tokens - first - mine.group_row,
                          memory + mine.group_row * key_stride, sum);
        if (++head == heads)
            return;
        __syncthreads();
        copy_first();
        copy_row_stats(0, first);
        clear_head<shape>(task, sum);
    }
}

/* ---- query tiles --------------------------------------------------------------------------------------------- */

/* State of one of the lane's two rows. */
typedef struct query_row {
    int query, start; /* query < start if there is no such token */
    float2 stats;
    const uint32_t *mask;
} query_row;

template <bool unmasked, int tiles>
__device__ __forceinline__ void finish_keys(pair_scale scale, const query_row (&row)[2], int first_key,
                                            const uint32_t (&keep)[2], float (&score)[tiles][4],
                                            float (&dscore)[tiles][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const query_row *mine = &row[i >> 1];
            int key = first_key + 8 * j + 2 * me.member + (i & 1);
            finish_pair(scale, unmasked || (key >= mine->start && key <= mine->query),
                        keep[i >> 1] >> (8 * j + (i & 1)) & 1, mine->stats, &score[j][i], &dscore[j][i]);
        }
    }
}

/* Processes the warp's queries and a unit of keys; unmasked: every query sees every key. */
template <typename shape>
__device__ __forceinline__ void process_keys(const attention_task *task, tile_address queries, const float *keys,
                                             int first_key, bool unmasked, const query_row (&row)[2],
                                             float (&sum)[shape::query_sums][2][4])
{
    int stride = shape::key_stride(task);
    uint2 loaded[2] = {};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            loaded[half] = attention_mask_load(task, row[half].mask, first_key - row[half].start);
    float score[inner_unit<shape>::tiles][4] = {}, dscore[inner_unit<shape>::tiles][4] = {};
    compute_pairs<shape, false>(task, queries, tile_b_address(keys, stride), stride, score, dscore);
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] =
                attention_mask_extract(loaded[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    pair_scale scale = pair_scale_of(task);
    if (unmasked)
        finish_keys<true>(scale, row, first_key, keep, score, dscore);
    else
        finish_keys<false>(scale, row, first_key, keep, score, dscore);
    attention_accumulate<shape>(sum, dscore, keys + shape::wide * shape::first_tile(task->query_tiles), stride, 0,
                                shape::tiles(shape::sums(shape::head(task) + shape::basis(task)), task->query_tiles));
}

template <typename shape>
__device__ __forceinline__ void query_tile(const attention_task *task, attention_probe probe, int tokens, int segments,
                                           float *memory, int first, int head)
{
    backward_layout parts = layout_of<shape>(task, false);
    constexpr int unit = inner_unit<shape>::rows;
    int tile = shape::first_tile(task->query_tiles);
    int tiles = shape::tiles(shape::sums(shape::head(task) + shape::basis(task)), task->query_tiles);
    if (first >= tokens || tiles <= 0)
        return;
    tile_lane me = tile_lane_now();
    int rows = shape::rows(task), inner_rows = inner_rows_of<shape>(task), buffers = buffers_of<shape>(task);
    int key_stride = shape::key_stride(task), stride = shape::gradient_stride(task);
    int end = min(first + rows, tokens), buffer = 0;
    auto copy_keys = [&](int to, int from) {
        attention_copy<shape>(task, task->keys, ATTENTION_KEYS, head,
                              memory + parts.inner + to * inner_rows * key_stride, key_stride, inner_rows, from,
                              end - from);
    };
    attention_copy<shape>(task, task->queries, ATTENTION_GRADIENTS, head, memory, stride, rows, first, end - first);
    attention_cursor cursor = attention_cursor_of(task->segment, segments, tokens, probe, first);
    copy_keys(0, cursor.begin);
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
                           task->row_stats[(int64_t)query * task->heads + head], attention_mask_row(task, query, head)};
        row[half] = begun;
    }
    tile_address queries = tile_a_address(memory + group_row * stride, stride);
    float sum[shape::query_sums][2][4] = {};
#pragma unroll 1
    for (int key = cursor.begin, next; key < end; key = next, buffer = buffers - 1 - buffer) {
        const float *keys = memory + parts.inner + buffer * inner_rows * key_stride;
        next = key + inner_rows;
        tile_cp_async_wait();
        __syncthreads();
        if (buffers == 2 && next < end)
            copy_keys(1 - buffer, next);
#pragma unroll 1
        for (int offset = 0; offset < inner_rows; offset += unit)
            if (key + offset + unit > low && key + offset < high)
                process_keys<shape>(task, queries, keys + offset * key_stride, key + offset,
                                    key + offset >= all_low && key + offset + unit - 1 <= all_high, row, sum);
        if (buffers == 1 && next < end) {
            __syncthreads();
            copy_keys(0, next);
        }
    }
    int64_t head_stride = (int64_t)task->heads * task->head_dim, basis_stride = (int64_t)task->heads * task->basis_dim,
            query = first + group_row;
    int present = end - (int)query, begin = shape::columns(shape::head(task));
    lp_cuda_copy dquery = attention_copy_at(task, task->copies[0], query, head, task->head_dim);
    lp_cuda_copy dtime_query = attention_copy_at(task, task->copies[3], query, head, task->basis_dim);
    if (task->dquery || dquery.data)
        attention_store<shape>(task->dquery ? task->dquery + query * head_stride + head * task->head_dim : NULL,
                               head_stride, dquery, present, task->head_dim, begin, tile, 0, tiles, 0,
                               task->vectorized & 1, task->accumulate & 1, memory + group_row * stride, stride, sum);
    if (task->dtime_query || dtime_query.data)
        attention_store<shape>(
            task->dtime_query ? task->dtime_query + query * basis_stride + head * task->basis_dim : NULL, basis_stride,
            dtime_query, present, task->basis_dim, shape::columns(shape::basis(task)), tile, 0, tiles, begin,
            task->vectorized & 8, task->accumulate & 8, memory + group_row * stride, stride, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape, int blocks>
__global__ void __launch_bounds__(2 * ATTENTION_ROWS, blocks)
    attention_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    /* Loads that do not depend on each other. */
    attention_probe probe = attention_probe_of(&task);
    int tokens = task.shard->rows[task.rows_of], segments = task.shard->segments;
    int divided = ATTENTION_ROWS / shape::rows(&task), work = task.order[(int)blockIdx.x / divided];
    int first = (work >> 1) * ATTENTION_ROWS + (int)blockIdx.x % divided * shape::rows(&task);
    if (work & 1)
        query_tile<shape>(&task, probe, tokens, segments, memory, first, (int)blockIdx.y);
    else if (!task.all_heads || blockIdx.y == 0)
        key_tile<shape>(&task, probe, tokens, segments, memory, first, (int)blockIdx.y,
                        task.all_heads ? task.heads : (int)blockIdx.y + 1);
}

/* dbasis = the sum of `heads` matrices, or += it. */
__global__ void __launch_bounds__(THREADS)
    sum_heads(const int32_t *tokens, const float *from, int64_t step, int heads, int cols, float *to, int accumulate)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= (int64_t)*tokens * cols)
        return;
    float sum = from[i];
    for (int head = 1; head < heads; head++)
        sum += from[head * step + i];
    lp_store(to + i, sum, accumulate);
}

template <typename shape, int blocks = 2> void launch(const lp_cuda_run *run, attention_task task)
{
    constexpr int inner = inner_unit<shape>::rows;
    static const attention_choice choices[] = {{64, 32, 2},    {64, inner, 2}, {64, inner, 1},
                                               {32, inner, 2}, {32, inner, 1}, {16, inner, 1}};
    int query_divisions = attention_divide(shape::sums(task.head + task.basis), shape::query_sums, &task.query_tiles);
    int key_divisions = attention_divide(key_tiles_of<shape>(&task), shape::key_sums, &task.key_tiles);
    attention_choose(&task, choices, size_of<shape>);
    int divided = ATTENTION_ROWS / shape::rows(&task);
    dim3 grid((unsigned)(divided * (int)lp_cuda_attention_order_tiles(run)), (unsigned)task.heads,
              (unsigned)(query_divisions > key_divisions ? query_divisions : key_divisions));
    LP_LAUNCH_PDL(run, (attention_backward<shape, blocks>), grid, (unsigned)shape::threads(&task),
                  (size_t)size_of<shape>(&task) * sizeof(float), task);
}

template <lp_precision precision> void launch_any(const lp_cuda_run *run, const attention_task *task)
{
    typedef attention_shape<precision, 12, 16> narrow;
    int keys = key_tiles_of<narrow>(task), queries = narrow::sums(task->head + task->basis);
    if (keys <= 8 && queries <= 6)
        launch<attention_shape<precision, 6, 8>, 3>(run, *task);
    else if (lp_blocks(queries, 18) + lp_blocks(keys, 20) < lp_blocks(queries, 12) + lp_blocks(keys, 16))
        launch<attention_shape<precision, 18, 20>>(run, *task); /* fewer blocks compute the scores again */
    else
        launch<narrow>(run, *task);
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

/* Launches the gradients of `outputs` in the set `chosen`. */
void launch_outputs(const lp_cuda_run *run, attention_task task, int64_t tokens, float *const (&outputs)[5], int chosen,
                    float *dbasis_of_heads)
{
    float **fields[] = {&task.dquery, &task.dkey, &task.dvalue, &task.dtime_query, &task.dbasis};
    for (int i = 0; i < 5; i++) {
        *fields[i] = chosen >> i & 1 ? outputs[i] : NULL;
        if (i < 4 && !(chosen >> i & 1))
            task.copies[i] = {};
        task.vectorized |= attention_aligned(outputs[i], i < 3 ? task.head_dim : task.basis_dim, 2) << i;
    }
    task.all_heads = !dbasis_of_heads && task.dbasis;
    if (dbasis_of_heads && task.dbasis) {
        task.dbasis = dbasis_of_heads;
        task.dbasis_step = tokens * task.basis_dim;
    }
    attention_with_shape(run, &task, [&](auto chosen) {
        typedef decltype(chosen) shape;
        if constexpr (shape::fixed)
            launch<shape, shape::bf16 && shape::key_sums <= 9 ? 3 : 2>(run, task);
        else
            launch_any<shape::precision>(run, &task);
    });
    if (task.dbasis_step)
        LP_LAUNCH(run, sum_heads, lp_blocks(tokens * task.basis_dim, THREADS), THREADS, 0,
                  &run->shard->rows[task.rows_of], dbasis_of_heads, task.dbasis_step, task.heads, task.basis_dim,
                  outputs[4], task.accumulate & 16);
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of(node, run);
    float *outputs[5];
    for (int i = 0; i < 5; i++) {
        outputs[i] = node->outputs[i] && lp_cuda_stores_floats(run, node->outputs[i]) ? LP_OUTPUT(i) : NULL;
        if (i < 4 && node->outputs[i])
            task.copies[i] = lp_cuda_copy_to(run, node->outputs[i], task.heads);
    }
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    task.order = lp_cuda_attention_order_of(run);
    task.lse = (float *)LP_INPUT(5);
    task.dlse = LP_INPUT(10);
    task.out = (float *)LP_INPUT(6);
    task.time_out = (float *)LP_INPUT(8);
    if (node->inputs[8])
        task.time_out_copy = lp_cuda_copy_from(run, node, 8);
    task.accumulate = (int)node->accumulate;
    task.queries[2] = attention_part_of(node, run, 9, true);
    task.queries[3] = attention_part_of(node, run, 7, true);
    task.aligned = attention_parts_aligned(&task);
    attention_mask_size(&task, run, tokens);
    task.mask = task.mask_stride ? (uint32_t *)lp_cuda_side_buffer(run, node->inputs[5], 0) : NULL;

    /* A block of keys takes all heads where the longest is a small part of the work (measured on an H200). Scratch, in
     * floats: row_stats, and dbasis of every head otherwise. */
    bool by_head =
        outputs[4] && task.heads > 1 && (int64_t)BALANCE * task.heads * run->run->plan->largest.longest > tokens;
    size_t row_stats = ((size_t)tokens * (size_t)task.heads * 2 + 63) / 64 * 64;
    size_t dbasis = by_head ? (size_t)tokens * (size_t)(task.heads * task.basis_dim) : 0;
    float *scratch = (float *)lp_cuda_scratch(run, (row_stats + dbasis) * sizeof(float));
    if (!scratch)
        return;
    task.row_stats = (float2 *)scratch;
    attention_delta(run, &task, tokens);
    lp_cuda_release_low_priority(run);
    /* Gradients into the same matrix are computed one after another. */
    bool alias = outputs_alias(outputs);
    for (int i = 0; i < (alias ? 5 : 1); i++)
        if (!alias || outputs[i])
            launch_outputs(run, task, tokens, outputs, alias ? 1 << i : 31, by_head ? scratch + row_stats : NULL);
}
