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
 * `prepare` computes delta and packs the gradients for bf16; attention_backward starts meanwhile by programmatic dependent launch and waits only before
 * it reads it. Grid: (2 * token tiles, heads, divisions of the columns); a block owns keys and iterates over queries,
 * or owns queries and iterates over keys, in the order of cuda_attention_order.h (longest first). Both recompute p =
 * exp(s - lse). That costs two more products than atomic adds to dquery, but no block waits for another. A warp
 * computes score and dp of its 16 rows and a unit of inner rows in one loop over the columns, and feeds probabilities and
 * dscores to the next mma from registers. With several heads, dbasis is stored for each head, and sum_heads adds them.
 */
#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { THREADS = 256 /* of prepare and sum_heads */ };

/* Inner rows that a warp processes at once, and `tiles` times 8 of them. An inner tile is a multiple of them, with fixed
 * widths of `inner` rows. */
template <typename shape> struct inner_unit {
    static constexpr int tiles = shape::bf16 ? 4 : 2, rows = 8 * tiles;
    static constexpr int inner = shape::fixed && shape::basis(NULL) == 0 ? 32 : rows;
};

/* ---- delta --------------------------------------------------------------------------------------------------- */

/* Part of the dot product of rows of out and dout that one of 8 threads computes. dout is rounded as in dp, so that the
 * dscores of a row, which sum to 0, leave less error. */
template <lp_precision precision> __device__ __forceinline__ float rounded(float x)
{
    return precision == LP_PRECISION_BF16   ? tile_round_bf16(x)
           : precision == LP_PRECISION_TF32 ? tile_truncate_tf32(x)
                                            : x;
}

/* `vector` numbers are read together, and 4 times that many loads are on their way at once. bf16: reads the copies of dout
 * and out, where they are not NULL; without one of dout also stores the packed row of it, `padded` floats. */
template <lp_precision precision, int vector>
__device__ __forceinline__ float dot_by(const float *dout, const uint16_t *copy, const float *out,
                                        const uint16_t *out_copy, int cols, float *packed, int padded)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    constexpr int each = bf16 ? 4 : vector, together = 4;
    int part = (int)threadIdx.x & 7, end = bf16 && !copy ? 2 * padded : cols;
    float sum = 0;
#pragma unroll 1
    for (int first = each * part; first < end; first += 8 * each * together) {
        float x[together][each] = {}, y[together][each] = {};
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int k = 0; k < each; k += vector) {
                int c = first + 8 * each * n + k;
                if (c >= cols)
                    continue;
                lp_vector<vector> both[2] = {
                    bf16 && copy ? lp_vector_load_bf16<vector>(copy + c) : lp_vector_load<vector>(dout + c),
                    bf16 && out_copy ? lp_vector_load_bf16<vector>(out_copy + c) : lp_vector_load<vector>(out + c)};
#pragma unroll
                for (int i = 0; i < vector; i++) {
                    x[n][k + i] = both[0].at[i];
                    y[n][k + i] = both[1].at[i];
                }
            }
#pragma unroll
        for (int n = 0; n < together; n++) {
#pragma unroll
            for (int k = 0; k < each; k++)
                sum += rounded<precision>(x[n][k]) * y[n][k];
            if constexpr (bf16) {
                int c = first + 8 * each * n;
                if (!copy && c < end)
                    *(float2 *)(packed + c / 2) =
                        make_float2(tile_pack_bf16(x[n][0], x[n][1]), tile_pack_bf16(x[n][2], x[n][3]));
            }
        }
    }
    return sum;
}

/* i: number of the token and head. packed: rows of dout in bf16, to be read or written. */
template <lp_precision precision>
__device__ __forceinline__ float dot(const attention_task &task, int64_t i, const float *dout, bool copied,
                                     const float *out, lp_cuda_copy out_copy, int cols, int vector,
                                     const attention_part &packed)
{
    dout += i * cols;
    out += i * cols;
    uint32_t token = (uint32_t)i / (uint32_t)task.heads, head = (uint32_t)i % (uint32_t)task.heads;
    int64_t at = (int64_t)token * packed.stride + head * packed.head_step;
    const uint16_t *copy = copied ? (const uint16_t *)(packed.from + at) : NULL;
    float *to = (float *)packed.from + at;
    const uint16_t *second = attention_copy_at(out_copy, token, (int)head * cols).data;
    return vector == 4   ? dot_by<precision, 4>(dout, copy, out, second, cols, to, packed.cols)
           : vector == 2 ? dot_by<precision, 2>(dout, copy, out, second, cols, to, packed.cols)
                         : dot_by<precision, 1>(dout, copy, out, second, cols, to, packed.cols);
}

/* 8 threads for each token and head. In bf16 the gradients are those of queries[2] and [3], which have copies or get them. */
template <lp_precision precision>
__global__ void __launch_bounds__(THREADS, 4)
    prepare(const __grid_constant__ attention_task task, int vector, int time_vector, bool copied, bool time_copied)
{
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3;
    bool valid = i < (int64_t)task.shard->rows[task.rows_of] * task.heads;
    float sum = 0;
    if (valid) {
        sum = dot<precision>(task, i, task.dout, copied, task.out, {}, task.head_dim, vector, task.queries[3]);
        if (task.basis_dim)
            sum += dot<precision>(task, i, task.dtime_out, time_copied, task.time_out, task.time_out_copy, task.basis_dim,
                                  time_vector, task.queries[2]);
    }
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, (sum - (task.dlse ? task.dlse[i] : 0)) * task.scale);
}

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

/* Adds scores and dp of 16 outer rows and a unit of inner rows; second: first floats of dp's operands. */
template <typename shape, int tiles>
__device__ __forceinline__ void compute_pairs(const attention_task *task, tile_address left, int left_second,
                                              tile_address right, int stride, int right_second,
                                              float (&score)[tiles][4], float (&dscore)[tiles][4])
{
    int steps = shape::head(task) + shape::basis(task);
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < steps; k++) {
        float first[4], second[4];
        tile_ldmatrix(first, left, 8 * k);
        tile_ldmatrix(second, left, left_second + 8 * k);
        attention_multiply<shape::precision>(score, first, right, stride, 8 * k);
        attention_multiply<shape::precision>(dscore, second, right, stride, right_second + 8 * k);
    }
}

/* Factors that all pairs share. */
typedef struct pair_scale {
    float score, dropout, dscore; /* scale * log2 e; dropout scale; dropout scale * scale */
} pair_scale;

__device__ static inline pair_scale pair_scale_of(const attention_task *task)
{
    pair_scale scale = {task->scale * TILE_LOG2_E, task->dropout_scale, task->dropout_scale * task->scale};
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
    compute_pairs<shape>(task, keys, shape::first(task, 1), tile_b_address(queries, stride), stride,
                         shape::first(task, 2), score, dscore);
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
__device__ __forceinline__ void store_keys(const attention_task *task, int head, int64_t key, int present,
                                           float (&sum)[shape::key_sums][2][4])
{
    int64_t stride = (int64_t)task->heads * task->head_dim, at = key * stride + head * task->head_dim;
    int tile = shape::first_tile(task->key_tiles), tiles = shape::tiles(key_tiles_of<shape>(task), task->key_tiles);
    int head_sums = shape::sums(shape::head(task)), rest = max(head_sums - tile, 0), cols = task->head_dim;
    int begin = 16 * head_sums, padded = shape::columns(shape::head(task)), basis = shape::columns(shape::basis(task));
    lp_cuda_copy dkey = attention_copy_at(task->copies[1], key, head * cols);
    lp_cuda_copy dvalue = attention_copy_at(task->copies[2], key, head * cols);
    if (task->dkey || dkey.data)
        attention_store<shape>(task->dkey ? task->dkey + at : NULL, stride, dkey, present, cols, padded, tile, 0, min(rest, tiles), 0,
                               task->vectorized & 2, task->accumulate & 2, sum);
    if (task->dbasis)
        attention_store<shape>(task->dbasis + head * task->dbasis_step + key * task->basis_dim, task->basis_dim, {},
                               present, task->basis_dim, basis, tile, rest, tiles, begin, task->vectorized & 16,
                               task->dbasis_step ? 0 : task->accumulate & 16, sum);
    if (task->dvalue || dvalue.data)
        attention_store<shape>(task->dvalue ? task->dvalue + at : NULL, stride, dvalue, present, cols, padded, tile, rest, tiles, begin + basis,
                               task->vectorized & 4, task->accumulate & 4, sum);
}

template <typename shape>
__device__ __forceinline__ void key_tile(const attention_task *task, float *memory, int first, int head)
{
    attention_probe probe = attention_probe_of(task);
    backward_layout parts = layout_of<shape>(task, true);
    constexpr int unit = inner_unit<shape>::rows;
    int tokens = task->shard->rows[task->rows_of], segments = task->shard->segments;
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
    attention_copy<shape>(task, task->keys, ATTENTION_KEYS, head, memory, key_stride, rows, first, tokens - first);
    if (shape::bf16)
        lp_pdl_wait(); /* `prepare` packs the gradients */
    copy_queries(0, first);
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
                process_queries<shape>(task, mine, keys, queries + offset * stride, row_stats + offset, start, first,
                                       query + offset, head, sum);
        if (buffers == 1 && next < query_end) {
            __syncthreads();
            copy_queries(0, next);
            copy_row_stats(0, next);
        }
    }
    store_keys<shape>(task, head, first + mine.group_row, tokens - first - mine.group_row, sum);
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
    compute_pairs<shape>(task, queries, shape::first(task, 2), tile_b_address(keys, stride), stride,
                         shape::first(task, 1), score, dscore);
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
__device__ __forceinline__ void query_tile(const attention_task *task, float *memory, int first, int head)
{
    attention_probe probe = attention_probe_of(task);
    backward_layout parts = layout_of<shape>(task, false);
    constexpr int unit = inner_unit<shape>::rows;
    int tokens = task->shard->rows[task->rows_of], segments = task->shard->segments;
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
    if (shape::bf16)
        lp_pdl_wait();
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
    lp_cuda_copy dquery = attention_copy_at(task->copies[0], query, head * task->head_dim);
    lp_cuda_copy dtime_query = attention_copy_at(task->copies[3], query, head * task->basis_dim);
    if (task->dquery || dquery.data)
        attention_store<shape>(task->dquery ? task->dquery + query * head_stride + head * task->head_dim : NULL,
                               head_stride, dquery, present,
                               task->head_dim, begin, tile, 0, tiles, 0, task->vectorized & 1, task->accumulate & 1,
                               sum);
    if (task->dtime_query || dtime_query.data)
        attention_store<shape>(task->dtime_query ? task->dtime_query + query * basis_stride + head * task->basis_dim
                                                 : NULL,
                               basis_stride, dtime_query, present,
                               task->basis_dim, shape::columns(shape::basis(task)), tile, 0, tiles, begin,
                               task->vectorized & 8, task->accumulate & 8, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape, int blocks>
__global__ void __launch_bounds__(2 * ATTENTION_ROWS, blocks)
    attention_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    int divided = ATTENTION_ROWS / shape::rows(&task), work = task.order[(int)blockIdx.x / divided];
    int first = (work >> 1) * ATTENTION_ROWS + (int)blockIdx.x % divided * shape::rows(&task);
    if (work & 1)
        query_tile<shape>(&task, memory, first, (int)blockIdx.y);
    else
        key_tile<shape>(&task, memory, first, (int)blockIdx.y);
}

/* dbasis = the sum of `heads` matrices, or += it. */
__global__ void __launch_bounds__(THREADS) sum_heads(const int32_t *tokens, const float *from, int64_t step,
                                                     int heads, int cols, float *to, int accumulate)
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
    else if ((keys > 16 && keys <= 20) || (queries > 12 && queries <= 16))
        launch<attention_shape<precision, 16, 20>>(run, *task);
    else
        launch<narrow>(run, *task);
}

template <lp_precision precision>
void launch_prepare(const lp_cuda_run *run, attention_task task, int64_t tokens, bool copied, bool time_copied)
{
    auto vector_of = [](const float *x, const float *y, int cols) {
        int vector = 4;
        while (!attention_aligned(x, cols, vector) || !attention_aligned(y, cols, vector))
            vector /= 2;
        return vector;
    };
    LP_LAUNCH(run, (prepare<precision>), lp_blocks(tokens * task.heads, THREADS / 8), THREADS, 0, task,
              vector_of(task.dout, task.out, task.head_dim), vector_of(task.dtime_out, task.time_out, task.basis_dim),
              copied, time_copied);
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
    if (dbasis_of_heads && task.dbasis) {
        task.dbasis = dbasis_of_heads;
        task.dbasis_step = tokens * task.basis_dim;
    }
    attention_with_shape(run, &task, [&](auto chosen) {
        typedef decltype(chosen) shape;
        if constexpr (shape::fixed)
            launch<shape>(run, task);
        else
            launch_any<shape::precision>(run, &task);
    });
    if (task.dbasis_step)
        LP_LAUNCH(run, sum_heads, lp_blocks(tokens * task.basis_dim, THREADS), THREADS, 0,
                  &run->shard->rows[task.rows_of], dbasis_of_heads, task.dbasis_step, task.heads, task.basis_dim, outputs[4], task.accumulate & 16);
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of(node, run);
    float *outputs[5];
    for (int i = 0; i < 5; i++) {
        outputs[i] = node->outputs[i] && lp_cuda_stores_floats(run, node->outputs[i]) ? LP_OUTPUT(i) : NULL;
        if (i < 4 && node->outputs[i])
            task.copies[i] = lp_cuda_copy_to(run, node->outputs[i]);
    }
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    task.order = lp_cuda_attention_order_of(run);
    task.lse = (float *)LP_INPUT(5);
    task.dlse = LP_INPUT(10);
    task.out = (float *)LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = (float *)LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    if (node->inputs[8])
        task.time_out_copy = lp_cuda_copy_from(run, node, 8);
    task.accumulate = (int)node->accumulate;
    task.queries[2] = attention_part_of(task.dtime_out, task.basis_dim, task.heads, true);
    task.queries[3] = attention_part_of(task.dout, task.head_dim, task.heads, true);
    task.aligned = attention_parts_aligned(&task);
    attention_mask_size(&task, run, tokens);
    task.mask = task.mask_stride ? (uint32_t *)lp_cuda_side_buffer(run, node->inputs[5], 0) : NULL;

    /* Scratch, in floats: row_stats, dbasis of every head, and in bf16 gradients that have no copies. */
    bool by_head = outputs[4] && task.heads > 1;
    size_t row_stats = ((size_t)tokens * (size_t)task.heads * 2 + 63) / 64 * 64;
    size_t dbasis = by_head ? ((size_t)tokens * (size_t)(task.heads * task.basis_dim) + 63) / 64 * 64 : 0;
    lp_copy_list inputs = {}, gradients = {}; /* both are made by other kernels */
    auto copy_gradients = [&](float *to) {
        size_t used = 0;
        attention_copy_input(node, run, 9, &task, &task.queries[2], &gradients, to, &used);
        attention_copy_input(node, run, 7, &task, &task.queries[3], &gradients, to, &used);
        return used;
    };
    size_t packed = tile_bf16(run) ? copy_gradients(NULL) : 0;
    float *scratch = (float *)lp_cuda_scratch(run, (row_stats + dbasis + packed) * sizeof(float));
    if (!scratch)
        return;
    task.row_stats = (float2 *)scratch;
    if (tile_bf16(run)) {
        attention_copy_inputs(node, run, &task, &inputs, (float *)lp_cuda_side_buffer(run, node->inputs[6], 0));
        copy_gradients(scratch + row_stats + dbasis);
        launch_prepare<LP_PRECISION_BF16>(run, task, tokens, lp_cuda_copy_from(run, node, 7).data != NULL,
                                          node->inputs[9] && lp_cuda_copy_from(run, node, 9).data != NULL);
    } else if (tile_tensor(run)) {
        launch_prepare<LP_PRECISION_TF32>(run, task, tokens, false, false);
    } else {
        launch_prepare<LP_PRECISION_FP32>(run, task, tokens, false, false);
    }
    lp_cuda_release_low_priority(run);
    /* Gradients into the same matrix are computed one after another. */
    bool alias = outputs_alias(outputs);
    for (int i = 0; i < (alias ? 5 : 1); i++)
        if (!alias || outputs[i])
            launch_outputs(run, task, tokens, outputs, alias ? 1 << i : 31, by_head ? scratch + row_stats : NULL);
}
