/* cuda_attention.h: what attention and its gradient share.
 *
 * One family of kernels serves every width, head count and precision. A block owns a tile of `rows` consecutive tokens
 * of any segments and iterates over the tokens of the other side, `inner_rows` at a time: a query tile over the earlier
 * keys of its segments, a key tile over the later queries. A warp owns 16 of the rows and all their columns, so scores
 * and probabilities stay in its registers, and warps synchronize only when a tile is staged to shared memory. Short
 * segments share a tile, so a launch depends on the number of tokens only; pairs across segments are masked.
 *
 * A token is one row of shared memory. Operands of one product are adjacent:
 *
 *     as a key      [ key | basis | value ]
 *     as a query    [ query | time query ], in gradients [ query | time query | d time out | d out ]
 *
 * Each part is padded with zeros to k-steps, the depth of one mma: 8 floats of shared memory, which hold 8 numbers, or
 * 16 in bf16. Accumulators are tiles of 16 columns. Where a result has more tiles than an instance has accumulators,
 * blocks of the same rows (blockIdx.z) divide the tiles and each computes the scores.
 *
 * Precision: tf32 reads tokens as they are, and tensor cores truncate them, with an error of half a unit on average,
 * which rounding would avoid at the cost of a pass over shared memory; probabilities and dscores are rounded. The row
 * sum is that of the rounded probabilities, so that outputs are weighted means: the gradient of a peaked softmax is a
 * difference between a row of dp and its mean, which otherwise consists of the rounding error of the largest one. bf16
 * reads copies (cuda_packed.h). fp32 is tf32 with operands in two parts (tile_mma_fp32).
 *
 * Dropout bits are drawn once, one for each pair, 32 keys of the query's segment in a word: by the blocks of attention
 * while their first tile is copied, to device memory next to lse, where its gradient reads them, too.
 */
#ifndef LP_CUDA_ATTENTION_H
#define LP_CUDA_ATTENTION_H

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_attention_order.h"
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

/* Source matrix of some columns of a token, staged to shared memory. */
typedef struct attention_part {
    const float *from;
    int stride, head_step; /* in floats: from token to token, from head to head */
    int cols;              /* floats; the others up to the padded width are zeros */
} attention_part;

/* A matrix of results, and its copy in bf16, with it or instead. */
typedef struct attention_result {
    float *to; /* NULL: not stored */
    lp_cuda_copy copy;
    int cols, stride; /* columns of a head; floats from token to token */
    bool accumulate;
} attention_result;

/* Widths of a head and of the basis in k-steps, and the tiles; 2 buffers: the next inner tile is copied while one is
 * processed. Strides of tokens in floats are 4 modulo 8: ldmatrix without bank conflicts. */
struct attention_size {
    int head, basis, rows, buffers;
    int key_stride, query_stride, gradient_stride;

    /* First float of part p of a token: a head part, then one or two basis parts, then a head part. */
    __host__ __device__ constexpr int first(int p) const
    {
        return p == 0 ? 0 : 8 * (head + (p - 1) * basis);
    }
};

typedef struct attention_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    lp_rows rows_of;                /* of queries and keys: all tokens, or those of the first segments */
    int heads, head_dim, basis_dim; /* columns of a head, and of the basis */
    attention_size size;
    float scale;                                 /* of scores */
    uint32_t dropout_threshold, dropout_purpose; /* random stream (random.h) */
    float dropout_scale;                         /* 1 / (1 - rate) */
    attention_part keys[3];                      /* key | basis | value */
    attention_part queries[4];                   /* query | time query | d time out | d out */
    bool aligned;                                /* parts of heads are copied by 2 floats, those of the basis by 4 */
    attention_result results[5];                 /* out, time out; or gradients: query, key, value, time query, basis */
    float *lse;                                  /* attention writes it, its gradient reads it */
    const float *out, *time_out;                 /* of the gradient */
    lp_cuda_copy time_out_copy;                  /* instead of time_out */
    float2 *row_stats;                           /* [T x H]: lse log2 e, and delta (cuda_attention_gradient.cu) */
    uint32_t *mask;  /* dropout bits [T x H x mask_stride], with one readable word before and after */
    int mask_stride; /* words of a query and head; 0: no dropout */
} attention_task;

/* Floats of shared memory: tiles, and behind them what tiles of 16 columns read beyond the last token. Key tiles of the
 * gradient also have the begin of their segments, and row_stats of the inner rows. */
__host__ __device__ constexpr int attention_floats(const attention_size &size, int inner_rows, bool backward)
{
    int inner = size.buffers * inner_rows, key = size.key_stride, gradient = size.gradient_stride;
    int queries = size.rows * (backward ? gradient : size.query_stride) + inner * key + 64;
    int keys = backward ? size.rows * (key + 1) + inner * (gradient + 2) + 64 : 0;
    return keys > queries ? keys : queries;
}

/* Tiles for these widths, with two buffers if two blocks then run on a multiprocessor. most, half: bytes of shared memory
 * (lp_cuda_device). */
__host__ __device__ constexpr attention_size attention_size_of(int head, int basis, int inner_rows, bool backward,
                                                               int most = TILE_MAX_SHARED,
                                                               int half = TILE_HALF_SHARED)
{
    int both = head + basis;
    attention_size size = {head, basis, ATTENTION_ROWS, 2, 8 * (both + head) + 4, 8 * both + 4, 16 * both + 4};
    if (attention_floats(size, inner_rows, backward) * 4 <= half)
        return size;
    size.buffers = 1;
    while (size.rows > 16 && attention_floats(size, inner_rows, backward) * 4 > most)
        size.rows /= 2;
    return size;
}

/* An instance of the kernels: precision, accumulators of query and key tiles, and where they are fixed the widths and
 * tiles as compile-time constants: products then unroll to straight-line ldmatrix and mma. */
template <lp_precision a_precision, bool backward, int fixed_head = 0, int fixed_basis = 0> struct attention_shape {
    static constexpr lp_precision precision = a_precision;
    static constexpr bool bf16 = precision == LP_PRECISION_BF16, exact = precision == LP_PRECISION_FP32;
    static constexpr bool fixed = fixed_head > 0, accumulates = backward;
    static constexpr int per = bf16 ? 1 : 2, wide = 8 * per; /* k-steps and floats of an accumulator tile's columns */
    static constexpr int tiles = backward && !bf16 ? 2 : 4;  /* of 8 inner rows, which a warp processes at once */
    static constexpr int inner_rows = 8 * tiles;
    static constexpr int query_sums = fixed ? (fixed_head + fixed_basis + per - 1) / per : exact ? 12 : 18;
    static constexpr int key_sums = fixed ? (fixed_head + per - 1) / per + query_sums : exact ? 16 : 20;

    /* Accumulator tiles, and columns, of `steps` k-steps. */
    __host__ __device__ static constexpr int sums(int steps)
    {
        return (steps + per - 1) / per;
    }
    __host__ __device__ static constexpr int columns(int steps)
    {
        return 16 / per * steps;
    }
    __host__ __device__ static constexpr attention_size size(const attention_task *task)
    {
        if constexpr (fixed) {
            constexpr attention_size constant = attention_size_of(fixed_head, fixed_basis, inner_rows, backward);
            return constant;
        } else {
            return task->size;
        }
    }
    /* The block's accumulator tiles of `all`, if each block has `each`: the first, and their number. */
    __device__ static inline int first_tile(int each)
    {
        return fixed ? 0 : (int)blockIdx.z * each;
    }
    __device__ static inline int block_tiles(int all, int each)
    {
        return fixed ? all : min(each, all - (int)blockIdx.z * each);
    }
};

/* ---- products ------------------------------------------------------------------------------------------------ */

template <lp_precision precision>
__device__ static __forceinline__ void attention_mma(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    if constexpr (precision == LP_PRECISION_BF16)
        tile_mma_bf16(sum, a, b0, b1);
    else if constexpr (precision == LP_PRECISION_TF32)
        tile_mma_tf32(sum, a, b0, b1);
    else
        tile_mma_fp32(sum, a, b0, b1);
}

/* A number as a computed operand of attention_mma. */
template <lp_precision precision> __device__ static __forceinline__ float attention_round(float x)
{
    return precision == LP_PRECISION_BF16   ? tile_round_bf16(x)
           : precision == LP_PRECISION_TF32 ? tile_round_tf32(x)
                                            : x;
}

/* sum[j] += left b_j^T at one k-step; b_j: the 8 rows from 8 j on, `offset` floats from b's addresses. more: the same for
 * a second sum and left operand. In fp32 each product is added by ordinary additions: tensor cores truncate sums, so that those of
 * wide heads would all be too small, and the dscores of a row, which are differences of them, would consist of that error. */
template <lp_precision precision, int tiles, typename... more>
__device__ static __forceinline__ void attention_multiply(tile_address b, int stride, int offset,
                                                          float (&sum)[tiles][4], const float (&left)[4],
                                                          more &...second)
{
#pragma unroll
    for (int j = 0; j < tiles; j += 2) {
        float right[4];
        tile_ldmatrix(right, b, offset + 8 * j * stride);
        auto multiply = [&](float(&to)[tiles][4], const float(&by)[4]) {
            constexpr bool exact = precision == LP_PRECISION_FP32;
            float one[4] = {}, two[4] = {};
            attention_mma<precision>(exact ? one : to[j], by, right[0], right[1]);
            attention_mma<precision>(exact ? two : to[j + 1], by, right[2], right[3]);
#pragma unroll
            for (int i = 0; i < (exact ? 4 : 0); i++) {
                to[j][i] += one[i];
                to[j + 1][i] += two[i];
            }
        };
        multiply(sum, left);
        if constexpr (sizeof...(second) > 0)
            multiply(second...);
    }
}

/* sum[m] += (score b_m)^T for from <= m < to: score [16 x 8 tiles] in accumulator layout, b_m: 8 tiles rows and 16
 * columns from b + m * wide on. The columns of b are the rows of the mma tile, so a lane loads two of them at once, and
 * the scores are operand B in the layout that they have. sum[m][h] holds rows 8 h to 8 h + 7 of the scores: elements 0
 * and 1 are rows 2t and 2t + 1 at the lane's first column, 2 and 3 the same rows at its second column. These columns
 * are 2g and 2g + 1; in bf16 g and g + 8. half: the tile of which only the first 8 columns are used, or -1. rounded: the
 * scores are (attention_round).
 *
 * Where the bounds are not constants, 4 tiles at a time are processed or skipped, and those outside are multiplied by 0:
 * a branch for each tile would keep loads from overlapping with products. In fp32 each product is added by ordinary
 * additions: tensor cores truncate sums, and the error of one long sum would grow with the context. */
template <typename shape, bool rounded = false, int tiles, int all>
__device__ static __forceinline__ void attention_accumulate(float (&sum)[all][2][4], const float (&score)[tiles][4],
                                                            const float *b, int stride, int from, int to, int half = -1)
{
    constexpr bool bf16 = shape::bf16, exact = shape::exact;
    constexpr int steps = bf16 ? tiles / 2 : tiles, group = shape::fixed ? all : 4;
    tile_lane me = tile_lane_now();
    float right[steps][2][2];
#pragma unroll
    for (int j = 0; j < steps; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                right[j][h][i] = bf16               ? tile_pack_bf16(score[(bf16 ? 2 * j + i : j)][2 * h],
                                                                     score[(bf16 ? 2 * j + i : j)][2 * h + 1])
                                 : exact || rounded ? score[j][2 * h + i]
                                                    : tile_round_tf32(score[j][2 * h + i]);
    const float *rows = b + 2 * me.member * stride + 2 * me.group;
    tile_address source = tile_b_address(b, stride);
#pragma unroll
    for (int first = 0; first < all; first += group) {
        if (first + group <= from || first >= to)
            continue;
#pragma unroll
        for (int j = 0; j < steps; j++)
#pragma unroll
            for (int m = first; m < first + group && m < all; m++) {
                bool used = m >= from && m < to;
                if (shape::fixed && !used)
                    continue;
                float left[4]; /* the rows of the tile's columns */
                if constexpr (bf16) {
                    tile_ldmatrix_trans(left, source, 8 * m + 16 * j * stride);
                } else {
                    *(float2 *)&left[0] = *(const float2 *)(rows + 16 * m + 8 * j * stride);
                    *(float2 *)&left[2] = *(const float2 *)(rows + 16 * m + (8 * j + 1) * stride);
                }
#pragma unroll
                for (int i = 0; i < 4; i++)
                    left[i] = used && (bf16 || m != half || me.group < 4) ? left[i] : 0;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float part[4] = {};
                    attention_mma<shape::precision>(exact ? part : sum[m][h], left, right[j][h][0], right[j][h][1]);
#pragma unroll
                    for (int i = 0; i < (exact ? 4 : 0); i++)
                        sum[m][h][i] += part[i];
                }
            }
    }
}

/* ---- staging to shared memory -------------------------------------------------------------------------------- */

/* Copies `count` adjacent parts of tokens [first, first + present), and zeros up to `rows`; `slots` threads copy a row of
 * `width` floats, each the same columns of all its rows. Offsets are 32-bit products: 64-bit ones took longer than the
 * copies. */
template <int vector, int count>
__device__ static __forceinline__ void attention_copy_parts(const attention_size &size, const attention_part *parts,
                                                            int head, float *to, int stride, int width, int slots,
                                                            int rows, int first, int present)
{
    int row = (int)threadIdx.x / slots, step = 2 * size.rows / slots;
#pragma unroll 1
    for (int c = vector * ((int)threadIdx.x & (slots - 1)); c < width; c += vector * slots) {
        int p = count == 1 ? 0 : (c >= size.first(1)) + (c >= size.first(2)) + (count > 3 && c >= size.first(3));
        const attention_part *part = &parts[p];
        int col = c - size.first(p);
        uint32_t bytes = (uint32_t)part->stride * (uint32_t)sizeof(float);
        const char *source =
            (const char *)(part->from + head * part->head_step + col) + (uint64_t)(uint32_t)(first + row) * bytes;
        float *dst = to + row * stride + c;
        int remaining = col < part->cols ? present - row : 0;
#pragma unroll(count > 1 ? 8 : vector > 1 ? 16 : 4)
        for (int r = 0; r < rows; r += step, source += (uint64_t)step * bytes)
            tile_cp_async<vector>(dst + r * stride, (const float *)source, r < remaining);
    }
}

/* Starts the copy of tokens [first, first + present), with the parts that a row of `stride` - 4 floats has. In bf16
 * every part is copied by 4 floats, so that the parts take one loop. */
template <typename shape, int count>
__device__ static __forceinline__ void attention_copy(const attention_task *task, const attention_part (&parts)[count],
                                                      int head, float *to, int stride, int rows, int first, int present)
{
    attention_size size = shape::size(task);
    int width = stride - 4, slots = min(width > 256 ? 128 : width > 128 ? 64 : 32, 2 * size.rows);
    if constexpr (shape::bf16) {
        attention_copy_parts<4, count>(size, parts, head, to, stride, width, slots, rows, first, present);
    } else {
#pragma unroll
        for (int p = 0; p < count; p++) {
            bool of_head = p == 0 || p == count - 1;
            int cols = size.first(p) < width ? 8 * (of_head ? size.head : size.basis) : 0;
            float *mine = to + size.first(p);
            if (!task->aligned)
                attention_copy_parts<1, 1>(size, &parts[p], head, mine, stride, cols, 32, rows, first, present);
            else if (of_head)
                attention_copy_parts<2, 1>(size, &parts[p], head, mine, stride, cols, 32, rows, first, present);
            else
                attention_copy_parts<4, 1>(size, &parts[p], head, mine, stride, cols, 32, rows, first, present);
        }
    }
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* The columns of a head, `cols` with gaps between heads, in a copy, from a token on; NULL: there is no copy. */
__device__ static inline uint16_t *attention_copy_at(const lp_cuda_copy &copy, int64_t token, int head, int cols)
{
    return copy.data ? copy.data + token * copy.stride + head * (cols + copy.gap) : NULL;
}

/* A warp's 16 rows of results. */
typedef struct attention_rows {
    int head, token, present; /* token: of the first row; present: rows that exist */
    float *stage;             /* shared memory of these rows that no other warp uses, through which copies pass */
    int stride;               /* of stage */
} attention_rows;

/* Stores accumulators to a matrix whose columns take `steps` k-steps: column 16 m + c of tile m of all blocks is column
 * `begin` less of the matrix, and only its columns are stored. copied: there may be a copy, which is stored 16 bytes a
 * lane where its heads begin at multiples of 8 numbers. */
template <typename shape, bool copied, int all>
__device__ static __forceinline__ void attention_store(const attention_result &result, const attention_rows &rows,
                                                       int steps, int begin, float (&sum)[all][2][4])
{
    constexpr int second = shape::bf16 ? 8 : 1;
    tile_lane me = tile_lane_now();
    int group = shape::bf16 ? me.group : 2 * me.group, cols = result.cols, padded = shape::columns(steps);
    int shift = 16 * shape::first_tile(all) - begin;
    float *to = result.to ? result.to + (int64_t)rows.token * result.stride + rows.head * cols : NULL;
    uint16_t *copy = attention_copy_at(result.copy, rows.token, rows.head, cols);
    /* i: the lane's row, one of 2t, 2t + 1, 2t + 8 and 2t + 9; a row that does not exist has no columns. */
    auto each = [&](auto *matrix, int64_t step, auto act) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = 8 * (i >> 1) + 2 * me.member + (i & 1), end = row < rows.present ? cols : 0;
            auto *mine = matrix + row * step;
#pragma unroll
            for (int m = 0; m < all; m++) {
                int col = 16 * m + shift, one = col + group, other = one + second;
                if (col + 16 > 0 && col < padded)
                    act(mine + one, sum[m][i >> 1][i & 1], sum[m][i >> 1][2 + (i & 1)], one >= 0 && one < end,
                        other >= 0 && other < end);
            }
        }
    };
    auto store_each = [](auto *dst, float &x, float &y, bool one, bool other) {
        if (one)
            tile_store_two<false>(dst, x, 0, false);
        if (other)
            tile_store_two<false>(dst + second, y, 0, false);
    };
    if (shape::accumulates && result.accumulate)
        each(to, result.stride, [](float *dst, float &x, float &y, bool one, bool other) {
            x += one ? dst[0] : 0;
            y += other ? dst[second] : 0;
        });
    if (!shape::bf16 && cols % 2 == 0 && (uintptr_t)to % 8 == 0)
        each(to, result.stride, [](float *dst, float &x, float &y, bool one, bool) {
            if (one)
                tile_store_two<true>(dst, x, y, true);
        });
    else if (to)
        each(to, result.stride, store_each);
    /* Columns up to the next multiple of 8 are zeros here and in the gap. */
    if (shape::bf16 && copied && copy && (cols + result.copy.gap) % 8 == 0) {
        tile_address mine = tile_a_address(rows.stage, rows.stride);
#pragma unroll
        for (int m = 0; m < all; m++)
            if (16 * m + shift >= 0 && 16 * m + shift < padded) {
                const float parts[4] = {
                    tile_pack_bf16(sum[m][0][0], sum[m][0][1]), tile_pack_bf16(sum[m][1][0], sum[m][1][1]),
                    tile_pack_bf16(sum[m][0][2], sum[m][0][3]), tile_pack_bf16(sum[m][1][2], sum[m][1][3])};
                tile_stmatrix_trans(mine, 8 * m, parts);
            }
        __syncwarp();
        int end = min(16 * all + shift, cols);
        for (int c = max(shift, 0) + 8 * (me.lane & 7); c < end; c += 64)
#pragma unroll
            for (int row = me.lane >> 3; row < 16; row += 4)
                if (row < rows.present)
                    *(float4 *)(copy + row * result.copy.stride + c) =
                        *(const float4 *)(rows.stage + row * rows.stride + (c - shift) / 2);
    } else if (shape::bf16 && copied && copy)
        each(copy, result.copy.stride, store_each);
}

/* ---- dropout ------------------------------------------------------------------------------------------------- */

/* Mask words of a query and head. */
__device__ static inline uint32_t *attention_mask_row(const attention_task *task, int query, int head)
{
    return task->mask + 1 + ((int64_t)query * task->heads + head) * task->mask_stride;
}

/* Loads two words from a key position in the query's segment on. Issued well before tile_funnel_shift shifts them to 32
 * keys. Bits of masked keys are undefined; without dropout all are set. */
__device__ static inline uint2 attention_mask_load(const attention_task *task, const uint32_t *mask, int position)
{
    uint2 both = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->mask_stride) {
        int word = min(max(position >> 5, -1), task->mask_stride - 1);
        both.x = mask[word];
        both.y = mask[word + 1];
    }
    return both;
}

/* ---- query tiles --------------------------------------------------------------------------------------------- */

/* A warp's 16 queries, and the keys that they see. */
typedef struct attention_queries {
    int first;             /* query */
    int low, high;         /* keys that some of them see */
    int all_low, all_high; /* keys that all of them see */
    /* The lane's two rows, g and g + 8; query < start if there is no such token: all keys are masked. */
    int query[2], start[2];
    const uint32_t *mask[2];
} attention_queries;

/* The tile has the tokens [first, end). */
__device__ static __forceinline__ attention_queries attention_queries_of(const attention_task *task, int head,
                                                                         int first, int end)
{
    tile_lane me = tile_lane_now();
    attention_queries mine;
    auto start_of = [&](int token) { return task->bounds.start[min(token, end - 1)]; };
    mine.first = first + 16 * me.warp;
    mine.low = start_of(mine.first);
    mine.high = min(mine.first + 16, end) - 1;
    mine.all_low = start_of(mine.first + 15);
    mine.all_high = mine.first + 16 <= end ? mine.first : -1;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = mine.first + me.group + 8 * half;
        mine.start[half] = start_of(query);
        mine.query[half] = query < end ? query : mine.start[half] - 1;
        mine.mask[half] = attention_mask_row(task, min(query, end - 1), head);
    }
    return mine;
}

/* Calls process(buffer, row) for the inner tiles of the rows [first, end), of which the first has been copied to buffer
 * 0; copy(buffer, row) copies another. */
template <typename shape, typename copy_function, typename process_function>
__device__ static __forceinline__ void attention_each_tile(int buffers, int first, int end, const copy_function &copy,
                                                           const process_function &process)
{
    int buffer = 0;
#pragma unroll 1
    for (int row = first, next; row < end; row = next, buffer = buffers - 1 - buffer) {
        next = row + shape::inner_rows;
        tile_cp_async_wait();
        __syncthreads();
        if (buffers == 2 && next < end)
            copy(1 - buffer, next);
        process(buffer, row);
        if (buffers == 1 && next < end) {
            __syncthreads();
            copy(0, next);
        }
    }
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* Calls act(shape) with the first instance of the precision that covers the node, the narrowest first, the one without
 * fixed widths last. An instance with fixed widths is 1.7 to 2.2 times as fast as one without (H200), so that it may pad
 * the columns by two thirds. */
template <bool back, typename action>
static inline void attention_with_shape(const lp_cuda_run *run, const attention_task *task, const action &act)
{
    constexpr lp_precision bf16 = LP_PRECISION_BF16, tf32 = LP_PRECISION_TF32, fp32 = LP_PRECISION_FP32;
    int head = task->size.head, basis = task->size.basis;
    auto attempt = [&](auto shape) {
        attention_size size = shape.size(task);
        bool covers = head <= size.head && basis <= size.basis && 5 * (head + basis) >= 3 * (size.head + size.basis) &&
                      attention_floats(size, shape.inner_rows, back) * 4 <= run->device->shared;
        if (covers)
            act(shape);
        return covers;
    };
    auto first_of = [&](auto... shapes) { (void)(attempt(shapes) || ...); };
    if (tile_bf16(run))
        first_of(attention_shape<bf16, back, 4, 0>(), attention_shape<bf16, back, 2, 5>(),
                 attention_shape<bf16, back, 4, 5>(), attention_shape<bf16, back, 2, 8>(),
                 attention_shape<bf16, back, 2, 10>(), attention_shape<bf16, back, 4, 8>(),
                 attention_shape<bf16, back, 4, 10>(), attention_shape<bf16, back>());
    else if (tile_tensor(run))
        first_of(attention_shape<tf32, back, 8, 0>(), attention_shape<tf32, back, 7, 13>(),
                 attention_shape<tf32, back>());
    else
        first_of(attention_shape<fp32, back, 7, 13>(), attention_shape<fp32, back>());
}

/* The fields that attention and its gradient share, and the parts of tokens. */
attention_task attention_task_of(const lp_node *node, const lp_cuda_run *run, bool backward);

/* Output i of the node. */
attention_result attention_result_of(const lp_node *node, const lp_cuda_run *run, int i, int heads);

#endif
