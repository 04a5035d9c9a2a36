/* cuda_attention_order.h: what the host computes from the segments of a shard; it follows them on the device.
 *
 * The order in which thread blocks of attention and its gradient take tiles of tokens: blocks are scheduled in the order
 * of their index, and a tile can cost four times as much as another, so the longest run first. Entry 2 t is tile t as
 * keys, 2 t + 1 as queries, which alone the forward pass reads. Launches are sized for all entries, and skip those
 * behind the last token.
 *
 * The bounds of the segment of every token, so that no kernel searches for them.
 */
#ifndef LP_CUDA_ATTENTION_ORDER_H
#define LP_CUDA_ATTENTION_ORDER_H

#include "backend/cuda/cuda.h"

enum { ATTENTION_ROWS = 64 /* tokens of a tile */ };

typedef struct lp_cuda_bounds {
    const int32_t *start, *end; /* by token: the first token of its segment, and the one behind its last */
    const int32_t *order;       /* of tiles */
} lp_cuda_bounds;

/* Entries of the order for shards of at most `tokens` tokens. */
static inline unsigned lp_cuda_attention_order_tiles(int64_t tokens)
{
    return 2 * lp_blocks(tokens, ATTENTION_ROWS);
}

/* Numbers of the bounds and of the order. */
static inline size_t lp_cuda_attention_order_count(int64_t tokens)
{
    return lp_cuda_attention_order_tiles(tokens) + 2 * (size_t)tokens;
}

/* Fills them for a shard with these segments (cuda_attention.cu). */
void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *start);

/* Device addresses. */
static inline lp_cuda_bounds lp_cuda_bounds_of(const lp_cuda_run *run)
{
    const int32_t *start = run->segment + run->largest_segments + 1;
    int64_t tokens = run->run->plan->largest.rows[LP_ROWS_TOKENS];
    return {start, start + tokens, start + 2 * tokens};
}

#endif
