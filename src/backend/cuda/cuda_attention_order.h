/* cuda_attention_order.h: what the host computes from the segments of a shard; it follows them on the device.
 *
 * The order in which thread blocks of attention and its gradient take tiles of tokens: blocks are scheduled in the order
 * of their index, and a tile can cost four times as much as another, so the longest run first. Entry 2 t is tile t as
 * keys, 2 t + 1 as queries, which alone the forward pass reads; it needs no order where all its blocks are resident at
 * once.
 *
 * The bounds of the segment of every token, so that no kernel searches for them.
 */
#ifndef LP_CUDA_ATTENTION_ORDER_H
#define LP_CUDA_ATTENTION_ORDER_H

#include "backend/cuda/cuda.h"

enum { ATTENTION_ROWS = 64 /* tokens of a tile */ };

/* By token: the first token of its segment, and the one behind its last. */
typedef struct lp_cuda_bounds {
    const int32_t *start, *end;
} lp_cuda_bounds;

/* Entries of the order for shards of at most `tokens` tokens. */
static inline size_t lp_cuda_attention_order_tiles(int64_t tokens)
{
    return 2 * (size_t)lp_blocks(tokens, ATTENTION_ROWS);
}

/* Numbers of the order and of the bounds. */
static inline size_t lp_cuda_attention_order_count(int64_t tokens)
{
    return lp_cuda_attention_order_tiles(tokens) + 2 * (size_t)tokens;
}

/* Fills them for a shard with these segments. */
void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *order);

/* Device addresses; launches are sized for `tiles` entries, and skip those behind the last token. */
static inline const int32_t *lp_cuda_attention_order_of(const lp_cuda_run *run, unsigned *tiles)
{
    *tiles = (unsigned)lp_cuda_attention_order_tiles(run->run->plan->largest.rows[LP_ROWS_TOKENS]);
    return run->segment + run->largest_segments + 1;
}

static inline lp_cuda_bounds lp_cuda_bounds_of(const lp_cuda_run *run)
{
    unsigned tiles;
    const int32_t *start = lp_cuda_attention_order_of(run, &tiles) + tiles;
    return {start, start + run->run->plan->largest.rows[LP_ROWS_TOKENS]};
}

#endif
