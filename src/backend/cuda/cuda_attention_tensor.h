/* cuda_attention_tensor.h: attention on tensor cores for heads of common widths, whose sums fit into the registers of a warp.
 *
 * A warp has 16 rows to itself, all their columns included, so the pairs that it makes never leave its registers, and it waits
 * for the others only where tokens come into shared memory. Widths are known to the compiler (in tiles of 8 columns, `wide` of a head and
 * `extra` of the basis; narrower ones are padded with zeros), so that products are straight runs of loads and multiplications: what
 * attention takes is the time from one to the next, not their number. Wider heads go the way of cuda_attention.cu, as does float.
 *
 * Which pairs dropout keeps is drawn before the products, a bit for each pair, 32 keys of the query's segment a word: by the block itself
 * while its first tokens come, for long segments by a kernel of its own. They are left for the gradient beside the log sums.
 *
 * Tokens are not rounded for tf32: tensor cores cut off what they do not read, half a unit on the average where rounding would be
 * right on the average. Shares and slopes, which are made here, are rounded.
 */
#ifndef LP_CUDA_ATTENTION_TENSOR_H
#define LP_CUDA_ATTENTION_TENSOR_H

#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_attention_order.h"

/* One matrix of tokens on its way to shared memory. */
typedef struct attention_part {
    const float *from;
    int stride, head_step; /* floats from token to token, and from head to head */
    int cols, cols_padded; /* columns, and with padding */
    int first;             /* where they begin in a row of shared memory */
    int vector;            /* floats that a thread takes at once; 1: two, one by one */
} attention_part;

/* The parts of a token, in the order of its row. */
enum { ATTENTION_KEYS = 3, ATTENTION_QUERIES = 2, ATTENTION_GRADIENTS = 4 };

typedef struct attention_task {
    attention_config config;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int max_segments; /* in any shard */
    const float *query, *key, *value, *time_query, *basis;
    const float *dout, *dtime_out;
    attention_part keys[ATTENTION_KEYS];         /* key | basis | value */
    attention_part queries[ATTENTION_GRADIENTS]; /* query | time query | d time out | d out */
    float *out, *lse, *time_out;                 /* attention writes them, its gradient reads them */
    float2 *row_stats;    /* [T x H]: the log sum times log2 e, and D of cuda_attention_gradient.cu times the scale */
    const int32_t *order; /* which tiles the gradient's blocks take: cuda_attention_order.h */
    int tiles;
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int accumulate;  /* bit i: gradient i is added to */
    bool aligned;    /* wide parts come in pairs, extra ones in fours */
    int vectorized;  /* bit i: numbers of result i may be stored in pairs */
    uint32_t *mask;  /* [T x H x mask_stride], with a word before and one after that may be read, and mean nothing */
    int mask_stride; /* of a query and head; 0 for no dropout */
    uint32_t *saved_mask; /* where attention leaves words for its gradient, as in `words`; NULL: nowhere */
} attention_task;

/* The tiles of 8 columns that a kernel is made for; two: in bf16, a float of shared memory holding two numbers. Strides are in floats. */
template <int head_tiles, int basis_tiles, bool use_bf16 = false> struct attention_shape {
    static constexpr bool bf16 = use_bf16;
    static constexpr int head_dim = 8 * head_tiles, basis_dim = 8 * basis_tiles;
    static constexpr int depth = head_tiles + basis_tiles; /* tiles of 8 columns of a product of pairs */
    static constexpr int qk_dim = head_dim + basis_dim;
    /* Sums come in tiles of 16 columns: a query's over all it has, a key's over the wide part and, from where that ends, over the rest. */
    static constexpr int query_sums = (head_dim + basis_dim) / 16, head_sums = (head_dim + 15) / 16;
    static constexpr int key_sums = head_sums + query_sums;
    static_assert((head_dim + basis_dim) % 16 == 0, "columns fill 16-column tiles");
    static constexpr int k_steps = bf16 ? depth / 2 : depth; /* steps of a product of pairs */
    static_assert(!bf16 || depth % 2 == 0, "a bf16 k-step is bf16 8-column tiles");

    __host__ __device__ static constexpr int at(int cols)
    {
        return bf16 ? cols / 2 : cols;
    }
    /* Where part p of a token begins: one is wide, then come one or two extra, then another is wide. */
    __host__ __device__ static constexpr int offset(bool packed, int p)
    {
        int cols = p == 0 ? 0 : head_dim + (p - 1) * basis_dim;
        return packed ? cols / 2 : cols;
    }
    /* 4 modulo 8, as tile_ldmatrix wants it */
    __host__ __device__ static constexpr int stride(int cols)
    {
        return at(cols) + 4 - at(cols) % 8 / 4 * 4;
    }
    static constexpr int key_raw = 2 * head_dim + basis_dim,
                         gradient_raw = 16 * depth; /* as they come, before they are bf16 */
    static constexpr int key_stride = stride(key_raw);
    static constexpr int query_stride = stride(8 * depth); /* forward */
    static constexpr int gradient_stride = stride(gradient_raw);
};

/* ---- to shared memory ---------------------------------------------------------------------------------------- */

/* Tokens come by cp.async straight to where they are multiplied; tensor cores do not read the last 13 bits of a float. For bf16 they
 * come to a place of their own, and every thread then packs what it asked for itself. A thread has the same columns of every so
 * many rows, padding among them: that is written as zeros. */
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

/* Columns that a warp has threads enough for. A warp takes a row; all but where it comes from is known to the compiler. Rows from `first` on
 * are taken, `present` of which are there. Addresses are products of 32 bits: those of 64 took longer than the copies. */
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

/* Tokens [first, first + present) of the first `count` parts, and zeros up to `rows`. Where all have the sizes that `plain` means there are
 * no loops, and nothing is looked up. */
template <typename shape, attention_phase phase, int stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_stage_tokens(const attention_part (&parts)[count], int used,
                                                              bool aligned, int head, float *to, int first, int present)
{
    int lane = (int)threadIdx.x & 31;
    if (aligned) {
#pragma unroll
        for (int p = 0; p < count; p++) {
            constexpr int last = count - 1;
            const float *from = parts[p].from + head * parts[p].head_step;
            if (p >= used)
                continue;
            if (p == 0 || p == last)
                attention_stage_pass<phase, 2, stride, rows, threads>(parts[p].cols, shape::head_dim,
                                                                      to + shape::offset(phase == ATTENTION_PACK, p),
                                                                      from, parts[p].stride, first, present, 2 * lane);
            else if (shape::basis_dim)
                attention_stage_pass<phase, 4, stride, rows, threads>(parts[p].cols, shape::basis_dim,
                                                                      to + shape::offset(phase == ATTENTION_PACK, p),
                                                                      from, parts[p].stride, first, present, 4 * lane);
        }
        return;
    }
#pragma unroll 1
    for (int p = 0; p < used; p++)
        attention_stage_part<phase, stride, rows, threads>(
            &parts[p], to + (phase == ATTENTION_PACK ? parts[p].first / 2 : parts[p].first),
            parts[p].from + head * parts[p].head_step, parts[p].stride, first, present);
}

/* Packs rows that this thread asked for. */
template <typename shape, int stride, int from_stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_pack_tokens(const attention_part (&parts)[count], bool aligned,
                                                             float *to, const float *from)
{
    int lane = (int)threadIdx.x & 31;
    if (aligned) {
#pragma unroll
        for (int p = 0; p < count; p++) {
            constexpr int last = count - 1;
            if (p == 0 || p == last)
                attention_stage_pass<ATTENTION_PACK, 2, stride, rows, threads>(
                    parts[p].cols, shape::head_dim, to + shape::offset(true, p), from + shape::offset(false, p),
                    from_stride, 0, rows, 2 * lane);
            else if (shape::basis_dim)
                attention_stage_pass<ATTENTION_PACK, 4, stride, rows, threads>(
                    parts[p].cols, shape::basis_dim, to + shape::offset(true, p), from + shape::offset(false, p),
                    from_stride, 0, rows, 4 * lane);
        }
        return;
    }
#pragma unroll 1
    for (int p = 0; p < count; p++)
        attention_stage_part<ATTENTION_PACK, stride, rows, threads>(&parts[p], to + parts[p].first / 2,
                                                                    from + parts[p].first, from_stride, 0, rows);
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Tiles of sums (tile_spread_transposed) to global memory: tile m of them holds columns 16 m and on of a row in which the part begins at column
 * `begin` and has `cols` of `wide`. `to` is where row 0 of the warp's 16 begins; `present` of them are there. With `pairs` all
 * rows begin at multiples of 8 bytes. */
template <bool bf16, int first, int begin, int cols_padded, int all>
__device__ static __forceinline__ void attention_store_tiles(float *to, int64_t stride, int present, int cols,
                                                             bool vectorized, int accumulate, float (&sum)[all][2][4])
{
    constexpr int low = begin / 16, high = (begin + cols_padded + 15) / 16, second = bf16 ? 8 : 1;
    tile_lane me = tile_lane_now();
    int group = bf16 ? me.group : 2 * me.group;
    float *mine = to + 2 * me.member * stride - begin + group;
    /* i is the lane's row, one of 2t, 2t + 1, 2t + 8 and 2t + 9; what is not there has no columns. Those of a part before this one count
     * from below 0: a tile may hold two parts. */
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

/* Where segments begin is what a block waits for first. So a warp looks at 128 of them at once, which mostly are all, and has something else
 * to do until they come; where the next 32 begin then stays in its registers. */

typedef struct attention_probe {
    int begin[4]; /* of segments 4 i to 4 i + 3, of lane i */
} attention_probe;

/* Needs no number of the shard, so that it need not wait for them. */
__device__ static inline attention_probe attention_probe_of(const attention_task *task)
{
    attention_probe probe;
#pragma unroll
    for (int j = 0; j < 4; j++)
        probe.begin[j] = task->segment[min(4 * ((int)threadIdx.x & 31) + j, task->max_segments)];
    return probe;
}

/* Where segment i < 128 begins, for every lane another one. */
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

/* attention_segment, by a warp. */
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

/* The segments from that of some token on. */
typedef struct attention_cursor {
    int head_index, begin; /* of the first */
    int next;              /* lane i: where the i-th after it begins */
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

/* Where the segments of these tokens begin and end: none is before that of `near`, or after `last`. All of a warp take part. */
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
            cursor.next = segment[min(cursor.head_index + 1 + k + ((int)threadIdx.x & 31), segments)];
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

/* Words of a query and head. */
__device__ static inline uint32_t *attention_mask_row(const attention_task *task, int query, int head)
{
    return task->mask + 1 + ((int64_t)query * task->config.heads + head) * task->mask_stride;
}

/* Two words from this place in the query's segment on; asked for well before attention_keep makes 32 keys of them. Bits of keys that the
 * query does not see mean nothing. */
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

/* Draws the words of one query and head. `parts` threads share them, and thread `part` of them has every so many bytes, `together` of
 * which it draws side by side: one waits for itself. */
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

/* 2^x and logarithms of base 2 take an instruction less than e^x. */

/* Whether the columns of all heads may be read `count` at a time. */
static inline bool attention_aligned(const float *from, int cols, int vector)
{
    return cols % vector == 0 && (uintptr_t)from % (sizeof(float) * (size_t)vector) == 0;
}

/* by_head: every head has `cols` columns of its own; otherwise they share them. */
static inline attention_part attention_part_of(const float *from, int cols, int heads, bool by_head, int first,
                                               int cols_padded)
{
    attention_part part = {
        from, by_head ? heads * cols : cols, by_head ? cols : 0, from ? cols : 0, from ? cols_padded : 0, first, 1};
    /* By fours where 32 threads have not enough with pairs. */
    if (cols > 64 && attention_aligned(from, cols, 4))
        part.vector = 4;
    else if (attention_aligned(from, cols, 2))
        part.vector = 2;
    return part;
}

/* What comes in, for kernels of this shape; `dout` and `dtime_out` may be NULL. */
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

/* Bytes of the words of all queries, and the most of them. */
enum { ATTENTION_MASK_LIMIT = 256 * 1024 * 1024 };

static inline size_t attention_mask_size(attention_task *task, const lp_cuda_run *run, int64_t tokens)
{
    task->mask_stride = task->config.dropout_threshold ? (run->run->plan->largest.longest + 31) / 32 : 0;
    return task->config.dropout_threshold
               ? ((size_t)tokens * (size_t)task->config.heads * (size_t)task->mask_stride + 2) * sizeof(uint32_t)
               : 0;
}

/* Whether bf16 may do. */

/* Whether the kernels' shapes have room for this one. */
static inline bool attention_fits(const attention_config *config)
{
    return config->basis_dim ? config->head_dim <= 56 && config->basis_dim <= 104 : config->head_dim <= 64;
}

/* Whether there is a kernel for this node, and memory for its words; if so, it is launched. */
bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run);
bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run);

#endif
