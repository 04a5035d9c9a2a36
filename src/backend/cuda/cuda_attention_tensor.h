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
    int cols, wide;        /* columns, and with padding */
    int first;             /* where they begin in a row of shared memory */
    int count;             /* floats that a thread takes at once; 1: two, one by one */
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
    int most_segments; /* in any shard */
    attention_inputs in;
    attention_part keys[ATTENTION_KEYS];         /* key | basis | value */
    attention_part queries[ATTENTION_GRADIENTS]; /* query | time query | d time out | d out */
    float *out, *log_sum, *time_out;             /* results; in the gradient, what they were */
    float2 *marks;        /* [T x H]: the log sum times log2 e, and D of cuda_attention_gradient.cu times the scale */
    const int32_t *order; /* which tiles the gradient's blocks take: cuda_attention_order.h */
    int tiles;
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int adds;        /* bit i: gradient i is added to */
    bool plain;      /* wide parts come in pairs, extra ones in fours */
    int pairs;       /* bit i: numbers of result i may be stored in pairs */
    uint32_t *words; /* [T x H x word_stride], with a word before and one after that may be read, and mean nothing */
    int word_stride; /* of a query and head; 0 for no dropout */
    uint32_t *left;  /* where attention leaves words for its gradient, as in `words`; NULL: nowhere */
} attention_task;

/* The tiles of 8 columns that a kernel is made for; two: in bf16, a float of shared memory holding two numbers. Strides are in floats. */
template <int wide_tiles, int extra_tiles, bool bf16 = false> struct attention_shape {
    static constexpr bool two = bf16;
    static constexpr int wide = 8 * wide_tiles, extra = 8 * extra_tiles;
    static constexpr int depth = wide_tiles + extra_tiles; /* tiles of 8 columns of a product of pairs */
    static constexpr int after = wide + extra;
    /* Sums come in tiles of 16 columns: a query's over all it has, a key's over the wide part and, from where that ends, over the rest. */
    static constexpr int query_sums = (wide + extra) / 16, wide_sums = (wide + 15) / 16;
    static constexpr int key_sums = wide_sums + query_sums;
    static_assert((wide + extra) % 16 == 0, "whole tiles");
    static constexpr int runs = two ? depth / 2 : depth; /* steps of a product of pairs */
    static_assert(!two || depth % 2 == 0, "a step is two tiles in bf16");

    __host__ __device__ static constexpr int at(int cols)
    {
        return two ? cols / 2 : cols;
    }
    /* Where part p of a token begins: one is wide, then come one or two extra, then another is wide. */
    __host__ __device__ static constexpr int place(bool packed, int p)
    {
        int cols = p == 0 ? 0 : wide + (p - 1) * extra;
        return packed ? cols / 2 : cols;
    }
    /* 4 modulo 8, as tile_load wants it */
    __host__ __device__ static constexpr int stride(int cols)
    {
        return at(cols) + 4 - at(cols) % 8 / 4 * 4;
    }
    static constexpr int key_raw = 2 * wide + extra, gradient_raw = 16 * depth; /* as they come, before they are bf16 */
    static constexpr int key_stride = stride(key_raw);
    static constexpr int query_stride = stride(8 * depth); /* forward */
    static constexpr int gradient_stride = stride(gradient_raw);
};

/* ---- to shared memory ---------------------------------------------------------------------------------------- */

/* Tokens come by cp.async straight to where they are multiplied; tensor cores do not read the last 13 bits of a float. For bf16 they
 * come to a place of their own, and every thread then packs what it asked for itself. A thread has the same columns of every so
 * many rows, padding among them: that is written as zeros. */
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

/* Columns that a warp has threads enough for. A warp takes a row; all but where it comes from is known to the compiler. Rows from `first` on
 * are taken, `present` of which are there. Addresses are products of 32 bits: those of 64 took longer than the copies. */
template <attention_way way, int count, int stride, int rows, int threads, int unroll = 16>
__device__ static __forceinline__ void attention_move_once(int cols, int wide, float *to, const float *from,
                                                           int from_stride, int first, int present, int c)
{
    constexpr int warps = threads / 32;
    static_assert(rows % warps == 0, "every warp has as many rows");
    int warp = (int)threadIdx.x >> 5, left = c < cols ? present - warp : 0;
    uint32_t bytes = (uint32_t)from_stride * (uint32_t)sizeof(float);
    float *place = to + warp * stride + (way == ATTENTION_PACK ? c / 2 : c);
    const char *source = (const char *)(from + c);
    if (c >= wide)
        return;
    first += warp;
#pragma unroll(unroll)
    for (int r = 0; r < rows; r += warps)
        attention_take<way, count>(place + r * stride,
                                   (const float *)(source + (uint64_t)(uint32_t)(first + r) * bytes), r < left,
                                   c + 1 < cols);
}

template <attention_way way, int count, int stride, int rows, int threads>
__device__ static __forceinline__ void attention_move_by(int cols, int wide, float *to, const float *from,
                                                         int from_stride, int first, int present)
{
    constexpr int width = count == 4 ? 4 : 2;
#pragma unroll 1
    for (int c = 0; c < wide; c += 32 * width)
        attention_move_once<way, count, stride, rows, threads, count == 1 ? 1 : 4>(
            cols, wide, to, from, from_stride, first, present, c + ((int)threadIdx.x & 31) * width);
}

template <attention_way way, int stride, int rows, int threads>
__device__ static __forceinline__ void attention_move(const attention_part *part, float *to, const float *from,
                                                      int from_stride, int first, int present)
{
    if (part->count == 4)
        attention_move_by<way, 4, stride, rows, threads>(part->cols, part->wide, to, from, from_stride, first, present);
    else if (part->count == 2)
        attention_move_by<way, 2, stride, rows, threads>(part->cols, part->wide, to, from, from_stride, first, present);
    else
        attention_move_by<way, 1, stride, rows, threads>(part->cols, part->wide, to, from, from_stride, first, present);
}

/* Tokens [first, first + present) of the first `count` parts, and zeros up to `rows`. Where all have the sizes that `plain` means there are
 * no loops, and nothing is looked up. */
template <typename shape, attention_way way, int stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_bring(const attention_part (&parts)[count], int used, bool plain,
                                                       int head, float *to, int first, int present)
{
    int lane = (int)threadIdx.x & 31;
    if (plain) {
#pragma unroll
        for (int p = 0; p < count; p++) {
            constexpr int last = count - 1;
            const float *from = parts[p].from + head * parts[p].head_step;
            if (p >= used)
                continue;
            if (p == 0 || p == last)
                attention_move_once<way, 2, stride, rows, threads>(parts[p].cols, shape::wide,
                                                                   to + shape::place(way == ATTENTION_PACK, p), from,
                                                                   parts[p].stride, first, present, 2 * lane);
            else if (shape::extra)
                attention_move_once<way, 4, stride, rows, threads>(parts[p].cols, shape::extra,
                                                                   to + shape::place(way == ATTENTION_PACK, p), from,
                                                                   parts[p].stride, first, present, 4 * lane);
        }
        return;
    }
#pragma unroll 1
    for (int p = 0; p < used; p++)
        attention_move<way, stride, rows, threads>(
            &parts[p], to + (way == ATTENTION_PACK ? parts[p].first / 2 : parts[p].first),
            parts[p].from + head * parts[p].head_step, parts[p].stride, first, present);
}

/* Packs rows that this thread asked for. */
template <typename shape, int stride, int from_stride, int rows, int threads, int count>
__device__ static __forceinline__ void attention_settle(const attention_part (&parts)[count], bool plain, float *to,
                                                        const float *from)
{
    int lane = (int)threadIdx.x & 31;
    if (plain) {
#pragma unroll
        for (int p = 0; p < count; p++) {
            constexpr int last = count - 1;
            if (p == 0 || p == last)
                attention_move_once<ATTENTION_PACK, 2, stride, rows, threads>(
                    parts[p].cols, shape::wide, to + shape::place(true, p), from + shape::place(false, p), from_stride,
                    0, rows, 2 * lane);
            else if (shape::extra)
                attention_move_once<ATTENTION_PACK, 4, stride, rows, threads>(
                    parts[p].cols, shape::extra, to + shape::place(true, p), from + shape::place(false, p), from_stride,
                    0, rows, 4 * lane);
        }
        return;
    }
#pragma unroll 1
    for (int p = 0; p < count; p++)
        attention_move<ATTENTION_PACK, stride, rows, threads>(&parts[p], to + parts[p].first / 2, from + parts[p].first,
                                                              from_stride, 0, rows);
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Tiles of sums (tile_spread_transposed) to global memory: tile m of them holds columns 16 m and on of a row in which the part begins at column
 * `begin` and has `cols` of `wide`. `to` is where row 0 of the warp's 16 begins; `present` of them are there. With `pairs` all
 * rows begin at multiples of 8 bytes. */
template <bool two, int first, int begin, int wide, int all>
__device__ static __forceinline__ void attention_give(float *to, int64_t stride, int present, int cols, bool pairs,
                                                      int adds, float (&sum)[all][2][4])
{
    constexpr int low = begin / 16, high = (begin + wide + 15) / 16, second = two ? 8 : 1;
    tile_lane me = tile_lane_now();
    int group = two ? me.group : 2 * me.group;
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
    if (adds)
        each([](float *place, float &x, float &y, bool one, bool other) {
            x += one ? place[0] : 0;
            y += other ? place[second] : 0;
        });
    if (!two && pairs)
        each([](float *place, float &x, float &y, bool one, bool) {
            if (one)
                *(float2 *)place = make_float2(x, y);
        });
    else
        each([](float *place, float &x, float &y, bool one, bool other) {
            if (one)
                place[0] = x;
            if (other)
                place[second] = y;
        });
}

/* Two warps that have the same rows: sums [from, to) of one to shared memory, and to those of the other. */
template <int from, int to, int all>
__device__ static __forceinline__ void attention_leave(float *place, const float (&sum)[all][2][4])
{
    place += tile_lane_now().lane;
#pragma unroll
    for (int m = from; m < to; m++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            place[32 * (8 * (m - from) + i)] = sum[m][i >> 2][i & 3];
}

template <int from, int to, int all>
__device__ static __forceinline__ void attention_join(const float *place, float (&sum)[all][2][4])
{
    place += tile_lane_now().lane;
#pragma unroll
    for (int m = from; m < to; m++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[m][i >> 2][i & 3] += place[32 * (8 * (m - from) + i)];
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
        probe.begin[j] = task->segment[min(4 * ((int)threadIdx.x & 31) + j, task->most_segments)];
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
        int step = (high - low + 31) / 32, place = low + lane * step;
        below = __popc(__ballot_sync(0xFFFFFFFFu, place < high && segment[place] <= token));
        low += (below - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

/* The segments from that of some token on. */
typedef struct attention_near {
    int number, begin; /* of the first */
    int next;          /* lane i: where the i-th after it begins */
} attention_near;

__device__ static inline attention_near attention_near_of(const int32_t *segment, int segments, int tokens,
                                                          attention_probe probe, int token)
{
    int s = attention_segment_by_warp(segment, segments, probe, token), next = s + 1 + ((int)threadIdx.x & 31);
    attention_near near = {s, 0, 0};
    if (segments <= 128) {
        near.begin = attention_probe_at(probe, s);
        near.next = attention_probe_at(probe, next);
        near.next = next < segments ? near.next : tokens;
    } else {
        near.begin = segment[s];
        near.next = segment[min(next, segments)];
    }
    return near;
}

/* Where the segments of these tokens begin and end: none is before that of `near`, or after `last`. All of a warp take part. */
template <int count>
__device__ static inline void attention_find(const int32_t *segment, int segments, attention_near near, int last,
                                             const int (&token)[count], int (&start)[count], int (&end)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        start[i] = end[i] = near.begin;
    for (int k = 0;; k++) {
        if (k && k % 32 == 0)
            near.next = segment[min(near.number + 1 + k + ((int)threadIdx.x & 31), segments)];
        int next = __shfl_sync(0xFFFFFFFFu, near.next, k % 32);
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
    return tile_shift(both.x, both.y, place);
}

/* Draws the words of one query and head. `parts` threads share them, and thread `part` of them has every so many bytes, `together` of
 * which it draws side by side: one waits for itself. */
template <int parts, int together>
__device__ static __forceinline__ void attention_draw(const attention_task *task, uint32_t *words, int head, int token,
                                                      int start, int part)
{
    const attention_form *form = &task->form;
    unsigned char *bytes = (unsigned char *)words;
    uint64_t number = (task->shard->first_token + (uint64_t)token) * (uint64_t)form->heads + (uint64_t)head;
#pragma unroll 1
    for (int block = part; block * 8 <= token - start; block += parts * together) {
        unsigned kept[together];
#pragma unroll
        for (int i = 0; i < together; i++) {
            lp_random_block drawn = lp_philox(task->shard->seed, form->purpose, task->shard->step,
                                              number * 65536 + (uint64_t)(block + i * parts));
            kept[i] = 0;
#pragma unroll
            for (int place = 0; place < 8; place++)
                kept[i] |= (unsigned)lp_dropout_keep(&drawn, place, form->threshold) << place;
        }
#pragma unroll
        for (int i = 0; i < together; i++)
            if ((block + i * parts) * 8 <= token - start)
                bytes[block + i * parts] = (unsigned char)kept[i];
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
    attention_part part = {
        from, by_head ? heads * cols : cols, by_head ? cols : 0, from ? cols : 0, from ? wide : 0, first, 1};
    /* By fours where 32 threads have not enough with pairs. */
    if (cols > 64 && attention_even(from, cols, 4))
        part.count = 4;
    else if (attention_even(from, cols, 2))
        part.count = 2;
    return part;
}

/* What comes in, for kernels of this shape; `dout` and `dtime_out` may be NULL. */
template <typename shape> static inline void attention_parts(attention_task *task)
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
    task->plain = true;
    for (int i = 0; i < ATTENTION_KEYS; i++)
        task->plain = task->plain && (!task->keys[i].from || task->keys[i].count == (i == 1 ? 4 : 2));
    for (int i = 0; i < ATTENTION_GRADIENTS; i++)
        task->plain = task->plain && (!task->queries[i].from || task->queries[i].count == (i % 3 ? 4 : 2));
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
