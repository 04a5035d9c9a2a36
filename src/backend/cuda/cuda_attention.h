/* cuda_attention.h: what the attention kernels and their gradient share.
 *
 * Layout: a thread block owns a tile of `rows` consecutive tokens, of any segments, and iterates over the tokens of
 * the other side, `inner_rows` at a time: a query tile over the earlier keys of its segments, a key tile over the
 * later queries. Short segments share a tile, so a launch depends on the number of tokens only. The
 * bounds of the segments are looked up once for every row of the tile; pairs across segments are masked.
 *
 * A token is one row of shared memory. Operands of one product are adjacent:
 *
 *     as a key      [ key | basis | value ]                               2 d + e columns
 *     as a query    [ query | time query ]                                  d + e
 *     in gradients  [ query | time query | d time out | d out ]           2 d + 2 e
 *
 * d and e are the columns of a head and of the basis, each padded to a multiple of 8. The warps form `warp_rows`
 * groups of 16 rows; the `warp_cols` warps of a group divide the columns of every product.
 */
#ifndef LP_CUDA_ATTENTION_H
#define LP_CUDA_ATTENTION_H

#include "backend/cuda/cuda_tile.h"

/* Constants of one attention node. */
typedef struct attention_config {
    int heads, head_dim, basis_dim; /* head_dim: columns of a head; basis_dim: of the basis */
    int head_padded, basis_padded;  /* padded to a multiple of 8 */
    int rows, inner_rows;           /* of the outer and the inner tile; multiples of 16 and 8 */
    int buffers;                    /* 2: double buffering of the inner tile */
    int warp_rows, warp_cols;       /* rows == 16 * warp_rows */
    int key_stride, query_stride;   /* of tokens in shared memory, in floats; the gradients of a query lie in its row */
    int score_stride;               /* of score tiles [rows x inner_rows] */
    float scale;                    /* of scores */
    uint32_t dropout_threshold, dropout_purpose; /* random stream (random.h) */
    float dropout_scale;                         /* 1 / (1 - rate) */
} attention_config;

/* Strides and first columns of one head in the matrices of tokens. */
typedef struct attention_head {
    int64_t stride, basis_stride;
    int first, basis_first; /* first columns */
    int index;
} attention_head;

__device__ static inline attention_head attention_head_of(const attention_config *config, int index)
{
    attention_head head = {(int64_t)config->heads * config->head_dim, (int64_t)config->heads * config->basis_dim,
                           index * config->head_dim, index * config->basis_dim, index};
    return head;
}

/* Index of the segment that contains a token. */
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

/* Bounds of the segments of a tile's tokens; `end` may be NULL. Rows beyond the last token get the last token's
 * segment. */
__device__ static inline void attention_segment_bounds(const lp_cuda_shard *shard, const int32_t *segment, int first,
                                                       int rows, int *start, int *end)
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

/* Dropout bits of the pairs of a tile, a byte for 8 consecutive keys of a segment (backend.h): bytes [queries x (keys
 * / 8 + 1)]. The first byte of a row holds key `first_key`'s position in the query's segment. start: begin of the
 * segments of `known` queries from query `origin` on; later queries belong to the segment of the last one. */
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

__device__ static inline void attention_bits_draw(const attention_bits *bits, const attention_config *config,
                                                  const lp_cuda_shard *shard, int head, int first_query, int queries,
                                                  int first_key)
{
    for (int i = (int)threadIdx.x; i < queries * bits->stride; i += (int)blockDim.x) {
        int n = i / bits->stride, query = first_query + n, start = attention_bits_start(bits, query);
        int block = ((first_key - start) >> 3) + i % bits->stride;
        if (block < 0 || block * 8 > query - start)
            continue;
        uint64_t row = (shard->first_token + (uint64_t)query) * (uint64_t)config->heads + (uint64_t)head;
        lp_random_block words =
            lp_philox(shard->seed, config->dropout_purpose, shard->step, row * 65536 + (uint64_t)block);
        unsigned keep = 0;
#pragma unroll
        for (int bit = 0; bit < 8; bit++)
            keep |= (unsigned)lp_dropout_keep(&words, bit, config->dropout_threshold) << bit;
        bits->bytes[i] = (unsigned char)keep;
    }
}

/* Dropout factor of one pair: 0, or 1 / (1 - rate). */
__device__ static inline float attention_dropout_factor(const attention_bits *bits, const attention_config *config,
                                                        int first_query, int first_key, int query, int key)
{
    if (config->dropout_threshold == 0)
        return 1;
    int start = attention_bits_start(bits, query), position = key - start;
    int byte = (query - first_query) * bits->stride + (position >> 3) - ((first_key - start) >> 3);
    return bits->bytes[byte] >> (position & 7) & 1 ? config->dropout_scale : 0.0f;
}

/* ---- visible range of a row group ---------------------------------------------------------------------------- */

/* The 8-token tiles of an inner tile that contain any of the tokens [low, high): all of them, and those of one warp of
 * the group, which takes every warp_cols-th. */
typedef struct attention_range {
    int low, high;   /* tiles of the inner tile */
    int from, count; /* the warp's tiles: j * warp_cols + warp_col for from <= j < count */
} attention_range;

__device__ static inline attention_range attention_range_of(const attention_config *config, int first, int low,
                                                            int high, int warp_col)
{
    attention_range range;
    range.low = min(max(low - first, 0), config->inner_rows) / 8;
    range.high = min(tile_pad(max(high - first, 0)), config->inner_rows) / 8;
    range.from = max(range.low - warp_col + config->warp_cols - 1, 0) / config->warp_cols;
    range.count = max(range.high - warp_col + config->warp_cols - 1, 0) / config->warp_cols;
    return range;
}

/* ---- part of the accumulators that a warp computes ----------------------------------------------------------- */

typedef struct attention_warp {
    int group_row, warp_col; /* first row of its group in the tile; index within the group */
    int first_tile, count;   /* its 8-column tiles of the accumulators */
    int low, high;           /* inner tokens [low, high) visible to its group */
} attention_warp;

/* all: 8-column tiles of a group; tiles: of a warp, at most. The caller sets low and high. */
__device__ static inline attention_warp attention_warp_of(const attention_config *config, int all, int tiles)
{
    int warp = tile_lane_now().warp, warp_col = warp % config->warp_cols, first = warp_col * tiles;
    attention_warp at = {warp / config->warp_cols * 16, warp_col, first, max(min(all - first, tiles), 0), 0, 0};
    return at;
}

/* ---- staging to shared memory -------------------------------------------------------------------------------- */

/* Stages tokens [first, first + present) as keys. */
template <bool tensor, tile_phase phase>
__device__ static inline void attention_stage_keys(float *to, const attention_config *config, attention_head head,
                                                   const float *key, const float *basis, const float *value, int first,
                                                   int present, int rows)
{
    int stride = config->key_stride, head_padded = config->head_padded;
    tile_stage<tensor, phase>(to, stride, rows, head_padded, key + first * head.stride + head.first, head.stride,
                              present, config->head_dim);
    if (config->basis_dim)
        tile_stage<tensor, phase>(to + head_padded, stride, rows, config->basis_padded,
                                  basis + (int64_t)first * config->basis_dim, config->basis_dim, present,
                                  config->basis_dim);
    tile_stage<tensor, phase>(to + head_padded + config->basis_padded, stride, rows, head_padded,
                              value + first * head.stride + head.first, head.stride, present, config->head_dim);
}

/* Stages tokens [first, first + present) as queries. */
template <bool tensor, tile_phase phase>
__device__ static inline void attention_stage_queries(float *to, const attention_config *config, attention_head head,
                                                      const float *query, const float *time_query, int first,
                                                      int present, int rows)
{
    tile_stage<tensor, phase>(to, config->query_stride, rows, config->head_padded,
                              query + first * head.stride + head.first, head.stride, present, config->head_dim);
    if (config->basis_dim)
        tile_stage<tensor, phase>(to + config->head_padded, config->query_stride, rows, config->basis_padded,
                                  time_query + first * head.basis_stride + head.basis_first, head.basis_stride, present,
                                  config->basis_dim);
}

/* ---- on the host --------------------------------------------------------------------------------------------- */

/* The constants of a node; each kernel chooses its tiles and warps. */
static inline attention_config attention_config_of(const lp_node *node)
{
    attention_config config = {};
    config.heads = node->attributes.heads;
    config.head_dim = node->inputs[0]->cols / config.heads;
    config.basis_dim = node->inputs[4] ? node->inputs[4]->cols : 0;
    config.head_padded = tile_pad(config.head_dim);
    config.basis_padded = tile_pad(config.basis_dim);
    config.scale = (float)node->attributes.scale;
    config.dropout_threshold = lp_dropout_threshold(node->attributes.rate);
    config.dropout_purpose = lp_dropout_purpose(node->attributes.stream);
    config.dropout_scale = (float)(65536.0 / (65536.0 - config.dropout_threshold));
    return config;
}

/* A task with the fields that every attention kernel has: inputs 0 to 4 of attention and of its gradient. */
template <typename task_type> static inline task_type attention_task_of(const lp_node *node, const lp_cuda_run *run)
{
    task_type task = {};
    task.config = attention_config_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    return task;
}

/* The same with the gradient's other inputs, 5 to 10. A task may declare results of attention as non-const. */
template <typename task_type>
static inline task_type attention_gradient_task_of(const lp_node *node, const lp_cuda_run *run)
{
    task_type task = attention_task_of<task_type>(node, run);
    task.lse = (decltype(task.lse))LP_INPUT(5);
    task.out = (decltype(task.out))LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = (decltype(task.time_out))LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    task.dlse = LP_INPUT(10);
    task.accumulate = (int)node->accumulate;
    return task;
}

#endif
