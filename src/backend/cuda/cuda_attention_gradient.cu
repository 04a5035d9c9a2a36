/* cuda_attention_gradient.cu: gradient of causal attention; no score matrix and no atomics, so results are
 * deterministic.
 *
 * With p the probabilities, f the dropout factor, and delta_q = dout_q . out_q + dtime_out_q . time_out_q:
 *
 *     dp(q, i) = dout_q . value_i + dtime_out_q . basis_i
 *     ds(q, i) = p (f dp - delta_q)
 *
 *     dquery_q = scale sum_i ds key_i        dtime_query_q = scale sum_i ds basis_i
 *     dkey_i = scale sum_q ds query_q        dvalue_i = sum_q f p dout_q
 *     dbasis_i = scale sum_q ds time_query_q + sum_q f p dtime_out_q, over all heads
 *
 * compute_delta computes delta; attention_backward starts meanwhile by programmatic dependent launch and waits only
 * before it reads it. Grid: (2 * token tiles, heads, divisions of the columns); a block owns keys and iterates over
 * queries, or owns queries and iterates over keys, in the order of cuda_attention_order.h (longest first). Both
 * recompute p = exp(s - lse). That costs two more products than atomic adds to dquery, but no block waits for another.
 * A warp computes score and dp of its 16 rows and a unit of inner rows in one loop over the columns, and feeds
 * probabilities and dscores to the next mma from registers. Where dbasis is wanted, a block of keys takes all heads one
 * after another and keeps its sums.
 */
#include "backend/cuda/cuda_attention.h"

namespace
{

enum { THREADS = 256 /* of compute_delta */ };

/* ---- delta --------------------------------------------------------------------------------------------------- */

/* Loads 8 numbers from column c on, `vector` together, of a row of `cols`, or of its copy in bf16 if that is not NULL. Addresses stay in
 * the row instead of a condition, which would wait for the load; numbers beyond it are undefined, but zeros in a copy that is loaded by 8. */
template <int vector>
__device__ __forceinline__ void load_eight(float (&x)[8], const float *from, const uint16_t *copy, int c, int cols)
{
#pragma unroll
    for (int k = 0; k < 8; k += vector) {
        int at = vector == 8 ? min(c, (cols - 1) / 8 * 8) : min(c + k, cols - vector);
        lp_vector<vector> some;
        if (vector == 8 || copy)
            some = lp_vector_load_bf16<vector>(copy + at);
        else
            some = lp_vector_load<vector>(from + at);
#pragma unroll
        for (int i = 0; i < vector; i++)
            x[k + i] = some.at[i];
    }
}

/* Part of the dot product of rows of dout and out, or its copy, that one of 8 threads computes. bf16: dout is a copy with zeros behind its
 * columns. vector: numbers of out that are loaded at once, and of dout in other precisions. together: groups of columns whose
 * loads are under way at once. tf32: dout is truncated as in dp, so that the dscores of a row, which sum to 0, leave less error. */
template <lp_precision precision, int together, int vector>
__device__ __forceinline__ float dot(const attention_part &part, int token, int head, const float *out,
                                     const uint16_t *copy, int cols)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    const float *dout = part.from + (int64_t)token * part.stride + head * part.head_step;
    float sum = 0;
#pragma unroll 1
    for (int first = 8 * ((int)threadIdx.x & 7); first < cols; first += 64 * together) {
        float x[together][8], y[together][8];
#pragma unroll
        for (int n = 0; n < together; n++) {
            load_eight<bf16 ? 8 : vector>(x[n], dout, bf16 ? (const uint16_t *)dout : NULL, first + 64 * n, cols);
            load_eight<vector>(y[n], out, copy, first + 64 * n, cols);
        }
#pragma unroll
        for (int k = 0; k < 8 * together; k++) {
            float dx = precision == LP_PRECISION_TF32 ? tile_truncate_tf32(x[k / 8][k % 8]) : x[k / 8][k % 8];
            sum += first + 64 * (k / 8) + (bf16 ? 0 : k % 8) < cols ? dx * y[k / 8][k % 8] : 0;
        }
    }
    return sum;
}

/* 8 threads for each token and head. vector, time_vector: of out and of time_out. */
template <lp_precision precision, int vector, int time_vector>
__global__ void __launch_bounds__(THREADS, 5) compute_delta(const __grid_constant__ attention_task task)
{
    lp_pdl_trigger();
    int i = (int)((blockIdx.x * THREADS + threadIdx.x) / 8), token = i / task.heads, head = i % task.heads;
    bool valid = token < task.shard->rows[task.rows_of];
    float sum = 0;
    if (valid)
        sum = dot<precision, 1, vector>(task.queries[3], token, head, task.out + (int64_t)i * task.head_dim, NULL,
                                        task.head_dim) +
              dot<precision, 2, time_vector>(task.queries[2], token, head, task.time_out + (int64_t)i * task.basis_dim,
                                             attention_copy_at(task.time_out_copy, token, head, task.basis_dim),
                                             task.basis_dim);
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, sum);
}

/* ---- pairs of a query and a key ------------------------------------------------------------------------------ */

/* Adds scores and dp of 16 outer rows and a unit of inner rows. keys: the outer rows are keys. The keys' basis is an
 * operand of both, and loaded once. */
template <typename shape, bool keys, int tiles>
__device__ __forceinline__ void compute_pairs(const attention_task *task, tile_address outer, tile_address inner,
                                              int stride, float (&score)[tiles][4], float (&dscore)[tiles][4])
{
    constexpr lp_precision precision = shape::precision;
    attention_size size = shape::size(task);
    int basis = size.first(1), time_gradient = size.first(2), gradient = size.first(3);
    float left[4], second[4];
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < size.head; k++) {
        tile_ldmatrix(left, outer, 8 * k);
        attention_multiply<precision>(inner, stride, 8 * k, score, left);
        tile_ldmatrix(second, outer, (keys ? time_gradient : gradient) + 8 * k);
        attention_multiply<precision>(inner, stride, (keys ? gradient : time_gradient) + 8 * k, dscore, second);
    }
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < size.basis; k++) {
        tile_ldmatrix(left, outer, basis + 8 * k);
        if constexpr (keys) {
            attention_multiply<precision>(inner, stride, basis + 8 * k, score, left);
            attention_multiply<precision>(inner, stride, time_gradient + 8 * k, dscore, left);
        } else {
            tile_ldmatrix(second, outer, time_gradient + 8 * k);
            attention_multiply<precision>(inner, stride, basis + 8 * k, score, left, dscore, second);
        }
    }
}

/* In: score and dp of a pair. Out: score = f p, dscore = scale * ds. */
__device__ __forceinline__ void finish_pair(const attention_task *task, bool visible, bool keep, float2 stats,
                                            float *score, float *dscore)
{
    float p = tile_exp2(*score * (task->scale * TILE_LOG2_E) - stats.x), factor = keep ? task->dropout_scale : 0;
    float ds = p * task->scale * (*dscore * factor - stats.y);
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
__device__ __forceinline__ void finish_queries(const attention_task *task, key_warp mine, int first_query,
                                               uint32_t word, const float2 *row_stats, float (&score)[tiles][4],
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
                finish_pair(task, unmasked || (query >= mine.key + 8 * half && query < mine.end[half]),
                            keep >> (8 * half) & 1, stats, &score[j][2 * half + i], &dscore[j][2 * half + i]);
        }
    }
}

/* The accumulators of a key tile: tiles of dkey, then of dbasis and dvalue together. */
template <typename shape> __host__ __device__ int key_tiles_of(const attention_size &size)
{
    return shape::sums(size.head) + shape::sums(size.head + size.basis);
}

/* Processes the warp's keys and a unit of queries with their row_stats. start: of the segments of the tile's rows, from token
 * `origin` on. */
template <typename shape>
__device__ __forceinline__ void process_queries(const attention_task *task, key_warp mine, tile_address keys,
                                                const float *queries, const float2 *row_stats, const int *start,
                                                int origin, int first_query, int head,
                                                float (&sum)[shape::key_sums][2][4])
{
    attention_size size = shape::size(task);
    /* Lane i loads the mask of query i of the unit for the warp's keys. */
    int query = min(first_query + (tile_lane_now().lane & (shape::inner_rows - 1)), mine.high - 1);
    int from = origin + mine.group_row - start[min(query - origin, size.rows - 1)], stride = size.gradient_stride;
    uint2 loaded = attention_mask_load(task, attention_mask_row(task, query, head), from);
    float score[shape::tiles][4] = {}, dscore[shape::tiles][4] = {};
    compute_pairs<shape, true>(task, keys, tile_b_address(queries, stride), stride, score, dscore);
    uint32_t word = tile_funnel_shift(loaded.x, loaded.y, from);
    if (first_query >= origin + mine.group_row + 15 && first_query + shape::inner_rows <= mine.all_end)
        finish_queries<true>(task, mine, first_query, word, row_stats, score, dscore);
    else
        finish_queries<false>(task, mine, first_query, word, row_stats, score, dscore);

    /* Accumulator m is tile tile + m: of dkey before `rest`, of dbasis and dvalue from there on. */
    int tile = shape::first_tile(shape::key_sums);
    int tiles = shape::block_tiles(key_tiles_of<shape>(size), shape::key_sums);
    int rest = shape::sums(size.head) - tile, basis = rest + shape::sums(size.basis);
    attention_accumulate<shape>(sum, dscore, queries + shape::wide * tile, stride, 0, min(rest, tiles));
    attention_accumulate<shape>(sum, dscore, queries + size.first(1) - shape::wide * rest, stride, rest,
                                min(basis, tiles), size.basis % 2 ? basis - 1 : -1);
    attention_accumulate<shape>(sum, score, queries + size.first(2) - shape::wide * rest, stride, rest, tiles);
}

/* Stores dkey and dvalue of a head and clears their sums; stores dbasis if the head is the last. */
template <typename shape>
__device__ __forceinline__ void store_keys(const attention_task *task, const attention_rows &rows, bool last,
                                           float (&sum)[shape::key_sums][2][4])
{
    attention_size size = shape::size(task);
    int head_sums = shape::sums(size.head), basis = shape::columns(size.basis);
    attention_store<shape, true>(task->results[1], rows, size.head, 0, sum);
    if (last)
        attention_store<shape, false>(task->results[4], {0, rows.token, rows.present, rows.stage, rows.stride},
                                      size.basis, 16 * head_sums, sum);
    attention_store<shape, true>(task->results[2], rows, size.head, 16 * head_sums + basis, sum);
#pragma unroll
    for (int m = 0; m < shape::key_sums; m++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int group = tile_lane_now().group, tile = m + shape::first_tile(shape::key_sums) - head_sums;
            int col = 16 * tile + (shape::bf16 ? group + 8 * (i % 4 / 2) : 2 * group);
            sum[m][i / 4][i % 4] = col >= 0 && col < basis ? sum[m][i / 4][i % 4] : 0;
        }
}

template <typename shape>
__device__ __forceinline__ void key_tile(const attention_task *task, int tokens, float *memory, int first, int head,
                                         int heads)
{
    attention_size size = shape::size(task);
    if (first >= tokens || shape::block_tiles(key_tiles_of<shape>(size), shape::key_sums) <= 0)
        return;
    constexpr int inner = shape::inner_rows;
    tile_lane me = tile_lane_now();
    int rows = size.rows, key_stride = size.key_stride, stride = size.gradient_stride;
    float *all_queries = memory + rows * key_stride;
    int *start = (int *)(all_queries + size.buffers * inner * stride + 64);
    float2 *all_stats = (float2 *)(start + rows);
    int last = min(first + rows, tokens) - 1, query_end = tokens;
    auto copy_queries = [&](int buffer, int from) {
        attention_copy<shape>(task, task->queries, head, all_queries + buffer * inner * stride, stride, inner, from,
                              query_end - from);
    };
    auto copy_row_stats = [&](int buffer, int from) {
        int r = (int)threadIdx.x;
        const float2 *stats = task->row_stats + (int64_t)min(from + r, query_end - 1) * task->heads + head;
        if (r < inner)
            tile_cp_async<2>((float *)(all_stats + buffer * inner + r), (const float *)stats);
    };
    auto copy_first = [&] {
        attention_copy<shape>(task, task->keys, head, memory, key_stride, rows, first, tokens - first);
        copy_queries(0, first);
    };
    copy_first();
    auto end_of = [&](int token) { return token <= last ? task->bounds.end[token] : 0; };
    int r = (int)threadIdx.x & (rows - 1), own = first + 16 * me.warp, key = own + me.group;
    start[r] = task->bounds.start[min(first + r, last)];
    key_warp mine = {own - first,
                     key,
                     {end_of(key), end_of(key + 8)},
                     end_of(min(own + 15, last)),
                     own + 15 <= last ? end_of(own) : 0};
    query_end = end_of(last);
    lp_pdl_wait();
    copy_row_stats(0, first);
    tile_address keys = tile_a_address(memory + mine.group_row * key_stride, key_stride);
    float sum[shape::key_sums][2][4] = {};
#pragma unroll 1
    for (;;) {
        auto copy_both = [&](int buffer, int from) {
            copy_queries(buffer, from);
            copy_row_stats(buffer, from);
        };
        attention_each_tile<shape>(size.buffers, first, query_end, copy_both, [&](int buffer, int query) {
            if (query + inner > first + mine.group_row && query < mine.high)
                process_queries<shape>(task, mine, keys, all_queries + buffer * inner * stride,
                                       all_stats + buffer * inner, start, first, query, head, sum);
        });
        attention_rows results = {head, own, tokens - own, memory + mine.group_row * key_stride, key_stride};
        store_keys<shape>(task, results, head + 1 == heads, sum);
        if (++head == heads)
            return;
        __syncthreads();
        copy_first();
        copy_row_stats(0, first);
    }
}

/* ---- query tiles --------------------------------------------------------------------------------------------- */

template <bool unmasked, int tiles>
__device__ __forceinline__ void finish_keys(const attention_task *task, const attention_queries &mine,
                                            const float2 (&stats)[2], int first_key, const uint32_t (&keep)[2],
                                            float (&score)[tiles][4], float (&dscore)[tiles][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int half = i >> 1, key = first_key + 8 * j + 2 * me.member + (i & 1);
            finish_pair(task, unmasked || (key >= mine.start[half] && key <= mine.query[half]),
                        keep[half] >> (8 * j + (i & 1)) & 1, stats[half], &score[j][i], &dscore[j][i]);
        }
    }
}

/* Processes the warp's queries and a unit of keys. */
template <typename shape>
__device__ __forceinline__ void process_keys(const attention_task *task, tile_address queries, const float *keys,
                                             int first_key, const attention_queries &mine, const float2 (&stats)[2],
                                             float (&sum)[shape::query_sums][2][4])
{
    attention_size size = shape::size(task);
    int stride = size.key_stride;
    uint2 loaded[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        loaded[half] = attention_mask_load(task, mine.mask[half], first_key - mine.start[half]);
    float score[shape::tiles][4] = {}, dscore[shape::tiles][4] = {};
    compute_pairs<shape, false>(task, queries, tile_b_address(keys, stride), stride, score, dscore);
    uint32_t keep[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        keep[half] = tile_funnel_shift(loaded[half].x, loaded[half].y, first_key - mine.start[half]) >>
                     (2 * tile_lane_now().member);
    if (first_key >= mine.all_low && first_key + shape::inner_rows - 1 <= mine.all_high)
        finish_keys<true>(task, mine, stats, first_key, keep, score, dscore);
    else
        finish_keys<false>(task, mine, stats, first_key, keep, score, dscore);
    attention_accumulate<shape>(sum, dscore, keys + shape::wide * shape::first_tile(shape::query_sums), stride, 0,
                                shape::block_tiles(shape::sums(size.head + size.basis), shape::query_sums));
}

template <typename shape>
__device__ __forceinline__ void query_tile(const attention_task *task, int tokens, float *memory, int first, int head)
{
    constexpr int inner = shape::inner_rows;
    attention_size size = shape::size(task);
    if (first >= tokens || shape::block_tiles(shape::sums(size.head + size.basis), shape::query_sums) <= 0)
        return;
    int rows = size.rows, key_stride = size.key_stride, stride = size.gradient_stride, end = min(first + rows, tokens);
    float *all_keys = memory + rows * stride;
    auto copy_keys = [&](int buffer, int from) {
        attention_copy<shape>(task, task->keys, head, all_keys + buffer * inner * key_stride, key_stride, inner, from,
                              end - from);
    };
    attention_copy<shape>(task, task->queries, head, memory, stride, rows, first, end - first);
    int begin = task->bounds.start[first];
    copy_keys(0, begin);
    attention_queries mine = attention_queries_of(task, head, first, end);
    float *own = memory + (mine.first - first) * stride;
    lp_pdl_wait();
    float2 stats[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        stats[half] = task->row_stats[(int64_t)max(mine.query[half], 0) * task->heads + head];
    tile_address queries = tile_a_address(own, stride);
    float sum[shape::query_sums][2][4] = {};
    attention_each_tile<shape>(size.buffers, begin, end, copy_keys, [&](int buffer, int key) {
        if (key + inner > mine.low && key <= mine.high)
            process_keys<shape>(task, queries, all_keys + buffer * inner * key_stride, key, mine, stats, sum);
    });
    attention_rows results = {head, mine.first, end - mine.first, own, stride};
    attention_store<shape, true>(task->results[0], results, size.head, 0, sum);
    attention_store<shape, true>(task->results[3], results, size.basis, shape::columns(size.head), sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape, int blocks>
__global__ void __launch_bounds__(2 * ATTENTION_ROWS, blocks)
    attention_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    int tokens = task.shard->rows[task.rows_of];
    int rows = shape::size(&task).rows, divided = ATTENTION_ROWS / rows,
        work = task.bounds.order[(int)blockIdx.x / divided];
    int first = (work >> 1) * ATTENTION_ROWS + (int)blockIdx.x % divided * rows, head = (int)blockIdx.y;
    bool all_heads = task.results[4].to;
    if (work & 1)
        query_tile<shape>(&task, tokens, memory, first, head);
    else if (!all_heads || head == 0)
        key_tile<shape>(&task, tokens, memory, first, head, all_heads ? task.heads : head + 1);
}

template <typename shape> void launch(const lp_cuda_run *run, const attention_task &task)
{
    constexpr int blocks = shape::fixed && shape::bf16 && shape::key_sums <= 9 ? 3 : 2; /* that have registers */
    attention_size size = shape::size(&task);
    unsigned queries = lp_blocks(shape::sums(task.size.head + task.size.basis), shape::query_sums);
    unsigned keys = lp_blocks(key_tiles_of<shape>(task.size), shape::key_sums);
    unsigned tiles = lp_cuda_attention_order_tiles(run->run->plan->largest.rows[LP_ROWS_TOKENS]);
    dim3 grid(tiles * (unsigned)(ATTENTION_ROWS / size.rows), (unsigned)task.heads, queries > keys ? queries : keys);
    LP_LAUNCH_PDL(run, (attention_backward<shape, blocks>), grid, 2 * (unsigned)size.rows,
                  (size_t)attention_floats(size, shape::inner_rows, true) * sizeof(float), task);
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of(node, run, true);
    for (int i = 0; i < 5; i++)
        task.results[i] = attention_result_of(node, run, i, i < 4 ? task.heads : 1);
    int tokens = lp_cuda_largest(run, node->inputs[0]);
    task.lse = (float *)LP_INPUT(5);
    task.out = LP_INPUT(6);
    task.time_out = LP_INPUT(8);
    task.time_out_copy = lp_cuda_copy_from(run, node, 8);
    task.mask = task.mask_stride ? (uint32_t *)lp_cuda_side_buffer(run, node->inputs[5], 0) : NULL;
    bool alias = false; /* two results are the same matrix, for example if the query is also the key */
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            alias = alias || (task.results[i].to && task.results[i].to == task.results[k].to);
    task.row_stats = (float2 *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.heads * sizeof(float2));
    if (!task.row_stats)
        return;
    attention_with_shape<true>(run, &task, [&](auto shape) {
        constexpr lp_precision precision = decltype(shape)::precision;
        constexpr int vector = precision == LP_PRECISION_BF16 ? 4 : 2, time_vector = 2 * vector;
        const lp_cuda_copy &copy = task.time_out_copy;
        bool aligned = task.head_dim % vector == 0 && (task.basis_dim + copy.gap) % time_vector == 0 &&
                       (copy.data || time_vector == 4 || !task.basis_dim);
        auto delta = aligned ? compute_delta<precision, vector, time_vector> : compute_delta<precision, 1, 1>;
        LP_LAUNCH(run, delta, lp_blocks((int64_t)tokens * task.heads, THREADS / 8), THREADS, 0, task);
        /* Gradients into the same matrix are computed one after another. */
        for (int i = 0; i < (alias ? 5 : 1); i++) {
            attention_task part = task;
            for (int k = 0; alias && k < 5; k++)
                part.results[k] = k == i ? task.results[k] : attention_result();
            launch<decltype(shape)>(run, part);
        }
    });
}
