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
typedef struct attention_config {
    int heads, head_dim, basis_dim; /* of one head; of the basis */
    int head_padded, basis_padded;  /* the same, padded */
    int rows, inner_rows;           /* of a tile; multiples of 16 and 8 */
    int buffers;                    /* 2: the next step is on its way while one is worked on; 1: it is not */
    int warp_rows, warp_cols;       /* rows == 16 * warp_rows */
    int key_stride, query_stride;   /* of tokens in shared memory; a query's is that of its gradients too */
    int score_stride;               /* of shares [rows x steps] */
    float scale;                    /* of scores */
    uint32_t dropout_threshold, dropout_purpose; /* of dropout */
    float dropout_scale;                         /* what dropout scales the rest up by */
} attention_config;

/* The matrices of one head, and their strides. */
typedef struct attention_head {
    int64_t stride, basis_stride;
    int first, basis_first; /* columns */
    int index;
} attention_head;

__device__ static inline attention_head attention_head_of(const attention_config *config, int index)
{
    attention_head head = {(int64_t)config->heads * config->head_dim, (int64_t)config->heads * config->basis_dim,
                           index * config->head_dim, index * config->basis_dim, index};
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

/* What dropout makes of the share of one pair. */
__device__ static inline float attention_dropout_factor(const attention_bits *bits, const attention_config *config,
                                                        int first_query, int first_key, int query, int key)
{
    if (config->dropout_threshold == 0)
        return 1;
    int start = attention_bits_start(bits, query), position = key - start;
    int byte = (query - first_query) * bits->stride + (position >> 3) - ((first_key - start) >> 3);
    return bits->bytes[byte] >> (position & 7) & 1 ? config->dropout_scale : 0.0f;
}

/* ---- what a group of rows sees ------------------------------------------------------------------------------- */

/* Of the step that begins at some token, the tiles of 8 tokens that hold any of [low, high): all, and those of one of the group's warps, which
 * are every warp_cols-th. */
typedef struct attention_range {
    int low, high;   /* tiles of the step */
    int from, count; /* the warp's own: tile j * warp_cols + warp_col for from <= j < count */
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

/* ---- to shared memory ---------------------------------------------------------------------------------------- */

/* Tokens [first, first + present) as keys. */
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

/* Tokens [first, first + present) as queries. */
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

/* What a node asks for; tiles and warps are left to the kernels' own tables. */
static inline attention_config attention_config_of(const lp_node *node)
{
    attention_config config = {};
    config.heads = node->with.heads;
    config.head_dim = node->inputs[0]->cols / config.heads;
    config.basis_dim = node->inputs[4] ? node->inputs[4]->cols : 0;
    config.head_padded = tile_pad(config.head_dim);
    config.basis_padded = tile_pad(config.basis_dim);
    config.scale = (float)node->with.scale;
    config.dropout_threshold = lp_dropout_threshold(node->with.rate);
    config.dropout_purpose = lp_dropout_purpose(node->with.stream);
    config.dropout_scale = (float)(65536.0 / (65536.0 - config.dropout_threshold));
    return config;
}

/* A task with the fields set that every attention kernel has: inputs 0 to 4 of attention and of its gradient. */
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

/* The same with the gradient's other inputs, 5 to 9. A task may declare results of attention as non-const. */
template <typename task_type>
static inline task_type attention_gradient_task_of(const lp_node *node, const lp_cuda_run *run)
{
    task_type task = attention_task_of<task_type>(node, run);
    task.lse = (decltype(task.lse))LP_INPUT(5);
    task.out = (decltype(task.out))LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = (decltype(task.time_out))LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    task.accumulate = (int)node->accumulate;
    return task;
}

#endif
