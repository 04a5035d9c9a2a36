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

typedef struct attention_task {
    attention_form form;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *log_sum, *time_out; /* results; in the gradient, what they were */
    const float *dout, *dtime_out;
    float *inner; /* [T x H]: D of cuda_attention_gradient.cu */
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int adds;        /* bit i: gradient i is added to */
    uint32_t *words; /* [T x H x word_stride], with a word before and one after that may be read, and mean nothing */
    int word_stride; /* of a query and head */
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
    static constexpr int key_stride = stride(8 * all);
    static constexpr int query_stride = stride(8 * depth);     /* forward */
    static constexpr int gradient_stride = stride(16 * depth); /* query | time query | d time out | d out */
    static constexpr int key_room = 8 * all + 4, query_room = 8 * depth + 4; /* strides of sums on their way out */
};

/* Columns [first, first + width) of rows in shared memory. */
template <typename shape, tile_moment moment>
__device__ static inline void attention_move(float *to, int stride, int first, int width, int rows, const float *from,
                                             int64_t from_stride, int present, int cols)
{
    if (!shape::two)
        tile_move<true, moment>(to + first, stride, rows, width, from, from_stride, present, cols);
    else if (moment == TILE_ASK)
        tile_move_two(to + shape::at(first), stride, rows, width, from, from_stride, present, cols);
}

/* Tokens [first, first + present) as keys, and as queries. */
template <typename shape, tile_moment moment>
__device__ static inline void attention_bring_keys(const attention_task *task, attention_head head, float *to,
                                                   int first, int present, int rows)
{
    const attention_form *form = &task->form;
    int64_t place = first * head.stride + head.first;
    attention_move<shape, moment>(to, shape::key_stride, 0, shape::wide, rows, task->key + place, head.stride, present,
                                  form->cols);
    if (form->extra)
        attention_move<shape, moment>(to, shape::key_stride, shape::wide, shape::extra, rows,
                                      task->basis + (int64_t)first * form->extra, form->extra, present, form->extra);
    attention_move<shape, moment>(to, shape::key_stride, shape::after, shape::wide, rows, task->value + place,
                                  head.stride, present, form->cols);
}

template <typename shape, tile_moment moment>
__device__ static inline void attention_bring_queries(const attention_task *task, attention_head head, float *to,
                                                      int stride, int first, int present, int rows)
{
    const attention_form *form = &task->form;
    attention_move<shape, moment>(to, stride, 0, shape::wide, rows, task->query + first * head.stride + head.first,
                                  head.stride, present, form->cols);
    if (form->extra)
        attention_move<shape, moment>(to, stride, shape::wide, shape::extra, rows,
                                      task->time_query + first * head.extra_stride + head.extra_first,
                                      head.extra_stride, present, form->extra);
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

__device__ static inline void attention_draw(const attention_task *task, int head, int token, int start)
{
    const attention_form *form = &task->form;
    unsigned char *bytes = (unsigned char *)attention_words(task, token, head);
    uint64_t number = (task->shard->first_token + (uint64_t)token) * (uint64_t)form->heads + (uint64_t)head;
    for (int block = (int)threadIdx.x & 31; block * 8 <= token - start; block += 32) {
        lp_random_block drawn =
            lp_philox(task->shard->seed, form->purpose, task->shard->step, number * 65536 + (uint64_t)block);
        unsigned kept = 0;
#pragma unroll
        for (int place = 0; place < 8; place++)
            kept |= (unsigned)lp_dropout_keep(&drawn, place, form->threshold) << place;
        bytes[block] = (unsigned char)kept;
    }
}

/* ---- rows of a warp ------------------------------------------------------------------------------------------ */

/* 2^x and logarithms of base 2 take an instruction less than e^x. */
#define ATTENTION_LOG2_E 1.4426950408889634f
#define ATTENTION_LN_2 0.6931471805599453f

/* Tiles and steps of a kernel, the rest of its form. */
static inline void attention_tiles(attention_form *form, int wide, int extra, int rows, int steps, int buffers,
                                   int key_stride, int query_stride)
{
    form->cols_wide = wide;
    form->extra_wide = extra;
    form->rows = rows;
    form->warp_rows = rows / 16;
    form->warp_cols = 1;
    form->steps = steps;
    form->buffers = buffers;
    form->key_stride = key_stride;
    form->query_stride = query_stride;
}

/* Bytes of the words of all queries, and the most of them. */
enum { ATTENTION_MOST_WORDS = 256 * 1024 * 1024 };

static inline size_t attention_words_size(attention_task *task, const lp_cuda_run *run, int64_t tokens)
{
    task->word_stride = (run->run->plan->largest.longest + 31) / 32;
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
