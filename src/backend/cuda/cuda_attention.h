/* cuda_attention.h: what attention and its gradient share on the device.
 *
 * A block of threads takes a tile of `rows` tokens that lie side by side, whichever segments they belong to, and goes over the tokens on
 * the other side of its pairs, `steps` at a time: a query looks back at the keys of its segment, a key forward at the queries.
 * So short segments share a tile, and a launch depends on the number of tokens alone. Where a segment begins and ends is looked up
 * once for every row of the tile; pairs that reach into another segment are masked.
 *
 * In shared memory a token is one row, in which the parts that are multiplied together stand together:
 *
 *     as a key      [ key | basis | value ]                               2 d + e columns
 *     as a query    [ query | time query ]                                  d + e
 *     in gradients  [ query | time query | d time out | d out ]           2 d + 2 e
 *
 * with d and e the columns of a head and of the basis, each padded to multiples of 8. Warps stand in `warp_rows` groups of 16 rows each; the
 * `warp_cols` warps of a group share the columns of every product.
 */
#ifndef LP_CUDA_ATTENTION_H
#define LP_CUDA_ATTENTION_H

#include "backend/cuda/cuda_tile.h"

/* One use of attention, the same for all its blocks. */
typedef struct attention_form {
    int heads, cols, extra;       /* of one head; of the basis */
    int cols_wide, extra_wide;    /* the same, padded */
    int rows, steps;              /* of a tile; multiples of 16 and 8 */
    int buffers;                  /* 2: the next step is on its way while one is worked on; 1: it is not */
    int warp_rows, warp_cols;     /* rows == 16 * warp_rows */
    int key_stride, query_stride; /* of tokens in shared memory; a query's is that of its gradients too */
    int share_stride;             /* of shares [rows x steps] */
    float scale;                  /* of scores */
    uint32_t threshold, purpose;  /* of dropout */
    float kept;                   /* what dropout scales the rest up by */
} attention_form;

/* The matrices of one head, and their strides. */
typedef struct attention_head {
    int64_t stride, extra_stride;
    int first, extra_first; /* columns */
    int number;
} attention_head;

__device__ static inline attention_head attention_head_of(const attention_form *form, int number)
{
    attention_head head = {(int64_t)form->heads * form->cols, (int64_t)form->heads * form->extra, number * form->cols,
                           number * form->extra, number};
    return head;
}

/* The number of the segment that holds this token: the last that begins at or before it. */
__device__ static inline int attention_segment(const int32_t *segment, int segments, int token)
{
    int low = 0, high = segments;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (segment[middle] <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Where the segments of a tile's tokens begin and end; `end` may be NULL. Tokens beyond the last count as the last. */
__device__ static inline void attention_spans(const lp_cuda_shard *shard, const int32_t *segment, int first, int rows,
                                              int *start, int *end)
{
    int tokens = shard->rows[LP_ROWS_TOKENS];
    for (int r = (int)threadIdx.x; r < rows; r += (int)blockDim.x) {
        int s = attention_segment(segment, shard->segments, min(first + r, tokens - 1));
        start[r] = segment[s];
        if (end)
            end[r] = segment[s + 1];
    }
}

/* ---- dropout ------------------------------------------------------------------------------------------------- */

/* Random bits of pairs, a byte for 8 keys side by side in their segment (backend.h): bytes [queries x (keys / 8 + 1)], the first for
 * the place of key `first_key` in the query's segment. start holds where segments begin from the query `origin` on, for
 * `known` queries; a tile's last token tells for those after it. */
typedef struct attention_bits {
    unsigned char *bytes;
    int stride;
    const int *start;
    int origin, known;
} attention_bits;

__device__ static inline int attention_bits_start(const attention_bits *bits, int query)
{
    return bits->start[min(query - bits->origin, bits->known - 1)];
}

__device__ static inline void attention_bits_draw(const attention_bits *bits, const attention_form *form,
                                                  const lp_cuda_shard *shard, int head, int first_query, int queries,
                                                  int first_key)
{
    for (int i = (int)threadIdx.x; i < queries * bits->stride; i += (int)blockDim.x) {
        int n = i / bits->stride, query = first_query + n, start = attention_bits_start(bits, query);
        int block = ((first_key - start) >> 3) + i % bits->stride;
        if (block < 0 || block * 8 > query - start)
            continue;
        uint64_t row = (shard->first_token + (uint64_t)query) * (uint64_t)form->heads + (uint64_t)head;
        lp_random_block words = lp_philox(shard->seed, form->purpose, shard->step, row * 65536 + (uint64_t)block);
        unsigned kept = 0;
#pragma unroll
        for (int place = 0; place < 8; place++)
            kept |= (unsigned)lp_dropout_keep(&words, place, form->threshold) << place;
        bits->bytes[i] = (unsigned char)kept;
    }
}

/* What dropout makes of the share of one pair. */
__device__ static inline float attention_factor(const attention_bits *bits, const attention_form *form, int first_query,
                                                int first_key, int query, int key)
{
    if (form->threshold == 0)
        return 1;
    int start = attention_bits_start(bits, query), place = key - start;
    int byte = (query - first_query) * bits->stride + (place >> 3) - ((first_key - start) >> 3);
    return bits->bytes[byte] >> (place & 7) & 1 ? form->kept : 0.0f;
}

/* ---- what a group of rows sees ------------------------------------------------------------------------------- */

/* Of the step that begins at some token, the tiles of 8 tokens that hold any of [low, high): all, and those of one of the group's warps, which
 * are every warp_cols-th. */
typedef struct attention_range {
    int low, high;   /* tiles of the step */
    int from, count; /* the warp's own: tile j * warp_cols + warp_col for from <= j < count */
} attention_range;

__device__ static inline attention_range attention_range_of(const attention_form *form, int first, int low, int high,
                                                            int warp_col)
{
    attention_range range;
    range.low = min(max(low - first, 0), form->steps) / 8;
    range.high = min(tile_pad(max(high - first, 0)), form->steps) / 8;
    range.from = max(range.low - warp_col + form->warp_cols - 1, 0) / form->warp_cols;
    range.count = max(range.high - warp_col + form->warp_cols - 1, 0) / form->warp_cols;
    return range;
}

/* ---- to shared memory ---------------------------------------------------------------------------------------- */

/* Tokens [first, first + present) as keys. */
template <bool tensor, tile_moment moment>
__device__ static inline void attention_move_keys(float *to, const attention_form *form, attention_head head,
                                                  const float *key, const float *basis, const float *value, int first,
                                                  int present, int rows)
{
    int stride = form->key_stride, wide = form->cols_wide;
    tile_move<tensor, moment>(to, stride, rows, wide, key + first * head.stride + head.first, head.stride, present,
                              form->cols);
    if (form->extra)
        tile_move<tensor, moment>(to + wide, stride, rows, form->extra_wide, basis + (int64_t)first * form->extra,
                                  form->extra, present, form->extra);
    tile_move<tensor, moment>(to + wide + form->extra_wide, stride, rows, wide,
                              value + first * head.stride + head.first, head.stride, present, form->cols);
}

/* Tokens [first, first + present) as queries. */
template <bool tensor, tile_moment moment>
__device__ static inline void attention_move_queries(float *to, const attention_form *form, attention_head head,
                                                     const float *query, const float *time_query, int first,
                                                     int present, int rows)
{
    tile_move<tensor, moment>(to, form->query_stride, rows, form->cols_wide, query + first * head.stride + head.first,
                              head.stride, present, form->cols);
    if (form->extra)
        tile_move<tensor, moment>(to + form->cols_wide, form->query_stride, rows, form->extra_wide,
                                  time_query + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                                  form->extra);
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* What a node asks for; tiles and warps are left to the kernels' own tables. */
static inline attention_form attention_form_of(const lp_node *node)
{
    attention_form form = {};
    form.heads = node->attributes.heads;
    form.cols = node->inputs[0]->cols / form.heads;
    form.extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    form.cols_wide = tile_pad(form.cols);
    form.extra_wide = tile_pad(form.extra);
    form.scale = (float)node->attributes.scale;
    form.threshold = lp_dropout_threshold(node->attributes.rate);
    form.purpose = lp_dropout_purpose(node->attributes.stream);
    form.kept = (float)(65536.0 / (65536.0 - form.threshold));
    return form;
}

/* The most bytes of shared memory a block may have, and with which two of them fit. */
enum { ATTENTION_MOST_SHARED = 227 * 1024, ATTENTION_HALF_SHARED = 113 * 1024 };

#endif
