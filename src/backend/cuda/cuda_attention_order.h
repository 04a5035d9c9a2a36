/* cuda_attention_order.h: which block of attention's gradient takes which tile of tokens.
 *
 * Blocks begin in the order of their numbers, and a tile may have four times as much to do as another: those with most should begin first. The
 * host orders them when it sends the segments of a shard, and the list lies behind these on the device: tile t as keys is 2 t, as queries
 * 2 t + 1. So nobody waits for it. Attention itself needs none: all its blocks run at once.
 */
#ifndef LP_CUDA_ATTENTION_ORDER_H
#define LP_CUDA_ATTENTION_ORDER_H

#include "backend/cuda/cuda.h"

enum { ATTENTION_ROWS = 64 /* tokens of a tile */ };

/* Numbers in the list, where a shard has at most so many tokens. */
static inline size_t lp_cuda_attention_order_count(int64_t tokens)
{
    return 2 * (size_t)lp_blocks(tokens, ATTENTION_ROWS);
}

/* Fills it, for a shard of these segments. */
void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *order);

/* The list on the device. */
static inline const int32_t *lp_cuda_attention_order_of(const lp_cuda_run *run)
{
    return run->segment + run->largest_segments + 1;
}

#endif
