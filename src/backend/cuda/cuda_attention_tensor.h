/* cuda_attention_tensor.h: attention on tensor cores for heads of common widths, whose sums fit into the registers of a warp.
 *
 * A warp has 16 rows to itself, all their columns included, so the pairs that it makes never leave its registers, and it waits
 * for the others only where tokens come into shared memory. Widths are known to the compiler (in tiles of 8 columns, `wide` of a head and
 * `extra` of the basis; narrower ones are padded with zeros), so that products are straight runs of loads and multiplications: what
 * attention takes is the time from one to the next, not their number. Wider heads go the way of cuda_attention.cu, as does float.
 *
 * Which pairs dropout keeps is drawn before, by as many threads as there are: a bit for each pair, 32 keys of the query's segment
 * a word.
 */
#ifndef LP_CUDA_ATTENTION_TENSOR_H
#define LP_CUDA_ATTENTION_TENSOR_H

#include "backend/cuda/cuda_attention.h"

/* One matrix of tokens on its way to shared memory. */
typedef struct attention_part {
    const float *from;
    int stride, head_step; /* floats from token to token, and from head to head */
    int cols, first, wide; /* columns; where they begin in a row of shared memory, and how many there are with padding */
    int count, shift;      /* floats that a thread takes at once (1: two, one by one); 2^shift threads have a row */
} attention_part;

/* The parts of a token, in the order of its row. */
enum { ATTENTION_KEYS = 3, ATTENTION_QUERIES = 2, ATTENTION_GRADIENTS = 4 };

typedef struct attention_inputs {
    const float *query, *key, *value, *time_query, *basis, *dout, *dtime_out;
} attention_inputs;

typedef struct attention_task {
    attention_form form;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    attention_inputs in;
    attention_part keys[ATTENTION_KEYS];         /* key | basis | value */
    attention_part queries[ATTENTION_GRADIENTS]; /* query | time query | d time out | d out */
    float *out, *log_sum, *time_out;             /* results; in the gradient, what they were */
    float2 *marks; /* [T x H]: the log sum times log2 e, and D of cuda_attention_gradient.cu times the scale */
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int adds;        /* bit i: gradient i is added to */
    int pairs;       /* bit i: numbers of result i may be stored in pairs */
    uint32_t *words; /* [T x H x word_stride], with a word before and one after that may be read, and mean nothing */
    int word_stride; /* of a query and head; 0 for no dropout */
} attention_task;

/* The tiles of 8 columns that a kernel is made for; two: in bf16, a float of shared memory holding two numbers. Strides are in floats. */
template <int wide_tiles, int extra_tiles, bool bf16 = false> struct attention_shape {
    static constexpr bool two = bf16;
    static constexpr int wide = 8 * wide_tiles, extra = 8 * extra_tiles;
    static constexpr int depth = wide_tiles + extra_tiles;   /* tiles of a product of pairs, and of a query's sums */
    static constexpr int all = 2 * wide_tiles + extra_tiles; /* tiles of a key's sums */
    static constexpr int after = wide + extra;
    static constexpr int runs = two ? depth / 2 : depth; /* steps of a product of pairs */
    static_assert(!two || depth % 2 == 0, "a step is two tiles in bf16");

    __host__ __device__ static constexpr int at(int cols)
    {
        return two ? cols / 2 : cols;
    }
    /* 4 modulo 8, as tile_load wants it */
    __host__ __device__ static constexpr int stride(int cols)
    {
        return at(cols) + 4 - at(cols) % 8 / 4 * 4;
    }
    static constexpr int key_raw = 8 * all, gradient_raw = 16 * depth; /* as they come, before they are bf16 */
    static constexpr int key_stride = stride(key_raw);
    static constexpr int query_stride = stride(8 * depth); /* forward */
    static constexpr int gradient_stride = stride(gradient_raw);
};

/* ---- to shared memory ---------------------------------------------------------------------------------------- */

/* Tokens come by cp.async straight to where they are multiplied; tensor cores do not read the last 13 bits of a float. For bf16 they
 * come to a place of their own, and every thread then packs what it asked for itself. A thread has the same columns of every so
 * many rows. Padding is cleared once, before anything comes. */
enum attention_way { ATTENTION_ASK, ATTENTION_PACK };

template <attention_way way, int count>
__device__ static __forceinline__ void attention_take(float *to, const float *from, bool there, bool second)
{
    if constexpr (way == ATTENTION_ASK && count > 1) {
        tile_copy<count>(to, from, there);
    } else if constexpr (way == ATTENTION_ASK) {
        tile_copy<1>(to, from, there);
        tile_copy<1>(to + 1, from + 1, there && second);
    } else if constexpr (count == 4) {
        float4 x = there ? *(const float4 *)from : make_float4(0, 0, 0, 0);
        *(float2 *)to = make_float2(tile_two(x.x, x.y), tile_two(x.z, x.w));
    } else if constexpr (count == 2) {
        float2 x = there ? *(const float2 *)from : make_float2(0, 0);
        *to = tile_two(x.x, x.y);
    } else {
        *to = tile_two(there ? from[0] : 0, there && second ? from[1] : 0);
    }
}

template <attention_way way, int count>
__device__ static __forceinline__ void attention_move_by(const attention_part *part, float *to, int stride,
                                                         const float *from, int from_stride, int present, int rows)
{
    constexpr int width = count == 4 ? 4 : 2;
    int lane = (int)threadIdx.x & 31, shift = part->shift, turns = 32 >> shift, cols = part->cols;
    int begin = ((int)threadIdx.x >> 5) * turns + (lane >> shift), step = ((int)blockDim.x >> 5) * turns;
    for (int c = (lane & ((1 << shift) - 1)) * width; c < cols; c += width << shift) {
        float *place = to + (way == ATTENTION_PACK ? c / 2 : c);
        const float *source = from + c;
#pragma unroll 4
        for (int r = begin; r < rows; r += step)
            attention_take<way, count>(place + r * stride, source + (int64_t)r * from_stride, r < present,
                                       c + 1 < cols);
    }
}

template <attention_way way>
__device__ static __forceinline__ void attention_move(const attention_part *part, float *to, int stride,
                                                      const float *from, int from_stride, int present, int rows)
{
    if (part->count == 4)
        attention_move_by<way, 4>(part, to, stride, from, from_stride, present, rows);
    else if (part->count == 2)
        attention_move_by<way, 2>(part, to, stride, from, from_stride, present, rows);
    else
        attention_move_by<way, 1>(part, to, stride, from, from_stride, present, rows);
}

/* Tokens [first, first + present) of all parts, and zeros up to `rows`. */
template <attention_way way>
__device__ static inline void attention_bring(const attention_part *parts, int count, int head, float *to, int stride,
                                              int first, int present, int rows)
{
#pragma unroll 1
    for (int p = 0; p < count; p++)
        attention_move<way>(&parts[p], to + (way == ATTENTION_PACK ? parts[p].first / 2 : parts[p].first), stride,
                            parts[p].from + (int64_t)first * parts[p].stride + head * parts[p].head_step,
                            parts[p].stride, present, rows);
}

/* Packs rows that this thread asked for. */
__device__ static inline void attention_settle(const attention_part *parts, int count, float *to, int stride,
                                               const float *from, int from_stride, int rows)
{
#pragma unroll 1
    for (int p = 0; p < count; p++)
        attention_move<ATTENTION_PACK>(&parts[p], to + parts[p].first / 2, stride, from + parts[p].first, from_stride,
                                       rows, rows);
}

/* Clears what the parts leave free of their columns. */
template <bool two>
__device__ static inline void attention_clear(const attention_part *parts, int count, float *to, int stride, int rows)
{
    for (int r = (int)threadIdx.x; r < rows; r += (int)blockDim.x)
        for (int p = 0; p < count; p++) {
            int end = parts[p].first + parts[p].wide, c = parts[p].first + parts[p].cols;
            for (c = two ? (c + 1) / 2 : c; c < (two ? end / 2 : end); c++)
                to[r * stride + c] = 0;
        }
}

/* ---- and back ------------------------------------------------------------------------------------------------ */

/* Numbers of rows g and g + 8 and tiles [first, first + count) to global memory: `to` is the place of this lane's row g and columns
 * 2t and 2t + 1 of the first tile. In pairs where all rows begin at multiples of 8 bytes. */
template <int first, int count, int all>
__device__ static __forceinline__ void attention_give(float *to, int64_t stride, bool upper, bool lower, int cols,
                                                      bool pairs, int adds, const float (&sum)[all][4])
{
    int member = tile_lane_now().member;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float *row = to + (half ? 8 * stride : 0);
        if (!(half ? lower : upper))
            continue;
#pragma unroll
        for (int n = 0; n < count; n++) {
            float x = sum[first + n][2 * half], y = sum[first + n][2 * half + 1];
            int col = 8 * n + 2 * member;
            if (pairs) {
                if (col < cols) {
                    float2 old = adds ? *(const float2 *)(row + 8 * n) : make_float2(0, 0);
                    *(float2 *)(row + 8 * n) = make_float2(old.x + x, old.y + y);
                }
            } else {
                if (col < cols)
                    lp_store(row + 8 * n, x, adds);
                if (col + 1 < cols)
                    lp_store(row + 8 * n + 1, y, adds);
            }
        }
    }
}

/* ---- segments ------------------------------------------------------------------------------------------------ */

/* attention_segment, by a warp: 32 places at a time. */
__device__ static inline int attention_segment_by_warp(const int32_t *segment, int segments, int token)
{
    int low = 0, high = segments, lane = (int)threadIdx.x & 31;
    while (high - low > 1) {
        int step = (high - low + 31) / 32, place = low + lane * step;
        int below = __popc(__ballot_sync(0xFFFFFFFFu, place < high && segment[place] <= token));
        low += (below - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

/* attention_spans for warps that have nothing else to do: the first row is looked for, the others are not far from it. All threads of
 * the warps that have rows take part; there are as many threads as rows, or more. */
__device__ static inline void attention_spans_by_warp(const lp_cuda_shard *shard, const int32_t *segment, int first,
                                                      int rows, int *start, int *end)
{
    int tokens = shard->rows[LP_ROWS_TOKENS], segments = shard->segments, r = (int)threadIdx.x;
    if (r >= rows)
        return;
    int token = min(first + r, tokens - 1), s = attention_segment_by_warp(segment, segments, min(first, tokens - 1));
    while (s + 1 < segments && segment[s + 1] <= token)
        s++;
    start[r] = segment[s];
    if (end)
        end[r] = segment[s + 1];
}

/* ---- dropout ------------------------------------------------------------------------------------------------- */

/* Words of a query and head. */
__device__ static inline uint32_t *attention_words(const attention_task *task, int query, int head)
{
    return task->words + 1 + ((int64_t)query * task->form.heads + head) * task->word_stride;
}

/* Two words from this place in the query's segment on; asked for well before attention_keep makes 32 keys of them. Bits of keys that the
 * query does not see mean nothing. */
__device__ static inline uint2 attention_look_up(const attention_task *task, const uint32_t *words, int place)
{
    int word = min(max(place >> 5, -1), task->word_stride - 1);
    uint2 both = {words[word], words[word + 1]};
    return both;
}

__device__ static inline uint32_t attention_keep(uint2 both, int place)
{
    return (uint32_t)(((uint64_t)both.y << 32 | both.x) >> (place & 31));
}

/* Draws the words of one query and head; 8 threads share them, and thread `part` of them has every 8th byte. */
__device__ static inline void attention_draw(const attention_task *task, uint32_t *words, int head, int token,
                                             int start, int part)
{
    const attention_form *form = &task->form;
    unsigned char *bytes = (unsigned char *)words;
    uint64_t number = (task->shard->first_token + (uint64_t)token) * (uint64_t)form->heads + (uint64_t)head;
#pragma unroll 1
    for (int block = part; block * 8 <= token - start; block += 8) {
        lp_random_block drawn =
            lp_philox(task->shard->seed, form->purpose, task->shard->step, number * 65536 + (uint64_t)block);
        unsigned kept = 0;
#pragma unroll
        for (int place = 0; place < 8; place++)
            kept |= (unsigned)lp_dropout_keep(&drawn, place, form->threshold) << place;
        bytes[block] = (unsigned char)kept;
    }
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* 2^x and logarithms of base 2 take an instruction less than e^x. */
#define ATTENTION_LOG2_E 1.4426950408889634f
#define ATTENTION_LN_2 0.6931471805599453f

/* Whether the columns of all heads may be read `count` at a time. */
static inline bool attention_even(const float *from, int cols, int count)
{
    return cols % count == 0 && (uintptr_t)from % (sizeof(float) * (size_t)count) == 0;
}

/* by_head: every head has `cols` columns of its own; otherwise they share them. */
static inline attention_part attention_part_of(const float *from, int cols, int heads, bool by_head, int first,
                                               int wide)
{
    attention_part part = {from, by_head ? heads * cols : cols, by_head ? cols : 0, from ? cols : 0, first, wide, 1, 0};
    part.count = attention_even(from, cols, 4) ? 4 : attention_even(from, cols, 2) ? 2 : 1;
    int width = part.count == 4 ? 4 : 2;
    while (part.shift < 5 && (width << part.shift) < cols)
        part.shift++;
    return part;
}

/* What comes in, for kernels of this shape; `dout` and `dtime_out` may be NULL. */
template <typename shape>
static inline void attention_parts(attention_task *task)
{
    const attention_inputs *in = &task->in;
    int heads = task->form.heads, cols = task->form.cols, extra = task->form.extra;
    task->keys[0] = attention_part_of(in->key, cols, heads, true, 0, shape::wide);
    task->keys[1] = attention_part_of(in->basis, extra, heads, false, shape::wide, shape::extra);
    task->keys[2] = attention_part_of(in->value, cols, heads, true, shape::after, shape::wide);
    task->queries[0] = attention_part_of(in->query, cols, heads, true, 0, shape::wide);
    task->queries[1] = attention_part_of(in->time_query, extra, heads, true, shape::wide, shape::extra);
    task->queries[2] = attention_part_of(in->dtime_out, extra, heads, true, shape::after, shape::extra);
    task->queries[3] = attention_part_of(in->dout, cols, heads, true, shape::after + shape::extra, shape::wide);
}

/* Bytes of the words of all queries, and the most of them. */
enum { ATTENTION_MOST_WORDS = 256 * 1024 * 1024 };

static inline size_t attention_words_size(attention_task *task, const lp_cuda_run *run, int64_t tokens)
{
    task->word_stride = task->form.threshold ? (run->run->plan->largest.longest + 31) / 32 : 0;
    return task->form.threshold
               ? ((size_t)tokens * (size_t)task->form.heads * (size_t)task->word_stride + 2) * sizeof(uint32_t)
               : 0;
}

/* Whether bf16 may do. */
static inline bool attention_two(const lp_cuda_run *run)
{
    return run->run->precision == LP_PRECISION_BF16;
}

/* Whether the kernels' shapes have room for this one. */
static inline bool attention_fits(const attention_form *form)
{
    return form->extra ? form->cols <= 56 && form->extra <= 104 : form->cols <= 64;
}

/* Whether there is a kernel for this node, and memory for its words; if so, it is launched. */
bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run);
bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run);

#endif
