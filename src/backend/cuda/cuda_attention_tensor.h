/* cuda_attention_tensor.h: attention on tensor cores for heads whose accumulators fit in the registers of a warp.
 *
 * Layout: a warp owns 16 rows and all their columns, so scores and probabilities stay in its registers, and warps
 * synchronize only when a tile is staged to shared memory. Widths are compile-time constants (head_tiles and
 * basis_tiles of 8 columns; narrower heads are padded with zeros), so that products unroll to straight-line ldmatrix
 * and mma: latency between them, not their number, bounds these kernels. Wider heads and fp32 use cuda_attention.cu.
 *
 * Dropout bits are drawn before the products, one for each pair, 32 keys of the query's segment in a word: by the
 * block while its first tile is copied, or for long segments by a kernel of its own. Attention saves them for its
 * gradient next to lse.
 *
 * Tokens are not rounded to tf32: tensor cores truncate, with an error of half a unit on average, which rounding would
 * avoid at the cost of a pass over shared memory. Probabilities and dscores are rounded.
 */
#ifndef LP_CUDA_ATTENTION_TENSOR_H
#define LP_CUDA_ATTENTION_TENSOR_H

#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_attention_order.h"

/* Source matrix of some columns of a token, staged to shared memory. */
typedef struct attention_part {
    const float *from;
    int stride, head_step; /* in floats: from token to token, from head to head */
    int cols, cols_padded; /* without and with padding */
    int first;             /* first column in the token's row of shared memory */
    int vector;            /* floats per copy; 1: a thread copies two, separately */
} attention_part;

/* Rows in global or shared memory. */
typedef struct attention_rows {
    const float *data;
    int stride;
} attention_rows;

/* Number of parts of a token, in the order of its row. */
enum { ATTENTION_KEYS = 3, ATTENTION_QUERIES = 2, ATTENTION_GRADIENTS = 4 };

typedef struct attention_task {
    attention_config config;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int max_segments; /* upper bound over all shards */
    const float *query, *key, *value, *time_query, *basis;
    const float *dout, *dtime_out;
    const float *dlse;                           /* [T x H]; NULL: the log-sum-exp has no gradient */
    attention_part keys[ATTENTION_KEYS];         /* key | basis | value */
    attention_part queries[ATTENTION_GRADIENTS]; /* query | time query | d time out | d out */
    float *out, *lse, *time_out;                 /* attention writes them, its gradient reads them */
    float2 *row_stats;    /* [T x H]: lse log2 e, and delta (cuda_attention_gradient.cu) times scale */
    const int32_t *order; /* tile order of the gradient's blocks: cuda_attention_order.h */
    int tiles;
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int accumulate;       /* bit i: gradient i accumulates */
    bool aligned;         /* head parts can be copied by float2, basis parts by float4 */
    int vectorized;       /* bit i: result i can be stored by float2 */
    uint32_t *mask;       /* dropout bits [T x H x mask_stride], with one readable word before and after */
    int mask_stride;      /* words of a query and head; 0: no dropout */
    uint32_t *saved_mask; /* where attention saves the mask for its gradient; NULL: not saved */
} attention_task;

/* Compile-time widths of a kernel. bf16: a float of shared memory holds two numbers. Strides are in floats. */
template <int head_tiles, int basis_tiles, bool use_bf16 = false> struct attention_shape {
    static constexpr bool bf16 = use_bf16;
    static constexpr int head_dim = 8 * head_tiles, basis_dim = 8 * basis_tiles;
    static constexpr int depth = head_tiles + basis_tiles; /* 8-column tiles of the score product */
    static constexpr int qk_dim = head_dim + basis_dim;
    /* Accumulators have tiles of 16 columns. A query's cover head and basis; a key's cover the head, then basis and
     * value. */
    static constexpr int query_sums = (head_dim + basis_dim) / 16, head_sums = (head_dim + 15) / 16;
    static constexpr int key_sums = head_sums + query_sums;
    static_assert((head_dim + basis_dim) % 16 == 0, "columns fill 16-column tiles");
    static constexpr int k_steps = bf16 ? depth / 2 : depth; /* of the score product */
    static_assert(!bf16 || depth % 2 == 0, "a bf16 k-step is two 8-column tiles");

    __host__ __device__ static constexpr int at(int cols)
    {
        return bf16 ? cols / 2 : cols;
    }
    /* First column of part p of a token: a head part, then one or two basis parts, then a head part. */
    __host__ __device__ static constexpr int offset(bool packed, int p)
    {
        int cols = p == 0 ? 0 : head_dim + (p - 1) * basis_dim;
        return packed ? cols / 2 : cols;
    }
    /* 4 modulo 8: ldmatrix without bank conflicts */
    __host__ __device__ static constexpr int stride(int cols)
    {
        return at(cols) + 4 - at(cols) % 8 / 4 * 4;
    }
    static constexpr int key_raw = 2 * head_dim + basis_dim,
                         gradient_raw = 16 * depth; /* fp32 columns, before packing to bf16 */
    static constexpr int key_stride = stride(key_raw);
    static constexpr int query_stride = stride(8 * depth); /* forward */
    static constexpr int gradient_stride = stride(gradient_raw);
};

/* ---- staging to shared memory -------------------------------------------------------------------------------- */

/* tf32: cp.async copies tokens to the buffer that is multiplied (ATTENTION_COPY). bf16: cp.async copies them to a raw
 * buffer, and every thread then packs the elements that it copied itself (ATTENTION_PACK). Padding is written as
 * zeros. */
enum attention_phase { ATTENTION_COPY, ATTENTION_PACK };

template <attention_phase phase, int count>
__device__ static __forceinline__ void attention_stage_vector(float *to, const float *from, bool valid, bool second)
{
    if constexpr (phase == ATTENTION_COPY && count > 1) {
        tile_cp_async<count>(to, from, valid);
    } else if constexpr (phase == ATTENTION_COPY) {
        tile_cp_async<1>(to, from, valid);
        tile_cp_async<1>(to + 1, from + 1, valid && second);
    } else if constexpr (count == 4) {
        float4 x = valid ? *(const float4 *)from : make_float4(0, 0, 0, 0);
        *(float2 *)to = make_float2(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w));
    } else if constexpr (count == 2) {
        float2 x = valid ? *(const float2 *)from : make_float2(0, 0);
        *to = tile_pack_bf16(x.x, x.y);
    } else {
        *to = tile_pack_bf16(valid ? from[0] : 0, valid && second ? from[1] : 0);
    }
}

/* Stages the columns from c on that 32 lanes cover in one pass; a warp copies a row. Rows from `first` on, of which
 * `present` exist. Offsets are 32-bit products: 64-bit ones took longer than the copies. */
template <attention_phase phase, int count, int stride, int rows, int threads, int unroll = 16>
__device__ static __forceinline__ void attention_stage_pass(int cols, int cols_padded, float *to, const float *from,
                                                            int from_stride, int first, int present, int c)
{
    constexpr int warps = threads / 32;
    static_assert(rows % warps == 0, "rows divide evenly among warps");
    int warp = (int)threadIdx.x >> 5, remaining = c < cols ? present - warp : 0;
    uint32_t bytes = (uint32_t)from_stride * (uint32_t)sizeof(float);
    float *dst = to + warp * stride + (phase == ATTENTION_PACK ? c / 2 : c);
    const char *source = (const char *)(from + c);
    if (c >= cols_padded)
        return;
    first += warp;
#pragma unroll(unroll)
    for (int r = 0; r < rows; r += warps)
        attention_stage_vector<phase, count>(dst + r * stride,
                                             (const float *)(source + (uint64_t)(uint32_t)(first + r) * bytes),
                                             r < remaining, c + 1 < cols);
}

template <attention_phase phase, int count, int stride, int rows, int threads>
__device__ static __forceinline__ void attention_stage_vectors(int cols, int cols_padded, float *to, const float *from,
                                                               int from_stride, int first, int present)
{
    constexpr int width = count == 4 ? 4 : 2;
#pragma unroll 1
    for (int c = 0; c < cols_padded; c += 32 * width)
        attention_stage_pass<phase, count, stride, rows, threads, count == 1 ? 1 : 4>(
            cols, cols_padded, to, from, from_stride, first, present, c + ((int)threadIdx.x & 31) * width);
}

template <attention_phase phase, int stride, int rows, int threads>
__device__ static __forceinline__ void attention_stage_part(const attention_part *part, float *to, const float *from,
                                                            int from_stride, int first, int present)
{
    if (part->vector == 4)
        attention_stage_vectors<phase, 4, stride, rows, threads>(part->cols, part->cols_padded, to, from, from_stride,
                                                                 first, present);
    else if (part->vector == 2)
        attention_stage_vectors<phase, 2, stride, rows, threads>(part->cols, part->cols_padded, to, from, from_stride,
                                                                 first, present);
    else
        attention_stage_vectors<phase, 1, stride, rows, threads>(part->cols, part->cols_padded, to, from, from_stride,
                                                                 first, present);
}

/* Stages rows [first, first + present) of the first `used` parts, and zeros up to `rows`. source(p) returns the first
 * row of part p and its stride. With `aligned`, all widths are compile-time constants. */
template <typename shape, attention_phase phase, int stride, int rows, int threads, int count, typename source_function>
__device__ static __forceinline__ void attention_stage_parts(const attention_part (&parts)[count], int used,
                                                             bool aligned, float *to, int first, int present,
                                                             const source_function &source)
{
    constexpr int last = count - 1;
    int lane = (int)threadIdx.x & 31;
    if (aligned) {
#pragma unroll
        for (int p = 0; p < count; p++) {
            attention_rows from = source(p);
            float *dst = to + shape::offset(phase == ATTENTION_PACK, p);
            if (p >= used)
                continue;
            if (p == 0 || p == last)
                attention_stage_pass<phase, 2, stride, rows, threads>(parts[p].cols, shape::head_dim, dst, from.data,
                                                                      from.stride, first, present, 2 * lane);
            else if (shape::basis_dim)
                attention_stage_pass<phase, 4, stride, rows, threads>(parts[p].cols, shape::basis_dim, dst, from.data,
                                                                      from.stride, first, present, 4 * lane);
        }
        return;
    }
#pragma unroll 1
    for (int p = 0; p < used; p++) {
        attention_rows from = source(p);
        attention_stage_part<phase, stride, rows, threads>(
            &parts[p], to + (phase == ATTENTION_PACK ? parts[p].first / 2 : parts[p].first), from.data, from.stride,
            first, present);
    }
}

/* Stages tokens from global memory. */
template <typename shape, attention_phase phase, int stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_stage_tokens(const attention_part (&parts)[count], int used,
                                                              bool aligned, int head, float *to, int first, int present)
{
    attention_stage_parts<shape, phase, stride, rows, threads>(parts, used, aligned, to, first, present, [&](int p) {
        return attention_rows{parts[p].from + head * parts[p].head_step, parts[p].stride};
    });
}

/* Packs the raw rows that this thread copied. */
template <typename shape, int stride, int from_stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_pack_tokens(const attention_part (&parts)[count], bool aligned,
                                                             float *to, const float *from)
{
    attention_stage_parts<shape, ATTENTION_PACK, stride, rows, threads>(parts, count, aligned, to, 0, rows, [&](int p) {
        return attention_rows{from + (aligned ? shape::offset(false, p) : parts[p].first), from_stride};
    });
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Stores accumulator tiles (tile_mma_nn_transposed) to global memory: tile m holds columns 16 m to 16 m + 15 of a row
 * in which this part begins at column `begin` and has `cols` columns, padded to `cols_padded`. `to`: row 0 of the
 * warp's 16 rows, of which `present` exist. vectorized: all rows are 8-byte aligned. */
template <bool bf16, int first, int begin, int cols_padded, int all>
__device__ static __forceinline__ void attention_store_tiles(float *to, int64_t stride, int present, int cols,
                                                             bool vectorized, int accumulate, float (&sum)[all][2][4])
{
    constexpr int low = begin / 16, high = (begin + cols_padded + 15) / 16, second = bf16 ? 8 : 1;
    tile_lane me = tile_lane_now();
    int group = bf16 ? me.group : 2 * me.group;
    float *mine = to + 2 * me.member * stride - begin + group;
    /* i: the lane's row, one of 2t, 2t + 1, 2t + 8 and 2t + 9; a row that does not exist has no columns. A tile can
     * span two parts: columns of the part before this one are negative. */
    auto each = [&](auto act) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float *row = mine + (8 * (i >> 1) + (i & 1)) * stride;
            int end = 8 * (i >> 1) + 2 * me.member + (i & 1) < present ? cols : 0;
#pragma unroll
            for (int m = low; m < high; m++) {
                int one = 16 * m - begin + group, other = one + second;
                act(row + 16 * m, sum[first + m][i >> 1][i & 1], sum[first + m][i >> 1][2 + (i & 1)],
                    one >= 0 && one < end, other >= 0 && other < end);
            }
        }
    };
    if (accumulate)
        each([](float *dst, float &x, float &y, bool one, bool other) {
            x += one ? dst[0] : 0;
            y += other ? dst[second] : 0;
        });
    if (!bf16 && vectorized)
        each([](float *dst, float &x, float &y, bool one, bool) {
            if (one)
                *(float2 *)dst = make_float2(x, y);
        });
    else
        each([](float *dst, float &x, float &y, bool one, bool other) {
            if (one)
                dst[0] = x;
            if (other)
                dst[second] = y;
        });
}

/* ---- segments ------------------------------------------------------------------------------------------------ */

/* A block needs the segment offsets first. A warp loads 128 of them, mostly all, in one coalesced read, and hides the
 * latency behind other work; the next 32 offsets then stay in its registers. */

typedef struct attention_probe {
    int begin[4]; /* lane i: begin of segments 4 i to 4 i + 3 */
} attention_probe;

/* Depends on no shard variable, so the load is issued at once. */
__device__ static inline attention_probe attention_probe_of(const attention_task *task)
{
    attention_probe probe;
#pragma unroll
    for (int j = 0; j < 4; j++)
        probe.begin[j] = task->segment[min(4 * ((int)threadIdx.x & 31) + j, task->max_segments)];
    return probe;
}

/* Begin of segment i < 128; i can differ between lanes. */
__device__ static inline int attention_probe_at(attention_probe probe, int i)
{
    int begin = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int other = __shfl_sync(0xFFFFFFFFu, probe.begin[j], i >> 2 & 31);
        begin = (i & 3) == j ? other : begin;
    }
    return begin;
}

/* attention_segment, computed by a warp. */
__device__ static inline int attention_segment_by_warp(const int32_t *segment, int segments, attention_probe probe,
                                                       int token)
{
    int low = 0, high = segments, lane = (int)threadIdx.x & 31, below = 0;
    if (segments <= 128) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            below += __popc(__ballot_sync(0xFFFFFFFFu, 4 * lane + j < segments && probe.begin[j] <= token));
        return below - 1;
    }
    while (high - low > 1) {
        int step = (high - low + 31) / 32, index = low + lane * step;
        below = __popc(__ballot_sync(0xFFFFFFFFu, index < high && segment[index] <= token));
        low += (below - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

/* The segment of a token, and those after it. */
typedef struct attention_cursor {
    int index, begin; /* of the token's segment */
    int next;         /* lane i: begin of the i-th segment after it */
} attention_cursor;

__device__ static inline attention_cursor attention_cursor_of(const int32_t *segment, int segments, int tokens,
                                                              attention_probe probe, int token)
{
    int s = attention_segment_by_warp(segment, segments, probe, token), next = s + 1 + ((int)threadIdx.x & 31);
    attention_cursor cursor = {s, 0, 0};
    if (segments <= 128) {
        cursor.begin = attention_probe_at(probe, s);
        cursor.next = attention_probe_at(probe, next);
        cursor.next = next < segments ? cursor.next : tokens;
    } else {
        cursor.begin = segment[s];
        cursor.next = segment[min(next, segments)];
    }
    return cursor;
}

/* Bounds of the segments of these tokens, none of which is before the cursor's segment or after token `last`. Every
 * lane of the warp must call it. */
template <int count>
__device__ static inline void attention_find_bounds(const int32_t *segment, int segments, attention_cursor cursor,
                                                    int last, const int (&token)[count], int (&start)[count],
                                                    int (&end)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        start[i] = end[i] = cursor.begin;
    for (int k = 0;; k++) {
        if (k && k % 32 == 0)
            cursor.next = segment[min(cursor.index + 1 + k + ((int)threadIdx.x & 31), segments)];
        int next = __shfl_sync(0xFFFFFFFFu, cursor.next, k % 32);
#pragma unroll
        for (int i = 0; i < count; i++) {
            end[i] = end[i] <= token[i] ? next : end[i];
            start[i] = next <= token[i] ? next : start[i];
        }
        if (next > last)
            return;
    }
}

/* ---- dropout ------------------------------------------------------------------------------------------------- */

/* Mask words of a query and head. */
__device__ static inline uint32_t *attention_mask_row(const attention_task *task, int query, int head)
{
    return task->mask + 1 + ((int64_t)query * task->config.heads + head) * task->mask_stride;
}

/* Loads two words from a key position in the query's segment on. Issued well before attention_mask_extract shifts them
 * to 32 keys. Bits of masked keys are undefined. */
__device__ static inline uint2 attention_mask_load(const attention_task *task, const uint32_t *mask, int position)
{
    int word = min(max(position >> 5, -1), task->mask_stride - 1);
    uint2 both = {mask[word], mask[word + 1]};
    return both;
}

__device__ static inline uint32_t attention_mask_extract(uint2 both, int position)
{
    return tile_funnel_shift(both.x, both.y, position);
}

/* Draws the mask of one query and head with `parts` threads: thread `part` draws every parts-th byte, `together` of
 * them interleaved to hide the latency of Philox. */
template <int parts, int together>
__device__ static __forceinline__ void attention_mask_draw(const attention_task *task, uint32_t *mask, int head,
                                                           int token, int start, int part)
{
    const attention_config *config = &task->config;
    unsigned char *bytes = (unsigned char *)mask;
    uint64_t query_index = (task->shard->first_token + (uint64_t)token) * (uint64_t)config->heads + (uint64_t)head;
#pragma unroll 1
    for (int block = part; block * 8 <= token - start; block += parts * together) {
        unsigned keep[together];
#pragma unroll
        for (int i = 0; i < together; i++) {
            lp_random_block drawn = lp_philox(task->shard->seed, config->dropout_purpose, task->shard->step,
                                              query_index * 65536 + (uint64_t)(block + i * parts));
            keep[i] = 0;
#pragma unroll
            for (int bit = 0; bit < 8; bit++)
                keep[i] |= (unsigned)lp_dropout_keep(&drawn, bit, config->dropout_threshold) << bit;
        }
#pragma unroll
        for (int i = 0; i < together; i++)
            if ((block + i * parts) * 8 <= token - start)
                bytes[block + i * parts] = (unsigned char)keep[i];
    }
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* Whether the columns of all heads can be read `vector` floats at a time. */
static inline bool attention_aligned(const float *from, int cols, int vector)
{
    return cols % vector == 0 && (uintptr_t)from % (sizeof(float) * (size_t)vector) == 0;
}

/* by_head: every head has `cols` columns of its own; otherwise all heads use the same. */
static inline attention_part attention_part_of(const float *from, int cols, int heads, bool by_head, int first,
                                               int cols_padded)
{
    attention_part part = {
        from, by_head ? heads * cols : cols, by_head ? cols : 0, from ? cols : 0, from ? cols_padded : 0, first, 1};
    /* float4 if 32 lanes do not cover the columns with float2. */
    if (cols > 64 && attention_aligned(from, cols, 4))
        part.vector = 4;
    else if (attention_aligned(from, cols, 2))
        part.vector = 2;
    return part;
}

/* Sets the parts of keys and queries for kernels of this shape; `dout` and `dtime_out` can be NULL. */
template <typename shape> static inline void attention_parts(attention_task *task)
{
    int heads = task->config.heads, head_dim = task->config.head_dim, basis_dim = task->config.basis_dim;
    task->keys[0] = attention_part_of(task->key, head_dim, heads, true, 0, shape::head_dim);
    task->keys[1] = attention_part_of(task->basis, basis_dim, heads, false, shape::head_dim, shape::basis_dim);
    task->keys[2] = attention_part_of(task->value, head_dim, heads, true, shape::qk_dim, shape::head_dim);
    task->queries[0] = attention_part_of(task->query, head_dim, heads, true, 0, shape::head_dim);
    task->queries[1] = attention_part_of(task->time_query, basis_dim, heads, true, shape::head_dim, shape::basis_dim);
    task->queries[2] = attention_part_of(task->dtime_out, basis_dim, heads, true, shape::qk_dim, shape::basis_dim);
    task->queries[3] =
        attention_part_of(task->dout, head_dim, heads, true, shape::qk_dim + shape::basis_dim, shape::head_dim);
    task->aligned = true;
    for (int i = 0; i < ATTENTION_KEYS; i++)
        task->aligned = task->aligned && (!task->keys[i].from || task->keys[i].vector == (i == 1 ? 4 : 2));
    for (int i = 0; i < ATTENTION_GRADIENTS; i++)
        task->aligned = task->aligned && (!task->queries[i].from || task->queries[i].vector == (i % 3 ? 4 : 2));
}

/* Bytes of the mask of all queries, and their limit. */
enum { ATTENTION_MASK_LIMIT = 256 * 1024 * 1024 };

static inline size_t attention_mask_size(attention_task *task, const lp_cuda_run *run, int64_t tokens)
{
    task->mask_stride = task->config.dropout_threshold ? (run->run->plan->largest.longest + 31) / 32 : 0;
    return task->config.dropout_threshold
               ? ((size_t)tokens * (size_t)task->config.heads * (size_t)task->mask_stride + 2) * sizeof(uint32_t)
               : 0;
}

/* Whether the shapes that are compiled cover this node. */
static inline bool attention_fits(const attention_config *config)
{
    return config->basis_dim ? config->head_dim <= 56 && config->basis_dim <= 104 : config->head_dim <= 64;
}

/* Calls launch with the compiled shape that covers the node. */
template <typename launcher>
static inline void attention_with_shape(const lp_cuda_run *run, const attention_config *config, const launcher &launch)
{
    if (config->basis_dim && tile_bf16(run))
        launch(attention_shape<7, 13, true>());
    else if (config->basis_dim)
        launch(attention_shape<7, 13>());
    else if (tile_bf16(run))
        launch(attention_shape<8, 0, true>());
    else
        launch(attention_shape<8, 0>());
}

/* Launch the node and return true, or return false if no kernel covers it or its mask exceeds the limit. */
bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run);
bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run);

#endif
